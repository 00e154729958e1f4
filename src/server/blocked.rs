//! Clients that wait for jobs, first come first served: who is served next. How they are blocked,
//! and how their waits end, is in [`super::waits`]; those that wait for a batch in [`filling`].

pub mod filling;
mod tickets;

use super::agenda;
use super::api::acl::Call;
use super::api::{Ctx, KeyName};
use super::waits::{self, BlockedClient, ByTicket, Kind, ReplyJobs};
use super::{clock, config};
use crate::queue::clock::Now;
use crate::queue::deliver::Wanted;
use crate::queue::deliver::{LeaseLength, Pop};
use crate::queue::job::State;
use crate::queue::Queue;
use filling::{Fill, Filling};
use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use tickets::Tickets;

/// What POP and BPOP ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct PopRequest {
    pub count: Option<u64>,
    pub ttr_ms: Option<u64>,
    /// Replaces the server's default TTR.
    pub lease_ms: Option<u64>,
    pub noack: bool,
    pub with_due: bool,
    pub with: Wanted,
    /// The client's id.
    pub client: u64,
    /// For BPOP: what is waited for.
    pub fill: Option<Fill>,
    /// For BPOP: writes the reply after a wait.
    pub reply: Option<ReplyJobs>,
}

impl PopRequest {
    /// The plainest request of the client that runs the command.
    #[inline(always)]
    pub fn of(ctx: Ctx<'_>) -> Self {
        PopRequest {
            client: ctx.client_id(),
            ..PopRequest::default()
        }
    }

    /// What to ask of the queue now: the server's default TTR may change while a client waits.
    #[inline(always)]
    pub fn pop(self) -> Pop<'static> {
        Pop {
            count: self.count.unwrap_or(1),
            id: None,
            lease: match (self.ttr_ms, self.lease_ms) {
                (Some(ms), _) => LeaseLength::Asked(ms),
                (None, Some(lease_ms)) => LeaseLength::InPlaceOf {
                    ttr_ms: config::default_ttr_ms(),
                    lease_ms,
                },
                (None, None) => LeaseLength::OfJob,
            },
            noack: self.noack,
            with: self.with,
            client: self.client,
        }
    }
}

struct BlockedPop {
    request: PopRequest,
    /// By the clock of queues, in ms.
    came: u64,
    db: c_int,
    keys: Vec<Arc<[u8]>>,
}

/// Tickets of the clients that wait on one key. MAXRESERVED holds back `leasing`, not `noack`.
#[derive(Default)]
struct ClientsOfKey {
    leasing: Tickets,
    noack: Tickets,
    /// Those with FILL, of both kinds, if there was any.
    filling: Option<Box<Filling>>,
    /// The key may hold a queue that is kept only for these clients.
    keeps_queue: bool,
}

#[derive(Default)]
struct BlockedPops {
    waiters: ByTicket<BlockedPop>,
    by_key: BTreeMap<c_int, BTreeMap<Arc<[u8]>, ClientsOfKey>>,
}

/// Which kinds of clients wait on a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kinds {
    pub leasing: bool,
    pub noack: bool,
    pub filling: bool,
}

impl Kinds {
    pub fn any(self) -> bool {
        self.without_fill() || self.filling
    }

    pub fn without_fill(self) -> bool {
        self.leasing || self.noack
    }
}

/// How many clients wait. An atomic, which is cheaper to read than a thread-local: each command reads it.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether any client has ever waited with FILL.
static HAS_FILLED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static REGISTRY: RefCell<BlockedPops> = RefCell::default();
}

impl ClientsOfKey {
    fn of(&mut self, request: PopRequest) -> &mut Tickets {
        if request.noack {
            &mut self.noack
        } else {
            &mut self.leasing
        }
    }

    /// False if the client is there already.
    fn insert(&mut self, ticket: u64, waiter: &BlockedPop) -> bool {
        match waiter.request.fill {
            Some(fill) => {
                let filling = self.filling.get_or_insert_default();
                filling.insert(ticket, (fill, waiter.request.noack), waiter.came)
            }
            None => self.of(waiter.request).insert(ticket),
        }
    }

