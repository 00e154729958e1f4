//! One file per command or family: parse, one call on the queue, reply.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod ack;
pub mod add;
mod after;
pub mod apply;
pub mod awaits;
pub mod bpop;
#[cfg(feature = "breakable")]
pub mod breakable;
pub mod btouch;
pub mod configure;
pub mod del;
mod deliveries;
pub mod explain;
mod fields;
pub mod forecast;
pub mod get;
mod group;
mod groups;
pub mod kick;
pub mod len;
pub mod madd;
pub mod nack;
pub mod next;
mod parse;
pub mod peek;
pub mod pop;
pub mod purge;
pub mod reschedule;
pub mod scan;
pub mod signal;
pub mod stats;
pub mod step;
mod syntax;
pub mod table;
pub mod test_clock;
pub mod touch;
pub mod unblock;

use crate::queue::after::JobResult;
use crate::queue::budget::{EXPIRE_BUDGET, FOLLOWED, STEP_BYTES};
use crate::queue::clock::Now;
use crate::queue::deliver::Delivery;
use crate::queue::deliver::Extras;
use crate::queue::effects::Effects;
use crate::queue::note::Notes;
use crate::queue::overdue::At;
use crate::queue::Queue;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::blocked;
use crate::server::clock;
use crate::server::key::OpenKey;
use crate::server::queue_value::{self, Value};
use crate::server::reclaim;
use crate::server::replicate::with_command_effects;
use crate::server::serve;
use crate::storage::broken::there;

/// As [`open`], for a command that adds what its arguments say, and frees more in turn.
fn open_to_add<'a>(ctx: Ctx<'a>, args: Args<'a>) -> Result<OpenKey<'a>, Refusal> {
    reclaim::pay_for(|| {
        let bytes: usize = args.all().iter().map(|it| it.bytes().len()).sum();
        args.len() / ARGS_OF_JOB + bytes / BYTES_PAID
    });
    open_key(ctx, args)
}

/// A job of a DQ.MADD: with what its shape takes, twice as much is freed.
const ARGS_OF_JOB: usize = 4;
/// Four times as many are freed.
const BYTES_PAID: usize = 4 * STEP_BYTES;

/// Opens the command's key, which is its first argument.
fn open<'a>(ctx: Ctx<'a>, args: Args<'a>) -> Result<OpenKey<'a>, Refusal> {
    reclaim::pay_for(|| 1);
    open_key(ctx, args)
}

#[inline(always)]
fn open_key<'a>(ctx: Ctx<'a>, args: Args<'a>) -> Result<OpenKey<'a>, Refusal> {
    match args.key(1) {
        Some(key) => OpenKey::open(ctx, key),
        None => Err(parse::wrong_arity(args)),
    }
}

/// What happens to waiting clients after a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// The first client in line is served at once.
    Served,
    /// The timer serves them.
    Left,
}

/// Changes the queue under the command's key; `None` if it does not exist.
// Each instance has one caller: inlining duplicates no code.
#[inline(always)]
fn change<T>(
    ctx: Ctx<'_>,
    args: Args<'_>,
    change: impl FnOnce(&mut Queue, Now, &mut Effects) -> T,
) -> Result<Option<T>, Refusal> {
    change_open(ctx, open(ctx, args)?, Waiting::Served, change)
}

#[inline(always)]
fn change_open<T>(
    ctx: Ctx<'_>,
    mut open: OpenKey<'_>,
    waiting: Waiting,
    change: impl FnOnce(&mut Queue, Now, &mut Effects) -> T,
) -> Result<Option<T>, Refusal> {
    let now = clock::now();
    with_command_effects(ctx, |effects| {
        if open.value().is_none() {
            return Ok(None);
        }
        let key = open.key_name();
        let mut served = None;
        Ok(open.change(now, effects, |value, effects| {
            let value = value?;
            value.announce(now, effects);
            let result = change(value.queue(), now, effects);
            value.queue().follow_up(FOLLOWED, now, effects);
            if waiting == Waiting::Served && blocked::are_served() {
                served = serve::by_command(ctx, key, value, now, effects);
            }
            Some(result)
        }))
    })
}

/// As [`change`], on a new queue if there is none. It becomes a key only if it was changed.
fn change_or_create<T>(
    ctx: Ctx<'_>,
    mut open: OpenKey<'_>,
    change: impl FnOnce(&mut Queue, Now, &mut Effects) -> T,
) -> Result<T, Refusal> {
    let now = clock::now();
    with_command_effects(ctx, |effects| {
        let key = open.key_name();
        let mut served = None;
        let mut serve = |value: &mut Value, effects: &mut Effects| {
            if blocked::are_served() {
                served = serve::by_command(ctx, key, value, now, effects);
            }
        };
        if open.value().is_some() {
            return Ok(open.change(now, effects, |value, effects| {
                let value = there(value, "a queue that was there");
                value.announce(now, effects);
                let result = change(value.queue(), now, effects);
                value.queue().follow_up(FOLLOWED, now, effects);
                serve(value, effects);
                result
            }));
        }
        if crate::server::awaits::are_there() {
            open.listen();
        }
        let mut queue = queue_value::new_queue();
        let result = change(&mut queue, now, effects);
        queue.follow_up(FOLLOWED, now, effects);
        if !effects.is_empty() {
            let mut value = Value::new(queue);
            serve(&mut value, effects);
            open.finish_new(value, now, effects);
        }
        Ok(result)
    })
}

/// Shows the queue under the command's key. A master processes overdue expirations first, as the
/// server does for an expired key that is read; a replica shows what its master last said.
fn query(
    ctx: Ctx<'_>,
    args: Args<'_>,
    show: impl FnOnce(Option<&Queue>, At),
) -> Result<(), Refusal> {
    query_jobs(ctx, args, &[], show)
}

