//! Only in builds for tests. DQ.BREAK key id frees a job's memory and keeps all references to it.
//! DQ.BREAK place makes the next call that reaches this place panic there, once. With DQ.BREAK
//! newer, what it writes from now on has a future version.

use super::change;
use super::parse::exactly;
use crate::server::api::{Args, Ctx, Refusal};
use crate::storage::broken::plant;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    if let (Some(place), None) = (args.get(1), args.get(2)) {
        plant(place);
    } else {
        exactly(args, 3)?;
        let id = args.get(2).unwrap_or_default();
        change(ctx, args, |queue, _, _| queue.lose_job(id))?;
    }
    ctx.reply_simple(c"OK");
    Ok(())
}