    fn remove(&mut self, ticket: u64, request: PopRequest) {
        match request.fill {
            Some(_) => {
                let filling = self.filling.as_mut();
                filling.map(|it| it.remove(ticket, request.noack));
            }
            None => self.of(request).remove(ticket),
        }
    }

    fn len(&self) -> usize {
        self.leasing.len() + self.noack.len() + self.filling_len()
    }

    fn filling_len(&self) -> usize {
        self.filling.as_ref().map_or(0, |it| it.len())
    }
}

impl BlockedPops {
    fn clients_of(&self, db: c_int, key: &[u8]) -> Option<&ClientsOfKey> {
        self.by_key.get(&db)?.get(key)
    }

    fn add<'a>(
        &mut self,
        ticket: u64,
        names: impl Iterator<Item = &'a [u8]>,
        mut waiter: BlockedPop,
    ) {
        let by_key = self.by_key.entry(waiter.db).or_default();
        for name in names {
            let key = by_key.get_key_value(name);
            let key = key.map_or_else(|| Arc::from(name), |(key, _)| Arc::clone(key));
            let clients = by_key.entry(Arc::clone(&key)).or_default();
            // A key may be named twice.
            if clients.insert(ticket, &waiter) {
                waiter.keys.push(key);
            }
        }
        self.waiters.insert(ticket, waiter);
        COUNT.store(self.waiters.len(), Ordering::Relaxed);
    }

    /// Removes a waiter from all keys. Returned with it: the keys on which it was the last, if
    /// they hold a queue that was kept only for waiting clients.
    fn remove(&mut self, ticket: u64) -> Option<(BlockedPop, Vec<Arc<[u8]>>)> {
        let waiter = self.waiters.remove(ticket)?;
        COUNT.store(self.waiters.len(), Ordering::Relaxed);
        let mut left = Vec::new();
        if let Some(by_key) = self.by_key.get_mut(&waiter.db) {
            for key in &waiter.keys {
                let Entry::Occupied(mut clients) = by_key.entry(Arc::clone(key)) else {
                    continue;
                };
                clients.get_mut().remove(ticket, waiter.request);
                if clients.get().len() == 0 {
                    let (key, clients) = clients.remove_entry();
                    left.extend(clients.keeps_queue.then_some(key));
                }
            }
        }
        Some((waiter, left))
    }
}

/// The callbacks of clients that wait for jobs.
static KIND: Kind = Kind {
    leave,
    place: |ticket| {
        REGISTRY.with_borrow(|registry| {
            let waiter = registry.waiters.get(ticket)?;
            Some((waiter.db, Arc::clone(waiter.keys.first()?)))
        })
    },
};

/// Removes a waiter. The timer then checks keys whose queue was kept only for waiting clients, and
/// deletes them; not `looked_at`, which is being processed already.
fn leave(ticket: u64, looked_at: Option<&[u8]>) {
    let removed = REGISTRY.with_borrow_mut(|registry| registry.remove(ticket));
    let Some((waiter, left)) = removed else {
        return;
    };
    for key in left.iter().filter(|&key| Some(&**key) != looked_at) {
        agenda::check_soon(waiter.db, key);
    }
}

/// Whether any client waits.
#[inline]
pub fn are_there() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}

/// Whether any client waits and this server delivers jobs. Checked by each command.
#[inline]
pub fn are_served() -> bool {
    are_there() && agenda::is_master()
}

pub fn any(db: c_int, key: &[u8]) -> bool {
    kinds(db, key).any()
}

#[inline]
pub fn kinds(db: c_int, key: &[u8]) -> Kinds {
    if are_there() {
        kinds_there(db, key)
    } else {
        Kinds::default()
    }
}

#[cold]
#[inline(never)]
fn kinds_there(db: c_int, key: &[u8]) -> Kinds {
    REGISTRY.with_borrow(|registry| {
        let clients = registry.clients_of(db, key);
        clients.map_or(Kinds::default(), |clients| Kinds {
            leasing: clients.leasing.len() > 0,
            noack: clients.noack.len() > 0,
            filling: clients.filling_len() > 0,
        })
    })
}

