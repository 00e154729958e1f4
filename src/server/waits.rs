//! Blocked clients of all kinds: [`super::blocked`] knows who waits for jobs,
//! [`super::awaits`] who waits for a job's end.
//!
//! The server itself blocks the client, which keeps cluster redirection, CLIENT UNBLOCK and
//! demotion right. But this module decides who gets a reply, and when a wait ends. The server's
//! timeouts come with its 10 Hz cron. A key that appears would have it call every client that is
//! blocked on it, on some servers (Valkey 9.1.2) in time quadratic in their number. So a client is
//! blocked on one unused name in the slot of its keys. The timer, or a command, replies to that one
//! client; only the timer ends waits.
//!
//! ```text
//!   BPOP, AWAIT ─► Wait in the registry ──────────► taken out to be answered ─► reply ─► free_privdata
//!                    │   (ticket, until)                                      (reply)
//!                    └─ disconnect, CLIENT UNBLOCK, demotion ──────────────────────────► free_privdata
//! ```

mod delivered;

use super::api::acl::{self, Call};
use super::api::{api, guarded, Ctx, KeyName, OwnString, RawString, ERR, OK};
use super::timer::{self, Fired};
use crate::slots::unused_name_beside;
pub use delivered::{DeliveredJobs, OwnDelivery, OwnExtras, ReplyJobs};
use redis_module::raw;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{c_int, c_void};
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

/// Writes a reply.
pub type Answer = Box<dyn Fn(Ctx<'_>)>;

/// What a client's wait ends with.
pub enum WaitEnd {
    Jobs(DeliveredJobs),
    Reply(Answer),
    /// The reply of a wait that ended without a result.
    Nothing,
    /// The client's user may no longer use this key.
    Denied(Vec<u8>),
}

/// What clients of one kind have in common. The registry here knows them by ticket.
pub struct Kind {
    /// The client no longer waits; its entry is removed. The key `looked_at` is being processed
    /// already, and need not go on the agenda.
    pub leave: fn(ticket: u64, looked_at: Option<&[u8]>),
    pub place: fn(ticket: u64) -> Option<Place>,
}

/// The database, and one of the keys, in which a client waits.
pub type Place = (c_int, Arc<[u8]>);

/// Belongs to the server from the blocking on, as the client's private data, until it calls
/// `free_privdata`.
struct Pending {
    ticket: u64,
    /// Whether the registry still has this wait.
    waits: bool,
    nothing: Answer,
    end: WaitEnd,
}

/// A blocked client taken out of the registry. It must be answered in the same call of the timer,
/// or by the same command.
pub struct BlockedClient {
    client: *mut raw::RedisModuleBlockedClient,
    pending: *mut Pending,
}

struct Wait {
    client: *mut raw::RedisModuleBlockedClient,
    pending: *mut Pending,
    kind: &'static Kind,
    /// The client's id.
    id: u64,
    /// Real unix-ms at which the wait ends, or u64::MAX.
    until: u64,
    /// Where the client waited, if DQ.UNBLOCK has ended that: only its reply is to come.
    left: Option<Place>,
}

#[derive(Default)]
struct Registry {
    last_ticket: u64,
    waits: ByTicket<Wait>,
    by_until: BTreeSet<(u64, u64)>,
    /// The tickets of clients that wait, by the client's id.
    by_client: ByTicket<u64>,
}

/// The capacity to shrink to once most entries are gone.
const SHRUNK: usize = 64;

/// A map by ticket, or by the id of a client. With thousands of entries far apart in memory, finding
/// one reads few places.
pub struct ByTicket<T>(HashMap<u64, T, BuildHasherDefault<OfTicket>>);

impl<T> ByTicket<T> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn get(&self, ticket: u64) -> Option<&T> {
        self.0.get(&ticket)
    }

    pub fn get_mut(&mut self, ticket: u64) -> Option<&mut T> {
        self.0.get_mut(&ticket)
    }

    pub fn insert(&mut self, ticket: u64, it: T) {
        self.0.insert(ticket, it);
    }

    /// Shrinks the map when most entries are gone.
    pub fn remove(&mut self, ticket: u64) -> Option<T> {
        let removed = self.0.remove(&ticket)?;
        if self.0.len() * 16 < self.0.capacity() {
            self.0.shrink_to(SHRUNK);
        }
        Some(removed)
    }
}

impl<T> Default for ByTicket<T> {
    fn default() -> Self {
        ByTicket(HashMap::default())
    }
}

/// Tickets are counted up here, and ids by the server; no client can choose them, so a simple hash is
/// safe.
#[derive(Default)]
struct OfTicket(u64);

