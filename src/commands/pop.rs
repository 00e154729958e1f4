//! DQ.POP key [COUNT n | ID id] [TTR ms | LEASE ms] [NOACK] [WITHDUE] [WITHRESULTS] [WITHSTEPS] [WITHTERMS]

use super::parse::{at_least, positive, positive_millis, Options};
use super::syntax::options;
use super::{change, reply_delivery};
use crate::queue::deliver::Pop;
use crate::server::api::{Args, Ctx, Elements, Refusal};
use crate::server::blocked::PopRequest;
use crate::server::clock::with_mint;

options! { POP: COUNT ID TTR LEASE NOACK WITHDUE WITHRESULTS WITHSTEPS WITHTERMS }

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 2)?;
    let (mut request, mut id) = (PopRequest::of(ctx), None);
    let mut options = Options::new(args, 2);
    while let Some(word) = options.word()? {
        match word {
            Word::COUNT => request.count = Some(positive(options.value()?)?),
            Word::ID => id = Some(options.value()?),
            Word::TTR => request.ttr_ms = Some(positive_millis(options.value()?)?),
            Word::LEASE => request.lease_ms = Some(positive_millis(options.value()?)?),
            Word::NOACK => request.noack = true,
            Word::WITHDUE => request.with_due = true,
            Word::WITHRESULTS => request.with.results = true,
            Word::WITHSTEPS => request.with.steps = true,
            Word::WITHTERMS => request.with.terms = true,
        }
    }
    if options.has_several() {
        options.only_one_of(&[Word::COUNT, Word::ID])?;
        options.only_one_of(&[Word::TTR, Word::LEASE])?;
    }
    let count = request.count;
    let pop = Pop {
        id,
        ..request.pop()
    };

    let mut delivered = 0;
    let popped = change(ctx, args, |queue, now, effects| {
        let mut jobs = Elements::begin(ctx, count.is_some());
        with_mint(|mint| {
            delivered = queue.pop(&pop, now, mint, effects, |job| {
                reply_delivery(ctx, None, request.with_due, job);
                jobs.count();
            })
        });
    })?;
    match popped {
        None if count.is_some() => ctx.reply_array(0),
        _ if count.is_none() && delivered == 0 => ctx.reply_null_array(),
        _ => {}
    }
    Ok(())
}