/// How many clients wait on a key.
pub fn count(db: c_int, key: &[u8]) -> usize {
    REGISTRY.with_borrow(|registry| registry.clients_of(db, key).map_or(0, ClientsOfKey::len))
}

/// How many clients wait on any key.
pub fn count_all() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// The names in a database on which clients wait.
pub fn keys_of(db: c_int) -> Vec<Arc<[u8]>> {
    REGISTRY.with_borrow(|registry| {
        let by_key = registry.by_key.get(&db);
        by_key.map_or(Vec::new(), |by_key| by_key.keys().cloned().collect())
    })
}

/// All names on which clients wait.
pub fn keys() -> Vec<(c_int, Arc<[u8]>)> {
    REGISTRY.with_borrow(|registry| {
        let by_key = registry.by_key.iter();
        by_key
            .flat_map(|(&db, by_key)| by_key.keys().map(move |key| (db, Arc::clone(key))))
            .collect()
    })
}

/// Notes that the key's queue must be removed when its last client has left.
pub fn keep_queue(db: c_int, key: &[u8]) {
    REGISTRY.with_borrow_mut(|registry| {
        let by_key = registry.by_key.get_mut(&db);
        if let Some(clients) = by_key.and_then(|by_key| by_key.get_mut(key)) {
            clients.keeps_queue = true;
        }
    });
}

