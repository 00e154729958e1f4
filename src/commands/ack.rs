//! DQ.ACK key id [id ...] | DQ.ACK key WITHTOKENS id token [id token ...]
//! | DQ.ACK key RESULTS id token result [id token result ...]

use super::change;
use super::parse::{at_least, syntax_error};
use crate::queue::claim::Claim;
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let first = args.get(2).unwrap_or_default();
    let (first, step) = match first {
        _ if first.eq_ignore_ascii_case(b"WITHTOKENS") => (3, 2),
        _ if first.eq_ignore_ascii_case(b"RESULTS") => (3, 3),
        _ => (2, 1),
    };
    at_least(args, first + step)?;
    if !(args.len() - first).is_multiple_of(step) {
        return Err(syntax_error(match step {
            2 => "WITHTOKENS needs a token for each id",
            _ => "RESULTS needs a token and a result for each id",
        }));
    }
    let acked = change(ctx, args, |queue, now, effects| {
        let mut reaches = |at: &usize| {
            let id = args.get(*at).unwrap_or_default();
            let claim = if step > 1 {
                Claim::of_token(args.get(at + 1).unwrap_or_default())
            } else {
                Claim::Current
            };
            let result = if step == 3 { args.get(at + 2) } else { None };
            queue.ack(id, claim, result, now, effects)
        };
        let firsts = (first..args.len()).step_by(step);
        firsts.filter(|at| reaches(at)).count()
    })?;
    ctx.reply_integer(acked.unwrap_or(0) as i64);
    Ok(())
}
