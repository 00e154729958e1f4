//! How jobs end, as waiting clients are told: by the queue, and by the model.

use crate::compare::equal;
use crate::model::{Ended, Model, Outcome};
use dq::queue::outcome::{self, Departure};
use dq::queue::Queue;
use std::collections::BTreeSet;

#[derive(Default)]
pub struct Ends {
    heard: Vec<Ended>,
    expected: Vec<Ended>,
}

/// A dead occurrence that is kept gets a new id, for which nobody could wait before.
fn is_waited_for(ended: &Ended) -> bool {
    !ended.id.contains(&b'@')
}

fn ended(departure: Departure, now_ms: u64) -> Option<Ended> {
    let end = departure.end?;
    Some(Ended {
        id: departure.id,
        outcome: match end.outcome {
            outcome::Outcome::Done => Outcome::Done,
            outcome::Outcome::Dead => Outcome::Dead,
            outcome::Outcome::Deleted => Outcome::Deleted,
            outcome::Outcome::Expired => Outcome::Expired,
        },
        value: end.value,
        at: end.at.unwrap_or(now_ms),
        attempts: end.attempts,
    })
}

/// Surplus dead jobs are deleted whenever they are noticed, so the instant is not compared.
fn without_instant_of_deletion(mut ended: Ended) -> Ended {
    if ended.outcome == Outcome::Deleted {
        ended.at = 0;
    }
    ended
}

impl Ends {
    /// Listens for every job that has not ended, or whose end the queue has not noticed yet.
    pub fn listen(&self, queue: &mut Queue, model: &Model) {
        let ended = self.expected.iter().chain(&model.ends).map(|end| &end.id);
        let ids = model.jobs.iter().map(|job| &job.id).chain(ended);
        let ids: BTreeSet<_> = ids.cloned().collect();
        let ids = Vec::from_iter(ids);
        queue.listen(Box::new(move || ids.clone()));
    }

    /// Records what one operation has ended; `misses_one` (a canary) leaves one out.
    pub fn hear(&mut self, queue: &mut Queue, now_ms: u64, misses_one: bool) {
        let departures = queue.take_departures().map_or(Vec::new(), |it| it.noted());
        let ends = departures.into_iter();
        let ends = ends.filter_map(|departure| ended(departure, now_ms));
        self.heard.extend(ends.skip(misses_one.into()));
    }

    /// Unless something is overdue that the queue has not noticed yet, it has reported every end that the model knows.
    pub fn compare(&mut self, model: &mut Model, is_expired: bool) -> Result<(), String> {
        self.expected.append(&mut model.ends);
        if !is_expired {
            return Ok(());
        }
        let [heard, expected] = [&mut self.heard, &mut self.expected].map(|ends| {
            let ends = ends.drain(..).filter(is_waited_for);
            let mut ends: Vec<_> = ends.map(without_instant_of_deletion).collect();
            ends.sort();
            ends
        });
        equal("the ends", heard, expected)
    }
}
