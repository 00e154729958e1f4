//! Tells the server the outcomes of calls, and renews the leases of jobs in hand.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::{cmd, Cmd, Value};
use tokio::time::{sleep, sleep_until, Instant};

use super::Queue;
use crate::answer::Verdict;
use crate::call::Job;
use crate::hand::{End, Outcome};
use crate::link::{pause, Trouble, Wire};

/// Outcomes wait so long, or until there are so many, for a fetch that takes them along.
const GATHER_FOR: Duration = Duration::from_millis(1);
const GATHER: usize = 100;
const AT_ONCE: usize = 1000;

const FIRST_WAIT_MS: u64 = 1000;
const LONGEST_WAIT_MS: u64 = 3_600_000;

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
        let mut ack = cmd("DQ.ACK");
        let keeps = self.config.rules.keep_answers;
        ack.arg(&self.config.name)
            .arg(if keeps { "RESULTS" } else { "WITHTOKENS" });
        for Outcome { job, end, .. } in &done {
            ack.arg(&job.id).arg(&job.token);
            if let (true, End::Judged(Verdict::Done(answer))) = (keeps, end) {
                ack.arg(answer.as_deref().unwrap_or_default());
            }
        }
        let heard = self.source.ask(wire, &ack).await;
        let resent = done.iter().any(|outcome| outcome.resent);
        let count = done.len() as i64;
        match self.settle(heard, done)? {
            // What was acknowledged the first time no longer exists the second time.
            Value::Int(acked) if !resent => self.count_lost((count - acked).max(0) as u64),
            _ => {}
        }
        Ok(())
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
        match self.settle(heard, vec![outcome])? {
            Value::Nil if !resent => self.count_lost(1),
            _ => {}
        }
        Ok(())
    }

    async fn failure(&self, wire: &Wire, outcome: &Outcome) -> Result<Value, Trouble> {
        let job = &outcome.job;
        let mut nack = cmd("DQ.NACK");
        nack.arg(&self.config.name)
            .arg(&job.id)
            .arg("TOKEN")
            .arg(&job.token);
        match &outcome.end {
            End::Judged(Verdict::Fatal(reason)) => nack.arg("FATAL").arg("REASON").arg(reason),
            End::Judged(Verdict::Again(Some(wait), reason)) => nack
                .arg("DELAY")
                .arg(wait.as_millis() as u64)
                .arg("REASON")
                .arg(reason),
            End::Judged(Verdict::Again(None, reason)) => {
                if !self.has_ladder(wire, job).await? {
                    nack.arg("DELAY").arg(self.wait_ms(job.attempt));
                }
                nack.arg("REASON").arg(reason)
            }
            End::Judged(Verdict::Done(_)) | End::Back => return Ok(Value::Nil),
        };
        self.source.ask(wire, &nack).await
    }

    /// Whether the job has a BACKOFF, its own or its queue's when it was added: only the server knows.
    async fn has_ladder(&self, wire: &Wire, job: &Job) -> Result<bool, Trouble> {
        let backoff = self.field(wire, job, "backoff").await?;
        Ok(backoff.as_sequence().is_some_and(|steps| !steps.is_empty()))
    }

    async fn field(&self, wire: &Wire, job: &Job, name: &str) -> Result<Value, Trouble> {
        let mut get = cmd("DQ.GET");
        get.arg(&self.config.name).arg(&job.id);
        let answer = self.source.ask(wire, &get).await?;
        let fields = answer.as_sequence().unwrap_or_default();
        let is_it =
            |pair: &&[Value]| matches!(&pair[0], Value::BulkString(it) if it == name.as_bytes());
        let found = fields.chunks_exact(2).find(is_it);
        Ok(found.map_or(Value::Nil, |pair| pair[1].clone()))
    }

    /// The job's group; the server is asked only if the configuration has groups, until it answers. If the job is lost
    /// meanwhile, the call is aborted.
    pub(super) async fn group(&self, job: &Job) -> Option<Vec<u8>> {
        let mut troubles = 0;
        while !self.config.groups.is_empty() {
            let asked = async { self.field(&self.control().await?, job, "group").await };
            match asked.await {
                Ok(Value::BulkString(group)) => return Some(group),
                Ok(_) => return None,
                Err(_) => *self.control.lock().await = None,
            }
            troubles += 1;
            sleep(pause(troubles)).await;
        }
        None
    }

    fn wait_ms(&self, attempt: u64) -> u64 {
        let steps = &self.config.backoff;
        let at = usize::try_from(attempt)
            .unwrap_or(usize::MAX)
            .clamp(1, steps.len().max(1))
            - 1;
        match steps.get(at) {
            Some(step) => step.as_millis() as u64,
            None => exponential_ms(attempt, getrandom::u32().unwrap_or_default()),
        }
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

/// From a second, doubling to an hour, less up to a quarter at random: so jobs that failed together do not come back
/// together.
fn exponential_ms(attempt: u64, random: u32) -> u64 {
    let doublings = attempt.saturating_sub(1).min(12);
    let wait = (FIRST_WAIT_MS << doublings).min(LONGEST_WAIT_MS);
    let less = wait / 4 * u64::from(random) / u64::from(u32::MAX);
    (wait - less).max(FIRST_WAIT_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_from_a_second_to_an_hour() {
        let most: Vec<u64> = (1..=13)
            .map(|attempt| exponential_ms(attempt, 0) / 1000)
            .collect();
        assert_eq!(
            most,
            [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600]
        );
        assert_eq!(exponential_ms(u64::MAX, 0), LONGEST_WAIT_MS);
        assert_eq!(
            (exponential_ms(0, u32::MAX), exponential_ms(2, u32::MAX)),
            (1000, 1500)
        );
        assert!((1500..2000).contains(&exponential_ms(2, u32::MAX / 2)));
    }
}
