//! DQ.STATS key

use super::look;
use super::parse::exactly;
use crate::queue::overdue::At;
use crate::queue::Queue;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::blocked;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    exactly(args, 2)?;
    let name = args.get(1).unwrap_or_default();
    let waiting = blocked::count(ctx.selected_db(), name);
    look(ctx, args, |queue, at| match queue {
        Some(queue) => reply(ctx, queue, at, waiting),
        None => ctx.reply_null(),
    })
}

fn reply(ctx: Ctx<'_>, queue: &Queue, at: At, waiting: usize) {
    let summary = queue.summary(at);
    let totals = queue.totals();
    let integer = |name: &str, value: i64| {
        ctx.reply_bytes(name.as_bytes());
        ctx.reply_integer(value);
    };
    let or_null = |value: Option<u64>| match value {
        Some(value) => ctx.reply_integer(value as i64),
        None => ctx.reply_null(),
    };
    ctx.reply_map(15 + totals.named().len() + 4);
    integer("delayed", summary.delayed as i64);
    integer("ready", summary.ready as i64);
    integer("reserved", summary.reserved as i64);
    integer("dead", summary.dead as i64);
    integer("blocked", summary.blocked as i64);
    integer("done", summary.done as i64);
    integer("done-bytes", queue.done_bytes() as i64);
    ctx.reply_bytes(b"next-due");
    or_null(summary.next_due);
    ctx.reply_bytes(b"oldest-ready-ms");
    or_null(summary.oldest_ready_ms);
    integer("waiting-clients", waiting as i64);
    integer("paused", queue.paused(at.now));
    integer("bytes", queue.bytes() as i64);
    integer("recurring", queue.recurring_len() as i64);
    integer("groups", queue.groups_at(at).len() as i64);
    integer("rate-used", queue.rate_used(at.now) as i64);
    for (name, total) in totals.named() {
        integer(name, total as i64);
    }
    integer("lateness-count", totals.lateness.count as i64);
    integer("lateness-sum", totals.lateness.sum_us as i64);
    integer("lateness-max", totals.lateness.max_us as i64);
    ctx.reply_bytes(b"lateness-buckets");
    ctx.reply_array(totals.lateness.buckets().count());
    for (bound, count) in totals.lateness.buckets() {
        ctx.reply_array(2);
        or_null(bound);
        ctx.reply_integer(count as i64);
    }
}
