//! DQ.STEP key id token name value [name value ...]

use super::change;
use super::parse::{at_least, wrong_arity};
use crate::queue::claim::Claim;
use crate::queue::note::check_step_name;
use crate::server::api::{Args, Ctx, Refusal};

const FIRST_NAME: usize = 4;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, FIRST_NAME + 2)?;
    if !args.len().is_multiple_of(2) {
        return Err(wrong_arity(args));
    }
    let arg = |at| args.get(at).unwrap_or_default();
    let (id, claim) = (arg(2), Claim::of_token(arg(3)));
    let names = (FIRST_NAME..args.len()).step_by(2);
    let steps = names.map(|at| (arg(at), arg(at + 1)));
    // Refused whether or not the queue exists.
    steps
        .clone()
        .try_for_each(|(name, _)| check_step_name(name))?;
    let kept = change(ctx, args, |queue, now, effects| {
        queue.step(id, claim, steps, now, effects)
    })?;
    match kept.transpose()? {
        Some(true) => ctx.reply_integer(1),
        Some(false) | None => ctx.reply_null(),
    }
    Ok(())
}
