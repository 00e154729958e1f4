//! Clients that wait for jobs, first come first served.
//!
//! The server blocks a waiting client, which keeps cluster redirection, CLIENT UNBLOCK and demotion
//! right; but who is served, and when a wait ends, is decided here: the server's timeouts come with its
//! 10 Hz cron, and a key that appears would have it call every client that is blocked on it, on some
//! servers (Valkey 9.1.2) in time that grows with their square. So a client is blocked on one name in
//! the slot of its keys that nobody uses, and the timer, or a command ([`super::serve`]), hands the job to the one
//! client; the timer alone nil.
//!
//! ```text
//!   BPOP ─► Waiter in the registry ─────────────► taken to be served ─► hand over ─► free_privdata
//!             │   (ticket, keys, until)                (job or nil)       (reply)
//!             └─ disconnect, UNBLOCK, demotion ───────────────────────────────────► free_privdata
//! ```

use super::agenda;
use super::api::{acl, api, guarded, Ctx, KeyName, OwnString, RawString, ERR, OK};
use super::timer::{self, Fired};
use crate::queue::deliver::Lease;
use crate::slots::unused_name_beside;
use redis_module::raw;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::sync::Arc;

/// What BPOP asks for.
#[derive(Clone, Copy, Debug)]
pub struct PopRequest {
    pub count: Option<u64>,
    pub ttr_ms: Option<u64>,
    pub noack: bool,
    pub with_due: bool,
}

/// One delivered job, out of the queue's memory: the reply is written after it.
#[derive(Clone, Debug)]
pub struct OwnDelivery {
    pub id: Vec<u8>,
    pub payload: Vec<u8>,
    pub attempts: u32,
    pub lease: Option<Lease>,
    pub due: u64,
}

/// What a client's wait ends with.
pub enum End {
    Jobs(Handover),
    Nothing,
    /// Its user may no longer pop from this key.
    Denied(Vec<u8>),
}

pub struct Handover {
    pub key: Vec<u8>,
    /// An array of jobs, not one job.
    pub many: bool,
    pub with_due: bool,
    pub jobs: Vec<OwnDelivery>,
}

/// Writes what a client gets whose wait ended with jobs.
pub type Reply = fn(Ctx<'_>, &Handover);

/// Belongs to the server from the blocking on, as the client's private data, until it calls
/// `free_privdata`.
struct Parcel {
    ticket: u64,
    reply: Reply,
    end: End,
}

/// A blocked client that was taken out of the registry, to be handed something in this same call of
/// the timer, or by this same command.
pub struct Taken {
    client: *mut raw::RedisModuleBlockedClient,
    parcel: *mut Parcel,
}

struct Waiter {
    client: *mut raw::RedisModuleBlockedClient,
    parcel: *mut Parcel,
    request: PopRequest,
    /// The client's id.
    id: u64,
    db: c_int,
    keys: Vec<Arc<[u8]>>,
    /// Real unix-ms at which the wait ends, or u64::MAX.
    until: u64,
}

/// Tickets of those who wait on one key, by what MAXRESERVED means to them.
#[derive(Default)]
struct Line {
    leasing: BTreeSet<u64>,
    noack: BTreeSet<u64>,
    /// The key may hold a queue that is only kept for them.
    keeps_queue: bool,
}

#[derive(Default)]
struct Registry {
    last_ticket: u64,
    waiters: BTreeMap<u64, Waiter>,
    lines: BTreeMap<c_int, BTreeMap<Arc<[u8]>, Line>>,
    by_until: BTreeSet<(u64, u64)>,
}

/// Which kinds of clients wait on a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kinds {
    pub leasing: bool,
    pub noack: bool,
}

impl Kinds {
    pub fn any(self) -> bool {
        self.leasing || self.noack
    }
}

thread_local! {
    static REGISTRY: RefCell<Registry> = RefCell::default();
}

impl Line {
    fn of(&mut self, request: PopRequest) -> &mut BTreeSet<u64> {
        if request.noack {
            &mut self.noack
        } else {
            &mut self.leasing
        }
    }

    fn len(&self) -> usize {
        self.leasing.len() + self.noack.len()
    }
}

