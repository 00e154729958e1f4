//! DQ.ACK key id [id ...] | DQ.ACK key IDS n id [id ...]
//! | DQ.ACK key WITHTOKENS [IDS n] id token [id token ...]
//! | DQ.ACK key RESULTS [IDS n] id token result [id token result ...]

use super::change;
use super::parse::{at_least, syntax_error, Ids};
use crate::queue::claim::Claim;
use crate::server::api::{Args, Ctx, Elements, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let first = args.get(2).unwrap_or_default();
    let (first, step) = match first {
        _ if first.eq_ignore_ascii_case(b"WITHTOKENS") => (3, 2),
        _ if first.eq_ignore_ascii_case(b"RESULTS") => (3, 3),
        _ => (2, 1),
    };
    let ids = Ids::read(args, first, step)?;
    if ids.count().is_none() && !(args.len() - first).is_multiple_of(step) {
        return Err(syntax_error(match step {
            2 => "WITHTOKENS needs a token for each id",
            _ => "RESULTS needs a token and a result for each id",
        }));
    }
    // With tokens and IDS each id has an answer of its own.
    let each = ids.count().filter(|_| step > 1);
    let acked = change(ctx, args, |queue, now, effects| {
        let mut replies = each.map(|count| Elements::begin_fixed(ctx, Some(count)));
        let acks = ids.indices().filter(|&at| {
            let id = args.get(at).unwrap_or_default();
            let claim = if step > 1 {
                Claim::of_token(args.get(at + 1).unwrap_or_default())
            } else {
                Claim::Current
            };
            let result = if step == 3 { args.get(at + 2) } else { None };
            let is_acked = queue.ack(id, claim, result, now, effects);
            if let Some(replies) = &mut replies {
                ctx.reply_integer(is_acked.into());
                replies.count();
            }
            is_acked
        });
        acks.count()
    })?;
    match each {
        None => ctx.reply_integer(acked.unwrap_or(0) as i64),
        Some(count) if acked.is_none() => {
            ctx.reply_array(count);
            (0..count).for_each(|_| ctx.reply_integer(0));
        }
        Some(_) => {}
    }
    Ok(())
}