/// Blocks the client that runs the command until one of these keys, which share a slot, has a job.
pub fn block<'a>(
    ctx: Ctx<'_>,
    names: impl Iterator<Item = &'a [u8]> + Clone,
    request: PopRequest,
    until: u64,
) {
    let first = names.clone().next().unwrap_or_default();
    let nothing = Box::new(|ctx: Ctx<'_>| ctx.reply_null_array());
    let ticket = waits::block(ctx, first, until, &KIND, nothing);
    let waiter = BlockedPop {
        request,
        came: request.fill.map_or(0, |_| {
            HAS_FILLED.store(true, Ordering::Relaxed);
            rounded_up(clock::now())
        }),
        db: ctx.selected_db(),
        keys: Vec::with_capacity(names.size_hint().0.max(1)),
    };
    REGISTRY.with_borrow_mut(|registry| registry.add(ticket, names, waiter));
}

/// The client that has waited longest on a key.
pub struct First {
    pub ticket: u64,
    pub request: PopRequest,
    /// The key, if it waits on no other.
    pub only_key: Option<Arc<[u8]>>,
}

/// The first client on a key among those that it can serve. A full MAXRESERVED or GROUPMAX holds back all clients that do
/// not pop with NOACK, and FILL those whose batch is not full.
pub fn first_in_line(
    (db, key): (c_int, &[u8]),
    only_noack: bool,
    queue: &Queue,
    now: Now,
) -> Option<First> {
    REGISTRY.with_borrow_mut(|registry| {
        let clients = registry.by_key.get_mut(&db)?.get_mut(key)?;
        let leasing = clients.leasing.first().filter(|_| !only_noack);
        let plain = leasing.into_iter().chain(clients.noack.first());
        let filling = clients.filling.as_mut();
        let filling = filling.and_then(|it| it.first(ready(queue, now), only_noack, now.ms()));
        let ticket = plain.chain(filling).min()?;
        let waiter = registry.waiters.get(ticket)?;
        Some(First {
            ticket,
            request: waiter.request,
            only_key: match &waiter.keys[..] {
                [only] => Some(Arc::clone(only)),
                _ => None,
            },
        })
    })
}

/// From an instant on, a wait is not shorter than asked.
fn rounded_up(now: Now) -> u64 {
    now.us().div_ceil(1000)
}

fn ready(queue: &Queue, now: Now) -> usize {
    queue.at(now).len(Some(State::Ready))
}

fn with_filling<T>(db: c_int, key: &[u8], then: impl FnOnce(&mut Filling) -> T) -> Option<T> {
    REGISTRY.with_borrow_mut(|registry| {
        let clients = registry.by_key.get_mut(&db)?.get_mut(key)?;
        let filling = clients.filling.as_mut().filter(|it| it.len() > 0);
        filling.map(|filling| then(filling))
    })
}

/// When the timer must look after clients that wait with FILL. Called after everything that may have changed the queue.
#[cold]
pub fn attention_to_filling(db: c_int, key: &[u8], queue: &Queue, now: Now) -> Option<u64> {
    let ready = ready(queue, now);
    with_filling(db, key, |filling| {
        filling.note(ready, rounded_up(now));
        let due = [false, true].map(|noack| {
            let any = filling.has_any(ready, noack, now.ms());
            any.then(|| queue.serving().next_delivery(now, noack))
                .flatten()
        });
        let coming = filling.lacks(ready);
        let coming = coming.and_then(|lacks| queue.jobs().nth_due(lacks, now));
        let ends = filling.next_end(now.ms());
        due.into_iter().flatten().chain(coming).chain(ends).min()
    })?
}

/// Another queue is under the name from now on, or none.
pub fn another_queue(db: c_int, key: &[u8]) {
    if HAS_FILLED.load(Ordering::Relaxed) {
        with_filling(db, key, Filling::begin_anew);
    }
}

/// How many clients wait with FILL, and when time alone lets one be served.
pub fn filling(db: c_int, key: &[u8], now: Now) -> Option<(usize, Option<u64>)> {
    with_filling(db, key, |filling| {
        (filling.len(), filling.next_end(now.ms()))
    })
}

/// The wait of this client is over: if it waits with FILL, it gets what can be delivered now. The keys of this client are
/// looked at once more; false if there is nothing more to do for it.
pub fn fill_is_over(ticket: u64) -> bool {
    let left = REGISTRY.with_borrow_mut(|registry| {
        let waiter = registry.waiters.get_mut(ticket)?;
        waiter.request.fill.filter(|&fill| fill != Fill::OVER)?;
        waiter.request.fill = Some(Fill::OVER);
        let (db, noack) = (waiter.db, waiter.request.noack);
        let keys = waiter.keys.clone();
        for key in &keys {
            let clients = registry.by_key.get_mut(&db).and_then(|it| it.get_mut(key));
            if let Some(filling) = clients.and_then(|it| it.filling.as_mut()) {
                let came = filling.remove(ticket, noack);
                came.map(|came| filling.insert(ticket, (Fill::OVER, noack), came));
            }
        }
        Some((db, keys))
    });
    let Some((db, keys)) = left else {
        return false;
    };
    keys.iter().for_each(|key| agenda::check_soon(db, key));
    true
}

/// The keys that the client named before `key` and for which `is_such` holds; and how many it named
/// in all.
pub fn named_before(
    ticket: u64,
    key: &[u8],
    is_such: impl Fn(c_int, &[u8]) -> bool,
) -> (Vec<Arc<[u8]>>, usize) {
    REGISTRY.with_borrow(|registry| {
        let Some(waiter) = registry.waiters.get(ticket) else {
            return (Vec::new(), 0);
        };
        let before = waiter.keys.iter().take_while(|other| ***other != *key);
        let such = before.filter(|other| is_such(waiter.db, other));
        (such.cloned().collect(), waiter.keys.len())
    })
}

/// Whether the client's user may still pop from this key.
pub fn is_allowed(ctx: Ctx<'_>, ticket: u64, key: KeyName<'_>) -> bool {
    waits::is_allowed(ctx, ticket, Call::BPOP, key)
}

/// Takes a client off all its keys. The caller must answer it at once.
pub fn take(ticket: u64, served_on: Option<&[u8]>) -> Option<BlockedClient> {
    waits::take(ticket, served_on)
}

/// Whether `is_such` holds for one of the keys that the client waits on.
pub fn waits_on(ticket: u64, is_such: impl Fn(c_int, &[u8]) -> bool) -> bool {
    REGISTRY.with_borrow(|registry| {
        let waiter = registry.waiters.get(ticket);
        waiter.is_some_and(|waiter| waiter.keys.iter().any(|key| is_such(waiter.db, key)))
    })
}
