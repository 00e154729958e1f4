//! What is in hand.

use super::delivery::{Delivered, JobKey};
use super::events::{CancelReason, Owner, Serial, Suspension};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A map by serials. They are counted by this program, so nobody can make them collide.
pub(crate) type BySerial<T> = HashMap<Serial, T, BuildHasherDefault<Scattered>>;

#[derive(Debug, Default)]
pub(crate) struct Scattered(u64);

impl Hasher for Scattered {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A delivery whose end is not decided, whose handler still runs, or whose end the server has not answered.
#[derive(Debug)]
pub(crate) struct Held {
    pub of: Arc<Delivered>,
    pub link: usize,
    pub handler: Option<usize>,
    /// Its end is not decided. The first of these decides it: its handler, a heartbeat, the expiry of its lease, or
    /// the stop.
    pub is_open: bool,
    /// Its handler runs.
    pub is_running: bool,
    /// Its link knows it by its job, so a second delivery of the job does not begin.
    pub is_in_hand: bool,
    /// Its handler suspended the job. It is sent when the handler has ended: else the job could be delivered again
    /// while the handler still runs here.
    pub suspension: Option<Suspension>,
    /// The server has not confirmed how it ended.
    pub is_unanswered: bool,
    pub told: Option<CancelReason>,
    pub lease: Duration,
    /// When its lease expires by this program's clock; `None`: that is not watched.
    pub until: Option<Instant>,
    pub since: Instant,
    /// When its handler's timeout is over.
    pub limit: Option<Instant>,
    /// A running `DQ.BTOUCH` names it.
    pub is_heard_of: bool,
    pub progress: Progress,
}

#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub text: Option<String>,
    pub sent: Option<Instant>,
    /// A report that was sent and has no reply: the end, on another connection, may overtake it.
    pub on_its_way: Option<String>,
}

/// The jobs whose handlers run in this process, in any worker. A job that is delivered again meanwhile, as its lease
/// expired unnoticed in a failover, is not started a second time.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<Vec<(String, Jobs)>>);

type Jobs = HashMap<JobKey, Owner>;

/// A server whose jobs run in this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(usize);

impl Running {
    fn all(&self) -> std::sync::MutexGuard<'_, Vec<(String, Jobs)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn place(&self, name: &str) -> Place {
        let mut all = self.all();
        let known = all.iter().position(|(known, _)| known == name);
        Place(known.unwrap_or_else(|| {
            all.push((name.to_owned(), Jobs::new()));
            all.len() - 1
        }))
    }

    /// Records that a job runs; false if it runs already.
    pub fn begin(&self, place: Place, job: &JobKey, owner: Owner) -> bool {
        let mut all = self.all();
        *all[place.0].1.entry(job.clone()).or_insert(owner) == owner
    }

    pub fn end(&self, place: Place, job: &JobKey) {
        self.all()[place.0].1.remove(job);
    }

    pub fn other(&self, place: Place, job: &JobKey) -> Option<Owner> {
        self.all()[place.0].1.get(job).copied()
    }
}
