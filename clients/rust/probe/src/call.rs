//! The methods of a queue, by their names in the command reference.

use crate::args::{adding, new_job, say, Args};
use base64::engine::{general_purpose::STANDARD, Engine};
use dq_redis::{
    BoxError, Error, JobInfo, Nack, NackMode, NewJob, Peek, Pop, Queue, QueueSettings, Rate,
    Reschedule, Reserved, Scan, State,
};
use serde_json::{json, Map, Value};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn ms(at: Option<SystemTime>) -> Value {
    at.map_or(Value::Null, |at| {
        json!(at
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis() as u64)
    })
}

fn popped(jobs: Vec<Reserved>) -> Value {
    let row = |job: Reserved| {
        json!({
            "id": job.id, "payload": STANDARD.encode(&job.payload), "token": job.token, "attempt": job.attempt,
            "deadline": ms(job.deadline), "due": ms(job.due), "queue": job.queue,
        })
    };
    jobs.into_iter().map(row).collect()
}

pub async fn call(queue: &Queue, method: &str, args: &Value) -> Result<Value, BoxError> {
    let a = Args(args);
    if let Some(value) = add(queue, method, &a).await? {
        return Ok(value);
    }
    if let Some(value) = by_hand(queue, method, &a).await? {
        return Ok(value);
    }
    if let Some(value) = look(queue, method, &a).await? {
        return Ok(value);
    }
    Err(format!("no method {method}").into())
}

fn new_jobs(all: &[Value]) -> Vec<NewJob> {
    all.iter().map(|job| new_job(&Args(job))).collect()
}

