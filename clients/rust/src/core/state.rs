//! The state of a worker.

use super::delivery::{Delivered, JobKey};
use super::fetch::{Fetches, Lease, Member};
use super::link::Link;
use super::stop::Phase;
use super::turns::Turns;
use super::{Action, Serial, Suspension, Why};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The settings of a handler.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub kind: Option<String>,
    /// 0: no limit.
    pub attempts: u32,
    pub backoff: Vec<Duration>,
    pub lease: Option<Duration>,
    pub timeout: Option<Duration>,
    /// How many jobs it takes at a time; 0: one, not as a batch.
    pub batch: usize,
}

impl Shape {
    pub fn size(&self) -> usize {
        self.batch.max(1)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub shapes: Vec<Shape>,
    pub concurrency: usize,
    pub prefetch: usize,
    pub lease: Option<Duration>,
    pub drain: Duration,
    /// How long a fetch waits at the server.
    pub wait: Duration,
    /// For tests: handle all jobs that are ready, one after the other, then end.
    pub is_drained: bool,
}

/// In effect no limit, but can be added to an instant.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Settings {
    /// Limits durations: users may write `Duration::MAX` for "no limit".
    pub fn bound(&mut self) {
        let bound = |length: &mut Duration| *length = (*length).min(LONGEST);
        bound(&mut self.drain);
        bound(&mut self.wait);
        self.lease.iter_mut().for_each(bound);
        for shape in &mut self.shapes {
            shape.lease.iter_mut().for_each(bound);
        }
    }
}

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
    pub told: Option<Why>,
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

/// A delivery of a worker of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub worker: u64,
    pub serial: Serial,
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

pub(crate) struct Core {
    pub(super) number: u64,
    pub(super) settings: Settings,
    pub(super) lease: Lease,
    /// The size of the smallest batch.
    pub(super) size: usize,
    pub(super) links: Vec<Link>,
    pub(super) held: BySerial<Held>,
    pub(super) last: Serial,
    pub(super) backlog: VecDeque<Serial>,
    /// Some jobs of the backlog may be lost.
    pub(super) has_lost_backlog: bool,
    pub(super) turns: Turns,
    pub(super) at_work: usize,
    pub(super) claimed: usize,
    pub(super) phase: Phase,
    /// Why the worker cannot run.
    pub(super) error: Option<crate::error::Error>,
    pub(super) gave_back: usize,
    pub(super) said: String,
    /// What is said once.
    pub(super) said_once: Vec<std::mem::Discriminant<super::Said>>,
    /// How many deliveries wait for the reason of the last one's end.
    pub(super) suspects: usize,
    /// The job that waits until nothing else is in hand, or that runs alone: nothing is fetched.
    pub(super) alone: Option<Serial>,
    /// When this program was last known to run: later replies arrived after that.
    pub(super) awake: Instant,
    /// When a fetch or a heartbeat was last answered.
    pub(super) heard: Option<Instant>,
    pub(super) next_limit: Option<Instant>,
    pub(super) running: Arc<Running>,
    pub(super) rng: Rng,
    pub(super) actions: VecDeque<Action>,
}

impl Core {
    /// `places`: for each link a name of its server, and the keys that one `DQ.BPOP` can wait for.
    pub fn new(
        number: u64,
        settings: Settings,
        places: Vec<(String, Vec<Member>)>,
        is_weighted: bool,
        running: Arc<Running>,
        now: Instant,
    ) -> Self {
        let size = settings.shapes.iter().map(Shape::size).min().unwrap_or(1);
        let link = |(place, members): (String, _)| {
            Link::new(
                running.place(&place),
                Fetches {
                    members,
                    is_weighted,
                },
            )
        };
        let links: Vec<Link> = places.into_iter().map(link).collect();
        Core {
            number,
            lease: Lease::of(&settings.shapes, settings.lease),
            size,
            turns: Turns::new(links.len(), now),
            links,
            settings,
            held: BySerial::default(),
            last: 0,
            backlog: VecDeque::new(),
            has_lost_backlog: false,
            at_work: 0,
            claimed: 0,
            phase: Phase::Working,
            error: None,
            gave_back: 0,
            said: String::new(),
            said_once: Vec::new(),
            suspects: 0,
            alone: None,
            awake: now,
            heard: None,
            next_limit: None,
            running,
            rng: Rng(number ^ 0x9e37_79b9_7f4a_7c15),
            actions: VecDeque::new(),
        }
    }

    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Until when the worker is healthy, unless another reply comes before; `None`: it is not healthy.
    pub fn is_healthy_until(&self) -> Option<Instant> {
        let has_trouble = |link: &Link| link.waiting.troubles > 0 || link.control.troubles > 0;
        if self.links.iter().any(has_trouble) {
            return None;
        }
        let interval = self
            .links
            .iter()
            .map(|link| link.schedule.interval())
            .max()
            .unwrap_or_default();
        self.heard
            .map(|_| self.awake + self.settings.wait.max(interval) + super::crew::SLACK)
    }

    pub(super) fn is_working(&self) -> bool {
        matches!(self.phase, Phase::Working)
    }

    /// The open deliveries of a link, in the order in which they came.
    pub(super) fn open_of(&self, link: usize) -> Vec<Serial> {
        self.chosen(|held| held.link == link && held.is_open)
    }

    pub(super) fn chosen(&self, which: impl Fn(&Held) -> bool) -> Vec<Serial> {
        let mut found: Vec<Serial> = self
            .held
            .iter()
            .filter(|(_, held)| which(held))
            .map(|(serial, _)| *serial)
            .collect();
        found.sort_unstable();
        found
    }

    /// Forgets a delivery if nothing more of it can come.
    pub(super) fn forget(&mut self, serial: Serial) {
        let Some(held) = self.held.get(&serial) else {
            return;
        };
        if held.is_open || held.is_running || held.is_unanswered {
            return;
        }
        self.leave(serial);
        self.held.remove(&serial);
    }

    /// Takes a delivery out of its link's hands: the job may begin again.
    pub(super) fn leave(&mut self, serial: Serial) {
        let Some(held) = self.held.get_mut(&serial) else {
            return;
        };
        if std::mem::take(&mut held.is_in_hand) {
            self.links[held.link].hands.remove(&held.of.job);
        }
    }
}

/// Splitmix64.
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
