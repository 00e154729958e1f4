//! DQ.SIGNAL key id name [value]

use super::change;
use super::parse::{at_least, wrong_arity};
use crate::queue::note::check_step_name;
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 4)?;
    if args.len() > 5 {
        return Err(wrong_arity(args));
    }
    let arg = |at| args.get(at).unwrap_or_default();
    let (id, step) = (arg(2), (arg(3), arg(4)));
    // Refused whether or not the queue exists.
    check_step_name(step.0)?;
    let set = change(ctx, args, |queue, now, effects| {
        queue.signal(id, step, now, effects)
    })?;
    match set.transpose()?.flatten() {
        Some(is_new) => ctx.reply_integer(is_new.into()),
        None => ctx.reply_null(),
    }
    Ok(())
}
