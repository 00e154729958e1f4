//! What happens to keys without a command of the module: loading, flushing, swapping, renaming, a
//! change of role. Nothing is changed here; keys are put on the agenda for the timer.

use super::api::{api, guarded, imports as imported, trims, valkey, Ctx, KeyName, RawString, OK};
use super::{
    agenda, async_load, awaits, blocked, client_eviction, imports, reclaim, renamed, replicate,
    sleep, timer, trimmed, unowned_slots, worker,
};
use redis_module::raw;
use std::ffi::{c_char, c_int, c_void, CStr};

/// Keyspace events after which a name holds a queue that was not there before.
const ARRIVALS: [&CStr; 4] = [c"rename_to", c"move_to", c"copy_to", c"restore"];

/// Subscribes to all events; false if the server refuses.
pub fn subscribe(ctx: Ctx<'_>) -> bool {
    replicate::note_subscribers();
    let mut events: Vec<(u64, raw::RedisModuleEventCallback)> = vec![
        (raw::REDISMODULE_EVENT_LOADING, Some(on_loading)),
        (raw::REDISMODULE_EVENT_FLUSHDB, Some(on_flush)),
        (raw::REDISMODULE_EVENT_SWAPDB, Some(on_swap)),
        (
            raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED,
            Some(on_role_change),
        ),
        (raw::REDISMODULE_EVENT_FORK_CHILD, Some(on_news)),
        (raw::REDISMODULE_EVENT_CONFIG, Some(on_config)),
        (raw::REDISMODULE_EVENT_REPLICA_CHANGE, Some(on_news)),
        (raw::REDISMODULE_EVENT_REPL_ASYNC_LOAD, Some(on_async_load)),
        (raw::REDISMODULE_EVENT_CRON_LOOP, Some(on_cron)),
    ];
    if ctx.has_trims() {
        events.push((trims::EVENT, Some(on_trim)));
    }
    if ctx.has_imports() {
        events.push((imported::EVENT, Some(on_import)));
    }
    if ctx.has_atomic_slot_migration() {
        let event = valkey::EVENT_ATOMIC_SLOT_MIGRATION;
        events.push((event, Some(on_slot_migration)));
    }
    (!renamed::are_heard(ctx) || subscribe_to_keyspace(ctx))
        && events.into_iter().all(|(id, callback)| {
            let event = raw::RedisModuleEvent { id, dataver: 1 };
            // SAFETY: live context of the load; the callbacks are static.
            let subscribed = unsafe {
                api!(
                    RedisModule_SubscribeToServerEvent,
                    ctx.raw(),
                    event,
                    callback
                )
            };
            subscribed == OK
        })
}

fn subscribe_to_keyspace(ctx: Ctx<'_>) -> bool {
    // SAFETY: as above.
    let subscribed = unsafe {
        api!(
            RedisModule_SubscribeToKeyspaceEvents,
            ctx.raw(),
            raw::REDISMODULE_NOTIFY_GENERIC as c_int,
            Some(on_keyspace_event)
        )
    };
    subscribed == OK
}

unsafe extern "C" fn on_keyspace_event(
    ctx: *mut raw::RedisModuleCtx,
    _kind: c_int,
    event: *const c_char,
    key: RawString,
) -> c_int {
    guarded("a keyspace event", OK, || {
        // SAFETY: the server passes a live context, an event's name and a key's.
        let (ctx, event, key) =
            unsafe { (Ctx::new(ctx), CStr::from_ptr(event), KeyName::new(key)) };
        if ARRIVALS.contains(&event) {
            renamed::note_arrival(ctx, key);
        }
        OK
    })
}

/// All queues are new after a load, and each is noted while it is loaded.
unsafe extern "C" fn on_loading(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    sub: u64,
    _data: *mut c_void,
) {
    guarded("the loading event", (), || {
        let ended = [
            raw::REDISMODULE_SUBEVENT_LOADING_ENDED,
            raw::REDISMODULE_SUBEVENT_LOADING_FAILED,
        ];
        if ended.contains(&sub) {
            // SAFETY: the server passes a live context.
            let ctx = unsafe { Ctx::new(ctx) };
            worker::role_is(ctx.flags().is_master());
            awaits::recheck_all(None);
            replicate::may_have_begun();
            note_new_subscribers();
        } else if !async_load::is_under_way() {
            agenda::clear(None);
        }
    });
}

/// Comes before and after the loading events of data that are loaded beside the old data.
unsafe extern "C" fn on_async_load(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    sub: u64,
    _data: *mut c_void,
) {
    guarded("the asynchronous loading event", (), || {
        match sub {
            raw::REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_STARTED => async_load::begin(),
            raw::REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED => {
                // SAFETY: the server passes a live context.
                async_load::complete(unsafe { Ctx::new(ctx) });
                awaits::recheck_all(None);
            }
            _ => async_load::abort(),
        }
        // Valkey reports an aborted load only after it has reported that loading ended.
        worker::rearm();
    });
}

