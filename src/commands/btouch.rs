//! DQ.BTOUCH key timeout IDS n id token [id token ...] [TTR ms]

use super::change;
use super::deliveries::Deliveries;
use super::parse::{end_of_wait, positive_millis, unexpected, Options};
use super::syntax::options;
use crate::queue::claim::Claim;
use crate::server::api::{Args, Ctx, OwnString, Refusal};
use crate::server::awaits::block_for_leases;
use crate::server::clock::{now, real};
use crate::server::key::OpenKey;

options! { BTOUCH: TTR }

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    let deliveries = Deliveries::read_from(args, 3)?;
    if deliveries.one().is_some() {
        let word = args.get(3).unwrap_or_default();
        return Err(unexpected(word, &["IDS"]));
    }
    let until = end_of_wait(args.get(2).unwrap_or_default(), real())?;
    let mut ttr_ms = None;
    let mut options = Options::new(args, deliveries.end());
    while let Some(word) = options.word()? {
        match word {
            Word::TTR => ttr_ms = Some(positive_millis(options.value()?)?),
        }
    }
    let mut leases = Vec::new();
    let touched = change(ctx, args, |queue, now, effects| {
        let tell = |lease| leases.push(lease);
        queue.touch_many(deliveries.iter(), ttr_ms, now, effects, tell);
    })?;
    if touched.is_none() {
        deliveries.reply_nulls(ctx);
        return Ok(());
    }
    if leases.contains(&None) || ctx.flags().denies_blocking() {
        reply(ctx, &leases);
        return Ok(());
    }
    wait(ctx, args, &deliveries, until);
    Ok(())
}

fn wait(ctx: Ctx<'_>, args: Args<'_>, deliveries: &Deliveries<'_>, until: u64) {
    let key = args.get(1).unwrap_or_default();
    // All deliveries are current, so each was named with its token.
    let held = deliveries.iter().filter_map(|(id, claim)| match claim {
        Claim::Token(token) => Some((id.to_vec(), token)),
        Claim::Current | Claim::Nothing => None,
    });
    let held: Vec<_> = held.collect();
    let (name, asked) = (key.to_vec(), held.clone());
    let unblocked = Box::new(move |ctx: Ctx<'_>| reply(ctx, &leases_held(ctx, &name, &asked)));
    block_for_leases(ctx, key, &held, until, (reply, unblocked));
}

/// The leases for a client that CLIENT UNBLOCK has unblocked.
fn leases_held(ctx: Ctx<'_>, name: &[u8], asked: &[(Vec<u8>, u64)]) -> Vec<Option<u64>> {
    let (name, now) = (OwnString::new(name), now());
    let mut open = OpenKey::peek(ctx, name.name()).ok();
    let queue = open.as_mut().and_then(OpenKey::queue);
    let lease = |(id, token): &(Vec<u8>, u64)| {
        let until = queue.as_ref()?.jobs().held_until(id, *token)?;
        (until > now.ms()).then_some(until)
    };
    asked.iter().map(lease).collect()
}

fn reply(ctx: Ctx<'_>, leases: &[Option<u64>]) {
    ctx.reply_array(leases.len());
    for lease in leases {
        match lease {
            Some(until) => ctx.reply_integer(*until as i64),
            None => ctx.reply_null(),
        }
    }
}