/// As [`query`], for one job: its overdue expirations are processed, however many others there are.
fn query_job(
    ctx: Ctx<'_>,
    args: Args<'_>,
    id: &[u8],
    show: impl FnOnce(Option<&Queue>, At),
) -> Result<(), Refusal> {
    query_jobs(ctx, args, &[id], show)
}

fn query_jobs(
    ctx: Ctx<'_>,
    args: Args<'_>,
    ids: &[&[u8]],
    show: impl FnOnce(Option<&Queue>, At),
) -> Result<(), Refusal> {
    query_with(
        ctx,
        args,
        |queue, now, effects| {
            queue.expire_overdue(now, EXPIRE_BUDGET, effects);
            if ids.is_empty() {
                queue.expire_odd(now, effects);
            }
            for id in ids {
                queue.expire_job(id, now, effects);
            }
        },
        |queue, at| show(queue.map(|queue| &*queue), at),
    )
}

/// As [`query`]: `expire` says which overdue expirations are processed first. `show` may bring up to date what is not data.
#[inline(always)]
fn query_with(
    ctx: Ctx<'_>,
    args: Args<'_>,
    expire: impl FnOnce(&mut Queue, Now, &mut Effects),
    show: impl FnOnce(Option<&mut Queue>, At),
) -> Result<(), Refusal> {
    let mut open = open(ctx, args)?;
    let now = clock::now();
    let next_event = open.queue().and_then(|queue| queue.next_event());
    let is_past = next_event.is_some_and(|instant| instant <= now.ms());
    let is_master = ctx.flags().is_master();
    let at = match is_master {
        true => now.into(),
        false => At::as_shown(now),
    };
    if !is_past || !is_master || ctx.is_paused() {
        show(open.queue(), at);
        return Ok(());
    }
    with_command_effects(ctx, |effects| {
        open.change(now, effects, |value, effects| {
            let mut queue = value.map(Value::queue);
            if let Some(queue) = &mut queue {
                expire(queue, now, effects);
                queue.follow_up(FOLLOWED, now, effects);
            }
            show(queue.filter(|queue| !queue.is_disposable()), at);
        });
    });
    Ok(())
}

/// Replies `[id, payload, token, attempts, deadline]`: after the key, if there is one, and before
/// the due time and the extras, if they were asked for.
fn reply_delivery(ctx: Ctx<'_>, key: Option<&[u8]>, with_due: bool, job: Delivery<'_>) {
    let extras = job.extras.map_or(0, extras_len);
    ctx.reply_array(5 + usize::from(key.is_some()) + usize::from(with_due) + extras);
    if let Some(key) = key {
        ctx.reply_bytes(key);
    }
    ctx.reply_bytes(job.id);
    ctx.reply_bytes(job.payload);
    reply_token(ctx, job.lease.map(|lease| lease.token));
    ctx.reply_integer(job.attempts.into());
    match job.lease {
        Some(lease) => ctx.reply_integer(lease.deadline_ms as i64),
        None => ctx.reply_null(),
    }
    if with_due {
        ctx.reply_integer(job.due as i64);
    }
    if let Some(extras) = job.extras {
        reply_extras(ctx, extras);
    }
}

#[cold]
fn extras_len(extras: &Extras<'_>) -> usize {
    let asked_for = [
        extras.results.is_some(),
        extras.steps.is_some(),
        extras.terms.is_some(),
    ];
    asked_for.into_iter().map(usize::from).sum()
}

/// Replies the results, the steps and the terms.
#[cold]
fn reply_extras(ctx: Ctx<'_>, extras: &Extras<'_>) {
    if let Some(results) = &extras.results {
        reply_results(ctx, results, usize::MAX);
    }
    if let Some(notes) = extras.steps {
        reply_steps(ctx, notes, usize::MAX);
    }
    if let Some(terms) = extras.terms {
        ctx.reply_array(3);
        ctx.reply_integer(terms.ttr_ms as i64);
        ctx.reply_integer(terms.max_attempts.into());
        match terms.wait_ms {
            Some(ms) => ctx.reply_integer(ms as i64),
            None => ctx.reply_null(),
        }
    }
}

/// Replies a map of steps, in the order in which they were first written.
fn reply_steps(ctx: Ctx<'_>, notes: Notes<'_>, most: usize) {
    ctx.reply_map(notes.steps_len());
    for (name, value) in notes.steps() {
        ctx.reply_bytes(name);
        ctx.reply_bytes(cut(value, most));
    }
}

/// The first bytes of a value.
fn cut(value: &[u8], most: usize) -> &[u8] {
    value.get(..most).unwrap_or(value)
}

/// Replies `[id, outcome, value]` for each result.
fn reply_results(ctx: Ctx<'_>, results: &[JobResult<'_>], most: usize) {
    ctx.reply_array(results.len());
    for ended in results {
        ctx.reply_array(3);
        ctx.reply_bytes(ended.id);
        let outcome = ended.outcome.map(|outcome| outcome.name().as_bytes());
        for text in [outcome, ended.value.map(|value| cut(value, most))] {
            text.map_or_else(|| ctx.reply_null(), |text| ctx.reply_bytes(text));
        }
    }
}

/// Replies a token as decimal digits: it exceeds the integers of some clients.
fn reply_token(ctx: Ctx<'_>, token: Option<u64>) {
    match token {
        Some(token) => ctx.reply_bytes(itoa::Buffer::new().format(token).as_bytes()),
        None => ctx.reply_null(),
    }
}
