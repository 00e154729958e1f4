//! What the handlers of the probe do: what their jobs say.

use crate::hostile::{self, Answer};
use crate::{emit, ms};
use base64::engine::{general_purpose::STANDARD, Engine};
use dq_redis::{
    give_up, is, retry_in, snooze, BoxError, Call, CancelReason, Error, Handler, Job, JobInfo,
    JobResult, NewJob, Next, Returned, WaitFor,
};
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

#[derive(Debug)]
pub struct Flaky(String);

#[derive(Debug)]
pub struct Broken(String);

macro_rules! error {
    ($name:ident) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl std::error::Error for $name {}
    };
}
error!(Flaky);
error!(Broken);

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Given {
    kind: Option<String>,
    attempts: Option<u32>,
    backoff_ms: Option<Vec<u64>>,
    cron: Option<String>,
    tz: Option<String>,
    every_ms: Option<u64>,
    lease_ms: Option<u64>,
    batch: Option<usize>,
    fill: Option<(usize, u64)>,
    timeout_ms: Option<u64>,
    retry_on: Option<Vec<String>>,
    give_up_on: Option<Vec<String>>,
}

pub fn make(given: &Given) -> Handler {
    let mut made = match given.batch {
        Some(size) if size > 0 => Handler::batch(size, handle_batch),
        _ => Handler::new(handle),
    };
    if let Some(kind) = &given.kind {
        made = made.kind(kind);
    }
    made = made
        .attempts(given.attempts.unwrap_or(0))
        .backoff(given.backoff_ms.iter().flatten().map(|step| ms(*step)));
    let rule = match (&given.cron, given.every_ms) {
        (Some(cron), _) => Some(NewJob::cron(cron, &Value::Null)),
        (None, interval) => interval.map(|it| NewJob::every(ms(it), &Value::Null)),
    };
    if let Some(rule) = rule {
        made = made.rule(match &given.tz {
            Some(zone) => rule.tz(zone),
            None => rule,
        });
    }
    if let Some(lease) = given.lease_ms {
        made = made.lease(ms(lease));
    }
    if let Some((jobs, wait)) = given.fill {
        made = made.fill(jobs, ms(wait));
    }
    if let Some(timeout) = given.timeout_ms {
        made = made.timeout(ms(timeout));
    }
    for name in given.retry_on.iter().flatten() {
        made = if name == "Flaky" {
            made.retry_on(is::<Flaky>)
        } else {
            made.retry_on(is::<Broken>)
        };
    }
    for name in given.give_up_on.iter().flatten() {
        made = if name == "Flaky" {
            made.give_up_on(is::<Flaky>)
        } else {
            made.give_up_on(is::<Broken>)
        };
    }
    made
}

pub async fn around(call: Call, next: Next) -> Result<Returned, BoxError> {
    let report = |call: &Call, phase: &str| {
        for job in call.jobs() {
            emit("around", json!({ "job": job.id(), "phase": phase }));
        }
    };
    report(&call, "entered");
    let ended = next.run(call.clone()).await;
    report(&call, "left");
    ended
}

