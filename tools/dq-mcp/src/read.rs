//! The tools that read.

use dq_watch::model::stats::STATES;
use dq_watch::model::QueueKey;
use dq_watch::read::detail::{
    self, Attempt, Detail, Ended, Found, Job, Page, Part, Rule, State, Step,
};
use dq_watch::read::node::stats_of;
use dq_watch::read::reply;
use dq_watch::read::why::{self, Of};
use dq_watch::text::escape;
use dq_watch::text::why::Reason;
use redis::Value;
use serde_json::{json, Value as Json};

use crate::answer::{answered, instant, lean, name, of_others, reason, Rows, PAYLOAD_MAX};
use crate::tools::Given;
use crate::Desk;

/// Of one job: attempts, steps and results of others that are shown.
const FEW: usize = 20;
const MINUTE_MS: i64 = 60_000;

const NO_NEXT: &str = "after is not what a list gave as `next`";

fn limit(given: &Given) -> usize {
    given.number("limit").unwrap_or(20) as usize
}

fn none(what: &str) -> String {
    format!("there is no such {what}")
}

pub fn queues(desk: &mut Desk, given: &Given) -> Result<Json, String> {
    let after = given.text("after").map(|text| {
        let (db, queue) = text.split_once(':')?;
        Some(QueueKey::new(db.parse().ok()?, escape::read_name(queue)?))
    });
    let after = after.map(|read| read.ok_or(NO_NEXT)).transpose()?;
    let (queues, complete) = desk.reach.queues()?;
    let is_next = |key: &QueueKey| after.as_ref().is_none_or(|last| key > last);
    let mut rows = Rows::of("queues", limit(given));
    for key in queues.into_iter().filter(is_next) {
        let (values, now) = desk.reach.look(&key, vec![stats_of(&key)])?;
        // One that is gone by now has no row.
        if let Some(row) = values.first().and_then(|value| queue(&key, value, now)) {
            if !rows.push(row, || format!("{}:{}", key.db, escape::name(&key.name))) {
                break;
            }
        }
    }
    let note = "the server has too many keys to be searched whole: name the queues with --queue";
    Ok(rows.answer((!complete).then_some(note)))
}

fn queue(key: &QueueKey, value: &Value, now: i64) -> Option<Json> {
    if let Some(error) = reply::error(value) {
        return Some(
            json!({ "queue": name(&key.name), "db": key.db, "refused": reason(error.as_bytes()) }),
        );
    }
    let stats = reply::stats(value)?;
    let paused = match stats.paused {
        -1 => Some("until it is resumed".into()),
        until => (until > now).then(|| instant(until)),
    };
    let mut row = lean(json!({
        "queue": name(&key.name),
        "db": key.db,
        "oldest_ready_ms": stats.oldest_ready_ms,
        "next_due": stats.next_due.map(instant),
        "waiting_clients": stats.waiting_clients,
        "bytes": stats.bytes,
        "paused": paused,
    }));
    for (state, count) in STATES.iter().zip(stats.jobs) {
        row[*state] = count.into();
    }
    Some(row)
}

pub fn why(desk: &mut Desk, given: &Given) -> Result<Json, String> {
    let key = desk.key(given)?;
    let id = given.text("id").map(|_| given.bytes("id")).transpose()?;
    let of = id.as_deref().map_or(Of::Queue, Of::Job);
    let (said, now) = desk.reach.explain(&key, of)?;
    let said = said.ok_or_else(|| none("queue or job"))?;
    let reason = |it: &Reason| json!({ "code": it.code, "number": it.number, "until": it.until_ms.map(instant) });
    let reasons: Json = said.reasons.iter().map(reason).collect();
    Ok(json!({ "why": said.line(now), "reasons": reasons }))
}

pub fn dead_jobs(desk: &mut Desk, given: &Given) -> Result<Json, String> {
    let key = desk.key(given)?;
    let after = given.text("after").map(|text| {
        let (from_ms, skip) = text.split_once('+')?;
        let (from_ms, skip) = (from_ms.parse().ok()?, skip.parse().ok()?);
        (skip <= detail::SAME_INSTANT_MAX).then_some(Page { from_ms, skip })
    });
    let page = after.map_or(Ok(Page::default()), |read| read.ok_or(NO_NEXT))?;
    let (state, count) = (State::Dead, limit(given) + 1);
    let read = true;
    let part = Part::Jobs {
        state,
        page,
        count,
        read,
    };
    let list = Detail {
        key: key.clone(),
        part,
    };
    let (mut values, _) = desk.reach.look(&key, list.commands())?;
    answered(&values)?;
    values.extend(desk.reach.look(&key, list.more(&values))?.0);
    let Found::Read(jobs, read) = list.found(&values) else {
        return Err(none("queue"));
    };
    let mut rows = Rows::of("jobs", limit(given));
    for (at, peeked) in jobs.iter().enumerate() {
        // One that is gone by now takes its place in the list all the same.
        let row = match read.get(&peeked.id) {
            Some(job) => dead(job),
            None => json!({ "id": name(&peeked.id), "gone": true }),
        };
        let next = || page.next(state, &jobs[..=at], at + 1);
        let next = || {
            next().map_or(String::new(), |page| {
                format!("{}+{}", page.from_ms, page.skip)
            })
        };
        if !rows.push(row, next) {
            break;
        }
    }
    Ok(rows.answer(None))
}

