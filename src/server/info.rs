//! INFO dq: figures over all queues, for those who watch the server.

use super::ffi::{api, guarded, Ctx, OwnString};
use super::keyspace::OpenKey;
use super::{clock, deadlines, propagate, timer, waiters};
use crate::queue::clock::Now;
use redis_module::raw;
use std::cell::RefCell;
use std::ffi::{c_int, CStr, CString};
use std::sync::Arc;

/// Queues that one INFO looks at, so that it stays within a few milliseconds. Where there are more,
/// the next ones go on from there, and the sums are those of the last complete round.
const QUEUES_AT_ONCE: usize = 5000;

/// Jobs by state: delayed, ready, reserved, dead.
type Jobs = [u64; 4];

#[derive(Default)]
struct Round {
    /// The last queue looked at in the round that goes on.
    after: Option<(c_int, Arc<[u8]>)>,
    sum: Jobs,
    /// Of the last complete round.
    complete: Jobs,
}

thread_local! {
    static ROUND: RefCell<Round> = RefCell::default();
}

pub fn register(ctx: Ctx<'_>) {
    // SAFETY: live context of the load; the callback is static.
    unsafe { api!(RedisModule_RegisterInfoFunc, ctx.raw(), Some(on_info)) };
}

unsafe extern "C" fn on_info(info: *mut raw::RedisModuleInfoCtx, for_crash_report: c_int) {
    guarded("INFO", (), || {
        if for_crash_report != 0 {
            return;
        }
        // SAFETY: a live info context; names and values are copied.
        unsafe {
            if api!(RedisModule_InfoAddSection, info, c"".as_ptr()) != super::ffi::OK {
                return;
            }
        }
        for (name, value) in fields() {
            // SAFETY: as above.
            unsafe {
                api!(
                    RedisModule_InfoAddFieldULongLong,
                    info,
                    name.as_ptr(),
                    value
                )
            };
        }
    });
}

/// Without the `dq_` that the server puts before each.
fn fields() -> Vec<(CString, u64)> {
    let name = |name: &str| CString::new(name).unwrap_or_default();
    let owned = |(field, value): (&CStr, u64)| (field.to_owned(), value);
    let [delayed, ready, reserved, dead] = jobs();
    let totals = propagate::totals();
    let (fires, late_us_max) = timer::figures();
    let mut fields: Vec<_> = [
        (c"queues", deadlines::len() as u64),
        (c"jobs_delayed", delayed),
        (c"jobs_ready", ready),
        (c"jobs_reserved", reserved),
        (c"jobs_dead", dead),
        (c"waiting_clients", waiters::count_all() as u64),
    ]
    .map(owned)
    .into();
    for (total, value) in totals.named() {
        fields.push((name(&format!("{}_total", total.replace('-', "_"))), value));
    }
    fields.extend(
        [
            (c"lateness_us_count", totals.lateness.count),
            (c"lateness_us_sum", totals.lateness.sum_us),
            (c"lateness_us_max", totals.lateness.max_us),
            (c"timer_fires_total", fires),
            (c"timer_late_us_max", late_us_max),
        ]
        .map(owned),
    );
    fields
}

fn jobs() -> Jobs {
    let mut round = ROUND.take();
    let names = deadlines::names_after(round.after.as_ref(), QUEUES_AT_ONCE);
    let now = clock::now();
    for (db, name) in &names {
        let of_queue = timer::with_own_context(|ctx| jobs_of(ctx, *db, name, now));
        for (sum, count) in round.sum.iter_mut().zip(of_queue) {
            *sum += count;
        }
    }
    if names.len() < QUEUES_AT_ONCE {
        round.complete = std::mem::take(&mut round.sum);
        round.after = None;
    } else {
        round.after = names.into_iter().next_back();
    }
    let complete = round.complete;
    ROUND.set(round);
    complete
}

fn jobs_of(ctx: Ctx<'_>, db: c_int, name: &[u8], now: Now) -> Jobs {
    let raw_name = OwnString::new(name);
    if !ctx.select_db(db) {
        return Jobs::default();
    }
    let Ok(mut open) = OpenKey::peek(ctx, raw_name.raw()) else {
        return Jobs::default();
    };
    open.queue().map_or(Jobs::default(), |queue| {
        let summary = queue.summary(now);
        let counts = [
            summary.delayed,
            summary.ready,
            summary.reserved,
            summary.dead,
        ];
        counts.map(|count| count as u64)
    })
}
