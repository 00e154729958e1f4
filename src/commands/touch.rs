//! DQ.TOUCH key id [TOKEN t] [TTR ms]

use super::change;
use super::parse::{at_least, positive_millis, Options};
use crate::queue::deliver::Claim;
use crate::server::ffi::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let id = args.get(2).unwrap_or_default();
    let (mut claim, mut ttr_ms) = (Claim::Current, None);
    let mut options = Options::new(args, 3, &["TOKEN", "TTR"]);
    while let Some(word) = options.word()? {
        match word {
            "TOKEN" => claim = Claim::of_token(options.value()?),
            _ => ttr_ms = Some(positive_millis(options.value()?)?),
        }
    }
    let deadline = change(ctx, args, |queue, now, effects| {
        queue.touch(id, claim, ttr_ms, now, effects)
    })?;
    match deadline.flatten() {
        Some(deadline) => ctx.reply_integer(deadline as i64),
        None => ctx.reply_null(),
    }
    Ok(())
}
