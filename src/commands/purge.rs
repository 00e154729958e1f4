//! DQ.PURGE key DELAYED | READY | RESERVED | DEAD | ALL

use super::change;
use super::parse::{exactly, state, syntax_error};
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    exactly(args, 3)?;
    let word = args.get(2).unwrap_or_default();
    let of = state(word);
    if of.is_none() && !word.eq_ignore_ascii_case(b"ALL") {
        return Err(syntax_error());
    }
    let purged = change(ctx, args, |queue, now, effects| {
        queue.purge(of, now, effects)
    })?;
    ctx.reply_integer(purged.unwrap_or(0) as i64);
    Ok(())
}
