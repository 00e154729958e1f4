//! DQ.TOUCH key id [TOKEN t] [TTR ms] [PROGRESS text] [COST n] | DQ.TOUCH key IDS n id token [id token ...] [TTR ms]

use super::change;
use super::deliveries::Deliveries;
use super::parse::{number_of, positive_millis, syntax_error, Options};
use super::syntax::options;
use crate::queue::attr::Attr;
use crate::queue::claim::Touch;
use crate::server::api::{Args, Ctx, Refusal};

options! { TOUCH: TOKEN TTR PROGRESS COST }

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    let mut deliveries = Deliveries::read(args)?;
    let mut touch = Touch::default();
    let mut options = Options::new(args, deliveries.end());
    while let Some(word) = options.word()? {
        match word {
            Word::TOKEN => deliveries.set_token(options.value()?)?,
            Word::TTR => touch.ttr_ms = Some(positive_millis(options.value()?)?),
            Word::PROGRESS => touch.progress = Some(options.value()?),
            Word::COST => touch.weight = Some(number_of(Attr::Cost, options.value()?)? as u32),
        }
    }
    if touch.progress.is_some() && deliveries.one().is_none() {
        return Err(syntax_error("PROGRESS cannot be combined with IDS"));
    }
    if touch.weight.is_some() && deliveries.one().is_none() {
        return Err(syntax_error("COST cannot be combined with IDS"));
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
            Some((id, claim)) => reply(queue.touch(id, claim, touch, now, effects)),
            None => queue.touch_many(deliveries.iter(), touch.ttr_ms, now, effects, reply),
        }
    })?;
    if touched.is_none() {
        deliveries.reply_nulls(ctx);
    }
    Ok(())
}
