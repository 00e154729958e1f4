//! DQ.CFGSET key [TTR ms] [ATTEMPTS n] [BACKOFF n ms ... | BACKOFF DEFAULT] [MAXLEN n] [MAXBYTES n] [DEADLEN n]
//! [DEDUPE ms] [MAXRESERVED n] [RATE n ms] [GROUPMAX n] [GROUPRATE n ms] [GROUPFIFO 0|1]
//! [DONELEN n] [DONETTL ms] [DONEBYTES n] [HISTORY n], DQ.CFGGET key, DQ.PAUSE key [ms] [GROUP name],
//! DQ.RESUME key [GROUP name]

use super::fields::Fields;
use super::parse::{
    at_least, exactly, millis, natural, number_of, out_of_range, positive_millis, syntax_error,
    wrong_arity, Options, Words,
};
use super::syntax::options;
use super::{change, change_or_create, open, query};
use crate::queue::attr::Attr;
use crate::queue::clock::Now;
use crate::queue::configure::{paused_shown, GroupChange};
use crate::queue::job::RATE_MAX;
use crate::queue::settings::{Rate, SettingsChange};
use crate::queue::Queue;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::config;
use crate::server::key::OpenKey;

options! { CFGSET: TTR ATTEMPTS BACKOFF MAXLEN MAXBYTES DEADLEN DEDUPE MAXRESERVED RATE GROUPMAX GROUPRATE GROUPFIFO DONELEN DONETTL DONEBYTES HISTORY }

pub fn set(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 2)?;
    let mut new = SettingsChange::default();
    let mut options = Options::new(args, 2);
    while let Some(word) = options.word()? {
        match word {
            Word::TTR => new.ttr_ms = Some(number_of(Attr::Ttr, options.value()?)?),
            Word::ATTEMPTS => {
                new.max_attempts = Some(number_of(Attr::Attempts, options.value()?)? as u32);
            }
            Word::BACKOFF => new.backoff_ms = Some(options.ladder_or_default()?),
            Word::MAXLEN => new.max_len = Some(natural(options.value()?)?),
            Word::MAXBYTES => new.max_bytes = Some(natural(options.value()?)?),
            Word::DEADLEN => new.dead_len = Some(natural(options.value()?)?),
            Word::DEDUPE => new.dedupe_ms = Some(millis(options.value()?)?),
            Word::MAXRESERVED => new.max_reserved = Some(natural(options.value()?)?),
            Word::GROUPMAX => new.group_max = Some(natural(options.value()?)?),
            Word::GROUPFIFO => new.group_fifo = Some(switch(options.value()?)?),
            Word::DONELEN => new.done_len = Some(natural(options.value()?)?),
            Word::DONETTL => new.done_ttl_ms = Some(millis(options.value()?)?),
            Word::DONEBYTES => new.done_bytes = Some(natural(options.value()?)?),
            Word::HISTORY => new.history = Some(natural(options.value()?)?),
            Word::RATE => new.rate = Some(rate(&mut options)?),
            Word::GROUPRATE => new.group_rate = Some(rate(&mut options)?),
        }
    }
    let open = open_with_room(ctx, args)?;
    change_or_create(ctx, open, |queue, now, effects| {
        queue.configure_with(&new, now, effects)
    })??;
    ctx.reply_simple(c"OK");
    Ok(())
}

/// At `maxmemory` no queue is created, but settings that free memory can still be changed.
pub(super) fn open_with_room<'a>(ctx: Ctx<'a>, args: Args<'a>) -> Result<OpenKey<'a>, Refusal> {
    let mut open = open(ctx, args)?;
    if open.value().is_none() {
        need_room(ctx)?;
    }
    Ok(open)
}

/// The server's own error at `maxmemory`.
pub(super) fn need_room(ctx: Ctx<'_>) -> Result<(), Refusal> {
    const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";
    match ctx.flags().is_out_of_memory() {
        true => Err(Refusal(OOM.into())),
        false => Ok(()),
    }
}

