//! DQ.AWAIT key timeout id [id ...] | IDS n id [id ...]

use super::parse::{at_least, end_of_wait, Ids};
use super::query_jobs;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::awaits::{block_for_ends, report_of, AwaitedId, Report};
use crate::server::clock::real;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 4)?;
    let until = end_of_wait(args.get(2).unwrap_or_default(), real())?;
    // An id that is named twice is answered twice.
    let ids: Vec<&[u8]> = Ids::read(args, 3, 1)?.iter().collect();
    let mut reports = Vec::new();
    query_jobs(ctx, args, &ids, |queue, _| {
        let known = |id: &&[u8]| match queue {
            Some(queue) => Some((AwaitedId::from(*id), report_of(queue.known_of(id))?)),
            None => Some((AwaitedId::from(*id), Report::Unknown)),
        };
        reports.extend(ids.iter().filter_map(known));
    })?;
    if !reports.is_empty() {
        reply(ctx, &reports);
    } else if ctx.flags().denies_blocking() {
        ctx.reply_null_array();
    } else {
        let key = args.get(1).unwrap_or_default();
        let ids = ids.into_iter().map(AwaitedId::from);
        block_for_ends(ctx, key, ids, until, reply);
    }
    Ok(())
}

/// Replies `[id, outcome, value, at, attempts]` for each.
fn reply(ctx: Ctx<'_>, reports: &[(AwaitedId, Report)]) {
    ctx.reply_array(reports.len());
    for (id, report) in reports {
        ctx.reply_array(5);
        ctx.reply_bytes(id);
        let Report::Ended(end) = report else {
            ctx.reply_bytes(b"unknown");
            (0..3).for_each(|_| ctx.reply_null());
            continue;
        };
        ctx.reply_bytes(end.outcome.name().as_bytes());
        match &end.value {
            Some(value) => ctx.reply_bytes(value),
            None => ctx.reply_null(),
        }
        match end.at {
            Some(at) => ctx.reply_integer(at as i64),
            None => ctx.reply_null(),
        }
        ctx.reply_integer(end.attempts.into());
    }
}
