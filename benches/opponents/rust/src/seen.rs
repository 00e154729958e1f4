//! What a worker has been given.

use crate::{now_s, now_us, tell};
use serde_json::json;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

#[derive(Clone)]
pub struct Seen(Arc<Mutex<Jobs>>);

struct Jobs {
    wanted: usize,
    warm: usize,
    numbers: HashSet<usize>,
    twice: usize,
    late_us: Vec<i64>,
}

impl Seen {
    pub fn new(wanted: usize, warm: usize) -> Self {
        Seen(Arc::new(Mutex::new(Jobs {
            wanted,
            warm,
            numbers: HashSet::new(),
            twice: 0,
            late_us: Vec::new(),
        })))
    }

    /// Answers whether that was the last job.
    pub fn handle(&self, payload: &str) -> bool {
        let now = now_us() as i64;
        let mut words = payload.split(' ').map(|word| word.parse::<usize>());
        let (Some(Ok(due_ms)), Some(Ok(number))) = (words.next(), words.next()) else {
            panic!("a payload of no job: {payload}");
        };
        let mut jobs = self.0.lock().unwrap();
        if !jobs.numbers.insert(number) {
            jobs.twice += 1;
            return false;
        }
        if due_ms > 0 {
            jobs.late_us.push(now - due_ms as i64 * 1000);
        }
        if jobs.numbers.len() == jobs.warm {
            tell(json!({"warm": true}));
        }
        let is_last = jobs.numbers.len() == jobs.wanted;
        if is_last {
            tell(json!({"ended": now_s(), "twice": jobs.twice, "late_us": jobs.late_us}));
        }
        is_last
    }
}
