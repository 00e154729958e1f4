//! DQ.CLOCK GET | SET unix-ms | ADVANCE ms | NEXT. Exists only with `test-clock yes`.

use super::parse::{at_least, exactly, millis, unexpected};
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::clock;
use crate::server::test_clock::{request, Move};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 2)?;
    let by = movement(args)?;
    if ctx.flags().denies_blocking() {
        let text = "ERR DQ.CLOCK is not allowed in MULTI, scripts and functions";
        return Err(Refusal(text.into()));
    }
    match by {
        Some(by) => request(ctx, by),
        None => ctx.reply_integer(clock::now().ms() as i64),
    }
    Ok(())
}

/// `None` for GET.
fn movement(args: Args<'_>) -> Result<Option<Move>, Refusal> {
    let word = args.get(1).unwrap_or_default();
    let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
    if is("GET") || is("NEXT") {
        exactly(args, 2)?;
        return Ok(is("NEXT").then_some(Move::Next));
    }
    if !is("SET") && !is("ADVANCE") {
        return Err(unexpected(word, &["GET", "SET", "ADVANCE", "NEXT"]));
    }
    exactly(args, 3)?;
    let ms = millis(args.get(2).unwrap_or_default())?;
    Ok(Some(if is("SET") {
        Move::To(ms)
    } else {
        Move::By(ms)
    }))
}
