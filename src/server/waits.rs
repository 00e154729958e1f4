//! Clients whose commands wait, whatever they wait for: [`super::blocked`] knows who waits for jobs,
//! [`super::awaits`] who waits for a job's end.
//!
//! The server blocks a waiting client, which keeps cluster redirection, CLIENT UNBLOCK and demotion
//! right; but who is answered, and when a wait ends, is decided by this module: the server's timeouts come with its
//! 10 Hz cron, and a key that appears would have it call every client that is blocked on it, on some
//! servers (Valkey 9.1.2) in time that grows with their square. So a client is blocked on one name in
//! the slot of its keys that nobody uses, and the timer, or a command, answers the one client; the
//! timer alone ends waits.
//!
//! ```text
//!   BPOP, AWAIT ─► Wait in the registry ──────────► taken out to be answered ─► reply ─► free_privdata
//!                    │   (ticket, until)                                      (reply)
//!                    └─ disconnect, UNBLOCK, demotion ─────────────────────────────────► free_privdata
//! ```

use super::api::acl::{self, Call};
use super::api::{api, guarded, Ctx, KeyName, OwnString, RawString, ERR, OK};
use super::timer::{self, Fired};
use crate::queue::after::{Ended, Outcome};
use crate::queue::deliver::Lease;
use crate::queue::extras::Extras;
use crate::queue::job::TermsShown;
use crate::queue::note::Notes;
use crate::slots::unused_name_beside;
use redis_module::raw;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{c_int, c_void};
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

/// Writes a reply.
pub type Answer = Box<dyn Fn(Ctx<'_>)>;

/// One delivered job, out of the queue's memory: the reply is written after it.
#[derive(Clone, Debug)]
pub struct OwnDelivery {
    pub id: Vec<u8>,
    pub payload: Vec<u8>,
    pub attempts: u32,
    pub lease: Option<Lease>,
    pub due: u64,
    pub extras: Option<OwnExtras>,
}

/// What was asked for beside the job.
#[derive(Clone, Debug)]
pub struct OwnExtras {
    terms: Option<TermsShown>,
    results: Option<Vec<OwnEnded>>,
    /// As [`Notes`] has them.
    steps: Option<Vec<u8>>,
}

impl OwnExtras {
    pub fn of(extras: &Extras<'_>) -> Self {
        let own = |results: &Vec<Ended<'_>>| results.iter().map(OwnEnded::of).collect();
        OwnExtras {
            terms: extras.terms,
            results: extras.results.as_ref().map(own),
            steps: extras.steps.map(|steps| steps.bytes().to_vec()),
        }
    }

    pub fn shown(&self) -> Extras<'_> {
        let results = self.results.as_ref();
        Extras {
            terms: self.terms,
            results: results.map(|results| results.iter().map(OwnEnded::shown).collect()),
            steps: self.steps.as_deref().map(Notes::of),
        }
    }

    pub fn steps_len(&self) -> usize {
        self.steps.as_ref().map_or(0, Vec::len)
    }
}

/// How one of those ended that a job was after.
#[derive(Clone, Debug)]
struct OwnEnded {
    id: Vec<u8>,
    outcome: Option<Outcome>,
    value: Option<Vec<u8>>,
}

impl OwnEnded {
    pub fn of(ended: &Ended<'_>) -> Self {
        OwnEnded {
            id: ended.id.to_vec(),
            outcome: ended.outcome,
            value: ended.value.map(<[u8]>::to_vec),
        }
    }

    pub fn shown(&self) -> Ended<'_> {
        Ended {
            id: &self.id,
            outcome: self.outcome,
            value: self.value.as_deref(),
        }
    }
}

/// Jobs for a client that has waited for them.
pub struct DeliveredJobs {
    pub key: Vec<u8>,
    /// An array of jobs, not one job.
    pub many: bool,
    pub with_due: bool,
    pub jobs: Vec<OwnDelivery>,
    pub reply: ReplyJobs,
}

/// Writes what a client gets whose wait ended with jobs.
pub type ReplyJobs = fn(Ctx<'_>, &DeliveredJobs);

/// What a client's wait ends with.
pub enum End {
    Jobs(DeliveredJobs),
    Reply(Answer),
    /// What the client gets whose wait ended for nothing.
    Nothing,
    /// Its user may no longer use this key.
    Denied(Vec<u8>),
}

/// Those who wait for the same, who are known elsewhere by their tickets.
pub struct Kind {
    /// A client waits no more: what is known of its wait goes. One of its keys may be looked at already.
    pub leave: fn(ticket: u64, looked_at: Option<&[u8]>),
    pub place: fn(ticket: u64) -> Option<Place>,
}

/// The database, and one of the keys, in which a client waits.
pub type Place = (c_int, Arc<[u8]>);

/// Belongs to the server from the blocking on, as the client's private data, until it calls
/// `free_privdata`.
struct Pending {
    ticket: u64,
    /// The registry has its wait.
    waits: bool,
    nothing: Answer,
    end: End,
}

/// A blocked client that was taken out of the registry, to be answered in this same call of
/// the timer, or by this same command.
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
}

