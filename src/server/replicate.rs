//! Passes effects to replication, the AOF, WATCH and keyspace events. The other direction is
//! [`super::arrival`].

use super::api::{api, Ctx, KeyName};
use super::{clock, zones};
use crate::queue::codec::decode;
use crate::queue::effect::Effect;
use crate::queue::effects::Effects;
use crate::queue::event::{Event, Events};
use crate::queue::stats::Totals;
use redis_module::raw;
use std::cell::Cell;
use std::ffi::{c_int, CStr};
use std::sync::atomic::{AtomicU8, Ordering};

/// The command that carries effects to replicas and into the AOF.
pub const APPLY: &CStr = c"DQ.APPLY";

thread_local! {
    /// `None` while it is lent.
    static EFFECTS: Cell<Option<Box<Effects>>> = const { Cell::new(None) };
    /// Whether clients could subscribe, as of the last change of the settings.
    static WERE_SUBSCRIBED: Cell<bool> = const { Cell::new(false) };
    static SUBSCRIBED_SINCE: Cell<u64> = const { Cell::new(0) };
}

/// Lends the buffer of effects, empty. If another module runs a command from a keyspace event
/// meanwhile, that command gets a second buffer, whose totals are added to the first.
pub fn with_effects<T>(use_them: impl FnOnce(&mut Effects) -> T) -> T {
    let mut lent = Lent(Some(EFFECTS.take().unwrap_or_default()));
    let effects = lent.0.get_or_insert_default();
    effects.know_zones(zones::zone_of);
    let result = use_them(effects);
    lent.give_back();
    std::mem::forget(lent);
    result
}

/// Returns the buffer, which has the totals, also when a panic unwinds.
struct Lent(Option<Box<Effects>>);

impl Drop for Lent {
    #[cold]
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Lent {
    #[inline(always)]
    fn give_back(&mut self) {
        let Some(mut effects) = self.0.take() else {
            return;
        };
        if let Some(name) = effects.take_missed_zone() {
            zones::log_unknown(&name);
        }
        // Cleared at once, so that the memory of a large payload is not kept until the next command.
        effects.clear();
        EFFECTS.with(|slot| {
            if let Some(second) = slot.take() {
                effects.totals.add(&second.totals);
            }
            slot.set(Some(effects));
        });
    }
}

/// The totals of all queues since the module was loaded.
pub fn totals() -> Totals {
    EFFECTS.with(|slot| {
        let effects = slot.take();
        let totals = effects.as_ref().map(|effects| effects.totals.clone());
        slot.set(effects);
        totals.unwrap_or_default()
    })
}

/// Whether a client may subscribe to the events of modules.
fn has_subscribers() -> bool {
    // SAFETY: takes no arguments.
    let enabled = unsafe { api!(RedisModule_GetNotifyKeyspaceEvents) };
    enabled & raw::REDISMODULE_NOTIFY_MODULE as c_int != 0
}

/// Since when clients may subscribe to the events of modules: earlier events are not sent.
pub fn subscribed_since() -> Option<u64> {
    if !has_subscribers() {
        return None;
    }
    Some(SUBSCRIBED_SINCE.get())
}

/// Called when settings changed. Whether clients may subscribe from now on, and could not before.
pub fn note_subscribers() -> bool {
    let wanted = has_subscribers();
    let came = !WERE_SUBSCRIBED.replace(wanted) && wanted;
    if came {
        SUBSCRIBED_SINCE.set(clock::now().ms());
    }
    came
}

/// As [`with_effects`], for a command: effects are encoded only if anything may read them.
// Each instance has one caller: inlining duplicates no code.
#[inline(always)]
pub fn with_command_effects<T>(ctx: Ctx<'_>, use_them: impl FnOnce(&mut Effects) -> T) -> T {
    with_effects(|effects| {
        if !is_needed(ctx) {
            effects.leave_unencoded();
        }
        use_them(effects)
    })
}

/// Replicates what happened to the key, and raises its events, after it happened.
// Inlined where nearly all commands end: a call of its own costs each of them some 25 instructions.
#[inline(always)]
pub fn publish(ctx: Ctx<'_>, key: KeyName<'_>, effects: &Effects) {
    if !effects.is_empty() {
        if effects.is_unencoded() {
            // Nothing reads this either, but the server counts it as a change, for its save points.
            ctx.replicate_verbatim();
        } else {
            ctx.replicate(APPLY, key, effects.bytes());
        }
        if effects.touches() {
            ctx.signal_modified(key);
        }
    }
    for event in effects.events() {
        ctx.notify(c_name(event), key);
    }
}

/// Raises the events of effects that were decided elsewhere: a replica does this for the commands
/// of its master.
pub fn announce(ctx: Ctx<'_>, key: KeyName<'_>, bytes: &[u8]) {
    if !has_subscribers() {
        return;
    }
    let effects: Vec<_> = decode(bytes).map_while(Result::ok).collect();
    let mut events = Events::default();
    let raised = effects.iter().flat_map(Effect::events);
    raised.for_each(|&event| events.raise(event));
    for event in events.iter() {
        ctx.notify(c_name(event), key);
    }
    if effects.contains(&Effect::Dropped) {
        ctx.notify_generic(c"del", key);
    }
}

fn c_name(event: Event) -> &'static CStr {
    match event {
        Event::Add | Event::SuccessorAdd => c"dq.add",
        Event::Timeout => c"dq.timeout",
        Event::Nack => c"dq.nack",
        Event::Ready | Event::SuccessorReady => c"dq.ready",
        Event::Pop => c"dq.pop",
        Event::Ack => c"dq.ack",
        Event::Dead => c"dq.dead",
        Event::Del => c"dq.del",
        Event::Missed => c"dq.missed",
        Event::Expired => c"dq.expired",
    }
}

