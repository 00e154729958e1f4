//! Why a queue or a job is not delivered, as `DQ.EXPLAIN` says it.

use crate::values;
use redis::Value;
use std::time::SystemTime;

/// A reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// As in the command reference: `paused`, `rate`, `behind`, ...
    pub code: String,
    /// How many, where the code counts something.
    pub number: Option<u64>,
    /// When time alone ends it.
    pub until: Option<SystemTime>,
}

/// In the server's order.
const OF_QUEUE: [&str; 10] = [
    "paused",
    "maxreserved",
    "delayed",
    "blocked",
    "reserved",
    "empty",
    "groups",
    "rate",
    "fill",
    "idle",
];
const SAY_NO_JOBS: [&str; 3] = ["paused", "maxreserved", "empty"];

impl Explanation {
    pub(crate) fn all(reply: Value) -> Vec<Self> {
        let of = |row| {
            let mut row = values::list(row).into_iter();
            let (code, number, until) = (row.next()?, row.next()?, row.next()?);
            Some(Explanation {
                code: values::text(code)?,
                number: (number != Value::Nil).then(|| values::int(&number).max(0) as u64),
                until: values::instant(&until),
            })
        };
        values::list(reply).into_iter().filter_map(of).collect()
    }

    /// The reasons of all shards, each code once; `None` if no shard is there.
    pub(super) fn of_shards(replies: Vec<Value>) -> Option<Vec<Self>> {
        let found = replies.into_iter().filter(|reply| *reply != Value::Nil);
        let mut shards: Vec<_> = found.map(Explanation::all).collect();
        if shards.len() < 2 {
            return shards.pop();
        }
        let rows = shards.concat();
        let is_empty = rows.iter().all(|why| SAY_NO_JOBS.contains(&&*why.code));
        let codes = OF_QUEUE.iter().filter(|code| is_empty || **code != "empty");
        let added_up = |code: &&str| {
            let same = || rows.iter().filter(|why| why.code == *code);
            let first = same().next()?;
            Some(Explanation {
                code: first.code.clone(),
                number: same()
                    .filter_map(|why| why.number)
                    .reduce(|one, other| one + other),
                until: same().filter_map(|why| why.until).min(),
            })
        };
        Some(codes.filter_map(added_up).collect())
    }
}
