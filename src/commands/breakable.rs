//! DQ.BREAK key id: takes a job's memory away and leaves all that refers to it. Only in builds for tests.

use super::change;
use super::parse::exactly;
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    exactly(args, 3)?;
    let id = args.get(2).unwrap_or_default();
    change(ctx, args, |queue, _, _| queue.lose_job(id))?;
    ctx.reply_simple(c"OK");
    Ok(())
}
