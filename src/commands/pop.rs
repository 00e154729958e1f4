//! DQ.POP key [COUNT n | ID id] [TTR ms] [NOACK] [WITHDUE]

use super::parse::{at_least, positive, positive_millis, Options};
use super::syntax;
use super::{change, reply_delivery};
use crate::queue::deliver::Pop;
use crate::server::api::command_info::Arg;
use crate::server::api::elements::Elements;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::clock::with_mint;

const WORDS: [&str; 5] = Arg::options(syntax::POP);

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 2)?;
    let mut pop = Pop::default();
    let (mut count, mut with_due) = (None, false);
    let mut options = Options::new(args, 2, &WORDS);
    while let Some(word) = options.word()? {
        match word {
            "COUNT" => count = Some(positive(options.value()?)?),
            "ID" => pop.id = Some(options.value()?),
            "TTR" => pop.ttr_ms = Some(positive_millis(options.value()?)?),
            "NOACK" => pop.noack = true,
            _ => with_due = true,
        }
    }
    options.only_one_of(&["COUNT", "ID"])?;
    pop.count = count.unwrap_or(1);

    let mut delivered = 0;
    let popped = change(ctx, args, |queue, now, effects| {
        let mut jobs = Elements::begin(ctx, count.is_some());
        with_mint(|mint| {
            delivered = queue.pop(&pop, now, mint, effects, |job| {
                reply_delivery(ctx, None, with_due, job);
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
