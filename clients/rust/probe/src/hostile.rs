//! What the suite calls hostile: the worst that a handler or a hook can do. None of it is a success.

use dq_redis::{give_up, retry_in, snooze, BoxError, Hooks, Job};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// What a handler returns.
pub enum Answer {
    Value(Value),
    Unencodable,
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Answer::Value(value) => value.serialize(to),
            // A key of JSON is a text.
            Answer::Unencodable => to.collect_map([([1], 1)]),
        }
    }
}

/// Panics when it is dropped.
pub struct Sour;

impl Drop for Sour {
    fn drop(&mut self) {
        panic!("even when it is dropped");
    }
}

#[derive(Debug)]
struct Silent;

impl fmt::Display for Silent {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no text");
    }
}

impl Error for Silent {}

struct Shapeless;

impl fmt::Debug for Shapeless {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no shape");
    }
}

impl fmt::Display for Shapeless {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Err(fmt::Error)
    }
}

impl Error for Shapeless {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        panic!("no source");
    }
}

/// Its own source.
#[derive(Debug)]
struct Round;

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("round")
    }
}

impl Error for Round {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        static ROUND: Round = Round;
        Some(&ROUND)
    }
}

type Act = fn(&Job) -> Result<Answer, BoxError>;

const ACTS: [Act; 16] = [
    |_| Err(Box::new(Silent)),
    |_| Err(Box::new(Shapeless)),
    |_| Err(Box::new(Round)),
    |_| Err("\0\u{10ffff}".repeat(100_000).into()),
    |_| Err(retry_in(Duration::from_secs(3600)).because(Silent).into()),
    |_| Err(give_up(Shapeless).into()),
    |_| Err(give_up("\u{ffff}".repeat(10_000)).into()),
    |_| Err(retry_in(Duration::MAX).into()),
    |_| Err(snooze(Duration::MAX).into()),
    |_| std::panic::panic_any(Sour),
    |_| std::panic::panic_any(Silent),
    |_| panic!("no paper"),
    |_| Ok(Answer::Unencodable),
    |job| {
        job.fail(Silent);
        Ok(Answer::Value(Value::Null))
    },
    |job| {
        job.progress(f64::NAN, "")?;
        Ok(Answer::Value(Value::Null))
    },
    |_| {
        // It blocks its thread, and then has nothing to say.
        std::thread::sleep(Duration::from_millis(200));
        Err("".into())
    },
];

pub fn act(job: &Job, n: usize) -> Result<Answer, BoxError> {
    ACTS[n % ACTS.len()](job)
}

pub fn hooks() -> Hooks {
    Hooks::new()
        .before(|_| async { panic!("before") })
        .after(|_| async { std::panic::panic_any(Sour) })
        .lost(|_| async { std::panic::panic_any(Silent) })
        .failed(|_, _| async { panic!("failed") })
}
