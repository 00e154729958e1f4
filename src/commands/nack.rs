//! DQ.NACK key id [TOKEN t] [DELAY ms] [PRIORITY n] [SILENT | FAIL | FATAL]

use super::change;
use super::parse::{at_least, millis, priority, Options};
use crate::queue::add::When;
use crate::queue::deliver::{Claim, Nack, NackKind};
use crate::server::clock::now;
use crate::server::ffi::{Args, Ctx, Refusal};

const KINDS: [&str; 3] = ["SILENT", "FAIL", "FATAL"];
const WORDS: [&str; 6] = ["TOKEN", "DELAY", "PRIORITY", "SILENT", "FAIL", "FATAL"];

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let mut nack = Nack {
        id: args.get(2).unwrap_or_default(),
        claim: Claim::Current,
        delay_ms: None,
        priority: None,
        kind: NackKind::Fail,
    };
    let mut options = Options::new(args, 3, &WORDS);
    while let Some(word) = options.word()? {
        match word {
            "TOKEN" => nack.claim = Claim::of_token(options.value()?),
            "DELAY" => nack.delay_ms = Some(millis(options.value()?)?),
            "PRIORITY" => nack.priority = Some(priority(options.value()?)?),
            "SILENT" => nack.kind = NackKind::Silent,
            "FATAL" => nack.kind = NackKind::Fatal,
            _ => nack.kind = NackKind::Fail,
        }
    }
    options.only_one_of(&KINDS)?;
    if let Some(ms) = nack.delay_ms {
        // Refused whether or not there is such a job.
        When::Delay(ms).instant(now())?;
    }
    let state = change(ctx, args, |queue, now, effects| {
        queue.nack(&nack, now, effects)
    })?;
    match state.transpose()?.flatten() {
        Some(state) => ctx.reply_bytes(state.name().as_bytes()),
        None => ctx.reply_null(),
    }
    Ok(())
}
