//! Effects to replication, AOF, WATCH and keyspace events; and from there back into a queue.

use super::ffi::{api, log, Ctx, RawString};
use super::{clock, graveyard};
use crate::queue::effect::{decode, Effect, Effects, Event};
use crate::queue::error::QueueError;
use crate::queue::stats::Totals;
use crate::queue::Queue;
use redis_module::raw;
use std::cell::RefCell;
use std::ffi::{c_int, CStr};

/// The command that carries effects to replicas and into the AOF.
pub const APPLY: &CStr = c"DQ.APPLY";

thread_local! {
    static EFFECTS: RefCell<Effects> = RefCell::default();
}

/// Lends the buffer of effects, empty. A command that another module runs from a keyspace event
/// meanwhile gets a second one, whose totals are taken over.
pub fn with_effects<T>(use_them: impl FnOnce(&mut Effects) -> T) -> T {
    let mut effects = EFFECTS.take();
    effects.clear();
    let result = use_them(&mut effects);
    EFFECTS.with_borrow_mut(|slot| {
        effects.totals.add(&slot.totals);
        *slot = effects;
    });
    result
}

/// What has happened in all queues since the module was loaded.
pub fn totals() -> Totals {
    EFFECTS.with_borrow(|effects| effects.totals)
}

/// Whether somebody may listen for the events of modules.
pub fn events_are_wanted() -> bool {
    // SAFETY: takes no arguments.
    let enabled = unsafe { api!(RedisModule_GetNotifyKeyspaceEvents) };
    enabled & raw::REDISMODULE_NOTIFY_MODULE as c_int != 0
}

/// Tells everybody what happened to the key, after it happened.
pub fn publish(ctx: Ctx<'_>, key: RawString, effects: &Effects) {
    if !effects.is_empty() {
        ctx.replicate(APPLY, key, effects.bytes());
        ctx.signal_modified(key);
    }
    for event in effects.events() {
        ctx.notify(c_name(event), key);
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

/// Carries out what another server, or this one in an earlier life, has decided. True where the
/// queue is dropped with it.
pub fn apply(queue: &mut Queue, bytes: &[u8]) -> Result<bool, QueueError> {
    let mut dropped = false;
    for effect in decode(bytes) {
        let effect = effect?;
        match effect {
            Effect::Dropped => dropped = true,
            Effect::Minted { ms, seq } => clock::with_mint(|mint| mint.raise_id((ms, seq))),
            _ => queue.apply(&effect)?,
        }
    }
    clock::with_mint(|mint| mint.raise_token(queue.token_floor()));
    graveyard::lay(queue.take_remains());
    Ok(dropped)
}

pub fn log_refused(key: &[u8], error: QueueError) {
    let key = String::from_utf8_lossy(key);
    log(c"warning", &format!("effects on '{key}' refused: {error}"));
}
