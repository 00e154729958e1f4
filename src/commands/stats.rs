//! DQ.STATS key

use super::fields::Fields;
use super::parse::exactly;
use super::query;
use crate::queue::configure::paused_shown;
use crate::queue::overdue::At;
use crate::queue::Queue;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::blocked;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    exactly(args, 2)?;
    let name = args.get(1).unwrap_or_default();
    let waiting = blocked::count(ctx.selected_db(), name);
    query(ctx, args, |queue, at| match queue {
        Some(queue) => reply(ctx, queue, at, waiting),
        None => ctx.reply_null(),
    })
}

fn reply(ctx: Ctx<'_>, queue: &Queue, at: At, waiting: usize) {
    let summary = queue.at(at).summary();
    let totals = queue.totals();
    // Computed once, as the list of fields is run twice.
    let (groups, rate_used) = (
        queue.at(at).groups().len(),
        queue.serving().rate_used(at.now),
    );
    let lateness = &totals.lateness;
    Fields::reply(ctx, |fields| {
        fields.integer("delayed", summary.delayed as i64);
        fields.integer("ready", summary.ready as i64);
        fields.integer("reserved", summary.reserved as i64);
        fields.integer("dead", summary.dead as i64);
        fields.integer("blocked", summary.blocked as i64);
        fields.integer("done", summary.done as i64);
        fields.integer("done-bytes", queue.parts().done().bytes() as i64);
        fields.integer_or_null("next-due", summary.next_due);
        fields.integer_or_null("oldest-ready-ms", summary.oldest_ready_ms);
        fields.integer("waiting-clients", waiting as i64);
        fields.integer("paused", paused_shown(queue.paused_until(), at.now));
        fields.integer("bytes", queue.bytes() as i64);
        fields.integer("recurring", queue.jobs().recurring_len() as i64);
        fields.integer("groups", groups as i64);
        fields.integer("rate-used", rate_used as i64);
        for (name, total) in totals.named() {
            fields.integer(name, total as i64);
        }
        fields.integer("lateness-count", lateness.count as i64);
        fields.integer("lateness-sum", lateness.sum_us as i64);
        fields.integer("lateness-max", lateness.max_us as i64);
        fields.with("lateness-buckets", |ctx| {
            ctx.reply_array(lateness.buckets().count());
            for (bound, count) in lateness.buckets() {
                ctx.reply_array(2);
                match bound {
                    Some(us) => ctx.reply_integer(us as i64),
                    None => ctx.reply_null(),
                }
                ctx.reply_integer(count as i64);
            }
        });
    });
}
