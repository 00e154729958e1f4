//! DQ.ADD key id|* payload [NX | XX | REPLACE | NEXT] [DELAY ms | AT unix-ms] [PRIORITY n] [TTR ms]
//! [ATTEMPTS n] [BACKOFF n ms [ms ...]] [TTL ms] [GROUP name]
//! [EVERY ms | CRON expression [TZ zone]] [UNTIL unix-ms] [TIMES n] [GRACE ms] [JITTER ms]

use super::parse::{
    at_least, millis, natural_u32, positive, positive_millis, priority, syntax_error, Options,
};
use super::syntax;
use super::{change_or_create, open};
use crate::queue::add::{Add, Condition, Recur};
use crate::queue::error::QueueError;
use crate::queue::recurring::cron::Cron;
use crate::queue::recurring::rule::{Pattern, Rule, EVERY_MIN_MS, ZONE_MAX};
use crate::server::api::command_info::Arg;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::clock::with_mint;
use crate::server::config;
use crate::server::key::OpenKey;

const CONDITIONS: [&str; 4] = ["NX", "XX", "REPLACE", "NEXT"];
const INSTANTS: [&str; 2] = ["DELAY", "AT"];
const RULES: [&str; 2] = ["EVERY", "CRON"];
const WORDS: [&str; 19] = Arg::options(syntax::ADD);

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
    let mut rule = GivenRule::default();
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
            "GROUP" => add.group = Some(options.value()?),
            "TTL" => add.ttl_ms = Some(positive_millis(options.value()?)?),
            "DELAY" | "AT" => {
                add.when = options.when(word)?;
                rule.is_timed = true;
            }
            of_rule => rule.read(of_rule, options.value()?)?,
        }
    }
    options.only_one_of(&RULES)?;
    options.only_one_of(&CONDITIONS)?;
    options.only_one_of(&INSTANTS)?;
    add.backoff_ms = ladder.as_deref();
    add.recur = rule.finish(add.ttl_ms)?;
    if add.recur.is_some() && add.condition == Condition::Next {
        return Err(Refusal("ERR NEXT is not for a job with a rule".into()));
    }

    let added = change_or_create(ctx, key?, |queue, now, effects| {
        with_mint(|mint| queue.add(&add, now, mint, effects))
    })??;
    match added {
        Some(id) => ctx.reply_bytes(&id),
        None => ctx.reply_null(),
    }
    Ok(())
}

/// The words of a rule, as far as they have come.
#[derive(Default)]
struct GivenRule<'a> {
    every_ms: Option<u64>,
    cron: Option<&'a [u8]>,
    zone: Option<&'a [u8]>,
    until: Option<u64>,
    times: Option<u64>,
    grace_ms: Option<u64>,
    jitter_ms: Option<u64>,
    is_timed: bool,
}

impl<'a> GivenRule<'a> {
    fn read(&mut self, word: &str, value: &'a [u8]) -> Result<(), Refusal> {
        match word {
            "EVERY" => self.every_ms = Some(positive_millis(value)?),
            "CRON" => self.cron = Some(value),
            "TZ" => self.zone = Some(value),
            "UNTIL" => self.until = Some(positive_millis(value)?),
            "TIMES" => self.times = Some(positive(value)?),
            "GRACE" => self.grace_ms = Some(millis(value)?),
            _ => self.jitter_ms = Some(millis(value)?),
        }
        Ok(())
    }

    fn finish(self, ttl_ms: Option<u64>) -> Result<Option<Recur<'a>>, Refusal> {
        let pattern = match (self.every_ms, self.cron) {
            (Some(ms), _) if ms < EVERY_MIN_MS => {
                return Err(Refusal("ERR EVERY must be 1000 or more".into()))
            }
            (Some(ms), None) => Pattern::Every { ms },
            (None, Some(text)) => {
                Cron::parse(text).map_err(|error| Refusal(error.text().to_owned().into()))?;
                let zone = self.zone.unwrap_or(b"UTC");
                if zone.is_empty() || zone.len() > ZONE_MAX {
                    return Err(QueueError::UnknownZone.into());
                }
                Pattern::Cron {
                    text: text.into(),
                    zone: zone.into(),
                }
            }
            _ => {
                let of_rule = [self.until, self.times, self.grace_ms, self.jitter_ms];
                if self.zone.is_some() || of_rule.into_iter().flatten().next().is_some() {
                    return Err(syntax_error());
                }
                return Ok(None);
            }
        };
        if self.zone.is_some() && self.cron.is_none() {
            return Err(syntax_error());
        }
        let rule = Rule {
            pattern,
            until: self.until.unwrap_or(0),
            times: self.times.unwrap_or(0),
            grace_ms: self.grace_ms.unwrap_or(0),
            jitter_ms: self.jitter_ms.unwrap_or(0),
            ttl_ms: ttl_ms.unwrap_or(0),
        };
        Ok(Some(Recur {
            rule,
            is_timed: self.is_timed,
        }))
    }
}
