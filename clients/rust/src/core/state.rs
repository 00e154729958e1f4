//! The state of a worker.

use super::events::{Action, Said, Serial};
use super::fetch::{Fetches, Lease, Member, Rng};
use super::held::{BySerial, Held, Running};
use super::link::Link;
use super::scheduler::{Isolation, LinkScheduler};
use super::settings::{Settings, Shape};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much longer than its wait a fetch may take, on a slow network.
pub(super) const SLACK: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) enum Phase {
    Working,
    Draining {
        until: Instant,
    },
    Telling {
        until: Instant,
        last: Instant,
    },
    /// Until `last`, if the server answers late how jobs ended: it may be paused.
    Finishing {
        by: Instant,
        last: Instant,
    },
    Finished,
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
    pub(super) scheduler: LinkScheduler,
    pub(super) at_work: usize,
    pub(super) claimed: usize,
    pub(super) phase: Phase,
    /// Why the worker cannot run.
    pub(super) error: Option<crate::error::Error>,
    pub(super) gave_back: usize,
    pub(super) said: String,
    /// What is said once.
    pub(super) said_once: Vec<std::mem::Discriminant<Said>>,
    /// How many deliveries wait for the reason of the last one's end.
    pub(super) suspects: usize,
    /// The job that waits until all ends are told, or that runs alone: nothing is fetched.
    pub(super) alone: Option<Serial>,
    /// Jobs that are to run alone and were given back, until the server has confirmed it.
    pub(super) returning: Vec<Serial>,
    pub(super) isolation: Isolation,
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
            let fetches = Fetches::new(members, is_weighted, settings.fill());
            Link::new(running.place(&place), fetches)
        };
        let links: Vec<Link> = places.into_iter().map(link).collect();
        Core {
            number,
            lease: Lease::of(&settings.shapes, settings.lease),
            size,
            scheduler: LinkScheduler::new(links.len(), now),
            links,
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
            returning: Vec::new(),
            isolation: Isolation::new(settings.drain),
            settings,
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
            .map(|_| self.awake + self.settings.wait.max(interval) + SLACK)
    }

    /// Whether handlers run.
    pub fn is_at_work(&self) -> bool {
        self.at_work > 0
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

    /// Takes a delivery out of those in hand: the job may begin again.
    pub(super) fn leave(&mut self, serial: Serial) {
        let Some(held) = self.held.get_mut(&serial) else {
            return;
        };
        if std::mem::take(&mut held.is_in_hand) {
            self.links[held.link].in_hand.remove(&held.of.job);
        }
    }
}
