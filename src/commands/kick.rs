//! DQ.KICK key COUNT n | IDS n id [id ...]

use super::change;
use super::parse::{at_least, positive, syntax_error, unexpected};
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 4)?;
    let word = args.get(2).unwrap_or_default();
    let by_ids = word.eq_ignore_ascii_case(b"IDS");
    if !by_ids && !word.eq_ignore_ascii_case(b"COUNT") {
        return Err(unexpected(word, &["COUNT", "IDS"]));
    }
    let count = positive(args.get(3).unwrap_or_default())?;
    let ids = args.len() as u64 - 4;
    if by_ids && ids != count {
        return Err(syntax_error(format_args!(
            "IDS {count} needs {count} ids, not {ids}"
        )));
    }
    if !by_ids && ids > 0 {
        return Err(syntax_error("COUNT takes a number and no ids"));
    }
    let kicked = if by_ids {
        change(ctx, args, |queue, now, effects| {
            let ids = (4..args.len()).filter_map(|at| args.get(at));
            ids.filter(|id| queue.kick(id, now, effects)).count() as u64
        })?
    } else {
        change(ctx, args, |queue, now, effects| {
            queue.kick_oldest(count, now, effects)
        })?
    };
    ctx.reply_integer(kicked.unwrap_or(0) as i64);
    Ok(())
}
