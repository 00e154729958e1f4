//! DQ.GET key id [PREFIX n]

use super::fields::Fields;
use super::parse::{at_least, prefix, Options};
use super::syntax::options;
use super::{cut, query_job, reply_results, reply_steps, reply_token};
use crate::queue::attr::{Attr, Attrs, Home, Kind};
use crate::queue::history::History;
use crate::queue::job::{JobView, State};
use crate::queue::recurring::rule::{Pattern, Rule};
use crate::server::api::{Args, Ctx, Refusal};

options! { GET: PREFIX }

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let mut most = usize::MAX;
    let mut options = Options::new(args, 3);
    while let Some(word) = options.word()? {
        match word {
            Word::PREFIX => most = prefix(options.value()?)?,
        }
    }
    let id = args.get(2).unwrap_or_default();
    query_job(ctx, args, id, |queue, at| {
        match queue.and_then(|queue| queue.at(at).get(id)) {
            Some(job) => reply(ctx, &job, most),
            None => ctx.reply_null(),
        }
    })
}

/// Payloads, results and values of steps are cut to `most` bytes.
fn reply(ctx: Ctx<'_>, job: &JobView<'_>, most: usize) {
    let client = job.client.and_then(|id| ctx.client_named(id));
    Fields::reply(ctx, |fields| {
        fields.bytes_or_null("id", Some(job.id));
        fields.bytes_or_null("payload", Some(cut(job.payload, most)));
        fields.bytes_or_null("state", Some(job.state.name().as_bytes()));
        terms(fields, job);
        fields.bytes_or_null("group", job.group);
        fields.bytes_or_null("next", job.next.map(|next| cut(next, most)));
        rule(fields, job);
        fields.bytes_or_null("progress", job.notes.progress());
        said(fields, &job.terms.rest);
        fields.bytes_or_null("awaits", job.awaits());
        fields.with("steps", |ctx| match job.notes.steps().next() {
            Some(_) => reply_steps(ctx, job.notes, most),
            None => ctx.reply_null(),
        });
        fields.integer_or_null("started", job.started);
        fields.bytes_or_null("client", client.as_deref());
        fields.integer_or_null("finished", job.done.map(|finish| finish.finished));
        let result = job.done.and_then(|finish| finish.result);
        fields.bytes_or_null("result", result.map(|result| cut(result, most)));
        waits_for(fields, job, most);
        fields.integer("payload-bytes", job.payload.len() as i64);
    });
}

/// How and when the job is delivered, and how its last attempt failed.
fn terms(fields: &Fields<'_>, job: &JobView<'_>) {
    fields.integer("priority", job.terms.priority.into());
    fields.integer_or_null("due", job.has_due.then_some(job.due));
    let is_reserved = job.state == State::Reserved;
    fields.integer_or_null("deadline", is_reserved.then_some(job.life.at));
    fields.integer("ttr", job.terms.ttr_ms as i64);
    fields.integer("attempts", job.life.attempts.into());
    fields.integer("max-attempts", job.terms.max_attempts.into());
    fields.integers("backoff", job.terms.rest.backoff_shown());
    let life = job.life;
    fields.integer_or_null("expires", (life.expires != 0).then_some(life.expires));
    fields.with("token", |ctx| {
        reply_token(ctx, (life.token != 0).then_some(life.token));
    });
    let reason = job.failure.and_then(|failure| failure.reason);
    fields.bytes_or_null("reason", reason);
    fields.integer_or_null("failed", job.failure.map(|failure| failure.at));
    fields.with("history", |ctx| reply_history(ctx, job.notes.history()));
}

/// Replies `[attempts, started, ended, how, reason]` for each attempt.
fn reply_history(ctx: Ctx<'_>, history: History<'_>) {
    ctx.reply_array(history.iter().count());
    for attempt in history.iter() {
        ctx.reply_array(5);
        ctx.reply_integer(attempt.attempts.into());
        ctx.reply_integer(attempt.started() as i64);
        ctx.reply_integer(attempt.ended as i64);
        ctx.reply_bytes(attempt.how.name().as_bytes());
        match attempt.reason {
            Some(reason) => ctx.reply_bytes(reason),
            None => ctx.reply_null(),
        }
    }
}

/// What was said of the job when it was added, and stands nowhere else.
fn said(fields: &Fields<'_>, all: &Attrs<'_>) {
    for &attr in Attr::ALL {
        let row = attr.row();
        match (row.home, row.kind) {
            (Home::Tag(_), Kind::Number { .. }) => {
                fields.integer_or_null(row.field(), all.number_or_unsaid(attr));
            }
            (Home::Tag(_), Kind::Text(_)) => fields.bytes_or_null(row.field(), all.text(attr)),
            _ => {}
        }
    }
}

fn rule(fields: &Fields<'_>, job: &JobView<'_>) {
    let (rule, occurrence) = job.recurring.unzip();
    let (every, cron) = match rule.map(|rule| &rule.pattern) {
        Some(&Pattern::Every { ms }) => (Some(ms), None),
        Some(Pattern::Cron { text, zone }) => (None, Some((&**text, &**zone))),
        None => (None, None),
    };
    fields.integer_or_null("every", every);
    fields.bytes_or_null("cron", cron.map(|(text, _)| text));
    fields.bytes_or_null("tz", cron.map(|(_, zone)| zone));
    let given = |value: fn(&Rule<'_>) -> u64| rule.map(value).filter(|&value| value != 0);
    fields.integer_or_null("until", given(|rule| rule.until));
    fields.integer_or_null("times", given(|rule| rule.times));
    fields.integer_or_null("grace", given(|rule| rule.grace_ms));
    fields.integer_or_null("jitter", given(|rule| rule.jitter_ms));
    let at = occurrence.map(|occurrence| occurrence.at);
    fields.integer_or_null("occurrence", at);
    fields.integer_or_null("runs", occurrence.map(|occurrence| occurrence.runs));
}

/// What the job is after, while it is blocked, and how those jobs ended.
fn waits_for(fields: &Fields<'_>, job: &JobView<'_>, most: usize) {
    let is_blocked = job.state == State::Blocked;
    let waits = job.waits.as_ref();
    let blocked = waits.filter(|_| is_blocked);
    let after = blocked.filter(|waits| waits.group.is_none());
    fields.with("after", |ctx| match after {
        Some(waits) => {
            ctx.reply_array(waits.after.len());
            waits.after.iter().for_each(|id| ctx.reply_bytes(id));
        }
        None => ctx.reply_null(),
    });
    fields.bytes_or_null("after-group", blocked.and_then(|waits| waits.group));
    let on_dead = after.map(|waits| waits.on_dead.name().as_bytes());
    fields.bytes_or_null("on-dead", on_dead);
    let results = waits.filter(|waits| !waits.results.is_empty());
    fields.with("results", |ctx| match results {
        Some(waits) => reply_results(ctx, &waits.results, most),
        None => ctx.reply_null(),
    });
}