impl Hasher for OfTicket {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, ticket: u64) {
        self.0 = (self.0 ^ ticket).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

thread_local! {
    static REGISTRY: RefCell<Registry> = RefCell::default();
}

impl Registry {
    fn add(&mut self, ticket: u64, wait: Wait) {
        if wait.until != u64::MAX {
            self.by_until.insert((wait.until, ticket));
        }
        self.by_client.insert(wait.id, ticket);
        self.waits.insert(ticket, wait);
    }

    fn remove(&mut self, ticket: u64) -> Option<Wait> {
        let wait = self.waits.remove(ticket)?;
        if wait.until != u64::MAX {
            self.by_until.remove(&(wait.until, ticket));
        }
        self.by_client.remove(wait.id);
        Some(wait)
    }
}

/// Blocks the client that runs the command, in the slot of `key`. Returns its ticket.
pub fn block(ctx: Ctx<'_>, key: &[u8], until: u64, kind: &'static Kind, nothing: Answer) -> u64 {
    let ticket = REGISTRY.with_borrow_mut(|registry| {
        registry.last_ticket += 1;
        registry.last_ticket
    });
    let pending = Box::into_raw(Box::new(Pending {
        ticket,
        waits: true,
        nothing,
        end: WaitEnd::Nothing,
    }));
    let unused = OwnString::new(&unused_name_beside(key));
    // SAFETY: the string is live, and the server counts its reference to it. The server keeps the
    // pending reply, and gives it back to `free_pending`. A timeout of 0 is none: our timer ends
    // waits.
    let client = unsafe {
        let client = api!(
            RedisModule_BlockClientOnKeys,
            ctx.raw(),
            Some(not_yet),
            Some(reply_unblocked),
            Some(free_pending),
            0,
            &mut unused.name().raw(),
            1,
            pending.cast()
        );
        api!(
            RedisModule_SetDisconnectCallback,
            client,
            Some(disconnected)
        );
        client
    };
    let wait = Wait {
        client,
        pending,
        kind,
        id: ctx.client_id(),
        until,
        left: None,
    };
    REGISTRY.with_borrow_mut(|registry| registry.add(ticket, wait));
    if until != u64::MAX {
        timer::arm(until);
    }
    ticket
}

fn withdraw(ticket: u64, looked_at: Option<&[u8]>) -> Option<Wait> {
    let wait = REGISTRY.with_borrow_mut(|registry| registry.remove(ticket))?;
    // SAFETY: the pending reply of a wait in the registry is not freed yet.
    unsafe { (*wait.pending).waits = false };
    (wait.kind.leave)(ticket, looked_at);
    Some(wait)
}

/// Withdraws the wait of a pending reply, unless that has happened already.
///
/// # Safety
/// The pending reply is not freed yet, and no other reference to it exists.
unsafe fn withdraw_pending(pending: *mut Pending) {
    // SAFETY: as the caller promises, the pending reply is not freed yet.
    let (waits, ticket) = unsafe { ((*pending).waits, (*pending).ticket) };
    if waits {
        withdraw(ticket, None);
    }
}

/// Takes a client out of all registries. The caller must answer it at once.
pub fn take(ticket: u64, looked_at: Option<&[u8]>) -> Option<BlockedClient> {
    withdraw(ticket, looked_at).map(|wait| BlockedClient {
        client: wait.client,
        pending: wait.pending,
    })
}

/// Whether the client's user may still call this command on this key.
pub fn is_allowed(ctx: Ctx<'_>, ticket: u64, call: Call, key: KeyName<'_>) -> bool {
    let id = REGISTRY.with_borrow(|registry| registry.waits.get(ticket).map(|it| it.id));
    id.is_none_or(|id| acl::may_call(ctx, id, call, key))
}

/// Ends the waits of these clients, as far as they are of the caller's user. Returns how many.
///
/// Only the timer answers them. A client that a command has answered counts as blocked until the turn of the
/// event loop ends: if CLIENT UNBLOCK, REPLICAOF or another came in the same turn, it would get two replies.
pub fn unblock(ctx: Ctx<'_>, clients: &[u64]) -> usize {
    let ticket_of = |id| REGISTRY.with_borrow(|registry| registry.by_client.get(id).copied());
    if clients.iter().all(|&id| ticket_of(id).is_none()) {
        return 0;
    }
    let caller = acl::Caller::of(ctx);
    let ends = |&&id: &&u64| {
        ticket_of(id).is_some_and(|ticket| caller.is_user_of(ctx, id) && leave(ticket))
    };
    let ended = clients.iter().filter(ends).count();
    if ended > 0 {
        timer::arm(0);
    }
    ended
}

/// Has a client wait for nothing any more. The next thing that the timer does for it is to reply.
fn leave(ticket: u64) -> bool {
    let kind = REGISTRY.with_borrow(|registry| Some(registry.waits.get(ticket)?.kind));
    let Some((kind, place)) = kind.and_then(|kind| Some((kind, (kind.place)(ticket)?))) else {
        return false;
    };
    (kind.leave)(ticket, None);
    postpone(ticket, 0);
    REGISTRY.with_borrow_mut(|registry| {
        if let Some(wait) = registry.waits.get_mut(ticket) {
            wait.left = Some(place);
            registry.by_client.remove(wait.id);
        }
    });
    true
}

/// The earliest end of a wait.
pub fn next_until() -> Option<u64> {
    REGISTRY.with_borrow(|registry| registry.by_until.first().map(|&(until, _)| until))
}

/// A client whose wait has expired, and one of its keys.
pub fn first_expired(now_ms: u64) -> Option<(u64, c_int, Arc<[u8]>)> {
    let (ticket, kind, left) = REGISTRY.with_borrow(|registry| {
        let &(until, ticket) = registry.by_until.first()?;
        let wait = registry.waits.get(ticket)?;
        (until <= now_ms).then(|| (ticket, wait.kind, wait.left.clone()))
    })?;
    let (db, key) = left.or_else(|| (kind.place)(ticket))?;
    Some((ticket, db, key))
}

/// Moves the end of the wait to `until`.
pub fn postpone(ticket: u64, until: u64) {
    REGISTRY.with_borrow_mut(|registry| {
        if let Some(wait) = registry.waits.get_mut(ticket) {
            registry.by_until.remove(&(wait.until, ticket));
            wait.until = until;
            registry.by_until.insert((until, ticket));
        }
    });
}

/// Proof that clients may be answered here. Elsewhere the server does not flush the context in
/// which it replies to them.
#[derive(Clone, Copy)]
pub struct Occasion<'a>(PhantomData<Ctx<'a>>);

