//! What the clients saw, and what of it must not have happened.

use std::collections::{BTreeMap, HashMap};

/// What happened before a crash within so many ms may not have reached the replica.
const LAG_MS: u64 = 1000;

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// `sure`: the answer came (and that of WAIT, where a master is to die).
    Added { id: String, due: u64, sure: bool },
    /// A worker had it in hand.
    Delivered(Delivered),
    /// A worker gave it back; None: the answer was lost.
    GaveBack { id: String, token: u64 },
    /// Acknowledged with the token. `counted`: the answer, None where it was lost.
    Acked {
        id: String,
        token: u64,
        at: u64,
        counted: Option<bool>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delivered {
    pub id: String,
    pub token: u64,
    pub attempts: i64,
    /// When the worker had it: not before it was taken from the queue.
    pub at: u64,
    pub deadline: u64,
}

/// What the history of one job consists of.
#[derive(Default)]
struct Job<'a> {
    due: u64,
    sure: bool,
    /// By token, so in the order in which the queue gave them out.
    deliveries: BTreeMap<u64, &'a Delivered>,
    given_back: Vec<u64>,
    /// Token and time.
    acked: Option<(u64, u64)>,
    maybe_acked: bool,
}

/// All that is wrong; the master that held the queues died at `crash`, if at all.
pub fn faults(events: &[Event], crash: Option<u64>) -> Vec<String> {
    let mut jobs: HashMap<&str, Job> = HashMap::new();
    let mut faults = Vec::new();
    for event in events {
        match event {
            Event::Added { id, due, sure } => {
                let job = jobs.entry(id).or_default();
                (job.due, job.sure) = (*due, *sure);
            }
            Event::Delivered(delivery) => {
                let job = jobs.entry(&delivery.id).or_default();
                if job.deliveries.insert(delivery.token, delivery).is_some() {
                    faults.push(format!("{}: one token for two deliveries", delivery.id));
                }
            }
            Event::GaveBack { id, token } => jobs.entry(id).or_default().given_back.push(*token),
            Event::Acked {
                id,
                token,
                at,
                counted,
            } => {
                let job = jobs.entry(id).or_default();
                job.maybe_acked |= counted.is_none();
                if *counted == Some(true) && job.acked.replace((*token, *at)).is_some() {
                    let explained = is_explained(*at, crash);
                    faults.extend((!explained).then(|| format!("{id}: acked twice")));
                }
            }
        }
    }
    for (id, job) in jobs {
        faults.extend(job.faults(crash).map(|fault| format!("{id}: {fault}")));
    }
    faults.sort();
    faults
}

/// Whether what happened then may be unknown to the new master.
fn is_explained(at: u64, crash: Option<u64>) -> bool {
    crash.is_some_and(|crash| at + LAG_MS >= crash)
}

impl Job<'_> {
    fn faults(&self, crash: Option<u64>) -> impl Iterator<Item = String> {
        let mut faults = Vec::new();
        if self.sure && self.acked.is_none() && !self.maybe_acked {
            faults.push("lost".to_owned());
        }
        let mut deliveries = self.deliveries.values().peekable();
        if deliveries.peek().is_some_and(|first| first.attempts != 1) && crash.is_none() {
            faults.push("a delivery before the first one seen".to_owned());
        }
        while let Some(one) = deliveries.next() {
            if one.at < self.due {
                faults.push(format!("delivered {} ms early", self.due - one.at));
            }
            let Some(next) = deliveries.peek() else { break };
            let over = next.at >= one.deadline || self.given_back.contains(&one.token);
            if !over && !is_explained(one.at, crash) {
                faults.push("delivered while a lease ran".to_owned());
            }
            if next.attempts != one.attempts + 1 && crash.is_none() {
                faults.push(format!("attempt {} after {}", next.attempts, one.attempts));
            }
            let acked = self.acked.filter(|&(token, _)| token == one.token);
            if acked.is_some_and(|(_, at)| !is_explained(at, crash)) {
                faults.push("delivered after its ack".to_owned());
            }
        }
        faults.into_iter()
    }
}

/// The checker itself: each of these histories has one fault, and it must be found.
#[cfg(test)]
mod canaries {
    use super::*;

    fn added() -> Event {
        Event::Added {
            id: "a".into(),
            due: 1000,
            sure: true,
        }
    }

    fn delivered(token: u64, attempts: i64, at: u64) -> Event {
        Event::Delivered(Delivered {
            id: "a".into(),
            token,
            attempts,
            at,
            deadline: at + 500,
        })
    }

    fn acked(token: u64, at: u64) -> Event {
        Event::Acked {
            id: "a".into(),
            token,
            at,
            counted: Some(true),
        }
    }

    #[test]
    fn a_sound_history_has_no_fault() {
        let gave_back = Event::GaveBack {
            id: "a".into(),
            token: 8,
        };
        let sound = [
            added(),
            delivered(7, 1, 1000),
            delivered(8, 2, 1500),
            gave_back,
            delivered(9, 3, 1600),
            acked(9, 1700),
        ];
        assert_eq!(faults(&sound, None), Vec::<String>::new());
    }

    #[test]
    fn every_fault_is_found() {
        let cases: [(&str, &[Event]); 7] = [
            ("a: lost", &[added(), delivered(7, 1, 1000)]),
            (
                "a: delivered 1 ms early",
                &[added(), delivered(7, 1, 999), acked(7, 1100)],
            ),
            (
                "a: delivered while a lease ran",
                &[
                    added(),
                    delivered(7, 1, 1000),
                    delivered(8, 2, 1499),
                    acked(8, 1600),
                ],
            ),
            (
                "a: delivered after its ack",
                &[
                    added(),
                    delivered(7, 1, 1000),
                    acked(7, 1100),
                    delivered(8, 2, 1600),
                ],
            ),
            (
                "a: attempt 3 after 1",
                &[
                    added(),
                    delivered(7, 1, 1000),
                    delivered(8, 3, 1500),
                    acked(8, 1600),
                ],
            ),
            (
                "a: acked twice",
                &[
                    added(),
                    delivered(7, 1, 1000),
                    acked(7, 1100),
                    acked(7, 1200),
                ],
            ),
            (
                "a: one token for two deliveries",
                &[
                    added(),
                    delivered(7, 1, 1000),
                    delivered(7, 1, 1600),
                    acked(7, 1700),
                ],
            ),
        ];
        for (fault, events) in cases {
            assert_eq!(faults(events, None), [fault]);
        }
    }

    /// A crash explains what came shortly before it, and nothing else.
    #[test]
    fn a_crash_explains_no_more_than_it_must() {
        let twice = [
            added(),
            delivered(7, 1, 1000),
            acked(7, 1100),
            delivered(8, 2, 1200),
            acked(8, 1300),
        ];
        assert_eq!(faults(&twice, Some(1150)), Vec::<String>::new());
        assert!(!faults(&twice, Some(5000)).is_empty());
        assert_eq!(faults(&[added()], Some(1150)), ["a: lost"]);
    }
}