fn dead(job: &Job) -> Json {
    lean(json!({
        "id": name(&job.id),
        "label": job.label().map(reason),
        "died": job.at_ms().map(instant),
        "attempts": job.attempts,
        "reason": job.reason.as_deref().map(reason),
    }))
}

pub fn job(desk: &mut Desk, given: &Given) -> Result<Json, String> {
    let key = desk.key(given)?;
    let id = given.bytes("id")?;
    let longest = if desk.payloads { PAYLOAD_MAX } else { 0 };
    let mut commands = vec![detail::get(&key.name, &id, longest)];
    commands.extend(why::commands(&key.name, Of::Job(&id)));
    let (mut values, now) = desk.reach.look(&key, commands)?;
    let more = why::more(&key.name, values.get(1..).unwrap_or_default());
    values.extend(desk.reach.look(&key, more)?.0);
    let job = reply::job(answered(&values)?, longest).ok_or_else(|| none("queue or job"))?;
    let mut shown = shown(&job);
    if let Ok(Some(why)) = why::read(&values[1..], Of::Job(&id), None) {
        shown["why"] = why.line(now).into();
    }
    if desk.payloads {
        shown["payload"] = of_others(&job.payload);
        shown["result"] = job.result.as_ref().map(of_others).into();
        let step = |it: &Step| json!({ "name": reason(&it.name), "value": of_others(&it.value) });
        shown["steps"] = job.steps.iter().take(FEW).map(step).collect();
        let ended = |it: &Ended| {
            let value = it.value.as_ref().map(of_others);
            json!({ "id": name(&it.id), "outcome": it.outcome, "value": value })
        };
        shown["results"] = job.results.iter().take(FEW).map(ended).collect();
    }
    Ok(lean(shown))
}

/// What the server says of it, and in few words others.
fn shown(job: &Job) -> Json {
    let failed = |it: &Attempt| {
        let (began, ended) = (instant(it.started_ms), instant(it.ended_ms));
        let reason = it.reason.as_deref().map(reason);
        json!({ "attempt": it.attempts, "began": began, "ended": ended, "how": it.how, "reason": reason })
    };
    let last = job.history.iter().rev().take(FEW).map(failed);
    let rule = |rule: &Rule| json!({ "rule": rule.when.text(), "runs": rule.runs });
    json!({
        "id": name(&job.id),
        "state": job.state,
        "label": job.label().map(reason),
        "group": job.group.as_deref().map(name),
        "priority": job.priority,
        "due": job.due_ms.map(instant),
        "lease_ends": job.deadline_ms.map(instant),
        "expires": job.expires_ms.map(instant),
        "last_delivered": job.started_ms.map(instant),
        "last_failed": job.failed_ms.map(instant),
        "finished": job.finished_ms.map(instant),
        "attempts": job.attempts,
        "max_attempts": job.max_attempts,
        "worker": job.client.as_deref().map(reason),
        "reason": job.reason.as_deref().map(reason),
        "progress": job.progress.as_deref().map(reason),
        "awaits_signal": job.awaits.as_deref().map(name),
        "after": job.after.as_ref().map(|after| after.text()),
        "recurring": job.rule.as_ref().map(rule),
        "failed_attempts_newest_first": last.collect::<Json>(),
    })
}

pub fn forecast(desk: &mut Desk, given: &Given) -> Result<Json, String> {
    let key = desk.key(given)?;
    let ms = given.number("minutes").unwrap_or(60) * MINUTE_MS;
    let parts = given.number("parts").unwrap_or(12);
    let (_, now) = desk.reach.look(&key, Vec::new())?;
    let ask = |from: i64, to: i64, parts: i64| {
        let mut ask = redis::cmd("DQ.FORECAST");
        ask.arg(&key.name).arg("FROM").arg(from).arg("TO").arg(to);
        ask.arg("BUCKETS").arg(parts).to_owned()
    };
    let commands = vec![ask(0, now, 1), ask(now, now + ms, parts)];
    let (values, _) = desk.reach.look(&key, commands)?;
    answered(&values)?;
    let [before, coming, ..] = &values[..] else {
        return Err(none("queue"));
    };
    let due_before_now = reply::instants(before).and_then(|it| it.first().copied());
    Ok(json!({
        "due_before_now": due_before_now,
        "from": instant(now),
        "seconds_each": ms as f64 / 1000.0 / parts as f64,
        "due": reply::instants(coming),
    }))
}
