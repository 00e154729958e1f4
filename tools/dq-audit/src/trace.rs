//! The history of one queue as steps of docs/model/Queue.tla, for Trace.tla to follow.
//!
//! It begins where the queue is empty. Instants count from there, and tokens by their order: the model checker does not
//! know larger numbers. An AOF does not name the workers, so each delivery gets a worker that has no other job. That
//! worker dies if the delivery ends by anything but an answer.
//!
//! A step's instant is the earliest possible one. A lease shows when it began: if that was before an instant that
//! earlier steps required to have come, the step says so, and the model does not follow.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use redis_dq::queue::effect::{Came, Change, DeathCause, Effect, How, OfDone, RemovalCause};

use crate::judge::Judge;
use crate::queue::job::Job;
use crate::queue::{begun, Begun, Ledger};

/// Instants further ahead are written as this one.
const FAR_MS: u64 = 1_000_000_000;

#[derive(Clone, Debug, Default)]
struct Step {
    what: &'static str,
    job: usize,
    worker: usize,
    now: u64,
    due: u64,
    deadline: u64,
    token: u64,
    attempts: u32,
    limit: u32,
    /// The job's state after the step.
    state: &'static str,
}

pub struct Trace {
    db: u32,
    queue: Vec<u8>,
    most: usize,
    steps: Vec<Step>,
    /// The number of the job that has this id now, and the worker of its last delivery.
    jobs: HashMap<Vec<u8>, (usize, Option<usize>)>,
    made: usize,
    free: BTreeSet<usize>,
    workers: usize,
    now: u64,
    has_begun: bool,
    is_over: bool,
}

impl Trace {
    pub fn new(db: u32, queue: &[u8], most: usize) -> Self {
        Trace {
            db,
            queue: queue.to_vec(),
            most,
            steps: Vec::new(),
            jobs: HashMap::new(),
            made: 0,
            free: BTreeSet::new(),
            workers: 0,
            now: 0,
            has_begun: false,
            is_over: false,
        }
    }