impl Registry {
    fn line(&self, db: c_int, key: &[u8]) -> Option<&Line> {
        self.lines.get(&db)?.get(key)
    }

    fn add<'a>(&mut self, ticket: u64, names: impl Iterator<Item = &'a [u8]>, mut waiter: Waiter) {
        let lines = self.lines.entry(waiter.db).or_default();
        for name in names {
            let key = lines.get_key_value(name);
            let key = key.map_or_else(|| Arc::from(name), |(key, _)| Arc::clone(key));
            let line = lines.entry(Arc::clone(&key)).or_default();
            // A key may be named twice.
            if line.of(waiter.request).insert(ticket) {
                waiter.keys.push(key);
            }
        }
        if waiter.until != u64::MAX {
            self.by_until.insert((waiter.until, ticket));
        }
        self.waiters.insert(ticket, waiter);
    }

    /// Takes a waiter out everywhere; the keys that it leaves alone with a queue that was kept for those
    /// in line are returned with it.
    fn remove(&mut self, ticket: u64) -> Option<(Waiter, Vec<Arc<[u8]>>)> {
        let waiter = self.waiters.remove(&ticket)?;
        self.by_until.remove(&(waiter.until, ticket));
        let mut left = Vec::new();
        if let Some(lines) = self.lines.get_mut(&waiter.db) {
            for key in &waiter.keys {
                let Some(line) = lines.get_mut(key) else {
                    continue;
                };
                line.of(waiter.request).remove(&ticket);
                if line.len() == 0 {
                    if line.keeps_queue {
                        left.push(Arc::clone(key));
                    }
                    lines.remove(key);
                }
            }
            if lines.is_empty() {
                self.lines.remove(&waiter.db);
            }
        }
        Some((waiter, left))
    }
}

/// Takes a waiter out, and has the keys it leaves alone looked at, but for one that is being looked
/// at: a key that was only kept for it goes now.
fn withdraw(ticket: u64, looked_at: Option<&[u8]>) -> Option<Waiter> {
    let (waiter, left) = REGISTRY.with_borrow_mut(|registry| registry.remove(ticket))?;
    for key in left.iter().filter(|&key| Some(&**key) != looked_at) {
        agenda::want(waiter.db, key);
    }
    Some(waiter)
}

/// Whether anybody waits at all.
#[inline]
pub fn are_there() -> bool {
    REGISTRY.with_borrow(|registry| !registry.waiters.is_empty())
}

pub fn any(db: c_int, key: &[u8]) -> bool {
    kinds(db, key).any()
}

pub fn kinds(db: c_int, key: &[u8]) -> Kinds {
    REGISTRY.with_borrow(|registry| {
        if registry.waiters.is_empty() {
            return Kinds::default();
        }
        registry
            .line(db, key)
            .map_or(Kinds::default(), |line| Kinds {
                leasing: !line.leasing.is_empty(),
                noack: !line.noack.is_empty(),
            })
    })
}

/// Clients that wait on a key.
pub fn count(db: c_int, key: &[u8]) -> usize {
    REGISTRY.with_borrow(|registry| registry.line(db, key).map_or(0, Line::len))
}

/// Clients that wait at all.
pub fn count_all() -> usize {
    REGISTRY.with_borrow(|registry| registry.waiters.len())
}

/// The names in a database on which somebody waits.
pub fn keys_of(db: c_int) -> Vec<Arc<[u8]>> {
    REGISTRY.with_borrow(|registry| {
        let lines = registry.lines.get(&db);
        lines.map_or(Vec::new(), |lines| lines.keys().cloned().collect())
    })
}

/// All names on which somebody waits.
pub fn keys() -> Vec<(c_int, Arc<[u8]>)> {
    REGISTRY.with_borrow(|registry| {
        let lines = registry.lines.iter();
        lines
            .flat_map(|(&db, lines)| lines.keys().map(move |key| (db, Arc::clone(key))))
            .collect()
    })
}

/// The earliest end of a wait.
pub fn next_until() -> Option<u64> {
    REGISTRY.with_borrow(|registry| registry.by_until.first().map(|&(until, _)| until))
}

