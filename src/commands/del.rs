//! DQ.DEL key [UNRESERVED] id [id ...] | IDS n id [id ...]

use super::change;
use super::parse::{at_least, Ids};
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let first = args.get(2).unwrap_or_default();
    let spare_reserved = first.eq_ignore_ascii_case(b"UNRESERVED");
    let ids = Ids::read(args, 2 + usize::from(spare_reserved), 1)?;
    let deleted = change(ctx, args, |queue, now, effects| {
        ids.iter()
            .filter(|id| queue.delete(id, spare_reserved, now, effects))
            .count()
    })?;
    ctx.reply_integer(deleted.unwrap_or(0) as i64);
    Ok(())
}
