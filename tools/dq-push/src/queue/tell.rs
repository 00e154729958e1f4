//! Tells the server the outcomes of calls, and renews the leases of jobs in hand.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

use dq_connect::link::pause;
use dq_connect::source::{Trouble, Wire};
use futures_util::future::join_all;
use redis::{cmd, Cmd, Value};
use tokio::time::{sleep, sleep_until, Instant};

use super::Queue;
use crate::answer::Verdict;
use crate::hand::{End, Job, Outcome};

/// Outcomes wait so long, or until there are so many, for a fetch that takes them along.
const GATHER_FOR: Duration = Duration::from_millis(1);
const GATHER: usize = 100;
const AT_ONCE: usize = 1000;

/// What the server knows of a job besides its delivery.
#[derive(Default)]
pub(super) struct About {
    pub(super) group: Option<Vec<u8>>,
    /// 0: none.
    limit: u64,
    lease_ended: bool,
}

impl About {
    /// Its attempts were lowered, or its workers died too often.
    pub(super) fn is_over(&self, attempt: u64) -> bool {
        self.limit > 0 && attempt > self.limit
    }

    /// Its last worker may have died of it: at its last attempt it takes no other job along.
    pub(super) fn runs_alone(&self, attempt: u64) -> bool {
        attempt > 1 && attempt == self.limit && self.lease_ended
    }
}

impl Queue {
    pub(super) async fn keep_telling(self: Arc<Queue>) {
        let mut troubles = 0;
        loop {
            if self.hand.untold() == 0 {
                self.bell.notified().await;
            }
            if self.hand.untold() < GATHER && !self.stop.is_set() {
                sleep(GATHER_FOR).await;
            }
            match self.tell_by_control().await {
                Ok(()) => troubles = 0,
                Err(trouble) => {
                    *self.control.lock().await = None;
                    if !self.goes_on(trouble, &mut troubles).await {
                        return;
                    }
                }
            }
        }
    }

    async fn tell_by_control(&self) -> Result<(), Trouble> {
        if self.hand.untold() == 0 {
            return Ok(());
        }
        let wire = self.control().await?;
        self.tell(&wire, self.hand.take_outcomes(AT_ONCE)).await
    }

