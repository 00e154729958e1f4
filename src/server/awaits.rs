//! Clients that wait for the end of jobs: DQ.AWAIT, and DQ.BTOUCH, whose workers wait to learn that
//! they lost a lease.
//!
//! To look up later how a job ended would be wrong: by then it may be gone, or exist again
//! (docs/model/Outcomes.tla). So each end is noted for waiting clients when it is carried out
//! ([`note`]), and sent afterwards. A single command sends the ends that it caused
//! ([`tell_by_command`]). After transactions and scripts, the timer sends them. Only what happens
//! to a whole key (DEL, RENAME and others) does not pass through a queue's rules. Then the timer
//! checks what is under the name, or a command does before it changes the key. The timer's part is
//! in [`super::notify`].
//!
//! ```text
//!   key.rs: listen ─► the queue notes departures ─► key.rs: finish ─► note ─► sent by the command
//!                                                                        └──► ready ─► sent by the timer
//!   DEL, RENAME, FLUSHALL, SWAPDB ... ─► doubtful ─► look ────────────────────► ready
//! ```

use super::api::acl::Call;
use super::api::{Ctx, KeyName};
use super::clock;
use super::timer;
use super::waits::{self, Answer, ByTicket, Kind, Occasion};
use crate::queue::clock::Now;
use crate::queue::outcome::Departure;
use crate::queue::Queue;
use crate::storage::few::Few;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::c_int;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

mod waiter;

pub use waiter::{report_of, Found, ReplyEnds, ReplyLeases, Report};
use waiter::{Waiter, WaitsFor};

/// So many clients a command answers itself; if there are more, the timer does.
const ANSWERED_BY_COMMAND: usize = 16;
/// So many ids are looked up before a command changes a key that was replaced.
const CHECKED_BY_COMMAND: usize = 1000;

/// An id that clients wait for: one allocation, shared by all references to it. With thousands of
/// ids none is in the processor's cache.
pub type AwaitedId = Rc<[u8]>;

/// The clients that wait on one key.
#[derive(Default)]
struct Watched {
    tickets: BTreeSet<u64>,
    /// A hash table: in a tree, each of a dozen comparisons would read an id somewhere else in memory.
    by_id: HashMap<AwaitedId, Clients>,
}

/// A client's ticket, and the id's index among those that it waits for.
type Client = (u64, usize);

/// The clients that wait for one id. Usually there is one, which needs no allocation.
enum Clients {
    One(Client),
    Many(BTreeSet<Client>),
}

impl Clients {
    fn add(&mut self, client: Client) {
        match self {
            Clients::One(one) => *self = Clients::Many(BTreeSet::from([*one, client])),
            Clients::Many(many) => drop(many.insert(client)),
        }
    }

