//! DQ.GET key id

use super::parse::exactly;
use super::{look_at, reply_results, reply_steps, reply_token};
use crate::queue::job::{JobView, State};
use crate::queue::recurring::rule::{Pattern, Rule};
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    exactly(args, 3)?;
    let id = args.get(2).unwrap_or_default();
    look_at(ctx, args, id, |queue, at| {
        match queue.and_then(|queue| queue.get(id, at.now)) {
            Some(job) => reply(ctx, &job),
            None => ctx.reply_null(),
        }
    })
}

fn integer(ctx: Ctx<'_>, name: &str, value: u64) {
    integer_or_null(ctx, name, Some(value));
}

fn integer_or_null(ctx: Ctx<'_>, name: &str, value: Option<u64>) {
    ctx.reply_bytes(name.as_bytes());
    value.map_or_else(|| ctx.reply_null(), |value| ctx.reply_integer(value as i64));
}

fn bytes_or_null(ctx: Ctx<'_>, name: &str, value: Option<&[u8]>) {
    ctx.reply_bytes(name.as_bytes());
    value.map_or_else(|| ctx.reply_null(), |value| ctx.reply_bytes(value));
}

fn reply(ctx: Ctx<'_>, job: &JobView<'_>) {
    ctx.reply_map(37);
    bytes_or_null(ctx, "id", Some(job.id));
    bytes_or_null(ctx, "payload", Some(job.payload));
    bytes_or_null(ctx, "state", Some(job.state.name().as_bytes()));
    reply_terms(ctx, job);
    bytes_or_null(ctx, "group", job.group);
    bytes_or_null(ctx, "next", job.next);
    reply_rule(ctx, job);
    bytes_or_null(ctx, "progress", job.notes.progress());
    integer_or_null(ctx, "keep", job.notes.keep_ms());
    integer(ctx, "cost", job.notes.cost().into());
    let waits = job.state == State::Delayed;
    bytes_or_null(ctx, "awaits", job.notes.awaits().filter(|_| waits));
    ctx.reply_bytes(b"steps");
    match job.notes.steps().next() {
        Some(_) => reply_steps(ctx, job.notes),
        None => ctx.reply_null(),
    }
    integer_or_null(ctx, "started", job.started);
    integer_or_null(ctx, "finished", job.done.map(|finish| finish.finished));
    bytes_or_null(ctx, "result", job.done.and_then(|finish| finish.result));
    reply_waits(ctx, job);
}

/// How and when it is delivered, and how its last attempt failed.
fn reply_terms(ctx: Ctx<'_>, job: &JobView<'_>) {
    ctx.reply_bytes(b"priority");
    ctx.reply_integer(job.terms.priority.into());
    integer_or_null(ctx, "due", job.has_due.then_some(job.due));
    let is_reserved = job.state == State::Reserved;
    integer_or_null(ctx, "deadline", is_reserved.then_some(job.life.at));
    integer(ctx, "ttr", job.terms.ttr_ms);
    integer(ctx, "attempts", job.life.attempts.into());
    integer(ctx, "max-attempts", job.terms.max_attempts.into());
    ctx.reply_bytes(b"backoff");
    ctx.reply_array(job.terms.backoff_ms.len());
    for &ms in job.terms.backoff_ms.iter() {
        ctx.reply_integer(ms as i64);
    }
    let life = job.life;
    integer_or_null(ctx, "expires", (life.expires != 0).then_some(life.expires));
    ctx.reply_bytes(b"token");
    reply_token(ctx, (life.token != 0).then_some(life.token));
    bytes_or_null(
        ctx,
        "reason",
        job.failure.and_then(|failure| failure.reason),
    );
    integer_or_null(ctx, "failed", job.failure.map(|failure| failure.at));
}

fn reply_rule(ctx: Ctx<'_>, job: &JobView<'_>) {
    let (rule, occurrence) = job.recurring.unzip();
    let (every, cron) = match rule.map(|rule| &rule.pattern) {
        Some(&Pattern::Every { ms }) => (Some(ms), None),
        Some(Pattern::Cron { text, zone }) => (None, Some((&**text, &**zone))),
        None => (None, None),
    };
    integer_or_null(ctx, "every", every);
    bytes_or_null(ctx, "cron", cron.map(|(text, _)| text));
    bytes_or_null(ctx, "tz", cron.map(|(_, zone)| zone));
    let given = |value: fn(&Rule<'_>) -> u64| rule.map(value).filter(|&value| value != 0);
    integer_or_null(ctx, "until", given(|rule| rule.until));
    integer_or_null(ctx, "times", given(|rule| rule.times));
    integer_or_null(ctx, "grace", given(|rule| rule.grace_ms));
    integer_or_null(ctx, "jitter", given(|rule| rule.jitter_ms));
    integer_or_null(
        ctx,
        "occurrence",
        occurrence.map(|occurrence| occurrence.at),
    );
    integer_or_null(ctx, "runs", occurrence.map(|occurrence| occurrence.runs));
}

/// What it is after, while it is blocked; and how that ended.
fn reply_waits(ctx: Ctx<'_>, job: &JobView<'_>) {
    let is_blocked = job.state == State::Blocked;
    let waits = job.waits.as_ref();
    let blocked = waits.filter(|_| is_blocked);
    ctx.reply_bytes(b"after");
    match blocked.filter(|waits| waits.group.is_none()) {
        Some(waits) => {
            ctx.reply_array(waits.after.len());
            waits.after.iter().for_each(|id| ctx.reply_bytes(id));
        }
        None => ctx.reply_null(),
    }
    let group = blocked.and_then(|waits| waits.group);
    bytes_or_null(ctx, "after-group", group);
    let on_dead = blocked.filter(|_| group.is_none());
    let on_dead = on_dead.map(|waits| waits.on_dead.name().as_bytes());
    bytes_or_null(ctx, "on-dead", on_dead);
    ctx.reply_bytes(b"results");
    match waits.filter(|waits| !waits.results.is_empty()) {
        Some(waits) => reply_results(ctx, &waits.results),
        None => ctx.reply_null(),
    }
}