unsafe extern "C" fn on_flush(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _sub: u64,
    data: *mut c_void,
) {
    guarded("the flush event", (), || {
        // SAFETY: the server passes what belongs to the event.
        let info = unsafe { &*data.cast::<raw::RedisModuleFlushInfo>() };
        let db = (info.dbnum >= 0).then_some(info.dbnum);
        agenda::clear(db);
        awaits::recheck_all(db);
        let names = blocked::keys().into_iter();
        let flushed = names.filter(|(of, _)| db.is_none_or(|db| db == *of));
        flushed.for_each(|(of, name)| blocked::another_queue(of, &name));
        worker::rearm();
    });
}

unsafe extern "C" fn on_swap(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _sub: u64,
    data: *mut c_void,
) {
    guarded("the swap event", (), || {
        // SAFETY: the server passes what belongs to the event.
        let info = unsafe { &*data.cast::<raw::RedisModuleSwapDbInfo>() };
        let (first, second) = (info.dbnum_first, info.dbnum_second);
        agenda::swap(first, second);
        reclaim::swap(first, second);
        renamed::swap(first, second);
        async_load::swap(first, second);
        awaits::recheck_all(Some(first));
        awaits::recheck_all(Some(second));
        // Clients go on waiting in their database, which has other keys now. A key that was kept
        // only for them is in the other database now, where no client keeps it.
        let names = [blocked::keys_of(first), blocked::keys_of(second)].concat();
        for (db, name) in names.iter().flat_map(|it| [(first, it), (second, it)]) {
            blocked::another_queue(db, name);
            agenda::check_soon(db, name);
        }
    });
}

unsafe extern "C" fn on_role_change(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    sub: u64,
    _data: *mut c_void,
) {
    guarded("the role event", (), || {
        let now_master = sub == raw::REDISMODULE_EVENT_REPLROLECHANGED_NOW_MASTER;
        worker::role_is(now_master);
        replicate::may_have_begun();
    });
}

/// If there are subscribers from now on, the timer must know which due times to report.
fn note_new_subscribers() {
    if replicate::note_subscribers() {
        worker::rearm();
    }
}

/// A snapshot was forked, a setting changed, or a replica came: there may be a new reader of effects.
unsafe extern "C" fn on_news(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _sub: u64,
    _data: *mut c_void,
) {
    guarded("an event", (), || {
        replicate::may_have_begun();
        note_new_subscribers();
    });
}

unsafe extern "C" fn on_config(
    ctx: *mut raw::RedisModuleCtx,
    event: raw::RedisModuleEvent,
    sub: u64,
    data: *mut c_void,
) {
    // SAFETY: as the server has called this.
    unsafe { on_news(ctx, event, sub, data) };
    guarded("the config event", (), || {
        // SAFETY: the server passes a live context, and with this event the changes.
        unsafe { client_eviction::warn_if_changed(Ctx::new(ctx), &*data.cast()) };
    });
}

/// Runs a few times per second in any case: no timer has to fire for what can wait.
unsafe extern "C" fn on_cron(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _sub: u64,
    _data: *mut c_void,
) {
    guarded("the cron event", (), || {
        // SAFETY: the server passes a live context.
        let ctx = unsafe { Ctx::new(ctx) };
        if !ctx.flags().is_loading() {
            timer::check_clock();
            sleep::begin_sweep(ctx);
        }
    });
}

unsafe extern "C" fn on_slot_migration(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    sub: u64,
    _data: *mut c_void,
) {
    guarded("the slot migration event", (), || {
        if sub == valkey::SUBEVENT_IMPORT_COMPLETED {
            unowned_slots::slots_have_come();
        }
    });
}

unsafe extern "C" fn on_import(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    sub: u64,
    data: *mut c_void,
) {
    guarded("the import event", (), || {
        // SAFETY: the server passes what belongs to the event.
        let import = || unsafe { imported::Import::of(data) };
        match sub {
            imported::STARTED => imports::has_begun(import()),
            imported::FAILED | imported::COMPLETED => imports::has_ended(&import()),
            _ => {}
        }
    });
}

unsafe extern "C" fn on_trim(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    sub: u64,
    data: *mut c_void,
) {
    guarded("the trim event", (), || {
        if sub == trims::AT_ONCE {
            // SAFETY: the server passes what belongs to the event.
            trimmed::add(unsafe { trims::slots_of(data) });
        }
    });
}
