//! How jobs end, as waiting clients are told: by the queue, and by the model.

use crate::compare::equal;
use crate::model::{Ended, Fault, Model, Outcome, Phase};
use crate::op::{Id, Op, Reply};
use dq::queue::outcome::{self, Departure};
use dq::queue::Queue;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Ends {
    heard: Vec<Ended>,
    expected: Vec<Ended>,
    held: BTreeMap<(Id, u64), Held>,
}

/// A delivery of which its worker may hear: until when it is held, and once it is not, whether its own worker gave it
/// up, by an ACK or NACK with its token.
#[derive(Default)]
struct Held {
    until: u64,
    heard: Option<bool>,
    expected: Option<bool>,
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

fn reserved(model: &Model) -> impl Iterator<Item = ((Id, u64), u64)> + '_ {
    model.jobs.iter().filter_map(|job| match job.phase {
        Phase::Reserved { deadline, .. } => Some(((job.id.clone(), job.token?), deadline)),
        _ => None,
    })
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
        for departure in &departures {
            let delivery = (departure.id.clone(), departure.token);
            if let Some(held) = self.held.get_mut(&delivery) {
                held.heard.get_or_insert(departure.is_claimed);
            }
        }
        let ends = departures.into_iter();
        let ends = ends.filter_map(|departure| ended(departure, now_ms));
        self.heard.extend(ends.skip(misses_one.into()));
    }

    /// Notes which deliveries are held no more, after the model has executed the operation, too.
    pub fn lose(&mut self, op: &Op, reply: &Reply, (model, now_ms): (&Model, u64)) {
        let reserved: BTreeMap<_, _> = reserved(model).collect();
        for (delivery, &until) in &reserved {
            self.held.entry(delivery.clone()).or_default().until = until;
        }
        let gone = self.held.iter_mut();
        let gone = gone
            .filter(|(delivery, held)| held.expected.is_none() && !reserved.contains_key(delivery));
        for ((id, token), held) in gone {
            let is_own = |of: &Id, named: &Option<Vec<u8>>| {
                of == id && named.as_deref() == Some(token.to_string().as_bytes())
            };
            let is_claimed = match op {
                Op::Ack { id, token, .. } => is_own(id, token),
                Op::Nack(nack) if nack.after.is_some() && model.fault == Fault::GivenBackIsLost => {
                    false
                }
                Op::Nack(nack) => is_own(&nack.id, &nack.token),
                _ => false,
            };
            held.expected = Some(
                is_claimed && !matches!(reply, Reply::Nil | Reply::Count(0)) && held.until > now_ms,
            );
        }
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
        equal("the ends", heard, expected)?;
        let (lost, held): (BTreeMap<_, _>, _) =
            (std::mem::take(&mut self.held).into_iter()).partition(|(_, it)| it.expected.is_some());
        self.held = held;
        let [heard, expected] = [|it: &Held| it.heard, |it: &Held| it.expected]
            .map(|told| Vec::from_iter(lost.iter().map(|(of, it)| (of, told(it)))));
        equal("the lost deliveries", heard, expected)
    }
}