async fn add(queue: &Queue, method: &str, a: &Args<'_>) -> Result<Option<Value>, Error> {
    let timeout = a.length("timeout").unwrap_or(Duration::from_secs(30));
    let each = |name: &str| -> Vec<Value> {
        a.get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    Ok(Some(match method {
        "add" => match a.number("repeat") {
            Some(count) => {
                let id = a.text("id");
                let jobs = (0..count).map(|n| new_job(a).id(format!("{id}:{n}")));
                json!(queue.add_many(jobs).await?)
            }
            None => json!(adding(queue, a).await?),
        },
        "add_many" => json!(queue.add_many(new_jobs(&each("jobs"))).await?),
        "join" => {
            let then = new_job(&Args(&a.0["then"]));
            json!(queue.join(new_jobs(&each("jobs")), then).await?)
        }
        "chain" => json!(queue.chain(each("jobs").iter().map(NewJob::new)).await?),
        "add_and_wait" => json!(adding(queue, a).and_wait::<Value>(timeout).await?),
        "rules" => rules(queue, a).await?,
        "every" => {
            let rule = queue.every(a.length("interval").unwrap_or_default(), a.data());
            let rule = say!(rule, a);
            json!(match a.instant("first") {
                Some(first) => rule.at(first).await?,
                None => rule.await?,
            })
        }
        "cron" => {
            let rule = queue.cron(a.text("expression"), a.data());
            let rule = say!(rule, a);
            json!(match a.get("tz") {
                Some(_) => rule.tz(a.text("tz")).await?,
                None => rule.await?,
            })
        }
        "result" => json!(queue.result::<Value>(a.text("id")).await?),
        "wait" => json!(queue.wait::<Value>(a.text("id"), timeout).await?),
        "cancel" => json!(queue.cancel(a.text("id")).await?),
        "signal" => json!(
            queue
                .signal(
                    a.text("id"),
                    a.text("name"),
                    a.get("value").unwrap_or(&Value::Null)
                )
                .await?
        ),
        _ => return Ok(None),
    }))
}

async fn rules(queue: &Queue, a: &Args<'_>) -> Result<Value, Error> {
    let program = a.get("program").and_then(|it| it["base64"].as_str());
    let program = STANDARD.decode(program.unwrap_or_default());
    let mut rules = queue.rules(program.unwrap_or_default());
    let given = a.get("rules").and_then(Value::as_object);
    for (name, said) in given.into_iter().flatten() {
        let said = &Args(said);
        let job = match said.get("cron") {
            Some(_) => NewJob::cron(said.text("cron"), said.data()),
            None => NewJob::every(said.length("every").unwrap_or_default(), said.data()),
        };
        let job = match said.get("tz") {
            Some(_) => job.tz(said.text("tz")),
            None => job,
        };
        rules = rules.rule(name, say!(job, said));
    }
    if a.is("prune") {
        rules = rules.prune();
    }
    if a.is("allow_empty") {
        rules = rules.allow_empty();
    }
    if a.is("dry_run") {
        rules = rules.dry_run();
    }
    let changes = rules.await?;
    Ok(json!({
        "added": changes.added, "changed": changes.changed, "kept": changes.kept, "removed": changes.removed,
        "unknown": changes.unknown,
    }))
}

fn pop(a: &Args<'_>) -> Pop {
    let mut pop = Pop::new();
    if let Some(count) = a.number("count") {
        pop = pop.count(count as usize);
    }
    if a.get("id").is_some() {
        pop = pop.id(a.text("id"));
    }
    if let Some(ttr) = a.length("ttr") {
        pop = pop.ttr(ttr);
    }
    if a.is("noack") {
        pop = pop.no_ack();
    }
    pop
}

fn nack(a: &Args<'_>) -> Nack {
    let mut nack = Nack::new().mode(match a.text("mode") {
        "silent" => NackMode::Silent,
        "fatal" => NackMode::Fatal,
        _ => NackMode::Fail,
    });
    if let Some(delay) = a.length("delay") {
        nack = nack.delay(delay);
    }
    if let Some(priority) = a.get("priority").and_then(Value::as_i64) {
        nack = nack.priority(priority as i32);
    }
    if a.get("reason").is_some() {
        nack = nack.reason(a.text("reason"));
    }
    nack
}

fn word(state: Option<State>) -> Value {
    json!(state.map(State::word))
}

async fn by_hand(queue: &Queue, method: &str, a: &Args<'_>) -> Result<Option<Value>, Error> {
    let (id, token) = (a.text("id"), a.text("token"));
    let tokens = a.tokens();
    let pairs = || {
        tokens
            .iter()
            .map(|(id, token)| (id.as_str(), token.as_str()))
    };
    let by_id = |values: Vec<Value>| -> Value {
        let all: Map<String, Value> = tokens
            .iter()
            .map(|(id, _)| id.clone())
            .zip(values)
            .collect();
        all.into()
    };
    Ok(Some(match method {
        "delete" if a.is("unreserved") => json!(queue.delete_unreserved(a.list("ids")).await?),
        "delete" => json!(queue.delete(a.list("ids")).await?),
        "pop" => popped(queue.pop(pop(a)).await?),
        "bpop" => popped(
            queue
                .bpop(a.length("timeout").unwrap_or_default(), pop(a))
                .await?,
        ),
        "ack" => json!(queue.ack(id, token).await?),
        "nack" => word(queue.nack(id, token, nack(a)).await?),
        "nack_many" => by_id(
            queue
                .nack_many(pairs(), nack(a))
                .await?
                .into_iter()
                .map(word)
                .collect(),
        ),
        "touch" => ms(queue.touch(id, token, a.length("ttr")).await?),
        "touch_many" => by_id(
            queue
                .touch_many(pairs(), a.length("ttr"))
                .await?
                .into_iter()
                .map(ms)
                .collect(),
        ),
        "reschedule" => {
            let change = match (a.length("delay"), a.instant("at")) {
                (Some(delay), _) => Reschedule::delay(delay),
                (_, Some(at)) => Reschedule::at(at),
                _ => Reschedule::priority(
                    a.get("priority").and_then(Value::as_i64).unwrap_or(0) as i32
                ),
            };
            json!(queue.reschedule(a.list("ids"), change).await?)
        }
        "kick" => json!(queue.kick(a.list("ids")).await?),
        "kick_oldest" => json!(
            queue
                .kick_oldest(a.number("count").unwrap_or(1) as usize)
                .await?
        ),
        "purge" => json!(queue.purge(a.state().unwrap_or(State::All)).await?),
        "pause" => json!(queue.pause(a.length("duration")).await?),
        "resume" => json!(queue.resume().await?),
        "configure" => {
            let rate = a.get("rate").and_then(Value::as_array).map(|pair| Rate {
                jobs: pair[0].as_u64().unwrap_or(0) as u32,
                window: Duration::from_millis(pair[1].as_u64().unwrap_or(0)),
            });
            let settings = QueueSettings {
                maxlen: a.number("maxlen"),
                ttr: a.length("ttr"),
                donelen: a.number("donelen"),
                donettl: a.length("donettl"),
                history: a.number("history"),
                backoff_default: a.is("backoff_default"),
                backoff: a.lengths("backoff"),
                rate,
                ..QueueSettings::default()
            };
            json!(queue.configure(settings).await?)
        }
        _ => return Ok(None),
    }))
}

fn shown(job: &JobInfo) -> Value {
    json!({
        "id": job.id, "payload": STANDARD.encode(&job.payload), "state": job.state.word(), "priority": job.priority,
        "due": ms(job.due), "deadline": ms(job.deadline), "ttr": job.ttr.as_millis() as u64, "attempts": job.attempts,
        "max_attempts": job.max_attempts, "token": job.token, "reason": job.reason, "progress": job.progress,
        "group": job.group, "payload_bytes": job.payload_bytes,
        "history": job.history.iter().map(attempt).collect::<Vec<_>>(),
    })
}

fn attempt(attempt: &dq_redis::FailedAttempt) -> Value {
    json!({
        "attempts": attempt.attempts, "started": ms(Some(attempt.started)), "ended": ms(Some(attempt.ended)),
        "how": attempt.how, "reason": attempt.reason,
    })
}

fn scan(a: &Args<'_>) -> Scan {
    type Filter = fn(Scan, &str) -> Scan;
    let filters: [(&str, Filter); 5] = [
        ("match", |scan, pattern| scan.matching(pattern)),
        ("group", |scan, name| scan.group(name)),
        ("label", |scan, pattern| scan.label(pattern)),
        ("awaits", |scan, pattern| scan.awaits(pattern)),
        ("reason", |scan, pattern| scan.reason(pattern)),
    ];
    let given = filters.iter().filter(|(name, _)| a.get(name).is_some());
    let scan = given.fold(Scan::new(), |scan, (name, filter)| {
        filter(scan, a.text(name))
    });
    if a.is("recurring") {
        scan.recurring()
    } else {
        scan
    }
}

async fn look(queue: &Queue, method: &str, a: &Args<'_>) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "get" => {
            let found = match a.number("prefix") {
                Some(bytes) => queue.get_prefix(a.text("id"), bytes as usize).await?,
                None => queue.get(a.text("id")).await?,
            };
            found.as_ref().map_or(Value::Null, shown)
        }
        "peek" => {
            let mut peek = Peek::new().count(a.number("count").unwrap_or(1) as usize);
            if let Some(from) = a.instant("since") {
                peek = peek.from(from);
            }
            if let Some(to) = a.instant("until") {
                peek = peek.to(to);
            }
            if let Some(bytes) = a.number("prefix") {
                peek = peek.prefix(bytes as usize);
            }
            let found = queue.peek(a.state().unwrap_or(State::Ready), peek).await?;
            let row = |job: &dq_redis::Peeked| {
                json!({
                    "id": job.id, "at": ms(job.at), "attempts": job.attempts, "priority": job.priority,
                    "payload_bytes": job.payload_bytes,
                })
            };
            found.iter().map(row).collect()
        }
        "scan" => {
            let cursor = if a.get("cursor").is_some() {
                a.text("cursor")
            } else {
                "0"
            };
            let (next, ids) = queue.scan(cursor, &scan(a)).await?;
            json!([
                next,
                ids.iter()
                    .map(|id| String::from_utf8_lossy(id))
                    .collect::<Vec<_>>()
            ])
        }
        "len" => json!(match (a.get("group"), a.state()) {
            (Some(_), _) => queue.len_of_group(a.text("group")).await?,
            (None, None | Some(State::All)) => queue.len().await?,
            (None, Some(state)) => queue.len_of(state).await?,
        }),
        "stats" => match queue.stats().await? {
            None => Value::Null,
            Some(stats) => json!({
                "delayed": stats.delayed, "ready": stats.ready, "reserved": stats.reserved, "dead": stats.dead,
                "blocked": stats.blocked, "done": stats.done, "next_due": ms(stats.next_due),
                "waiting_clients": stats.waiting_clients,
                "totals": {
                    "added": stats.totals.added, "delivered": stats.totals.delivered, "acked": stats.totals.acked,
                    "nacked": stats.totals.nacked, "timed-out": stats.totals.timed_out, "died": stats.totals.died,
                    "deleted": stats.totals.deleted, "expired": stats.totals.expired, "missed": stats.totals.missed,
                },
            }),
        },
        "explain" => {
            let found = match a.get("id") {
                Some(_) => queue.explain_job(a.text("id")).await?,
                None => queue.explain().await?,
            };
            let row = |each: &dq_redis::Explanation| json!({"code": each.code, "number": each.number, "until": ms(each.until)});
            json!(found.map(|all| all.iter().map(row).collect::<Vec<_>>()))
        }
        "next" => match queue
            .next(a.text("id"), a.number("count").unwrap_or(1) as usize)
            .await?
        {
            None => Value::Null,
            Some(instants) => instants.into_iter().map(|at| ms(Some(at))).collect(),
        },
        "forecast" => {
            let buckets = a.number("buckets").unwrap_or(1) as usize;
            let (from, to) = (
                a.instant("since").unwrap_or(UNIX_EPOCH),
                a.instant("until").unwrap_or(UNIX_EPOCH),
            );
            json!(queue.forecast(from, to, buckets).await?)
        }
        "settings" => match queue.settings().await? {
            None => Value::Null,
            Some(settings) => json!({
                "maxlen": settings.maxlen, "ttr": settings.ttr.map(|ttr| ttr.as_millis() as u64),
            }),
        },
        _ => return crate::groups::call(queue, method, a).await,
    }))
}
