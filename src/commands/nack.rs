//! DQ.NACK key id [TOKEN t] [DELAY ms] [PRIORITY n] [SILENT [AWAIT name] | FAIL | FATAL] [REASON text]
//! DQ.NACK key id [TOKEN t] SILENT AFTER n id [id ...] [ONDEAD WAIT | RUN | DIE] | AFTER GROUP name [REASON text]
//! DQ.NACK key IDS n id token [id token ...] [options of the first form, except TOKEN and AWAIT]

use super::after::{on_dead_of, until};
use super::change;
use super::deliveries::Deliveries;
use super::parse::{millis, priority, syntax_error, Options};
use super::syntax::options;
use crate::queue::after::For;
use crate::queue::claim::{Claim, Nack, NackKind};
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::clock::now;
use crate::server::config;

options! { NACK: TOKEN DELAY PRIORITY SILENT AWAIT FAIL FATAL REASON AFTER ONDEAD }

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    let mut deliveries = Deliveries::read(args)?;
    let default_backoff = config::default_backoff();
    let mut nack = Nack {
        id: b"",
        claim: Claim::Current,
        delay_ms: None,
        priority: None,
        kind: NackKind::Fail,
        reason: None,
        awaits: None,
        default_backoff: &default_backoff,
    };
    let (mut after, mut on_dead) = (None, None);
    let mut options = Options::new(args, deliveries.end());
    while let Some(word) = options.word()? {
        match word {
            Word::TOKEN => deliveries.set_token(options.value()?)?,
            Word::DELAY => nack.delay_ms = Some(millis(options.value()?)?),
            Word::PRIORITY => nack.priority = Some(priority(options.value()?)?),
            Word::REASON => nack.reason = Some(options.value()?),
            Word::AWAIT => nack.awaits = Some(options.value()?),
            Word::SILENT => nack.kind = NackKind::Silent,
            Word::FATAL => nack.kind = NackKind::Fatal,
            Word::FAIL => nack.kind = NackKind::Fail,
            Word::AFTER => after = Some(options.after()?),
            Word::ONDEAD => on_dead = Some(on_dead_of(options.value()?)?),
        }
    }
    options.only_one_of(&[Word::SILENT, Word::FAIL, Word::FATAL])?;
    if nack.awaits.is_some() && nack.kind != NackKind::Silent {
        return Err(syntax_error("AWAIT needs SILENT"));
    }
    if nack.awaits.is_some() && deliveries.one().is_none() {
        return Err(syntax_error("AWAIT cannot be combined with IDS"));
    }
    // Refused whether or not the job exists.
    nack.check(now())?;
    if let Some(until) = until(after, on_dead)? {
        return give_back_after(ctx, args, &deliveries, &nack, &until);
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

/// Gives the job back to wait for other jobs.
fn give_back_after(
    ctx: Ctx<'_>,
    args: Args<'_>,
    deliveries: &Deliveries<'_>,
    nack: &Nack<'_>,
    until: &For<'_>,
) -> Result<(), Refusal> {
    let one = deliveries.one().filter(|_| {
        let others = nack.delay_ms.is_some() || nack.priority.is_some() || nack.awaits.is_some();
        nack.kind == NackKind::Silent && !others
    });
    let Some((id, claim)) = one else {
        return Err(syntax_error(
            "AFTER goes with SILENT, TOKEN and REASON alone",
        ));
    };
    until.check_name()?;
    let nack = Nack { id, claim, ..*nack };
    let state = change(ctx, args, |queue, now, effects| {
        queue.nack_after(&nack, until, now, effects)
    })?;
    match state.transpose()?.flatten() {
        Some(state) => ctx.reply_bytes(state.name().as_bytes()),
        None => ctx.reply_null(),
    }
    Ok(())
}
