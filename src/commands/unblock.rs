//! DQ.UNBLOCK client-id [client-id ...]

use super::parse::{at_least, natural};
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::waits;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 2)?;
    let ids = (1..args.len()).filter_map(|at| args.get(at));
    let ids = ids.map(natural).collect::<Result<Vec<_>, _>>()?;
    ctx.reply_integer(waits::unblock(ctx, &ids) as i64);
    Ok(())
}