pub async fn died(queue: String, job: JobInfo) {
    let data: Value = job.decode().unwrap_or_default();
    emit(
        "dead",
        json!({
            "job": job.id, "queue": queue, "reason": job.reason, "attempts": job.attempts, "kind": job.kind(),
            "data": data, "headers": job.headers(),
        }),
    );
    if data["dead"] == "hang" {
        std::future::pending().await
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Script {
    r#do: String,
    ms: u64,
    message: Option<String>,
    reason: Option<String>,
    r#type: Option<String>,
    times: Option<u64>,
    n: usize,
    value: Value,
    steps: Vec<(f64, String)>,
    actions: Vec<Value>,
}

static RUNS: LazyLock<Mutex<HashMap<String, u64>>> = LazyLock::new(Mutex::default);

fn announce(jobs: &[Job]) {
    for job in jobs {
        *RUNS
            .lock()
            .expect("no panic")
            .entry(job.id().into_owned())
            .or_default() += 1;
        let due = job
            .due()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("after 1970")
            .as_millis() as u64;
        let fields = json!({
            "job": job.id(), "queue": job.queue(), "attempt": job.attempt(), "payload": STANDARD.encode(job.payload()),
            "kind": job.kind(), "headers": job.headers(), "due": due, "batch": jobs.len(),
            "results": rows(&job.results()).unwrap_or_default(),
        });
        emit("started", fields);
    }
}

fn runs(job: &Job) -> u64 {
    RUNS.lock()
        .expect("no panic")
        .get(&*job.id())
        .copied()
        .unwrap_or(0)
}

fn script_of(job: &Job) -> Result<Script, Error> {
    let data: Value = job.decode()?;
    let script: Script = serde_json::from_value(data).unwrap_or_default();
    match script.times {
        Some(times) if runs(job) > times && script.r#do != "script" => Ok(Script::default()),
        _ => Ok(script),
    }
}

struct Ended(String);

impl Drop for Ended {
    fn drop(&mut self) {
        emit("ended", json!({ "job": self.0 }));
    }
}

async fn handle(job: Job) -> Result<Answer, BoxError> {
    announce(std::slice::from_ref(&job));
    let _ended = Ended(job.id().into_owned());
    work(&job).await
}

async fn handle_batch(jobs: Vec<Job>) -> Result<(), BoxError> {
    announce(&jobs);
    for job in &jobs {
        match work(job).await {
            Ok(Answer::Value(value)) if !value.is_null() => job.succeed(&value)?,
            Ok(_) => {}
            Err(error) => job.fail(error),
        }
    }
    Ok(())
}

fn told(job: &Job, why: CancelReason) {
    let why = match why {
        CancelReason::Lost => "lost",
        CancelReason::Timeout => "timeout",
        _ => "stopping",
    };
    emit("told", json!({ "job": job.id(), "why": why }));
}

async fn sleep(job: &Job, length: u64) -> Result<(), BoxError> {
    match job.unless_cancelled(tokio::time::sleep(ms(length))).await {
        Ok(()) => Ok(()),
        Err(error) => {
            told(job, error.0);
            Err(error.into())
        }
    }
}

async fn work(job: &Job) -> Result<Answer, BoxError> {
    let script = script_of(job)?;
    let nothing = Ok(Answer::Value(Value::Null));
    let reason = |decision: dq_redis::Decision| match &script.reason {
        Some(reason) => decision.because(reason),
        None => decision,
    };
    match script.r#do.as_str() {
        "sleep" => sleep(job, script.ms).await?,
        // It takes no notice, and holds up its thread besides.
        "stubborn" => std::thread::sleep(ms(script.ms)),
        "hang" => std::future::pending().await,
        "throw" => {
            return Err(thrown(
                script.r#type.as_deref(),
                script.message.unwrap_or_default(),
            ))
        }
        "retry" => return Err(reason(retry_in(ms(script.ms))).into()),
        "snooze" => return Err(reason(snooze(ms(script.ms))).into()),
        "give_up" => return Err(give_up(script.reason.as_deref().unwrap_or("given up")).into()),
        "hostile" => return hostile::act(job, script.n),
        "exit" => std::process::exit(3),
        "fork" => drop(std::process::Command::new("sleep").arg("2").spawn()?),
        "quit_thread" => std::panic::resume_unwind(Box::new(hostile::Sour)),
        "return" => return Ok(Answer::Value(script.value)),
        "unencodable" => return Ok(Answer::Unencodable),
        "progress" => {
            for (fraction, text) in &script.steps {
                job.progress(*fraction, text)?;
            }
            sleep(job, script.ms).await?;
        }
        "script" => return act(job, &script).await,
        _ => {}
    }
    nothing
}

fn thrown(kind: Option<&str>, message: String) -> BoxError {
    match kind {
        Some("Flaky") => Box::new(Flaky(message)),
        Some("Broken") => Box::new(Broken(message)),
        _ => Box::new(std::io::Error::other(message)),
    }
}

async fn act(job: &Job, script: &Script) -> Result<Answer, BoxError> {
    let acts = script.times.is_none_or(|times| runs(job) <= times);
    for action in &script.actions {
        let name = |field: &str| action[field].as_str().unwrap_or_default();
        let length = action["ms"].as_u64();
        let often = action["times"]
            .as_u64()
            .map_or(acts, |times| runs(job) <= times);
        if action.get("step").is_some() {
            step(job, name("step"), &action["value"]).await?;
        } else if action.get("sleep").is_some() {
            job.sleep(name("sleep"), ms(length.unwrap_or(0))).await?;
        } else if action.get("wait").is_some() {
            wait(job, name("wait"), length).await?;
        } else if let Some(ids) = action.get("wait_for") {
            let ids: Vec<String> = serde_json::from_value(ids.clone())?;
            results(job, &job.wait_for(&ids, WaitFor::new()).await?)?;
        } else if let Some(children) = action.get("spawn").and_then(Value::as_array) {
            let jobs = children.iter().map(|child| match child["id"].as_str() {
                Some(id) => NewJob::new(&child["data"]).id(id),
                None => NewJob::new(&child["data"]),
            });
            results(job, &job.spawn(jobs.collect(), WaitFor::new()).await?)?;
        } else if action.get("throw").is_some() && often {
            return Err(thrown(None, name("throw").to_owned()));
        } else if action.get("exit").is_some() && often {
            std::process::exit(3);
        } else if let Some(value) = action.get("return") {
            return Ok(Answer::Value(value.clone()));
        }
    }
    Ok(Answer::Value(Value::Null))
}

async fn step(job: &Job, name: &str, value: &Value) -> Result<(), BoxError> {
    let kept: Value = job
        .step(name, || async {
            emit("stepped", json!({ "job": job.id(), "name": name }));
            Ok::<_, Error>(value.clone())
        })
        .await?;
    emit(
        "step",
        json!({ "job": job.id(), "name": name, "value": kept }),
    );
    Ok(())
}

async fn wait(job: &Job, name: &str, length: Option<u64>) -> Result<(), BoxError> {
    let waited: Result<Option<Value>, Error> = match length {
        Some(length) => job.wait_within(name, ms(length)).await,
        None => job.wait(name).await,
    };
    match waited {
        Ok(value) => emit(
            "waited",
            json!({ "job": job.id(), "name": name, "value": value }),
        ),
        Err(Error::TimedOut { .. }) => emit(
            "waited",
            json!({ "job": job.id(), "name": name, "timed_out": true }),
        ),
        Err(other) => return Err(other.into()),
    }
    Ok(())
}

fn results(job: &Job, all: &[JobResult]) -> Result<(), BoxError> {
    emit("results", json!({ "job": job.id(), "results": rows(all)? }));
    Ok(())
}

fn rows(all: &[JobResult]) -> Result<Vec<Value>, BoxError> {
    let mut rows = Vec::new();
    for each in all {
        let outcome = each.outcome.map(dq_redis::Outcome::name);
        let value = match (outcome, &each.value) {
            (Some("done"), _) => each.decode::<Value>()?.unwrap_or(Value::Null),
            (_, Some(reason)) => String::from_utf8_lossy(reason).into(),
            (_, None) => Value::Null,
        };
        rows.push(json!([each.id, outcome, value]));
    }
    Ok(rows)
}
