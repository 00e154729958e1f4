//! DQ.KICK key COUNT n | IDS n id [id ...]

use super::change;
use super::parse::{at_least, is_ids, positive, syntax_error, unexpected, Ids};
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 4)?;
    let word = args.get(2).unwrap_or_default();
    let by_ids = is_ids(word);
    if !by_ids && !word.eq_ignore_ascii_case(b"COUNT") {
        return Err(unexpected(word, &["COUNT", "IDS"]));
    }
    let kicked = if by_ids {
        let ids = Ids::counted(args, 3, 1)?;
        change(ctx, args, |queue, now, effects| {
            let kicked = ids.iter().filter(|id| queue.kick(id, now, effects));
            kicked.count() as u64
        })?
    } else {
        let count = positive(args.get(3).unwrap_or_default())?;
        if args.len() > 4 {
            return Err(syntax_error("COUNT takes a number and no ids"));
        }
        change(ctx, args, |queue, now, effects| {
            queue.kick_oldest(count, now, effects)
        })?
    };
    ctx.reply_integer(kicked.unwrap_or(0) as i64);
    Ok(())
}
