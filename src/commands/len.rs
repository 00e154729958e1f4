//! DQ.LEN key [DELAYED | READY | RESERVED | DEAD | GROUP name]

use super::look;
use super::parse::{at_least, state, syntax_error, wrong_arity};
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 2)?;
    if let Some(name) = args.get(3) {
        return of_group(ctx, args, name);
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

fn of_group(ctx: Ctx<'_>, args: Args<'_>, name: &[u8]) -> Result<(), Refusal> {
    let word = args.get(2).unwrap_or_default();
    if !word.eq_ignore_ascii_case(b"GROUP") || args.len() > 4 {
        return Err(wrong_arity(args));
    }
    look(ctx, args, |queue, _| {
        let group = queue.and_then(|queue| queue.group(name));
        let len = group.map_or(0, |group| group.waiting + group.reserved);
        ctx.reply_integer(len as i64);
    })
}