    /// Sends outcomes. Those that cannot be sent are kept for the next time.
    pub(super) async fn tell(&self, wire: &Wire, outcomes: Vec<Outcome>) -> Result<(), Trouble> {
        if outcomes.is_empty() {
            return Ok(());
        }
        let (mut done, mut back, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for outcome in outcomes {
            match &outcome.end {
                End::Judged(Verdict::Done(_)) => done.push(outcome),
                End::Back => back.push(outcome),
                End::Judged(_) => failed.push(outcome),
            }
        }
        let failed = failed
            .into_iter()
            .map(|outcome| self.tell_failure(wire, outcome));
        let (done, back, failed) = tokio::join!(
            self.tell_done(wire, done),
            self.tell_back(wire, back),
            join_all(failed)
        );
        failed.into_iter().fold(done.and(back), Result::and)
    }

    async fn tell_done(&self, wire: &Wire, done: Vec<Outcome>) -> Result<(), Trouble> {
        if done.is_empty() {
            return Ok(());
        }
        let mut heard = Ok(Value::Nil);
        for keeps in [self.config.rules.keep_answers, false] {
            heard = self.source.ask(wire, &self.ack(&done, keeps)).await;
            match &heard {
                // The work is done, whether its result can be kept or not.
                Err(Trouble::Refused(why)) if keeps => self.report(
                    format!("results are not kept: {why}"),
                    "acknowledged without them",
                ),
                _ => break,
            }
        }
        let resent: Vec<bool> = done.iter().map(|outcome| outcome.resent).collect();
        let answers = self.settle(heard, done)?;
        let answers = answers.as_sequence().unwrap_or_default().iter().zip(resent);
        // What was acknowledged the first time no longer exists the second time.
        let lost = answers.filter(|(answer, resent)| **answer == Value::Int(0) && !resent);
        self.count_lost(lost.count() as u64);
        Ok(())
    }

    fn ack(&self, done: &[Outcome], keeps: bool) -> Cmd {
        let mut ack = cmd("DQ.ACK");
        ack.arg(&self.config.name)
            .arg(if keeps { "RESULTS" } else { "WITHTOKENS" })
            .arg("IDS")
            .arg(done.len());
        for Outcome { job, end, .. } in done {
            ack.arg(&job.id).arg(&job.token);
            if let (true, End::Judged(Verdict::Done(answer))) = (keeps, end) {
                ack.arg(answer.as_deref().unwrap_or_default());
            }
        }
        ack
    }

    async fn tell_back(&self, wire: &Wire, back: Vec<Outcome>) -> Result<(), Trouble> {
        if back.is_empty() {
            return Ok(());
        }
        let mut nack = for_all(
            "DQ.NACK",
            &self.config.name,
            back.iter().map(|outcome| &outcome.job),
        );
        nack.arg("SILENT");
        let heard = self.source.ask(wire, &nack).await;
        let count = back.len() as u64;
        self.settle(heard, back)?;
        self.metrics.given_back.fetch_add(count, Relaxed);
        Ok(())
    }

    async fn tell_failure(&self, wire: &Wire, outcome: Outcome) -> Result<(), Trouble> {
        let heard = self.failure(wire, &outcome).await;
        let resent = outcome.resent;
        let heard = self.settle(heard, vec![outcome])?;
        if heard.as_sequence() == Some(&[Value::Nil]) && !resent {
            self.count_lost(1);
        }
        Ok(())
    }

    async fn failure(&self, wire: &Wire, outcome: &Outcome) -> Result<Value, Trouble> {
        let job = &outcome.job;
        let mut nack = for_all("DQ.NACK", &self.config.name, [job].into_iter());
        match &outcome.end {
            End::Judged(Verdict::Fatal(reason)) => nack.arg("FATAL").arg("REASON").arg(reason),
            End::Judged(Verdict::Again(Some(wait), reason)) => nack
                .arg("DELAY")
                .arg(wait.as_millis() as u64)
                .arg("REASON")
                .arg(reason),
            End::Judged(Verdict::Again(None, reason)) => {
                if let Some(wait) = self.step(job.attempt) {
                    if !self.has_ladder(wire, job).await? {
                        nack.arg("DELAY").arg(wait.as_millis() as u64);
                    }
                }
                nack.arg("REASON").arg(reason)
            }
            End::Judged(Verdict::Done(_)) | End::Back => return Ok(Value::Nil),
        };
        self.source.ask(wire, &nack).await
    }

    /// Whether the job has a BACKOFF, its own or its queue's when it was added: only the server knows.
    async fn has_ladder(&self, wire: &Wire, job: &Job) -> Result<bool, Trouble> {
        let fields = self.fields(wire, job).await?;
        Ok(fields("backoff")
            .as_sequence()
            .is_some_and(|steps| !steps.is_empty()))
    }

    /// The job's fields, by name.
    async fn fields(
        &self,
        wire: &Wire,
        job: &Job,
    ) -> Result<impl Fn(&str) -> Value + use<>, Trouble> {
        let mut get = cmd("DQ.GET");
        get.arg(&self.config.name).arg(&job.id).arg("PREFIX").arg(0);
        let answer = self.source.ask(wire, &get).await?;
        Ok(move |name: &str| {
            let fields = answer.as_sequence().unwrap_or_default();
            let is_it = |pair: &&[Value]| matches!(&pair[0], Value::BulkString(it) if it == name.as_bytes());
            let found = fields.chunks_exact(2).find(is_it);
            found.map_or(Value::Nil, |pair| pair[1].clone())
        })
    }

    /// What the call needs to know of the job; the server is asked only about later attempts, and if the configuration
    /// has groups, until it answers. If the job is lost meanwhile, the call is aborted.
    pub(super) async fn about(&self, job: &Job) -> About {
        let mut troubles = 0;
        while job.attempt > 1 || !self.config.groups.is_empty() {
            match self.ask_about(job).await {
                Ok(about) => return about,
                Err(_) => *self.control.lock().await = None,
            }
            troubles += 1;
            sleep(pause(troubles)).await;
        }
        About::default()
    }

    async fn ask_about(&self, job: &Job) -> Result<About, Trouble> {
        let fields = self.fields(&self.control().await?, job).await?;
        Ok(About {
            group: match fields("group") {
                Value::BulkString(group) => Some(group),
                _ => None,
            },
            limit: match fields("max-attempts") {
                Value::Int(limit) => u64::try_from(limit).unwrap_or(0),
                _ => 0,
            },
            lease_ended: fields("reason") == Value::BulkString(b"lease ended".to_vec()),
        })
    }

    /// The configuration's wait after this attempt, if it has any.
    fn step(&self, attempt: u64) -> Option<Duration> {
        let steps = &self.config.backoff;
        let at = usize::try_from(attempt).unwrap_or(usize::MAX);
        steps.get(at.clamp(1, steps.len().max(1)) - 1).copied()
    }

    /// Removes the outcomes that the server has answered.
    fn settle(
        &self,
        heard: Result<Value, Trouble>,
        outcomes: Vec<Outcome>,
    ) -> Result<Value, Trouble> {
        match &heard {
            Ok(_) => {
                self.hand.told(&outcomes);
                self.told.notify_one();
            }
            Err(_) => {
                self.hand.put_back(outcomes);
                self.bell.notify_one();
            }
        }
        heard
    }

    fn count_lost(&self, count: u64) {
        self.metrics.lost.fetch_add(count, Relaxed);
    }

    /// One heartbeat for all jobs in hand, again and again.
    pub(super) async fn keep_beating(self: Arc<Queue>) {
        let beat = self.config.lease / 3;
        let mut next = Instant::now() + beat;
        let mut troubles = 0;
        loop {
            sleep_until(next).await;
            next = Instant::now() + beat;
            if let Err(trouble) = self.beat().await {
                *self.control.lock().await = None;
                if !self.goes_on(trouble, &mut troubles).await {
                    return;
                }
                next = Instant::now();
                continue;
            }
            troubles = 0;
        }
    }

    async fn beat(&self) -> Result<(), Trouble> {
        for jobs in self.hand.all().chunks(AT_ONCE) {
            let wire = self.control().await?;
            let mut touch = for_all(
                "DQ.TOUCH",
                &self.config.name,
                jobs.iter().map(|(_, job)| job),
            );
            touch.arg("TTR").arg(self.config.lease.as_millis() as u64);
            let answer = self.source.ask(&wire, &touch).await?;
            let deadlines = answer.as_sequence().unwrap_or_default();
            for ((number, _), deadline) in jobs.iter().zip(deadlines) {
                if *deadline == Value::Nil && self.hand.lose(*number) {
                    self.count_lost(1);
                }
            }
        }
        Ok(())
    }
}

fn for_all<'a>(name: &str, queue: &str, jobs: impl ExactSizeIterator<Item = &'a Arc<Job>>) -> Cmd {
    let mut command = cmd(name);
    command.arg(queue).arg("IDS").arg(jobs.len());
    for job in jobs {
        command.arg(&job.id).arg(&job.token);
    }
    command
}
