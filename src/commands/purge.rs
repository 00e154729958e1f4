//! DQ.PURGE key DELAYED | READY | RESERVED | DEAD | BLOCKED | DONE | ALL

use super::change;
use super::parse::{exactly, state, unexpected, STATES};
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    exactly(args, 3)?;
    let word = args.get(2).unwrap_or_default();
    let of = match word.eq_ignore_ascii_case(b"ALL") {
        true => None,
        false => Some(state(word).map_err(|_| expected(word))?),
    };
    let purged = change(ctx, args, |queue, now, effects| {
        queue.purge(of, now, effects)
    })?;
    ctx.reply_integer(purged.unwrap_or(0) as i64);
    Ok(())
}

#[cold]
fn expected(word: &[u8]) -> Refusal {
    unexpected(word, &[&STATES[..], &["ALL"]].concat())
}
