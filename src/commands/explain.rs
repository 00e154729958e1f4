//! DQ.EXPLAIN key [id]

use super::parse::{at_least, wrong_arity};
use super::query_with;
use crate::queue::deliver::Pop;
use crate::queue::explain::{Code, Reason};
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::blocked;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 2)?;
    if args.len() > 3 {
        return Err(wrong_arity(args));
    }
    let id = args.get(2);
    let pop = Pop {
        count: 1,
        id,
        ..Pop::default()
    };
    let (db, name) = (ctx.selected_db(), args.get(1).unwrap_or_default());
    let waits = blocked::kinds(db, name).without_fill();
    query_with(
        ctx,
        args,
        |queue, now, effects| queue.expire_for_pop(&pop, now, effects),
        |queue, at| {
            let reasons = queue.and_then(|queue| match id {
                Some(id) => queue.explain_job(id, at),
                None => Some(queue.explain(at)),
            });
            match reasons {
                Some(mut reasons) => {
                    // A client that waits is served at once, but for those that wait for a batch.
                    reasons.retain(|reason| reason.code != Code::Idle || !waits);
                    let idle = reasons.iter_mut().find(|reason| reason.code == Code::Idle);
                    if let Some((idle, fill)) = idle.zip(blocked::filling(db, name, at.now)) {
                        *idle = Reason {
                            code: Code::Fill,
                            number: Some(fill.0 as u64),
                            until: fill.1,
                        };
                    }
                    reply(ctx, &reasons);
                }
                None => ctx.reply_null(),
            }
        },
    )
}

/// Replies `[code, number, until]` for each.
fn reply(ctx: Ctx<'_>, reasons: &[Reason]) {
    ctx.reply_array(reasons.len());
    for reason in reasons {
        ctx.reply_array(3);
        ctx.reply_bytes(reason.code.name().as_bytes());
        for value in [reason.number, reason.until] {
            match value {
                Some(value) => ctx.reply_integer(value as i64),
                None => ctx.reply_null(),
            }
        }
    }
}
