//! The state of a queue after the commands that were carried out.

use std::collections::BTreeMap;

/// How long a queue keeps done jobs.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub queue: &'static str,
    pub ttl_ms: Option<u64>,
    pub most: Option<usize>,
    /// The values of KEEP, in turn.
    pub keeps: &'static [Option<u64>],
}

pub const LONG: u64 = 600_000;
/// Jobs with this KEEP are removed by time alone, during the lives.
pub const SHORT: u64 = 40;

pub const POLICIES: [Policy; 3] = [
    Policy {
        queue: "ttl",
        ttl_ms: Some(LONG),
        most: None,
        keeps: &[None, None, Some(0)],
    },
    Policy {
        queue: "keep",
        ttl_ms: None,
        most: None,
        keeps: &[None, Some(LONG), Some(LONG), Some(SHORT), Some(0)],
    },
    Policy {
        queue: "most",
        ttl_ms: None,
        most: Some(8),
        keeps: &[None, None, Some(LONG), Some(0)],
    },
];

impl Policy {
    /// How long the job is kept; None: not at all.
    fn kept(&self, keep: Option<u64>) -> Option<Option<u64>> {
        match (keep, self.ttl_ms, self.most) {
            (Some(0), _, _) | (None, None, None) => None,
            (Some(ms), _, _) => Some(Some(ms)),
            (None, ttl_ms, _) => Some(ttl_ms),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Op {
    /// By the wall clock.
    pub sent_ms: u64,
    pub what: What,
    pub in_transaction: bool,
}

#[derive(Clone, Debug)]
pub enum What {
    Add {
        id: String,
        keep: Option<u64>,
    },
    /// All ready jobs.
    Pop,
    /// Ids with their results.
    Ack(Vec<(String, Option<String>)>),
    Fatal {
        id: String,
        reason: String,
    },
    Del(String),
    Kick(String),
}

impl What {
    /// Whether the command ends that job.
    pub fn ends(&self, of: &str) -> bool {
        match self {
            What::Add { .. } | What::Pop | What::Kick(_) => false,
            What::Ack(jobs) => jobs.iter().any(|(id, _)| id == of),
            What::Fatal { id, .. } | What::Del(id) => id == of,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    Reserved,
    Done {
        result: Option<String>,
        since_ms: u64,
        kept_ms: Option<u64>,
    },
    Dead {
        reason: String,
    },
}

impl State {
    pub fn name(&self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Reserved => "reserved",
            State::Done { .. } => "done",
            State::Dead { .. } => "dead",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Job {
    pub state: State,
    pub attempts: u64,
    pub keep: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub jobs: BTreeMap<String, Job>,
    /// Ids of done jobs, the first to end first. Some may be gone, as their time is over.
    pub done: Vec<String>,
}

impl Model {
    pub fn carry_out(&mut self, policy: Policy, op: &Op) {
        match &op.what {
            What::Add { id, keep } => {
                let job = Job {
                    state: State::Ready,
                    attempts: 0,
                    keep: *keep,
                };
                self.jobs.insert(id.clone(), job);
            }
            What::Pop => {
                let ready = self
                    .jobs
                    .values_mut()
                    .filter(|job| job.state == State::Ready);
                for job in ready {
                    job.state = State::Reserved;
                    job.attempts += 1;
                }
            }
            What::Ack(jobs) => {
                for (id, result) in jobs {
                    self.finish(policy, id, result.clone(), op.sent_ms);
                }
            }
            What::Fatal { id, reason } => {
                let state = State::Dead {
                    reason: reason.clone(),
                };
                self.jobs.get_mut(id).expect("a job").state = state;
            }
            What::Del(id) => self.remove(id),
            What::Kick(id) => {
                self.done.retain(|done| done != id);
                let job = self.jobs.get_mut(id).expect("a job");
                job.state = State::Ready;
                job.attempts = 0;
            }
        }
    }

    fn finish(&mut self, policy: Policy, id: &str, result: Option<String>, since_ms: u64) {
        let job = self.jobs.get_mut(id).expect("a job");
        let Some(kept_ms) = policy.kept(job.keep) else {
            return self.remove(id);
        };
        job.state = State::Done {
            result,
            since_ms,
            kept_ms,
        };
        self.done.push(id.to_owned());
        while policy.most.is_some_and(|most| self.done.len() > most) {
            let oldest = self.done[0].clone();
            self.remove(&oldest);
        }
    }

    pub fn remove(&mut self, id: &str) {
        self.done.retain(|done| done != id);
        self.jobs.remove(id);
    }

    pub fn ids(&self, is: impl Fn(&Job) -> bool) -> Vec<String> {
        let jobs = self.jobs.iter().filter(|(_, job)| is(job));
        jobs.map(|(id, _)| id.clone()).collect()
    }
}