/// The key holds a queue that goes when the last of those in line has left.
pub fn keep_queue(db: c_int, key: &[u8]) {
    REGISTRY.with_borrow_mut(|registry| {
        let lines = registry.lines.get_mut(&db);
        if let Some(line) = lines.and_then(|lines| lines.get_mut(key)) {
            line.keeps_queue = true;
        }
    });
}

/// Blocks the client that runs the command until one of these keys, which share a slot, has a job.
pub fn block<'a>(
    ctx: Ctx<'_>,
    names: impl Iterator<Item = &'a [u8]> + Clone,
    request: PopRequest,
    until: u64,
    reply: Reply,
) {
    let ticket = REGISTRY.with_borrow_mut(|registry| {
        registry.last_ticket += 1;
        registry.last_ticket
    });
    let parcel = Box::into_raw(Box::new(Parcel {
        ticket,
        reply,
        end: End::Nothing,
    }));
    let unused = OwnString::new(&unused_name_beside(
        names.clone().next().unwrap_or_default(),
    ));
    // SAFETY: a live string, of which the server keeps a count; it keeps the parcel, and gives it back
    // to `free_parcel`. A timeout of 0 is none: waits are ended by our timer.
    let client = unsafe {
        let client = api!(
            RedisModule_BlockClientOnKeys,
            ctx.raw(),
            Some(not_yet),
            Some(hand_over),
            Some(free_parcel),
            0,
            &mut unused.name().raw(),
            1,
            parcel.cast()
        );
        api!(
            RedisModule_SetDisconnectCallback,
            client,
            Some(disconnected)
        );
        client
    };
    let waiter = Waiter {
        client,
        parcel,
        request,
        id: ctx.client_id(),
        db: ctx.selected_db(),
        keys: Vec::new(),
        until,
    };
    REGISTRY.with_borrow_mut(|registry| registry.add(ticket, names, waiter));
    if until != u64::MAX {
        timer::arm(until);
    }
}

/// The request of the client that is first in line on a key, among those that it can be fulfilled for:
/// a full MAXRESERVED or GROUPMAX holds back all that do not pop with NOACK.
pub fn first_in_line(db: c_int, key: &[u8], only_noack: bool) -> Option<(u64, PopRequest)> {
    REGISTRY.with_borrow(|registry| {
        let line = registry.line(db, key)?;
        let leasing = line.leasing.first().filter(|_| !only_noack);
        let ticket = *leasing.into_iter().chain(line.noack.first()).min()?;
        Some((ticket, registry.waiters.get(&ticket)?.request))
    })
}

/// Of the keys that the client has named before that one, those that are such; and how many it has named.
pub fn named_before(
    ticket: u64,
    key: &[u8],
    is_such: impl Fn(c_int, &[u8]) -> bool,
) -> (Vec<Arc<[u8]>>, usize) {
    REGISTRY.with_borrow(|registry| {
        let Some(waiter) = registry.waiters.get(&ticket) else {
            return (Vec::new(), 0);
        };
        let before = waiter.keys.iter().take_while(|other| ***other != *key);
        let such = before.filter(|other| is_such(waiter.db, other));
        (such.cloned().collect(), waiter.keys.len())
    })
}

/// How many keys the client waits on.
pub fn keys_named(ticket: u64) -> usize {
    REGISTRY.with_borrow(|registry| {
        let waiter = registry.waiters.get(&ticket);
        waiter.map_or(0, |waiter| waiter.keys.len())
    })
}

/// Whether the client's user may still pop from this key.
pub fn is_allowed(ctx: Ctx<'_>, ticket: u64, key: KeyName<'_>) -> bool {
    let id = REGISTRY.with_borrow(|registry| registry.waiters.get(&ticket).map(|it| it.id));
    id.is_none_or(|id| acl::may_pop(ctx, id, key))
}

/// Takes a client out of all lines. It must be handed something at once.
pub fn take(ticket: u64, served_on: Option<&[u8]>) -> Option<Taken> {
    withdraw(ticket, served_on).map(|waiter| Taken {
        client: waiter.client,
        parcel: waiter.parcel,
    })
}

/// A client whose wait has ended, and one of its keys.
pub fn first_expired(now_ms: u64) -> Option<(u64, c_int, Arc<[u8]>)> {
    REGISTRY.with_borrow(|registry| {
        let &(until, ticket) = registry.by_until.first()?;
        let waiter = registry.waiters.get(&ticket)?;
        (until <= now_ms).then(|| Some((ticket, waiter.db, Arc::clone(waiter.keys.first()?))))?
    })
}

