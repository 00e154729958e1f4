//! DQ.LEN key [DELAYED | READY | RESERVED | DEAD | BLOCKED | DONE | GROUP name]

use super::parse::{at_least, state, syntax_error, wrong_arity};
use super::query;
use crate::queue::job::State;
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 2)?;
    if let Some(name) = args.get(3) {
        return of_group(ctx, args, name);
    }
    let of = args.get(2).map(of_state).transpose()?;
    query(ctx, args, |queue, at| {
        let len = queue.map_or(0, |queue| queue.at(at).len(of));
        ctx.reply_integer(len as i64);
    })
}

fn of_state(word: &[u8]) -> Result<State, Refusal> {
    if word.eq_ignore_ascii_case(b"GROUP") {
        return Err(syntax_error("a value is missing after GROUP"));
    }
    state(word)
}

fn of_group(ctx: Ctx<'_>, args: Args<'_>, name: &[u8]) -> Result<(), Refusal> {
    let word = args.get(2).unwrap_or_default();
    if !word.eq_ignore_ascii_case(b"GROUP") || args.len() > 4 {
        return Err(wrong_arity(args));
    }
    query(ctx, args, |queue, at| {
        let len = queue.map_or(0, |queue| queue.at(at).group_len(name));
        ctx.reply_integer(len as i64);
    })
}
