//! DQ.TOUCH key id [TOKEN t] [TTR ms] | DQ.TOUCH key IDS n id token [id token ...] [TTR ms]

use super::change;
use super::deliveries::Deliveries;
use super::parse::{positive_millis, Options};
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    let mut deliveries = Deliveries::read(args)?;
    let mut ttr_ms = None;
    let mut options = Options::new(args, deliveries.end(), &["TOKEN", "TTR"]);
    while let Some(word) = options.word()? {
        match word {
            "TOKEN" => deliveries.set_token(options.value()?)?,
            _ => ttr_ms = Some(positive_millis(options.value()?)?),
        }
    }
    let touched = change(ctx, args, |queue, now, effects| {
        deliveries.begin_reply(ctx);
        for (id, claim) in deliveries.iter() {
            match queue.touch(id, claim, ttr_ms, now, effects) {
                Some(deadline) => ctx.reply_integer(deadline as i64),
                None => ctx.reply_null(),
            }
        }
    })?;
    if touched.is_none() {
        deliveries.reply_nulls(ctx);
    }
    Ok(())
}
