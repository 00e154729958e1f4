//! The arguments of a call, and the jobs that they describe.

use base64::engine::{general_purpose::STANDARD, Engine};
use dq_redis::{Adding, NewJob, Queue, State};
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The arguments of a call.
pub struct Args<'a>(pub &'a Value);

impl Args<'_> {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(Value::as_u64)
    }

    pub fn integer(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    pub fn lengths(&self, name: &str) -> Option<Vec<Duration>> {
        let steps = self.get(name)?.as_array()?.iter();
        Some(
            steps
                .map(|step| Duration::from_millis(step.as_u64().unwrap_or(0)))
                .collect(),
        )
    }

    pub fn length(&self, name: &str) -> Option<Duration> {
        self.number(name).map(Duration::from_millis)
    }

    pub fn instant(&self, name: &str) -> Option<SystemTime> {
        self.length(name).map(|since| UNIX_EPOCH + since)
    }

    pub fn is(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn list(&self, name: &str) -> Vec<String> {
        let list = self.get(name).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(|each| each.as_str().map(str::to_owned))
            .collect()
    }

    pub fn tokens(&self) -> Vec<(String, String)> {
        let all = self.get("tokens").and_then(Value::as_object);
        all.into_iter()
            .flatten()
            .map(|(id, token)| (id.clone(), token.as_str().unwrap_or_default().to_owned()))
            .collect()
    }

    pub fn state(&self) -> Option<State> {
        match self.text("state").to_lowercase().as_str() {
            "blocked" => Some(State::Blocked),
            "delayed" => Some(State::Delayed),
            "ready" => Some(State::Ready),
            "reserved" => Some(State::Reserved),
            "dead" => Some(State::Dead),
            "done" => Some(State::Done),
            "all" => Some(State::All),
            _ => None,
        }
    }

    pub fn payload(&self) -> Option<Vec<u8>> {
        match self.get("payload")? {
            Value::String(text) => Some(text.clone().into_bytes()),
            coded => STANDARD.decode(coded["base64"].as_str()?).ok(),
        }
    }

    pub fn data(&self) -> &Value {
        self.0.get("data").unwrap_or(&Value::Null)
    }
}

/// Says of a job what the arguments do.
macro_rules! say {
    ($job:ident, $args:ident) => {{
        let mut job = $job;
        if $args.get("id").is_some() {
            job = job.id($args.text("id"));
        }
        if $args.get("kind").is_some() {
            job = job.kind($args.text("kind"));
        }
        for (name, value) in $args.get("headers").and_then(Value::as_object).into_iter().flatten() {
            job = job.header(name, value.as_str().unwrap_or_default());
        }
        job = match $args.text("if_exists") {
            "replace" => job.if_exists(dq_redis::IfExists::Replace),
            "only-replace" => job.if_exists(dq_redis::IfExists::OnlyReplace),
            "next" => job.if_exists(dq_redis::IfExists::RunAgain),
            _ => job,
        };
        macro_rules! lengths {
            ($name:ident $how:ident) => {
                if let Some(value) = $args.$how(stringify!($name)) {
                    job = job.$name(value);
                }
            };
        }
        lengths!(delay length);
        lengths!(at instant);
        lengths!(until instant);
        lengths!(times number);
        lengths!(grace length);
        lengths!(jitter length);
        crate::said::said!(job, $args);
        if $args.get("after").is_some() {
            job = job.after($args.list("after"));
        }
        if $args.get("after_group").is_some() {
            job = job.after_group($args.text("after_group"));
        }
        match $args.text("on_dead") {
            "wait" => job = job.on_dead(dq_redis::OnDead::Wait),
            "run" => job = job.on_dead(dq_redis::OnDead::Run),
            "die" => job = job.on_dead(dq_redis::OnDead::Die),
            _ => {}
        }
        job
    }};
}

pub(crate) use say;

pub fn adding<'a>(queue: &'a Queue, args: &Args<'_>) -> Adding<'a> {
    let job = match args.payload() {
        Some(bytes) => queue.add_bytes(bytes),
        None => queue.add(args.data()),
    };
    say!(job, args)
}

pub fn new_job(args: &Args<'_>) -> NewJob {
    let job = match args.payload() {
        Some(bytes) => NewJob::bytes(bytes),
        None => NewJob::new(args.data()),
    };
    say!(job, args)
}
