//! DQ.NACK key id [TOKEN t] [DELAY ms] [PRIORITY n] [SILENT | FAIL | FATAL] [REASON text]
//! DQ.NACK key IDS n id token [id token ...] [the same but for TOKEN]

use super::change;
use super::deliveries::Deliveries;
use super::parse::{millis, priority, Options};
use super::syntax;
use crate::queue::add::When;
use crate::queue::deliver::{Claim, Nack, NackKind};
use crate::server::api::command_info::Arg;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::clock::now;

const KINDS: [&str; 3] = ["SILENT", "FAIL", "FATAL"];
const WORDS: [&str; 7] = Arg::options(syntax::NACK);

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    let mut deliveries = Deliveries::read(args)?;
    let mut nack = Nack {
        id: b"",
        claim: Claim::Current,
        delay_ms: None,
        priority: None,
        kind: NackKind::Fail,
        reason: None,
    };
    let mut options = Options::new(args, deliveries.end(), &WORDS);
    while let Some(word) = options.word()? {
        match word {
            "TOKEN" => deliveries.set_token(options.value()?)?,
            "DELAY" => nack.delay_ms = Some(millis(options.value()?)?),
            "PRIORITY" => nack.priority = Some(priority(options.value()?)?),
            "REASON" => nack.reason = Some(options.value()?),
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
    let states = change(ctx, args, |queue, now, effects| {
        let Some((id, claim)) = deliveries.one() else {
            return queue.nack_many(deliveries.iter(), &nack, now, effects);
        };
        let nack = Nack { id, claim, ..nack };
        queue.nack(&nack, now, effects).map(|state| vec![state])
    })?;
    let Some(states) = states.transpose()? else {
        deliveries.reply_nulls(ctx);
        return Ok(());
    };
    let _reply = deliveries.begin_reply(ctx);
    for state in states {
        match state {
            Some(state) => ctx.reply_bytes(state.name().as_bytes()),
            None => ctx.reply_null(),
        }
    }
    Ok(())
}
