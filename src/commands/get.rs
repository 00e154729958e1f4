//! DQ.GET key id

use super::parse::exactly;
use super::{look_at, reply_token};
use crate::queue::job::{JobView, State};
use crate::server::api::{Args, Ctx, Refusal};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    exactly(args, 3)?;
    let id = args.get(2).unwrap_or_default();
    look_at(ctx, args, Some(id), |queue, now| {
        match queue.and_then(|queue| queue.get(id, now)) {
            Some(job) => reply(ctx, &job),
            None => ctx.reply_null(),
        }
    })
}

/// Nil, as no job has a rule by which it comes again.
const OF_RECURRING: [&str; 9] = [
    "every",
    "cron",
    "tz",
    "until",
    "times",
    "grace",
    "jitter",
    "occurrence",
    "runs",
];

fn reply(ctx: Ctx<'_>, job: &JobView<'_>) {
    let integer = |name: &str, value: u64| {
        ctx.reply_bytes(name.as_bytes());
        ctx.reply_integer(value as i64);
    };
    let integer_or_null = |name: &str, value: Option<u64>| {
        ctx.reply_bytes(name.as_bytes());
        value.map_or_else(|| ctx.reply_null(), |value| ctx.reply_integer(value as i64));
    };
    ctx.reply_map(16 + OF_RECURRING.len());
    ctx.reply_bytes(b"id");
    ctx.reply_bytes(job.id);
    ctx.reply_bytes(b"payload");
    ctx.reply_bytes(job.payload);
    ctx.reply_bytes(b"state");
    ctx.reply_bytes(job.state.name().as_bytes());
    ctx.reply_bytes(b"priority");
    ctx.reply_integer(job.terms.priority.into());
    integer("due", job.due);
    integer_or_null(
        "deadline",
        (job.state == State::Reserved).then_some(job.life.at),
    );
    integer("ttr", job.terms.ttr_ms);
    integer("attempts", job.life.attempts.into());
    integer("max-attempts", job.terms.max_attempts.into());
    ctx.reply_bytes(b"backoff");
    ctx.reply_array(job.terms.backoff_ms.len());
    for &ms in job.terms.backoff_ms.iter() {
        ctx.reply_integer(ms as i64);
    }
    integer_or_null(
        "expires",
        (job.life.expires != 0).then_some(job.life.expires),
    );
    ctx.reply_bytes(b"token");
    reply_token(ctx, (job.life.token != 0).then_some(job.life.token));
    let bytes_or_null = |name: &str, value: Option<&[u8]>| {
        ctx.reply_bytes(name.as_bytes());
        value.map_or_else(|| ctx.reply_null(), |value| ctx.reply_bytes(value));
    };
    bytes_or_null("reason", job.failure.and_then(|failure| failure.reason));
    integer_or_null("failed", job.failure.map(|failure| failure.at));
    bytes_or_null("group", None);
    bytes_or_null("next", job.next);
    OF_RECURRING
        .iter()
        .for_each(|name| bytes_or_null(name, None));
}
