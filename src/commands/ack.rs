//! DQ.ACK key id [id ...] | DQ.ACK key WITHTOKENS id token [id token ...]

use super::change;
use super::parse::{at_least, syntax_error};
use crate::queue::deliver::Claim;
use crate::server::ffi::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let first = args.get(2).unwrap_or_default();
    let with_tokens = first.eq_ignore_ascii_case(b"WITHTOKENS");
    let claims: Vec<(&[u8], Claim)> = if with_tokens {
        at_least(args, 5)?;
        if args.len().is_multiple_of(2) {
            return Err(syntax_error());
        }
        let pairs = (3..args.len()).step_by(2);
        pairs
            .filter_map(|at| Some((args.get(at)?, Claim::of_token(args.get(at + 1)?))))
            .collect()
    } else {
        let ids = (2..args.len()).filter_map(|at| args.get(at));
        ids.map(|id| (id, Claim::Current)).collect()
    };
    let acked = change(ctx, args, |queue, now, effects| {
        let acked = claims
            .iter()
            .filter(|&&(id, claim)| queue.ack(id, claim, now, effects));
        acked.count()
    })?;
    ctx.reply_integer(acked.unwrap_or(0) as i64);
    Ok(())
}