impl<'a> Occasion<'a> {
    pub fn of_timer(_: Fired<'a>) -> Self {
        Occasion(PhantomData)
    }

    /// A command outside of transactions and scripts, so that what follows from it belongs to it.
    /// Not in a cluster, where the client may be about to be redirected to another node.
    pub fn of_command(ctx: Ctx<'a>) -> Option<Self> {
        let flags = ctx.flags();
        let is_other = flags.denies_blocking() || flags.is_trusted() || flags.is_cluster();
        (!is_other && !ctx.is_paused()).then_some(Occasion(PhantomData))
    }
}

impl BlockedClient {
    pub fn answer(self, _: Occasion<'_>, end: WaitEnd) {
        // SAFETY: a client leaves the registry when it disconnects or is freed. This one was there,
        // so it is still blocked. The server calls `reply_unblocked` from within, and frees the
        // pending reply later.
        unsafe {
            (*self.pending).end = end;
            api!(RedisModule_UnblockClient, self.client, self.pending.cast());
        }
    }
}

/// Called when a key of the unused name appears: the client stays blocked.
unsafe extern "C" fn not_yet(
    _ctx: *mut raw::RedisModuleCtx,
    _argv: *mut RawString,
    _argc: c_int,
) -> c_int {
    ERR
}

/// The server's timeout callback, called when a client is unblocked: by [`BlockedClient::answer`], or by CLIENT
/// UNBLOCK.
unsafe extern "C" fn reply_unblocked(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut RawString,
    _argc: c_int,
) -> c_int {
    guarded("the end of a wait", OK, || {
        // SAFETY: the server passed the context, and the pending reply that it was blocked with is not
        // freed yet.
        unsafe {
            let pending = api!(RedisModule_GetBlockedClientPrivateData, ctx).cast::<Pending>();
            withdraw_pending(pending);
            let ctx = Ctx::new(ctx);
            match &(*pending).end {
                WaitEnd::Jobs(delivered) => (delivered.reply)(ctx, delivered),
                WaitEnd::Reply(answer) => answer(ctx),
                WaitEnd::Nothing => ((*pending).nothing)(ctx),
                WaitEnd::Denied(key) => acl::deny(ctx, key),
            }
        }
        OK
    })
}

/// The client disconnected, or was unblocked by a demotion, a redirection or CLIENT UNBLOCK ERROR.
unsafe extern "C" fn disconnected(
    ctx: *mut raw::RedisModuleCtx,
    _client: *mut raw::RedisModuleBlockedClient,
) {
    guarded("a waiting client's disconnection", (), || {
        // SAFETY: as in `reply_unblocked`.
        unsafe {
            let pending = api!(RedisModule_GetBlockedClientPrivateData, ctx).cast::<Pending>();
            if !pending.is_null() {
                withdraw_pending(pending);
            }
        }
    });
}

unsafe extern "C" fn free_pending(_ctx: *mut raw::RedisModuleCtx, pending: *mut c_void) {
    guarded("the end of a blocked client", (), || {
        // SAFETY: made in `block`; the server calls this once, and nothing refers to it afterwards.
        unsafe {
            let pending = pending.cast::<Pending>();
            withdraw_pending(pending);
            drop(Box::from_raw(pending));
        }
    });
}
