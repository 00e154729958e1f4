//! DQ.RESCHEDULE key DELAY ms | AT unix-ms id [id ...]

use super::change;
use super::parse::{at_least, millis, syntax_error};
use crate::queue::add::When;
use crate::server::clock::now;
use crate::server::ffi::{Args, Ctx, Refusal};
use std::collections::HashSet;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 5)?;
    let word = args.get(2).unwrap_or_default();
    let ms = args.get(3).unwrap_or_default();
    let when = if word.eq_ignore_ascii_case(b"DELAY") {
        When::Delay(millis(ms)?)
    } else if word.eq_ignore_ascii_case(b"AT") {
        When::At(millis(ms)?)
    } else {
        return Err(syntax_error());
    };
    // From one reading of the clock, whether or not there is a queue to be asked.
    let due = when.instant(now())?;
    let moved = change(ctx, args, |queue, now, effects| {
        let ids = (4..args.len()).filter_map(|at| args.get(at));
        // One that is named twice moves once.
        let (mut named, is_only) = (HashSet::new(), args.len() == 5);
        ids.filter(|&id| is_only || named.insert(id))
            .filter(|id| queue.reschedule(id, due, now, effects))
            .count()
    })?;
    ctx.reply_integer(moved.unwrap_or(0) as i64);
    Ok(())
}