    pub fn is_of(&self, db: u32, queue: &[u8]) -> bool {
        !self.is_over && self.db == db && self.queue == queue
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Ends the trace: the model does not know what comes next.
    pub fn end(&mut self) {
        self.is_over |= self.has_begun;
    }

    /// Takes an effect that is about to be applied.
    pub fn see(&mut self, effect: &Effect<'_>, queue: &Ledger, judge: &Judge) {
        self.has_begun |= queue.len() == 0;
        if !self.has_begun {
            return;
        }
        self.now = self.now.max(judge.known_ms());
        match *effect {
            Effect::Came(Came {
                id,
                group: None,
                how: How::New { due, .. },
                ref terms,
                ..
            }) => self.added(id, due, terms.max_attempts),
            // The occurrence goes on.
            Effect::Came(Came {
                group: None,
                how: How::Renewed { .. },
                ..
            }) => {}
            Effect::CameTogether {
                group: None,
                due,
                ref terms,
                ref jobs,
                ..
            } => {
                for job in jobs {
                    self.added(&job.id, due, terms.max_attempts);
                }
            }
            Effect::Job { id, change } => self.change(id, change, queue),
            // For the model it is gone, like a job that is not kept.
            Effect::Done(OfDone::Kept { id, remember, .. }) => {
                let cause = RemovalCause::Acked;
                self.change(id, Change::Removed { cause, remember }, queue);
            }
            Effect::Done(OfDone::Kicked { .. } | OfDone::OccurrenceKept { .. })
            | Effect::Purged { .. }
            | Effect::Came(_)
            | Effect::CameTogether { .. }
            | Effect::Waits { .. }
            | Effect::Rows { .. } => self.end(),
            _ => {}
        }
        if self.steps.len() >= self.most {
            self.end();
        }
    }

    fn added(&mut self, id: &[u8], due: u64, limit: u32) {
        self.gone(id);
        self.made += 1;
        self.jobs.insert(id.to_vec(), (self.made, None));
        self.push(Step {
            what: "add",
            job: self.made,
            due,
            limit,
            state: "waiting",
            ..Step::default()
        });
    }

    fn push(&mut self, step: Step) {
        self.steps.push(Step {
            now: self.now,
            ..step
        });
    }

    /// The job with this id no longer exists.
    fn gone(&mut self, id: &[u8]) {
        self.let_go(id);
        if let Some((job, _)) = self.jobs.remove(id) {
            self.push(Step {
                what: "gone",
                job,
                state: "none",
                ..Step::default()
            });
        }
    }

    /// The delivery is over, and no worker answered.
    fn let_go(&mut self, id: &[u8]) {
        let worker = self.jobs.get_mut(id).and_then(|(_, worker)| worker.take());
        if let Some(worker) = worker {
            self.free.insert(worker);
            self.push(Step {
                what: "dies",
                worker,
                ..Step::default()
            });
        }
    }

    fn answered(&mut self, id: &[u8]) -> usize {
        let worker = self.jobs.get_mut(id).and_then(|(_, worker)| worker.take());
        let worker = worker.unwrap_or_default();
        self.free.insert(worker);
        worker
    }

    fn change(&mut self, id: &[u8], change: Change<'_>, queue: &Ledger) {
        let Some((&(job, worker), before)) = self.jobs.get(id).zip(queue.job(id)) else {
            return self.end();
        };
        let step = Step {
            job,
            worker: worker.unwrap_or_default(),
            state: "waiting",
            ..Step::default()
        };
        match change {
            Change::Reserved { .. } | Change::Touched { .. } => {
                self.lease(id, change, step, before)
            }
            Change::TimedOut => self.lease_ends(before.at, step),
            Change::Died {
                cause: DeathCause::TimedOut,
                ..
            } => {
                let state = "dead";
                self.lease_ends(before.at, Step { state, ..step });
            }
            Change::Removed { cause, .. } => self.removed(id, cause, before.due, step),
            Change::Prioritized { .. } => {}
            Change::Succeeded { .. } | Change::SuccessorExpired | Change::Unblocked { .. } => {
                self.end();
            }
            _ => self.moved(id, change, step),
        }
    }

    fn lease(&mut self, id: &[u8], change: Change<'_>, step: Step, before: &Job) {
        match change {
            Change::Reserved {
                token,
                deadline,
                lease_ms,
            } => {
                self.let_go(id);
                let latest = begun(deadline, lease_ms, Some(token)).latest;
                self.now = self.now.max(latest);
                let worker = self.hire(id);
                self.steps.push(Step {
                    now: latest,
                    what: "pop",
                    worker,
                    deadline,
                    token,
                    attempts: before.attempts + 1,
                    state: "reserved",
                    ..step
                });
            }
            Change::Touched { deadline, lease_ms } => {
                let Begun { earliest, latest } = begun(deadline, lease_ms, None);
                self.now = self.now.max(earliest);
                self.steps.push(Step {
                    now: self.now.min(latest),
                    what: "touch",
                    deadline,
                    state: "reserved",
                    ..step
                });
            }
            _ => {}
        }
    }

    /// The job waits elsewhere, or is dead.
    fn moved(&mut self, id: &[u8], change: Change<'_>, step: Step) {
        let step = match change {
            Change::Died { at, .. } => {
                self.now = self.now.max(at);
                self.answered(id);
                Step {
                    what: "fail",
                    state: "dead",
                    ..step
                }
            }
            Change::Nacked { due, attempts, .. } => {
                self.answered(id);
                Step {
                    what: "nack",
                    due,
                    attempts,
                    ..step
                }
            }
            Change::Rescheduled { due } => {
                self.let_go(id);
                Step {
                    what: "reschedule",
                    due,
                    ..step
                }
            }
            Change::Kicked { due } => {
                self.let_go(id);
                self.now = self.now.max(due);
                Step {
                    what: "kick",
                    due,
                    ..step
                }
            }
            _ => return,
        };
        self.push(step);
    }

    fn lease_ends(&mut self, at: u64, step: Step) {
        self.now = self.now.max(at);
        self.push(Step {
            what: "lease ends",
            ..step
        });
    }

    fn removed(&mut self, id: &[u8], cause: RemovalCause, due: u64, step: Step) {
        let step = Step {
            state: "none",
            ..step
        };
        match cause {
            RemovalCause::Acked => {
                self.answered(id);
                self.push(Step {
                    what: "ack",
                    ..step
                });
                self.jobs.remove(id);
            }
            RemovalCause::Popped => {
                self.let_go(id);
                self.now = self.now.max(due);
                self.push(Step {
                    what: "take",
                    ..step
                });
                self.jobs.remove(id);
            }
            RemovalCause::Deleted | RemovalCause::Expired | RemovalCause::TimedOutExpired => {
                self.gone(id)
            }
        }
    }

    fn hire(&mut self, id: &[u8]) -> usize {
        let worker = self.free.pop_first().unwrap_or_else(|| {
            self.workers += 1;
            self.workers
        });
        if let Some((_, with)) = self.jobs.get_mut(id) {
            *with = Some(worker);
        }
        worker
    }

    /// The text of the module `Steps`, which Trace.tla reads.
    pub fn written(&self) -> String {
        let steps = &self.steps[..self.steps.len().min(self.most)];
        let instants = steps.iter().map(|it| it.now).filter(|&now| now != 0);
        let zero = instants.min().unwrap_or(0).saturating_sub(1);
        let instant = |ms: u64| ms.saturating_sub(zero).min(FAR_MS);
        let tokens: BTreeSet<u64> = steps
            .iter()
            .map(|it| it.token)
            .filter(|&it| it != 0)
            .collect();
        let ranks: BTreeMap<u64, usize> = tokens.into_iter().zip(1..).collect();
        let mut text = String::from("---- MODULE Steps ----\n");
        let named = |letter: char, count: usize| {
            let names = (1..=count).map(|n| format!("\"{letter}{n}\""));
            names.collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(text, "StepJobs == {{{}}}", named('j', self.made));
        let _ = writeln!(
            text,
            "StepWorkers == {{{}}}",
            named('w', self.workers.max(1))
        );
        let _ = writeln!(text, "Steps == <<");
        for (n, step) in steps.iter().enumerate() {
            let rank = ranks.get(&step.token).copied().unwrap_or(0);
            let _ = writeln!(
                text,
                "  [what |-> \"{}\", job |-> \"j{}\", worker |-> \"w{}\", now |-> {}, due |-> {}, deadline |-> {}, \
                 token |-> {rank}, attempts |-> {}, limit |-> {}, state |-> \"{}\"]{}",
                step.what,
                step.job,
                step.worker,
                instant(step.now),
                instant(step.due),
                instant(step.deadline),
                step.attempts,
                step.limit,
                step.state,
                if n + 1 < steps.len() { "," } else { "" },
            );
        }
        text.push_str(">>\n====\n");
        text
    }
}