#[derive(Default)]
struct Registry {
    last_ticket: u64,
    waits: ByTicket<Wait>,
    by_until: BTreeSet<(u64, u64)>,
}

/// Where the room for waits shrinks to, once most have gone.
const SHRUNK: usize = 64;

/// Something for each ticket. Those of thousands are far apart in memory: finding one reads few places.
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

    /// Gives room back.
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

/// Tickets are counted here: nobody chooses them.
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
        self.waits.insert(ticket, wait);
    }

    fn remove(&mut self, ticket: u64) -> Option<Wait> {
        let wait = self.waits.remove(ticket)?;
        if wait.until != u64::MAX {
            self.by_until.remove(&(wait.until, ticket));
        }
        Some(wait)
    }
}

/// Blocks the client that runs the command, on keys of the slot of this one. Returns its ticket.
pub fn block(ctx: Ctx<'_>, key: &[u8], until: u64, kind: &'static Kind, nothing: Answer) -> u64 {
    let ticket = REGISTRY.with_borrow_mut(|registry| {
        registry.last_ticket += 1;
        registry.last_ticket
    });
    let pending = Box::into_raw(Box::new(Pending {
        ticket,
        waits: true,
        nothing,
        end: End::Nothing,
    }));
    let unused = OwnString::new(&unused_name_beside(key));
    // SAFETY: a live string, of which the server keeps a count; it keeps the pending reply, and gives it back
    // to `free_pending`. A timeout of 0 is none: waits are ended by our timer.
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

/// The same, where the wait is not withdrawn already.
///
/// # Safety
/// The pending reply is not freed yet, and nobody refers to it.
unsafe fn withdraw_pending(pending: *mut Pending) {
    // SAFETY: as the caller promises, the pending reply is not freed yet.
    let (waits, ticket) = unsafe { ((*pending).waits, (*pending).ticket) };
    if waits {
        withdraw(ticket, None);
    }
}

/// Takes a client out of all registries. It must be answered at once.
pub fn take(ticket: u64, looked_at: Option<&[u8]>) -> Option<BlockedClient> {
    withdraw(ticket, looked_at).map(|wait| BlockedClient {
        client: wait.client,
        pending: wait.pending,
    })
}

/// Whether the client's user may still call that on this key.
pub fn is_allowed(ctx: Ctx<'_>, ticket: u64, call: Call, key: KeyName<'_>) -> bool {
    let id = REGISTRY.with_borrow(|registry| registry.waits.get(ticket).map(|it| it.id));
    id.is_none_or(|id| acl::may_call(ctx, id, call, key))
}

/// The earliest end of a wait.
pub fn next_until() -> Option<u64> {
    REGISTRY.with_borrow(|registry| registry.by_until.first().map(|&(until, _)| until))
}

/// A client whose wait has ended, and one of its keys.
pub fn first_expired(now_ms: u64) -> Option<(u64, c_int, Arc<[u8]>)> {
    let (ticket, kind) = REGISTRY.with_borrow(|registry| {
        let &(until, ticket) = registry.by_until.first()?;
        let wait = registry.waits.get(ticket)?;
        (until <= now_ms).then_some((ticket, wait.kind))
    })?;
    let (db, key) = (kind.place)(ticket)?;
    Some((ticket, db, key))
}

/// The wait ends later.
pub fn postpone(ticket: u64, until: u64) {
    REGISTRY.with_borrow_mut(|registry| {
        if let Some(wait) = registry.waits.get_mut(ticket) {
            registry.by_until.remove(&(wait.until, ticket));
            wait.until = until;
            registry.by_until.insert((until, ticket));
        }
    });
}

/// When clients may be answered. Elsewhere the context in which the server has them replied to is not
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
        let is_other = flags.denies_blocking() || flags.is_trusted() || flags.is_cluster();
        (!is_other && !ctx.is_paused()).then_some(Occasion(PhantomData))
    }
}

impl BlockedClient {
    pub fn answer(self, _: Occasion<'_>, end: End) {
        // SAFETY: the client was in the registry, which it leaves when it is gone or freed: it is
        // still blocked. The server calls `reply_unblocked` from within, and frees the pending reply later.
        unsafe {
            (*self.pending).end = end;
            api!(RedisModule_UnblockClient, self.client, self.pending.cast());
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
                End::Jobs(delivered) => (delivered.reply)(ctx, delivered),
                End::Reply(answer) => answer(ctx),
                End::Nothing => ((*pending).nothing)(ctx),
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
