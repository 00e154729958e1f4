//! One file per command or family: parse, one call on the queue, reply.

pub mod ack;
pub mod add;
pub mod apply;
pub mod bpop;
#[cfg(feature = "breakable")]
pub mod breakable;
pub mod configure;
pub mod del;
mod deliveries;
pub mod forecast;
pub mod get;
mod groups;
pub mod kick;
pub mod len;
pub mod nack;
pub mod next;
mod parse;
pub mod peek;
pub mod pop;
pub mod purge;
pub mod reschedule;
pub mod scan;
pub mod stats;
mod syntax;
pub mod table;
pub mod test_clock;
pub mod touch;

use crate::queue::budget::SETTLE_BUDGET;
use crate::queue::clock::Now;
use crate::queue::deliver::Delivery;
use crate::queue::effects::Effects;
use crate::queue::Queue;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::clock;
use crate::server::key::OpenKey;
use crate::server::queue_value::{self, Value};
use crate::server::replicate::with_command_effects;
use crate::server::serve;
use crate::storage::broken::there;

/// Opens the command's key, which is its first argument.
fn open<'a>(ctx: Ctx<'a>, args: Args<'a>) -> Result<OpenKey<'a>, Refusal> {
    match args.key(1) {
        Some(key) => OpenKey::open(ctx, key),
        None => Err(parse::wrong_arity(args)),
    }
}

/// What follows a change for clients that wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Who is first in line gets at once what became ready.
    Served,
    /// The timer sees to them.
    Left,
}

/// Changes the queue under the command's key; `None` where there is no such key.
fn change<T>(
    ctx: Ctx<'_>,
    args: Args<'_>,
    change: impl FnOnce(&mut Queue, Now, &mut Effects) -> T,
) -> Result<Option<T>, Refusal> {
    change_open(ctx, open(ctx, args)?, Waiting::Served, change)
}

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
            if waiting == Waiting::Served && serve::may_be_wanted() {
                served = serve::by_command(ctx, key, value, now, effects);
            }
            Some(result)
        }))
    })
}

/// As [`change`], on a new queue where there is none. It becomes a key only if something happened
/// to it.
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
            if serve::may_be_wanted() {
                served = serve::by_command(ctx, key, value, now, effects);
            }
        };
        if open.value().is_some() {
            return Ok(open.change(now, effects, |value, effects| {
                let value = there(value, "a queue that was there");
                value.announce(now, effects);
                let result = change(value.queue(), now, effects);
                serve(value, effects);
                result
            }));
        }
        let mut queue = queue_value::new_queue();
        let result = change(&mut queue, now, effects);
        if !effects.is_empty() {
            serve(open.create(queue), effects);
            open.finish(now, effects);
        }
        Ok(result)
    })
}

/// Shows the queue under the command's key. On a master what is past is carried out first, as the
/// server itself does with an expired key that is only read; a replica shows what its master said.
fn look(
    ctx: Ctx<'_>,
    args: Args<'_>,
    show: impl FnOnce(Option<&Queue>, Now),
) -> Result<(), Refusal> {
    look_at(ctx, args, None, show)
}

/// The same for one job, whatever else is past.
fn look_at(
    ctx: Ctx<'_>,
    args: Args<'_>,
    id: Option<&[u8]>,
    show: impl FnOnce(Option<&Queue>, Now),
) -> Result<(), Refusal> {
    let mut open = open(ctx, args)?;
    let now = clock::now();
    let next_event = open.queue().and_then(|queue| queue.next_event());
    let is_past = next_event.is_some_and(|instant| instant <= now.ms());
    if !is_past || !ctx.flags().is_master() || ctx.is_paused() {
        show(open.queue().map(|queue| &*queue), now);
        return Ok(());
    }
    with_command_effects(ctx, |effects| {
        open.change(now, effects, |value, effects| {
            let mut queue = value.map(Value::queue);
            if let Some(queue) = &mut queue {
                queue.settle(now, SETTLE_BUDGET, effects);
                if let Some(id) = id {
                    queue.settle_job(id, now, effects);
                }
            }
            let left = queue.filter(|queue| !queue.is_disposable());
            show(left.map(|queue| &*queue), now);
        });
    });
    Ok(())
}

/// `[id, payload, token, attempts, deadline]`, behind the key where there is one, before the due where it is
/// asked for.
fn reply_delivery(ctx: Ctx<'_>, key: Option<&[u8]>, with_due: bool, job: Delivery<'_>) {
    ctx.reply_array(5 + usize::from(key.is_some()) + usize::from(with_due));
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
}

/// As decimal digits: it outgrows the integers that some clients have.
fn reply_token(ctx: Ctx<'_>, token: Option<u64>) {
    match token {
        Some(token) => ctx.reply_bytes(itoa::Buffer::new().format(token).as_bytes()),
        None => ctx.reply_null(),
    }
}