/// Whether one of the keys that the client waits on is such.
pub fn waits_on(ticket: u64, is_such: impl Fn(c_int, &[u8]) -> bool) -> bool {
    REGISTRY.with_borrow(|registry| {
        let waiter = registry.waiters.get(&ticket);
        waiter.is_some_and(|waiter| waiter.keys.iter().any(|key| is_such(waiter.db, key)))
    })
}

/// The wait ends later.
pub fn postpone(ticket: u64, until: u64) {
    REGISTRY.with_borrow_mut(|registry| {
        if let Some(waiter) = registry.waiters.get_mut(&ticket) {
            registry.by_until.remove(&(waiter.until, ticket));
            waiter.until = until;
            registry.by_until.insert((until, ticket));
        }
    });
}

/// When clients may be handed something. Elsewhere the context in which the server has them replied to is not
/// flushed.
#[derive(Clone, Copy)]
pub struct Occasion<'a>(PhantomData<Ctx<'a>>);

impl<'a> Occasion<'a> {
    pub fn of_timer(_: Fired<'a>) -> Self {
        Occasion(PhantomData)
    }

    /// A client's command that stands alone, so that what follows from it belongs to it; not in a cluster, where the
    /// client may be on its way to another node.
    pub fn of_command(ctx: Ctx<'a>) -> Option<Self> {
        let flags = ctx.flags();
        let is_other = flags.denies_blocking() || flags.is_obeyed() || flags.is_cluster();
        (!is_other && !ctx.is_paused()).then_some(Occasion(PhantomData))
    }
}

impl Taken {
    pub fn hand(self, _: Occasion<'_>, end: End) {
        // SAFETY: the client was in the registry, which it leaves when it is gone or freed: it is
        // still blocked. The server calls `hand_over` from within, and frees the parcel later.
        unsafe {
            (*self.parcel).end = end;
            api!(RedisModule_UnblockClient, self.client, self.parcel.cast());
        }
    }
}

/// Somebody has made a key of the unused name.
unsafe extern "C" fn not_yet(
    _ctx: *mut raw::RedisModuleCtx,
    _argv: *mut RawString,
    _argc: c_int,
) -> c_int {
    ERR
}

/// The server's timeout callback, called when a client is unblocked: by [`Taken::hand`], or by CLIENT
/// UNBLOCK.
unsafe extern "C" fn hand_over(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut RawString,
    _argc: c_int,
) -> c_int {
    guarded("the end of a wait", OK, || {
        // SAFETY: the server passed the context, and the parcel that it was blocked with is not
        // freed yet.
        unsafe {
            let parcel = api!(RedisModule_GetBlockedClientPrivateData, ctx).cast::<Parcel>();
            withdraw((*parcel).ticket, None);
            let ctx = Ctx::new(ctx);
            match &(*parcel).end {
                End::Jobs(handover) => ((*parcel).reply)(ctx, handover),
                End::Nothing => ctx.reply_null_array(),
                End::Denied(key) => acl::deny(ctx, key),
            }
        }
        OK
    })
}

/// The client is gone, or was unblocked by a demotion, a redirection or CLIENT UNBLOCK ERROR.
unsafe extern "C" fn disconnected(
    ctx: *mut raw::RedisModuleCtx,
    _client: *mut raw::RedisModuleBlockedClient,
) {
    guarded("a waiting client's disconnection", (), || {
        // SAFETY: as in `hand_over`.
        unsafe {
            let parcel = api!(RedisModule_GetBlockedClientPrivateData, ctx).cast::<Parcel>();
            if !parcel.is_null() {
                withdraw((*parcel).ticket, None);
            }
        }
    });
}

unsafe extern "C" fn free_parcel(_ctx: *mut raw::RedisModuleCtx, parcel: *mut c_void) {
    guarded("the end of a blocked client", (), || {
        // SAFETY: made in `block`; the server calls this once, and nothing refers to it afterwards.
        let parcel = unsafe { Box::from_raw(parcel.cast::<Parcel>()) };
        withdraw(parcel.ticket, None);
    });
}
