//! DQ.NEXT key id [COUNT n]

use super::parse::{at_least, out_of_range, positive, Options};
use super::query_job;
use super::syntax::options;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::zones::zone_of;

options! { NEXT: COUNT }

/// How many instants one call shows at most.
const COUNT_MAX: u64 = 1000;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let id = args.get(2).unwrap_or_default();
    let mut count = 1;
    let mut options = Options::new(args, 3);
    while let Some(word) = options.word()? {
        match word {
            Word::COUNT => count = positive(options.value()?)?,
        }
    }
    if count > COUNT_MAX {
        return Err(out_of_range());
    }
    query_job(ctx, args, id, |queue, at| {
        let instants =
            queue.and_then(|queue| queue.at(at.now).next_instants(id, count as usize, zone_of));
        match instants {
            Some(instants) => {
                ctx.reply_array(instants.len());
                for instant in instants {
                    ctx.reply_integer(instant as i64);
                }
            }
            None => ctx.reply_null(),
        }
    })
}
