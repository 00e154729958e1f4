//! DQ.FORECAST key FROM unix-ms TO unix-ms BUCKETS n

use super::parse::{at_least, millis, out_of_range, positive, Options};
use super::query;
use super::syntax::options;
use crate::queue::view::Forecast;
use crate::server::api::{Args, Ctx, Elements, Refusal};

options! { FORECAST: FROM TO BUCKETS }

/// Keeps a reply short.
const BUCKETS_MAX: u64 = 10_000;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    // The number of arguments with each option given once. More arguments are refused by the parser.
    at_least(args, 8)?;
    let mut forecast = Forecast {
        from: 0,
        to: 0,
        buckets: 0,
    };
    let mut options = Options::new(args, 2);
    while let Some(word) = options.word()? {
        match word {
            Word::FROM => forecast.from = millis(options.value()?)?,
            Word::TO => forecast.to = millis(options.value()?)?,
            Word::BUCKETS => forecast.buckets = positive(options.value()?)?,
        }
    }
    if forecast.buckets > BUCKETS_MAX {
        return Err(out_of_range());
    }
    if forecast.to <= forecast.from {
        return Err(Refusal("ERR TO must be after FROM".into()));
    }
    query(ctx, args, |queue, _| {
        let mut counts = Elements::begin_fixed(ctx, Some(forecast.buckets as usize));
        let mut show = |count: usize| {
            counts.count();
            ctx.reply_integer(count as i64);
        };
        match queue {
            Some(queue) => queue.jobs().forecast(&forecast, show),
            None => (0..forecast.buckets).for_each(|_| show(0)),
        }
    })
}
