//! Properties that only some jobs have: progress, steps, the signal that a job waits for, and what was said of it.

use super::{Fault, Job, Model, Phase, LAST};
use crate::op::{Id, Pairs, Reply, Said, StepOp};
use dq::queue::history::Attempt;
use dq::queue::job::JobView;
use dq::queue::job::State;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    pub progress: Option<Vec<u8>>,
    /// Steps in the order of first writing.
    pub steps: Pairs,
    /// The step (signal) that it waits for.
    pub awaits: Option<Vec<u8>>,
    /// Its last attempts that failed.
    pub history: Vec<Past>,
    /// What else was said when it was added.
    pub said: Said,
}

/// "`[attempts, started, ended, how, reason]`", and the token by which a NACK finds its `timeout`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    pub token: Option<u64>,
    pub attempts: u32,
    pub ended: u64,
    pub how: &'static str,
    pub reason: Option<Vec<u8>>,
}

impl Past {
    pub fn started(&self) -> u64 {
        self.token.map_or(0, |token| (token >> 20).min(LAST))
    }

    fn is_shown(&self, attempt: &Attempt<'_>) -> bool {
        let shown = (attempt.attempts, attempt.started(), attempt.ended);
        shown == (self.attempts, self.started(), self.ended)
            && attempt.how.name() == self.how
            && attempt.reason == self.reason.as_deref()
    }
}

impl Notes {
    /// "Names and values count for MAXBYTES"
    pub fn bytes(&self) -> u64 {
        let len = |(name, value): &(Vec<u8>, Vec<u8>)| name.len() + value.len();
        self.steps.iter().map(len).sum::<usize>() as u64
    }

    pub fn has_step(&self, name: &[u8]) -> bool {
        self.steps.iter().any(|(known, _)| known == name)
    }

    /// "a name that is there is overwritten"
    fn set(&mut self, name: &[u8], value: &[u8]) {
        match self.steps.iter_mut().find(|(known, _)| known == name) {
            Some(step) => step.1 = value.to_vec(),
            None => self.steps.push((name.to_vec(), value.to_vec())),
        }
    }

    /// "with the occurrence of a recurring job"
    pub fn of_next_occurrence(&self, fault: Fault) -> Self {
        if fault == Fault::OccurrencesShareSteps {
            return self.clone();
        }
        Notes {
            said: self.said.clone(),
            ..Notes::default()
        }
    }

    /// Whether GET shows these notes.
    pub fn are_shown(&self, view: &JobView<'_>) -> bool {
        let waits = view.state == State::Delayed;
        let steps = view.notes.steps();
        view.notes.progress() == self.progress.as_deref()
            && self.said.is_said_by(&view.terms.rest)
            && view.notes.history().iter().count() == self.history.len()
            && (self.history.iter().zip(view.notes.history().iter()))
                .all(|(past, shown)| past.is_shown(&shown))
            && steps.eq(self.steps.iter().map(|(name, value)| (&**name, &**value)))
            && (!waits || view.notes.awaits() == self.awaits.as_deref())
    }
}

fn check_name(name: &[u8]) -> Result<(), Reply> {
    if name.is_empty() || name.len() > 256 {
        return Err(Reply::Error("ERR step name must be 1 to 256 bytes long"));
    }
    Ok(())
}

impl Model {
    /// "each job keeps its last n attempts that failed since"; "a smaller one trims the job then, 0 adds nothing and keeps
    /// what is there"; "A NACK after the lease's end takes the place of its `timeout`."
    pub(super) fn keep_attempt(
        &mut self,
        index: usize,
        (ended, how): (u64, &'static str),
        reason: Option<&[u8]>,
    ) {
        let kept = self.settings.history as usize;
        if kept == 0 {
            return;
        }
        let stands_twice = self.has(Fault::TimeoutStandsBesideNack);
        let job = &mut self.jobs[index];
        let all = &mut job.notes.history;
        all.retain(|past| past.token != job.token || stands_twice);
        all.push(Past {
            token: job.token,
            attempts: job.attempts,
            ended,
            how,
            reason: reason.map(|reason| reason[..reason.len().min(256)].to_vec()),
        });
        all.drain(..all.len().saturating_sub(kept));
    }

    /// "1, or nil unless that token is current and the lease not over"
    pub(super) fn step(&mut self, step: &StepOp) -> Reply {
        let names = step.pairs.iter().map(|(name, _)| check_name(name));
        if let Err(error) = names.collect::<Result<Vec<()>, _>>() {
            return error;
        }
        let Some(index) = self.claimed(&step.id, Some(&step.token)) else {
            return Reply::Nil;
        };
        let reserved = matches!(self.jobs[index].phase, Phase::Reserved { .. });
        if !reserved && !self.has(Fault::StepAfterLease) {
            return Reply::Nil;
        }
        match self.keep_steps(index, &step.pairs) {
            Ok(()) => Reply::Count(1),
            Err(error) => error,
        }
    }

    /// "one too many is its error, and nothing is changed"
    fn keep_steps(&mut self, index: usize, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Reply> {
        let mut notes = self.jobs[index].notes.clone();
        pairs
            .iter()
            .for_each(|(name, value)| notes.set(name, value));
        if notes.steps.len() > 1000 {
            return Err(Reply::Error("ERR a job has at most 1000 steps"));
        }
        let grown = notes.bytes() as i64 - self.jobs[index].notes.bytes() as i64;
        let limit = self.settings.max_bytes;
        if limit != 0 && grown > 0 && self.bytes() as i64 + grown > limit.min(1 << 60) as i64 {
            return Err(Reply::Error("MAXBYTES queue is full"));
        }
        self.jobs[index].notes = notes;
        Ok(())
    }

    /// "sets a step from outside, if there is none of that name: 1, else 0; nil where no delayed, ready, reserved or
    /// blocked job has that id"; "The signal makes it due now."
    pub(super) fn signal(&mut self, id: &Id, name: &[u8], value: &[u8], now: u64) -> Reply {
        if let Err(error) = check_name(name) {
            return error;
        }
        let alive = |job: &Job| !matches!(job.phase, Phase::Dead { .. });
        let Some(index) = self.find(id).filter(|&at| alive(&self.jobs[at])) else {
            return Reply::Nil;
        };
        let overwrites = self.has(Fault::SignalOverwrites);
        if self.jobs[index].notes.has_step(name) && !overwrites {
            return Reply::Count(0);
        }
        if let Err(error) = self.keep_steps(index, &[(name.to_vec(), value.to_vec())]) {
            return error;
        }
        let wakes = !self.has(Fault::SignalWakesNobody);
        let job = &mut self.jobs[index];
        if job.notes.awaits.as_deref() == Some(name) && wakes {
            job.notes.awaits = None;
            job.due = job.due.min(now / 1000);
        }
        Reply::Count(1)
    }
}
