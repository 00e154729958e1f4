//! DQ.ADD key id|* payload [NX | XX | REPLACE | NEXT] [DELAY ms | AT unix-ms] [PRIORITY n] [TTR ms]
//! [ATTEMPTS n] [BACKOFF n ms [ms ...]] [TTL ms]

use super::parse::{at_least, natural_u32, positive_millis, priority, Options};
use super::{change_or_create_open, open};
use crate::queue::add::{Add, Condition};
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::clock::with_mint;
use crate::server::config;
use crate::server::key::OpenKey;

const CONDITIONS: [&str; 4] = ["NX", "XX", "REPLACE", "NEXT"];
const INSTANTS: [&str; 2] = ["DELAY", "AT"];
const WORDS: [&str; 11] = [
    "DELAY", "AT", "NX", "XX", "REPLACE", "PRIORITY", "TTR", "ATTEMPTS", "BACKOFF", "TTL", "NEXT",
];

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 4)?;
    let id = args.get(2).unwrap_or_default();
    // Before the options are read, so that what the index holds of the id comes from memory meanwhile.
    let mut key = open(ctx, args);
    if let Some(queue) = key.as_mut().ok().and_then(OpenKey::queue) {
        queue.prefetch_id(id);
    }
    let mut ladder = None;
    let mut add = Add::new((id != b"*").then_some(id), args.get(3).unwrap_or_default());
    add.server_ttr_ms = config::default_ttr_ms();
    let mut options = Options::new(args, 4, &WORDS);
    while let Some(word) = options.word()? {
        match word {
            "NX" => add.condition = Condition::New,
            "XX" => add.condition = Condition::Existing,
            "REPLACE" => add.condition = Condition::Replace,
            "NEXT" => add.condition = Condition::Next,
            "PRIORITY" => add.priority = priority(options.value()?)?,
            "TTR" => add.ttr_ms = Some(positive_millis(options.value()?)?),
            "ATTEMPTS" => add.max_attempts = Some(natural_u32(options.value()?)?),
            "BACKOFF" => ladder = Some(options.ladder()?),
            "TTL" => add.ttl_ms = Some(positive_millis(options.value()?)?),
            when => add.when = options.when(when)?,
        }
    }
    options.only_one_of(&CONDITIONS)?;
    options.only_one_of(&INSTANTS)?;
    add.backoff_ms = ladder.as_deref();

    let added = change_or_create_open(ctx, key?, |queue, now, effects| {
        with_mint(|mint| queue.add(&add, now, mint, effects))
    })??;
    match added {
        Some(id) => ctx.reply_bytes(&id),
        None => ctx.reply_null(),
    }
    Ok(())
}