    /// Whether no client is left.
    fn remove(&mut self, client: Client) -> bool {
        match self {
            Clients::One(one) => *one == client,
            Clients::Many(many) => {
                many.remove(&client);
                many.is_empty()
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = Client> + '_ {
        let (one, many) = match self {
            Clients::One(one) => (Some(*one), None),
            Clients::Many(many) => (None, Some(many)),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }
}

#[derive(Default)]
struct Waiters {
    waiters: ByTicket<Waiter>,
    watched: BTreeMap<c_int, BTreeMap<Arc<[u8]>, Watched>>,
    /// Clients to be answered.
    ready: BTreeSet<u64>,
    /// Names to check, for the clients whose ticket is this one or greater.
    doubtful: BTreeMap<(c_int, Arc<[u8]>), u64>,
}

/// How many clients wait. An atomic, which is cheaper to read than a thread-local: each command reads it.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static REGISTRY: RefCell<Waiters> = RefCell::default();
    /// When to look again, in real time, if all that is left to do is in slots that other nodes serve.
    static RETRY_AT: Cell<u64> = const { Cell::new(0) };
}

impl Waiters {
    fn watched(&self, db: c_int, key: &[u8]) -> Option<&Watched> {
        self.watched.get(&db)?.get(key)
    }

    /// Adds a client that waits for these ids.
    fn add(
        &mut self,
        ticket: u64,
        (db, key): (c_int, &[u8]),
        ids: Few<AwaitedId>,
        waits_for: WaitsFor,
    ) {
        let names = self.watched.entry(db).or_default();
        let known = names.get_key_value(key).map(|(name, _)| Arc::clone(name));
        let name = known.unwrap_or_else(|| Arc::from(key));
        let watched = names.entry(Arc::clone(&name)).or_default();
        watched.tickets.insert(ticket);
        let mut places = 0..;
        let ids = ids.map(|id| {
            let client = (ticket, places.next().unwrap_or_default());
            let known = watched.by_id.get_key_value(id);
            let id = Rc::clone(known.map_or(id, |(known, _)| known));
            match watched.by_id.get_mut(&id) {
                Some(clients) => clients.add(client),
                None => drop(watched.by_id.insert(Rc::clone(&id), Clients::One(client))),
            }
            id
        });
        self.waiters
            .insert(ticket, Waiter::new(db, name, ids, waits_for));
    }

    fn remove(&mut self, ticket: u64) -> Option<Waiter> {
        let waiter = self.waiters.remove(ticket)?;
        self.ready.remove(&ticket);
        let names = self.watched.get_mut(&waiter.db)?;
        if let Some(watched) = names.get_mut(&waiter.key) {
            watched.tickets.remove(&ticket);
            for (place, id) in waiter.ids.get().iter().enumerate() {
                let clients = watched.by_id.get_mut(id);
                if clients.is_some_and(|clients| clients.remove((ticket, place))) {
                    watched.by_id.remove(id);
                }
            }
            if watched.tickets.is_empty() {
                names.remove(&waiter.key);
            }
        }
        if names.is_empty() {
            self.watched.remove(&waiter.db);
        }
        Some(waiter)
    }

    /// Notes departures for the clients that wait for them; returns the clients that are to be
    /// answered from now on.
    fn note(&mut self, db: c_int, key: &[u8], departures: Vec<Departure>, now: Now) -> Vec<u64> {
        let mut ready = Vec::new();
        let names = self.watched.get(&db);
        let Some(watched) = names.and_then(|names| names.get(key)) else {
            return ready;
        };
        for departure in departures {
            let clients = watched.by_id.get(&departure.id[..]);
            for (ticket, place) in clients.into_iter().flat_map(Clients::iter) {
                let Some(waiter) = self.waiters.get_mut(ticket) else {
                    continue;
                };
                if waiter.note(place, &departure, now) && !waiter.is_ready {
                    waiter.is_ready = true;
                    self.ready.insert(ticket);
                    ready.push(ticket);
                    RETRY_AT.set(0);
                }
            }
        }
        ready
    }
}

/// Whether any client waits: asked by each command.
#[inline]
pub fn are_there() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}

pub fn any(db: c_int, key: &[u8]) -> bool {
    REGISTRY.with_borrow(|registry| registry.watched(db, key).is_some())
}

/// The ids that clients wait for under this name.
pub fn ids_of(db: c_int, key: &[u8]) -> Vec<Vec<u8>> {
    REGISTRY.with_borrow(|registry| {
        let watched = registry.watched(db, key);
        let ids = watched.into_iter().flat_map(|it| it.by_id.keys());
        ids.map(|id| id.to_vec()).collect()
    })
}

/// Blocks the client that runs the command until one of these jobs ends. None of them has ended yet.
pub fn block_for_ends(
    ctx: Ctx<'_>,
    key: &[u8],
    ids: impl Iterator<Item = AwaitedId>,
    until: u64,
    reply: ReplyEnds,
) {
    let nothing: Answer = Box::new(|ctx: Ctx<'_>| ctx.reply_null_array());
    let ids: Few<AwaitedId> = ids.collect::<Vec<_>>().into();
    let waits_for = WaitsFor::ends(&ids, reply);
    block(ctx, key, ids, until, (waits_for, nothing));
}

/// Blocks the client that runs the command until one of these deliveries is lost, or all have
/// ended. All of them are current.
pub fn block_for_leases(
    ctx: Ctx<'_>,
    key: &[u8],
    deliveries: &[(Vec<u8>, u64)],
    until: u64,
    (reply, nothing): (ReplyLeases, Answer),
) {
    let (waits_for, ids) = WaitsFor::leases(deliveries, reply);
    block(ctx, key, ids, until, (waits_for, nothing));
}

fn block(
    ctx: Ctx<'_>,
    key: &[u8],
    ids: Few<AwaitedId>,
    until: u64,
    (waits_for, nothing): (WaitsFor, Answer),
) {
    let ticket = waits::block(ctx, key, until, &KIND, nothing);
    COUNT.fetch_add(1, Ordering::Relaxed);
    let place = (ctx.selected_db(), key);
    REGISTRY.with_borrow_mut(|registry| registry.add(ticket, place, ids, waits_for));
}

/// The callbacks of clients that wait for ends.
static KIND: Kind = Kind {
    leave: |ticket, _| drop(take(ticket)),
    place: |ticket| {
        REGISTRY.with_borrow(|registry| {
            let waiter = registry.waiters.get(ticket)?;
            Some((waiter.db, Arc::clone(&waiter.key)))
        })
    },
};

fn take(ticket: u64) -> Option<Waiter> {
    let waiter = REGISTRY.with_borrow_mut(|registry| registry.remove(ticket));
    COUNT.fetch_sub(waiter.is_some().into(), Ordering::Relaxed);
    waiter
}

/// Notes departures of a queue's jobs. Returns the clients that are to be answered.
pub fn note(db: c_int, key: &[u8], departures: Vec<Departure>, now: Now) -> Vec<u64> {
    if departures.is_empty() {
        return Vec::new();
    }
    REGISTRY.with_borrow_mut(|registry| registry.note(db, key, departures, now))
}

/// Answers the clients that a command has just made ready on its own key; leaves them to the timer
/// if the command may not answer.
pub fn tell_by_command(ctx: Ctx<'_>, key: KeyName<'_>, ready: &[u64]) {
    if ready.is_empty() {
        return;
    }
    let occasion = Occasion::of_command(ctx).filter(|_| ready.len() <= ANSWERED_BY_COMMAND);
    let Some(occasion) = occasion else {
        return timer::arm(0);
    };
    for &ticket in ready {
        if waits_for(ticket) == Some(Call::AWAIT) {
            answer(ctx, ticket, key, None, occasion);
        } else {
            timer::arm(0);
        }
    }
}

fn waits_for(ticket: u64) -> Option<Call> {
    REGISTRY.with_borrow(|registry| Some(registry.waiters.get(ticket)?.call()))
}

/// Answers a client that is ready, or whose wait has expired. `queue` is the one whose leases it
/// reports. False if the ticket does not wait here.
pub fn answer(
    ctx: Ctx<'_>,
    ticket: u64,
    key: KeyName<'_>,
    queue: Option<&Queue>,
    occasion: Occasion<'_>,
) -> bool {
    let Some(call) = waits_for(ticket) else {
        return false;
    };
    let is_allowed = waits::is_allowed(ctx, ticket, call, key);
    let Some(waiter) = take(ticket) else {
        return false;
    };
    let end = waiter.end(is_allowed, queue, clock::now());
    if let Some(client) = waits::take(ticket, None) {
        client.answer(occasion, end);
    }
    true
}

/// The first client to be answered whose ticket is `from` or greater, and where it waits.
pub fn next_ready(from: u64) -> Option<(u64, c_int, Arc<[u8]>)> {
    REGISTRY.with_borrow(|registry| {
        let &ticket = registry.ready.range(from..).next()?;
        let waiter = registry.waiters.get(ticket)?;
        Some((ticket, waiter.db, Arc::clone(&waiter.key)))
    })
}

/// Something happened to a key as a whole: has the timer check it.
pub fn recheck(db: c_int, key: &[u8]) {
    if !are_there() {
        return;
    }
    REGISTRY.with_borrow_mut(|registry| {
        let names = registry.watched.get(&db);
        if let Some((name, _)) = names.and_then(|names| names.get_key_value(key)) {
            registry.doubtful.insert((db, Arc::clone(name)), 0);
            RETRY_AT.set(0);
            timer::arm(0);
        }
    });
}

/// Something happened to all keys of a database, or of all databases: has the timer check them.
pub fn recheck_all(db: Option<c_int>) {
    if !are_there() {
        return;
    }
    REGISTRY.with_borrow_mut(|registry| {
        for (&of, names) in &registry.watched {
            if db.is_none_or(|db| db == of) {
                let all = names.keys().map(|name| ((of, Arc::clone(name)), 0));
                registry.doubtful.extend(all);
            }
        }
    });
    RETRY_AT.set(0);
    timer::arm(0);
}

/// The next name to check, in order after `after`.
pub fn next_doubtful(after: Option<&(c_int, Arc<[u8]>)>) -> Option<(c_int, Arc<[u8]>)> {
    use std::ops::Bound::{Excluded, Unbounded};
    REGISTRY.with_borrow(|registry| {
        let from = after.map_or(Unbounded, Excluded);
        let mut names = registry.doubtful.range((from, Unbounded));
        names.next().map(|(name, _)| name.clone())
    })
}

/// Whether the name is still to be checked.
pub fn is_doubtful(db: c_int, key: &[u8]) -> bool {
    REGISTRY.with_borrow(|registry| {
        !registry.doubtful.is_empty() && registry.doubtful.contains_key(&(db, Arc::from(key)))
    })
}

/// Checks a name before a command changes its key. Beyond a limit, the rest is left to the timer.
pub fn check_by_command(db: c_int, key: &[u8], found: &Found<'_>, now: Now) {
    check(&(db, Arc::from(key)), found, CHECKED_BY_COMMAND, now);
}

/// Whether `is_such` holds for the key that the client waits on.
pub fn waits_on(ticket: u64, is_such: impl Fn(c_int, &[u8]) -> bool) -> bool {
    REGISTRY.with_borrow(|registry| {
        let waiter = registry.waiters.get(ticket);
        waiter.is_some_and(|waiter| is_such(waiter.db, &waiter.key))
    })
}

/// Notes what is under a doubtful name now, client by client; returns how many steps are left.
pub fn check(name: &(c_int, Arc<[u8]>), found: &Found<'_>, mut steps: usize, now: Now) -> usize {
    REGISTRY.with_borrow_mut(|registry| {
        let Some(mut from) = registry.doubtful.remove(name) else {
            return steps;
        };
        loop {
            let watched = registry.watched(name.0, &name.1);
            let next = watched.and_then(|watched| watched.tickets.range(from..).next());
            let Some(&ticket) = next else {
                return steps;
            };
            if steps == 0 {
                registry.doubtful.insert(name.clone(), ticket);
                return 0;
            }
            if let Some(waiter) = registry.waiters.get_mut(ticket) {
                steps = steps.saturating_sub(waiter.ids.get().len());
                if waiter.note_found(found, now) {
                    waiter.is_ready = true;
                    registry.ready.insert(ticket);
                }
            }
            from = ticket + 1;
        }
    })
}

/// When the timer must fire for clients that wait here.
pub fn next_turn() -> Option<u64> {
    let has_work = |registry: &Waiters| !registry.ready.is_empty() || !registry.doubtful.is_empty();
    (are_there() && REGISTRY.with_borrow(has_work)).then(|| RETRY_AT.get())
}

/// Sets when to look again, because all that is left is in slots of other nodes; 0 means as soon as
/// there is anything to do.
pub fn retry_at(instant: u64) {
    RETRY_AT.set(instant);
}
