//! DQ.ADD key id|* payload [NX | XX | REPLACE | NEXT] [DELAY ms | AT unix-ms] and each [`Attr`](crate::queue::attr::Attr)
//! [AFTER n id [id ...] [ONDEAD WAIT | RUN | DIE] | AFTER GROUP name]
//! [EVERY ms | CRON expression [TZ zone]] [UNTIL unix-ms] [TIMES n] [GRACE ms] [JITTER ms]

use super::after::{on_dead_of, until, Given};
use super::parse::{at_least, millis, positive, positive_millis, syntax_error, Options};
use super::syntax::options;
use super::{change_or_create, open_to_add};
use crate::queue::add::{Add, Condition, Recur};
use crate::queue::after::OnDead;
use crate::queue::clock::When;
use crate::queue::error::QueueError;
use crate::queue::recurring::cron::Cron;
use crate::queue::recurring::rule::{Pattern, Rule, EVERY_MIN_MS, ZONE_MAX};
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::clock::with_mint;
use crate::server::config;
use crate::server::key::OpenKey;

options! { ADD: NX XX REPLACE NEXT DELAY AT [SAID] AFTER ONDEAD EVERY CRON TZ UNTIL TIMES GRACE JITTER }

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 4)?;
    let id = args.get(2).unwrap_or_default();
    // Before the options are read, so that the id's part of the index is fetched from memory meanwhile.
    let mut key = open_to_add(ctx, args);
    if let Some(queue) = key.as_mut().ok().and_then(OpenKey::queue) {
        queue.jobs().prefetch_id(id);
    }
    let mut add = Add::new((id != b"*").then_some(id), args.get(3).unwrap_or_default());
    add.server_ttr_ms = config::default_ttr_ms();
    read(args, &mut add)?;
    let added = change_or_create(ctx, key?, |queue, now, effects| {
        with_mint(|mint| queue.add(&add, now, mint, effects))
    })??;
    match added {
        Some(id) => ctx.reply_bytes(&id),
        None => ctx.reply_null(),
    }
    Ok(())
}

/// Reads the options. Few jobs have a rule or are after others: these words are kept apart, for [`Rare::finish`].
#[inline]
fn read<'a>(args: Args<'a>, add: &mut Add<'a>) -> Result<(), Refusal> {
    let (mut when, mut rare) = (None, None);
    let mut options = Options::new(args, 4);
    while let Some(word) = options.word()? {
        match word {
            Word::NX => add.condition = Condition::New,
            Word::XX => add.condition = Condition::Existing,
            Word::REPLACE => add.condition = Condition::Replace,
            Word::NEXT => add.condition = Condition::Next,
            Word::DELAY => when = Some(When::Delay(millis(options.value()?)?)),
            Word::AT => when = Some(When::At(millis(options.value()?)?)),
            Word::Said(attr) => options.said(attr, add)?,
            Word::AFTER
            | Word::ONDEAD
            | Word::EVERY
            | Word::CRON
            | Word::TZ
            | Word::UNTIL
            | Word::TIMES
            | Word::GRACE
            | Word::JITTER => read_rare(word, &mut options, &mut rare)?,
        }
    }
    if options.has_several() {
        options.only_one_of(&[Word::EVERY, Word::CRON])?;
        options.only_one_of(&[Word::NX, Word::XX, Word::REPLACE, Word::NEXT])?;
        options.only_one_of(&[Word::DELAY, Word::AT])?;
    }
    if let Some(rare) = rare {
        rare.finish(&options, when.is_some(), add)?;
    }
    add.when = when.unwrap_or(add.when);
    Ok(())
}

/// What the words of a rule and AFTER say.
#[derive(Default)]
struct Rare<'a> {
    rule: GivenRule<'a>,
    after: Option<Given<'a>>,
    on_dead: Option<OnDead>,
}

#[cold]
#[inline(never)]
fn read_rare<'a>(
    word: Word,
    options: &mut Options<'a, Word>,
    rare: &mut Option<Box<Rare<'a>>>,
) -> Result<(), Refusal> {
    let Rare {
        rule,
        after,
        on_dead,
    } = &mut **rare.get_or_insert_default();
    match word {
        Word::AFTER => *after = Some(options.after()?),
        Word::ONDEAD => *on_dead = Some(on_dead_of(options.value()?)?),
        Word::EVERY => rule.every_ms = Some(positive_millis(options.value()?)?),
        Word::CRON => rule.cron = Some(options.value()?),
        Word::TZ => rule.zone = Some(options.value()?),
        Word::UNTIL => rule.until = Some(positive_millis(options.value()?)?),
        Word::TIMES => rule.times = Some(positive(options.value()?)?),
        Word::GRACE => rule.grace_ms = Some(millis(options.value()?)?),
        Word::JITTER => rule.jitter_ms = Some(millis(options.value()?)?),
        Word::NX
        | Word::XX
        | Word::REPLACE
        | Word::NEXT
        | Word::DELAY
        | Word::AT
        | Word::Said(_) => {}
    }
    Ok(())
}

impl<'a> Rare<'a> {
    #[cold]
    #[inline(never)]
    fn finish(
        self,
        options: &Options<'a, Word>,
        is_timed: bool,
        add: &mut Add<'a>,
    ) -> Result<(), Refusal> {
        if options.has_any(&[Word::AFTER, Word::ONDEAD]) {
            add.after = until(self.after, self.on_dead)?;
        }
        if options.has_any(&RULE) {
            add.recur = self.rule.finish(is_timed, add.ttl_ms)?;
        }
        let is_next = add.condition == Condition::Next;
        if add.recur.is_some() && is_next {
            return Err(Refusal(
                "ERR NEXT cannot be combined with EVERY or CRON".into(),
            ));
        }
        if add.after.is_some() && (add.recur.is_some() || is_next) {
            return Err(Refusal(
                "ERR AFTER cannot be combined with NEXT, EVERY or CRON".into(),
            ));
        }
        Ok(())
    }
}

const RULE: [Word; 7] = [
    Word::EVERY,
    Word::CRON,
    Word::TZ,
    Word::UNTIL,
    Word::TIMES,
    Word::GRACE,
    Word::JITTER,
];

/// The words of a rule, as far as they were given.
#[derive(Default)]
struct GivenRule<'a> {
    every_ms: Option<u64>,
    cron: Option<&'a [u8]>,
    zone: Option<&'a [u8]>,
    until: Option<u64>,
    times: Option<u64>,
    grace_ms: Option<u64>,
    jitter_ms: Option<u64>,
}

impl<'a> GivenRule<'a> {
    fn finish(self, is_timed: bool, ttl_ms: Option<u64>) -> Result<Option<Recur<'a>>, Refusal> {
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
                if of_rule.into_iter().flatten().next().is_some() {
                    let what = "UNTIL, TIMES, GRACE and JITTER need EVERY or CRON";
                    return Err(syntax_error(what));
                }
                if self.zone.is_some() {
                    return Err(syntax_error("TZ needs CRON"));
                }
                return Ok(None);
            }
        };
        if self.zone.is_some() && self.cron.is_none() {
            return Err(syntax_error("TZ needs CRON"));
        }
        let rule = Rule {
            pattern,
            until: self.until.unwrap_or(0),
            times: self.times.unwrap_or(0),
            grace_ms: self.grace_ms.unwrap_or(0),
            jitter_ms: self.jitter_ms.unwrap_or(0),
            ttl_ms: ttl_ms.unwrap_or(0),
        };
        Ok(Some(Recur { rule, is_timed }))
    }
}
