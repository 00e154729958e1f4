//! INFO dq: figures over all queues, for monitoring.

use super::api::{api, guarded, Ctx};
use super::{blocked, clock, figures, reclaim, renamed, replicate, timer, zones};
use redis_module::raw;
use std::ffi::{c_int, CStr, CString};

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
            if api!(RedisModule_InfoAddSection, info, c"".as_ptr()) != super::api::OK {
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

/// The names of the fields lack the prefix `dq_`, which the server adds.
fn fields() -> Vec<(CString, u64)> {
    let name = |name: &str| CString::new(name).unwrap_or_default();
    let owned = |(field, value): (&CStr, u64)| (field.to_owned(), value);
    let (queues, jobs) = figures::of_all_queues();
    let now_ms = clock::now().ms();
    let oldest_ready_ms = jobs.first_due.map_or(0, |due| now_ms.saturating_sub(due));
    let totals = replicate::totals();
    let (fires, late_us_max) = timer::figures();
    let (tzdata, of_system) = zones::database();
    let mut fields: Vec<_> = [
        (c"queues", queues as u64),
        (c"jobs_delayed", jobs.delayed),
        (c"jobs_ready", jobs.ready),
        (c"jobs_reserved", jobs.reserved),
        (c"jobs_dead", jobs.dead),
        (c"jobs_done", jobs.done),
        (c"jobs_blocked", jobs.blocked),
        (c"waiting_clients", blocked::count_all() as u64),
        (
            c"lazyfree_pending_jobs",
            jobs.unfreed + reclaim::waiting() as u64,
        ),
        (
            c"lazyfree_pending_bytes",
            jobs.unfreed_bytes + reclaim::bytes() as u64,
        ),
        (c"bytes", jobs.bytes),
        (c"done_bytes", jobs.done_bytes),
        (c"recurring", jobs.recurring),
        (c"groups", jobs.groups),
        (c"oldest_ready_ms", oldest_ready_ms),
    ]
    .map(owned)
    .into();
    for (total, value) in totals.named() {
        fields.push((name(&format!("{}_total", total.replace('-', "_"))), value));
    }
    fields.extend(
        clock::is_for_tests()
            .then_some((c"test_clock", 1))
            .map(owned),
    );
    fields.extend(
        [
            (c"lateness_us_count", totals.lateness.count),
            (c"lateness_us_sum", totals.lateness.sum_us),
            (c"lateness_us_max", totals.lateness.max_us),
            (c"timer_fires_total", fires),
            (c"timer_late_us_max", late_us_max),
            (c"tzdata_version", tzdata),
            (c"tzdata_of_system", u64::from(of_system)),
            (c"renames_heard", u64::from(!renamed::is_searching())),
        ]
        .map(owned),
    );
    fields
}
