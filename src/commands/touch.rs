//! DQ.TOUCH key id [TOKEN t] [TTR ms] | DQ.TOUCH key IDS n id token [id token ...] [TTR ms]

use super::change;
use super::deliveries::Deliveries;
use super::parse::{positive_millis, Options};
use super::syntax;
use crate::server::api::command_info::Arg;
use crate::server::api::{Args, Ctx, Refusal};

const WORDS: [&str; 2] = Arg::options(syntax::TOUCH);

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    let mut deliveries = Deliveries::read(args)?;
    let mut ttr_ms = None;
    let mut options = Options::new(args, deliveries.end(), &WORDS);
    while let Some(word) = options.word()? {
        match word {
            "TOKEN" => deliveries.set_token(options.value()?)?,
            _ => ttr_ms = Some(positive_millis(options.value()?)?),
        }
    }
    let touched = change(ctx, args, |queue, now, effects| {
        let mut ends = deliveries.begin_reply(ctx);
        let mut reply = |touched| {
            match touched {
                Some(deadline) => ctx.reply_integer(deadline as i64),
                None => ctx.reply_null(),
            }
            ends.count();
        };
        match deliveries.one() {
            Some((id, claim)) => reply(queue.touch(id, claim, ttr_ms, now, effects)),
            None => queue.touch_many(deliveries.iter(), ttr_ms, now, effects, reply),
        }
    })?;
    if touched.is_none() {
        deliveries.reply_nulls(ctx);
    }
    Ok(())
}
