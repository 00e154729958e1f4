//! The jobs in hand: those whose call is running, and those whose outcome the server does not know yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::answer::Verdict;

pub struct Job {
    pub id: Vec<u8>,
    pub token: Vec<u8>,
    pub payload: Bytes,
    pub attempt: u64,
    pub due: i64,
}

/// The outcome of a job, for the server.
#[derive(Clone)]
pub struct Outcome {
    pub number: u64,
    pub job: Arc<Job>,
    pub end: End,
    /// It was sent before, but the reply was lost: the server may have it.
    pub resent: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Judged(Verdict),
    /// Give the job back as if it had not been delivered.
    Back,
}

/// How many there are, for those who wait until there is none.
#[derive(Default)]
pub struct Count(watch::Sender<usize>);

/// Counts as one until it is dropped.
pub struct Counted(watch::Sender<usize>);

impl Count {
    pub fn one(&self) -> Counted {
        self.0.send_modify(|count| *count += 1);
        Counted(self.0.clone())
    }

    pub fn is_none(&self) -> bool {
        *self.0.borrow() == 0
    }

    pub async fn none(&self) {
        // An error would mean that the sender is gone, but it is in self.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[derive(Default)]
pub struct Hand(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    jobs: HashMap<u64, Held>,
    outcomes: Vec<Outcome>,
}

struct Held {
    job: Arc<Job>,
    /// The running call; None once it has ended.
    call: Option<AbortHandle>,
    counted: Option<Counted>,
}

impl Hand {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the call under the lock, for which its end waits: so the job is held before the call ends.
    pub fn begin(&self, job: Arc<Job>, counted: Counted, call: impl FnOnce(u64) -> AbortHandle) {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        let call = Some(call(number));
        let held = Held {
            job,
            call,
            counted: Some(counted),
        };
        state.jobs.insert(number, held);
    }

    /// From now on it is none of those that a job that runs alone waits for.
    pub fn uncount(&self, number: u64) {
        let held = self
            .state()
            .jobs
            .get_mut(&number)
            .map(|it| it.counted.take());
        drop(held);
    }

    /// Records the end of a call. False if the job was lost meanwhile: then there is no outcome.
    pub fn end(&self, number: u64, verdict: Verdict) -> bool {
        let mut state = self.state();
        let Some(held) = state.jobs.get_mut(&number) else {
            return false;
        };
        held.call = None;
        let job = Arc::clone(&held.job);
        state.outcomes.push(Outcome {
            number,
            job,
            end: End::Judged(verdict),
            resent: false,
        });
        true
    }

    /// Gives back a job that arrived after calls stopped being started.
    pub fn refuse(&self, job: Arc<Job>) {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        let held = Held {
            job,
            call: None,
            counted: None,
        };
        state.jobs.insert(number, held);
        state.give_back(number);
    }

    /// Aborts all running calls, and gives their jobs back.
    pub fn give_back_all(&self) {
        let mut state = self.state();
        let mut running = Vec::new();
        for (number, held) in &mut state.jobs {
            if let Some(call) = held.call.take() {
                call.abort();
                running.push(*number);
            }
        }
        for number in running {
            state.give_back(number);
        }
    }

    /// The job is gone, or was delivered to another worker. False if its call has ended: the reply to its outcome will
    /// show that.
    pub fn lose(&self, number: u64) -> bool {
        let mut state = self.state();
        match state.jobs.get(&number) {
            Some(Held {
                call: Some(call), ..
            }) => call.abort(),
            _ => return false,
        }
        state.jobs.remove(&number);
        true
    }

    /// The jobs whose leases are to be renewed.
    pub fn all(&self) -> Vec<(u64, Arc<Job>)> {
        let mut state = self.state();
        // A call that was aborted without an outcome no longer holds its job: the lease expires.
        state
            .jobs
            .retain(|_, held| !held.call.as_ref().is_some_and(AbortHandle::is_finished));
        let jobs = state.jobs.iter();
        jobs.map(|(number, held)| (*number, Arc::clone(&held.job)))
            .collect()
    }

    pub fn take_outcomes(&self, most: usize) -> Vec<Outcome> {
        let mut state = self.state();
        let count = state.outcomes.len().min(most);
        state.outcomes.drain(..count).collect()
    }

    /// Takes only as many as one command carries: a second command would wait behind the fetch that is sent with the
    /// first.
    pub fn take_done(&self, most: usize) -> Vec<Outcome> {
        let mut state = self.state();
        let mut room = most;
        let (done, others) = std::mem::take(&mut state.outcomes)
            .into_iter()
            .partition(|outcome| {
                let fits = room > 0 && matches!(outcome.end, End::Judged(Verdict::Done(_)));
                room -= usize::from(fits);
                fits
            });
        state.outcomes = others;
        done
    }

    pub fn put_back(&self, outcomes: impl IntoIterator<Item = Outcome>) {
        let outcomes = outcomes.into_iter().map(|outcome| Outcome {
            resent: true,
            ..outcome
        });
        self.state().outcomes.extend(outcomes);
    }

    pub fn told(&self, outcomes: &[Outcome]) {
        let mut state = self.state();
        for outcome in outcomes {
            state.jobs.remove(&outcome.number);
        }
    }

    pub fn untold(&self) -> usize {
        self.state().outcomes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.state().jobs.is_empty()
    }
}

impl State {
    fn give_back(&mut self, number: u64) {
        if let Some(held) = self.jobs.get(&number) {
            let job = Arc::clone(&held.job);
            self.outcomes.push(Outcome {
                number,
                job,
                end: End::Back,
                resent: false,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Arc<Job> {
        Arc::new(Job {
            id: b"a".to_vec(),
            token: b"1".to_vec(),
            payload: bytes::Bytes::new(),
            attempt: 1,
            due: 0,
        })
    }

    fn begin(hand: &Hand) -> u64 {
        let mut number = 0;
        hand.begin(job(), Count::default().one(), |it| {
            number = it;
            tokio::spawn(std::future::pending::<()>()).abort_handle()
        });
        number
    }

    #[tokio::test]
    async fn a_lost_job_is_not_acknowledged() {
        let hand = Hand::default();
        let number = begin(&hand);
        assert!(hand.lose(number) && !hand.lose(number));
        assert!(
            !hand.end(number, Verdict::Done(None)),
            "its end comes too late"
        );
        assert!(hand.take_outcomes(9).is_empty() && hand.is_empty());
    }

    #[tokio::test]
    async fn what_has_ended_is_told_and_not_lost() {
        let hand = Hand::default();
        let number = begin(&hand);
        assert!(hand.end(number, Verdict::Done(None)) && !hand.lose(number));
        let outcomes = hand.take_outcomes(9);
        assert_eq!(
            (outcomes.len(), hand.untold(), hand.is_empty()),
            (1, 0, false)
        );
        hand.put_back(outcomes);
        let again = hand.take_outcomes(9);
        assert!(again[0].resent);
        hand.told(&again);
        assert!(hand.is_empty());
    }

    #[tokio::test]
    async fn a_fetch_takes_only_acknowledgements_along() {
        let hand = Hand::default();
        for verdict in [
            Verdict::Done(None),
            Verdict::Again(None, String::new()),
            Verdict::Done(None),
            Verdict::Fatal(String::new()),
            Verdict::Done(None),
        ] {
            let number = begin(&hand);
            assert!(hand.end(number, verdict));
        }
        let numbers =
            |outcomes: Vec<Outcome>| outcomes.iter().map(|it| it.number).collect::<Vec<_>>();
        assert_eq!(numbers(hand.take_done(2)), [1, 3]);
        assert_eq!(numbers(hand.take_done(2)), [5]);
        assert_eq!(numbers(hand.take_outcomes(9)), [2, 4]);
    }

    #[tokio::test]
    async fn in_the_end_what_goes_on_is_given_back() {
        let hand = Hand::default();
        let ended = begin(&hand);
        begin(&hand);
        hand.end(ended, Verdict::Done(None));
        hand.refuse(job());
        hand.give_back_all();
        hand.give_back_all();
        let ends: Vec<End> = hand.take_outcomes(9).into_iter().map(|it| it.end).collect();
        assert_eq!(
            ends,
            [End::Judged(Verdict::Done(None)), End::Back, End::Back]
        );
        assert!(hand.state().jobs.values().all(|held| held.call.is_none()));
    }

    #[tokio::test]
    async fn a_call_that_broke_off_is_not_renewed() {
        let hand = Hand::default();
        hand.begin(job(), Count::default().one(), |_| {
            tokio::spawn(async { panic!("a fault of ours") }).abort_handle()
        });
        while !hand.all().is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(hand.is_empty());
    }
}
