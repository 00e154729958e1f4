//! DQ.LEN key [DELAYED | READY | RESERVED | DEAD]

use super::look;
use super::parse::{at_least, state, syntax_error, wrong_arity};
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 2)?;
    if args.len() > 3 {
        return Err(wrong_arity(args));
    }
    let of = match args.get(2) {
        Some(word) => Some(state(word).ok_or_else(syntax_error)?),
        None => None,
    };
    look(ctx, args, |queue, now| {
        let len = queue.map_or(0, |queue| queue.len(of, now));
        ctx.reply_integer(len as i64);
    })
}
