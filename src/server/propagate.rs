//! Effects to replication, AOF, WATCH and keyspace events; and from there back into a queue.

use super::ffi::{api, log, Ctx, RawString};
use super::{clock, graveyard, listeners};
use crate::queue::effect::{decode, Effect, Effects, Event};
use crate::queue::error::QueueError;
use crate::queue::job::{INSTANT_MAX, SEQ_MAX, TOKEN_MAX, TOKEN_MS_SHIFT};
use crate::queue::stats::Totals;
use crate::queue::Queue;
use redis_module::raw;
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, CStr};

/// The command that carries effects to replicas and into the AOF.
pub const APPLY: &CStr = c"DQ.APPLY";

thread_local! {
    /// Not there while it is lent.
    static EFFECTS: RefCell<Option<Box<Effects>>> = const { RefCell::new(None) };
    /// As of the last change of the settings.
    static WERE_WANTED: Cell<bool> = const { Cell::new(false) };
    static LISTENED_SINCE: Cell<u64> = const { Cell::new(0) };
}

/// Lends the buffer of effects, empty. A command that another module runs from a keyspace event
/// meanwhile gets a second one, whose totals are taken over.
pub fn with_effects<T>(use_them: impl FnOnce(&mut Effects) -> T) -> T {
    let mut effects = EFFECTS.take().unwrap_or_default();
    effects.clear();
    let result = use_them(&mut effects);
    EFFECTS.with_borrow_mut(|slot| {
        if let Some(second) = slot.take() {
            effects.totals.add(&second.totals);
        }
        *slot = Some(effects);
    });
    result
}

/// What has happened in all queues since the module was loaded.
pub fn totals() -> Totals {
    EFFECTS.with_borrow(|effects| {
        let effects = effects.as_ref();
        effects.map_or(Totals::default(), |effects| effects.totals)
    })
}

/// Whether somebody may listen for the events of modules.
fn events_are_wanted() -> bool {
    // SAFETY: takes no arguments.
    let enabled = unsafe { api!(RedisModule_GetNotifyKeyspaceEvents) };
    enabled & raw::REDISMODULE_NOTIFY_MODULE as c_int != 0
}

/// Since when somebody may listen for the events of modules: what happened before is told no more.
pub fn events_are_wanted_since() -> Option<u64> {
    if !events_are_wanted() {
        return None;
    }
    Some(LISTENED_SINCE.get())
}

/// Settings have changed. Whether somebody may listen from now on who did not before.
pub fn note_listeners() -> bool {
    let wanted = events_are_wanted();
    let came = !WERE_WANTED.replace(wanted) && wanted;
    if came {
        LISTENED_SINCE.set(clock::now().ms());
    }
    came
}

/// As [`with_effects`], for a command: they are encoded only if somebody may read them.
pub fn with_command_effects<T>(ctx: Ctx<'_>, use_them: impl FnOnce(&mut Effects) -> T) -> T {
    with_effects(|effects| {
        if !listeners::any(ctx) {
            effects.leave_unheard();
        }
        use_them(effects)
    })
}

/// Tells everybody what happened to the key, after it happened.
pub fn publish(ctx: Ctx<'_>, key: RawString, effects: &Effects) {
    if !effects.is_empty() {
        if effects.is_unheard() {
            // Goes nowhere either, but is counted as a change, for the server's save points.
            ctx.replicate_verbatim();
        } else {
            ctx.replicate(APPLY, key, effects.bytes());
        }
        ctx.signal_modified(key);
    }
    for event in effects.events() {
        ctx.notify(c_name(event), key);
    }
}

/// Raises the events of effects that were carried out for somebody else, as a replica does for the
/// commands of its master.
pub fn announce(ctx: Ctx<'_>, key: RawString, bytes: &[u8]) {
    if !events_are_wanted() {
        return;
    }
    let effects: Vec<_> = decode(bytes).map_while(Result::ok).collect();
    let raised = |event: &Event| effects.iter().any(|effect| effect.events().contains(event));
    for event in Event::ALL.into_iter().filter(raised) {
        ctx.notify(c_name(event), key);
    }
    if effects.contains(&Effect::Dropped) {
        ctx.notify_generic(c"del", key);
    }
}

fn c_name(event: Event) -> &'static CStr {
    match event {
        Event::Add => c"dq.add",
        Event::Timeout => c"dq.timeout",
        Event::Nack => c"dq.nack",
        Event::Ready => c"dq.ready",
        Event::Pop => c"dq.pop",
        Event::Ack => c"dq.ack",
        Event::Dead => c"dq.dead",
        Event::Del => c"dq.del",
        Event::Expired => c"dq.expired",
    }
}

/// Who says that something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A master, or a file of this server's own: obeyed.
    Obeyed,
    /// A client, by RESTORE (so by MIGRATE), or by hand: it may be forged.
    Client,
}

/// Carries out what another server, or this one in an earlier life, has decided. True where the
/// queue is dropped with it.
pub fn apply(queue: &mut Queue, bytes: &[u8], origin: Origin) -> Result<bool, QueueError> {
    let mut dropped = false;
    let (mut minted, mut token) = ((0, 0), 0);
    let before = queue.free_effort();
    for effect in decode(bytes) {
        let effect = effect?;
        match effect {
            Effect::Dropped => dropped = true,
            Effect::Minted {
                ms,
                seq,
                token: last,
            } => {
                minted = minted.max((ms, seq));
                token = token.max(last);
            }
            _ => queue.apply(&effect)?,
        }
    }
    if origin == Origin::Client {
        check_reach(queue)?;
        if minted.0 > latest_ms() {
            minted = (0, 0);
        }
        if token >> TOKEN_MS_SHIFT > latest_ms() {
            token = 0;
        }
    }
    clock::with_mint(|mint| {
        mint.raise_id(minted);
        mint.raise_token(queue.token_floor().max(token.min(TOKEN_MAX)));
    });
    queue.take_remains().into_iter().for_each(graveyard::lay);
    graveyard::pay_for(1 + queue.free_effort().saturating_sub(before));
    Ok(dropped)
}

/// The numbers that a client brings along must leave room to count on from them. What counts on is
/// refused neither by a replica nor by a later load, whose limits, the queue's own, lie further out;
/// and the bound on tokens moves faster than they grow, so that the queue can be dumped again.
fn check_reach(queue: &Queue) -> Result<(), QueueError> {
    if queue.token_floor() >> TOKEN_MS_SHIFT > latest_ms() || queue.order_floor() > SEQ_MAX / 2 {
        return Err(QueueError::Malformed(
            "a number that leaves no room to count on",
        ));
    }
    Ok(())
}

/// What can only be told of the whole that a client brings along.
pub fn check_whole(queue: &Queue, origin: Origin) -> Result<(), QueueError> {
    if origin == Origin::Client && !queue.has_distinct_numbers() {
        return Err(QueueError::Malformed("a number that two jobs share"));
    }
    Ok(())
}

/// The latest unix-ms from which another server may have drawn ids and tokens: its clock may be 34
/// years ahead, and ours may stand in 1970.
fn latest_ms() -> u64 {
    const AHEAD_MS: u64 = 1 << 40;
    const YEAR_2039: u64 = 1 << 41;
    let ahead = clock::now().ms() + AHEAD_MS;
    ahead.clamp(YEAR_2039, INSTANT_MAX)
}

pub fn log_refused(key: &[u8], error: QueueError) {
    let key = String::from_utf8_lossy(key);
    log(c"warning", &format!("effects on '{key}' refused: {error}"));
}