/// Reads a rate. Either both parts are 0, which turns it off, or neither is.
pub(super) fn rate<W: Words>(options: &mut Options<'_, W>) -> Result<Option<Rate>, Refusal> {
    let (count, window_ms) = (options.value()?, options.value()?);
    match (natural(count)?, millis(window_ms)?) {
        (0, 0) => Ok(None),
        (0, _) | (_, 0) => Err(out_of_range()),
        (count, _) if count > RATE_MAX => Err(out_of_range()),
        (count, window_ms) => Ok(Some(Rate {
            count: count as u32,
            window_ms,
        })),
    }
}

/// A rate as replies show it.
pub(super) fn of_rate(rate: Option<Rate>) -> [u64; 2] {
    rate.map_or([0, 0], |it| [it.count.into(), it.window_ms])
}

fn switch(digit: &[u8]) -> Result<bool, Refusal> {
    match natural(digit)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(out_of_range()),
    }
}

pub fn get(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    exactly(args, 2)?;
    query(ctx, args, |queue, at| match queue {
        Some(queue) => reply(ctx, queue, at.now),
        None => ctx.reply_null(),
    })
}

fn reply(ctx: Ctx<'_>, queue: &Queue, now: Now) {
    let settings = queue.settings();
    let (limits, done) = (settings.group_limits, settings.done_limits);
    let ttr_ms = settings.ttr_ms.unwrap_or(config::default_ttr_ms());
    Fields::reply(ctx, |fields| {
        fields.integer("ttr", ttr_ms as i64);
        fields.integer("attempts", settings.max_attempts.into());
        fields.integers("backoff", settings.rest.backoff_shown());
        fields.integer("maxlen", settings.max_len as i64);
        fields.integer("maxbytes", settings.max_bytes as i64);
        fields.integer("deadlen", settings.dead_len as i64);
        fields.integer("dedupe", settings.dedupe_ms as i64);
        fields.integer("maxreserved", settings.max_reserved as i64);
        fields.integers("rate", of_rate(settings.rate).into_iter());
        fields.integer("groupmax", limits.max_reserved as i64);
        fields.integers("grouprate", of_rate(limits.rate).into_iter());
        fields.integer("groupfifo", limits.is_fifo.into());
        fields.integer("donelen", done.len as i64);
        fields.integer("donettl", done.ttl_ms as i64);
        fields.integer("donebytes", done.bytes as i64);
        fields.integer("history", settings.history as i64);
        fields.integer("paused", paused_shown(queue.paused_until(), now));
    });
}

pub fn pause(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 2)?;
    let (ms, group) = match (args.len(), is_group(args.get(2))) {
        (2, _) => (None, None),
        (_, true) => (None, group_from(args, 2)?),
        (_, false) => (args.get(2), group_from(args, 3)?),
    };
    let ms = ms.map(positive_millis).transpose()?;
    let open = open_with_room(ctx, args)?;
    change_or_create(ctx, open, |queue, now, effects| {
        let Some(name) = group else {
            return Ok(queue.pause(ms, now, effects)?);
        };
        // At `maxmemory` every group that has jobs can be stopped, and none comes by it.
        let groups = queue.parts().groups();
        if groups.is_none_or(|it| it.named(name, queue.jobs()).is_none()) {
            need_room(ctx)?;
        }
        Ok::<(), Refusal>(queue.change_group(name, GroupChange::Pause(ms), now, effects)?)
    })??;
    ctx.reply_simple(c"OK");
    Ok(())
}

fn is_group(word: Option<&[u8]>) -> bool {
    word.is_some_and(|word| word.eq_ignore_ascii_case(b"GROUP"))
}

/// The name behind the word GROUP, if there is anything at this index.
fn group_from(args: Args<'_>, at: usize) -> Result<Option<&[u8]>, Refusal> {
    match (args.get(at), args.get(at + 1)) {
        (None, _) => Ok(None),
        (word, _) if !is_group(word) || args.len() > at + 2 => Err(wrong_arity(args)),
        (_, None) => Err(syntax_error("a value is missing after GROUP")),
        (_, name) => Ok(name),
    }
}

pub fn resume(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 2)?;
    let group = group_from(args, 2)?;
    change(ctx, args, |queue, now, effects| match group {
        Some(name) => queue.change_group(name, GroupChange::Resume, now, effects),
        None => {
            queue.resume(now, effects);
            Ok(())
        }
    })?
    .transpose()?;
    ctx.reply_simple(c"OK");
    Ok(())
}