// Whether replication is needed: whether anything may ever read what is replicated.
//
// RM_Replicate builds its command even if the server then discards it: a fifth of the cost of a
// DQ.ADD. So it pays to know that there is no reader.
//
// Why this can be known: every reader of effects begins at a snapshot that this process has forked
// (a replica, an AOF that is switched on, a migrating slot), loaded or received from its master,
// or at its start. So there is no reader while there is neither AOF nor replica nor backlog. That
// can change only with a fork, a load, or a change of role or of configuration; this module
// notices each. Once there may be a reader, the answer stays yes.

/// An answer; UNKNOWN if it must be determined anew. An atomic, which is cheaper to read than a thread-local: each
/// command reads it.
static NEEDED: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

/// Whether anything may ever read what is replicated.
#[inline]
fn is_needed(ctx: Ctx<'_>) -> bool {
    match NEEDED.load(Ordering::Relaxed) {
        UNKNOWN => find_out(ctx),
        known => known == YES,
    }
}

#[cold]
fn find_out(ctx: Ctx<'_>) -> bool {
    let needed = determine(ctx);
    NEEDED.store(if needed { YES } else { NO }, Ordering::Relaxed);
    needed
}

/// Something happened that may have brought a reader. The answer is determined only at the next
/// command: at the end of a load, for example, the server has yet to create the backlog that
/// belongs to it.
pub fn may_have_begun() {
    if NEEDED.load(Ordering::Relaxed) == NO {
        NEEDED.store(UNKNOWN, Ordering::Relaxed);
    }
}

fn determine(ctx: Ctx<'_>) -> bool {
    let flags = ctx.flags();
    // Streams of their own can move slots of a cluster elsewhere.
    if !flags.is_master() || flags.has_aof() || flags.is_cluster() {
        return true;
    }
    // SAFETY: live context; the section's name ends in NUL; what the server returns is freed here.
    unsafe {
        let info = api!(
            RedisModule_GetServerInfo,
            ctx.raw(),
            c"replication".as_ptr()
        );
        let is_zero = |field: &CStr| {
            let mut error = 0;
            let value = api!(
                RedisModule_ServerInfoGetFieldUnsigned,
                info,
                field.as_ptr(),
                &mut error
            );
            error == 0 && value == 0
        };
        let none = is_zero(c"connected_slaves") && is_zero(c"repl_backlog_active");
        api!(RedisModule_FreeServerInfo, ctx.raw(), info);
        !none
    }
}
