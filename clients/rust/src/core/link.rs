//! A set of connections, the queues that they reach, and what was sent on each.

use super::delivery::JobKey;
use super::events::{Name, Serial, Turn};
use super::fetch::{Fetches, SERVER_TTR};
use super::held::Place;
use super::idle::Idle;
use super::outcome::Outcome;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const SHORTEST_BEAT: Duration = Duration::from_millis(5);
const LONGEST_ANSWER: Duration = Duration::from_secs(5);
const SHORTEST_ANSWER: Duration = Duration::from_millis(200);

/// What a reply belongs to.
#[derive(Debug)]
pub(super) enum Asked {
    /// Of an outcome with several commands, one that is not the last.
    Part,
    Outcome(Outcome),
    /// Of jobs that are done without a result.
    Acks(Vec<Outcome>),
    Fetch {
        claim: usize,
    },
    /// With the leases' new length, if that changes.
    Touch {
        all: Vec<Serial>,
        sent: Instant,
        length: Option<Duration>,
    },
    GiveBack(Vec<Serial>),
    Progress(Serial),
    /// Why the last delivery ended.
    Reason(Serial),
    /// Why jobs of this key do not come.
    Explained(Arc<[u8]>),
    Unblock,
    /// Nothing: the connection is only opened.
    Opening,
    Listen {
        all: Vec<Serial>,
        sent: Instant,
    },
}

/// A connection.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What has no reply yet, in order.
    pub asked: VecDeque<Asked>,
    pub rests_until: Option<Instant>,
    pub troubles: u32,
    /// The server's number of the connection.
    pub number: Option<u64>,
    /// The server's address; `None`: it is not connected.
    pub server: Option<Arc<str>>,
    pub turn: Turn,
}

impl State {
    pub fn is_free(&self, now: Instant) -> bool {
        self.asked.is_empty() && self.rests_until.is_none_or(|until| until <= now)
    }

    pub fn is_fetching(&self) -> bool {
        self.asked
            .iter()
            .any(|asked| matches!(asked, Asked::Fetch { .. }))
    }
}

#[derive(Debug)]
pub(super) struct Link {
    pub place: Place,
    pub fetches: Fetches,
    /// The jobs in hand: a second delivery of them does not begin.
    pub in_hand: HashMap<JobKey, Serial>,
    pub waiting: State,
    pub control: State,
    pub listeners: Vec<Listener>,
    pub outcomes: VecDeque<Outcome>,
    /// Until when outcomes wait for a fetch to take them along.
    pub gathers_until: Option<Instant>,
    pub schedule: Schedule,
    pub relets: Vec<(Serial, Duration)>,
    /// Deliveries to give back together, uncounted.
    pub returns: Vec<Serial>,
    /// Deliveries whose reply may have lain unread as long as their leases: the server is asked before they begin.
    pub doubtful: Vec<Serial>,
    /// Deliveries that may have killed a worker: the server is asked before they begin.
    pub suspects: Vec<Serial>,
    /// The fetch is to be ended, as another link wants its places.
    pub is_recalled: bool,
    pub is_recallable: bool,
    /// When `DQ.UNBLOCK` may be sent for the fetch again.
    pub unblocks_at: Option<Instant>,
    pub idle: Idle,
    /// The last fetch returned nothing; for a drained worker.
    pub is_empty: bool,
    pub has_finished: bool,
}

impl Link {
    pub fn new(place: Place, fetches: Fetches) -> Self {
        let listeners = Listener::of(fetches.members.len());
        Link {
            place,
            fetches,
            in_hand: HashMap::new(),
            waiting: State::default(),
            control: State::default(),
            listeners,
            outcomes: VecDeque::new(),
            gathers_until: None,
            schedule: Schedule::default(),
            relets: Vec::new(),
            returns: Vec::new(),
            doubtful: Vec::new(),
            suspects: Vec::new(),
            is_recalled: false,
            is_recallable: true,
            unblocks_at: None,
            idle: Idle::default(),
            is_empty: false,
            has_finished: false,
        }
    }

    pub fn state(&mut self, name: Name) -> &mut State {
        match name {
            Name::Waiting => &mut self.waiting,
            Name::Control => &mut self.control,
            Name::Listener(at) => &mut self.listeners[at].state,
        }
    }

    /// Whether no outcome is left to send or to be answered.
    pub fn has_told_all(&self) -> bool {
        let is_outcome = |asked: &Asked| {
            matches!(
                asked,
                Asked::Outcome(_) | Asked::Acks(_) | Asked::Part | Asked::GiveBack(_)
            )
        };
        let mut asked = self.waiting.asked.iter().chain(&self.control.asked);
        self.outcomes.is_empty() && self.returns.is_empty() && !asked.any(is_outcome)
    }
}

/// A link of more keys has no listeners.
const MOST_LISTENERS: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Listener {
    pub state: State,
    /// The server does not have the command, or forbids it: only heartbeats remain.
    pub is_off: bool,
    /// When to end the running `DQ.BTOUCH`, which lacks jobs.
    pub unblocks_at: Option<Instant>,
    pub last: Option<Instant>,
}

impl Listener {
    /// A link of many keys has no listeners: only heartbeats.
    pub fn of(keys: usize) -> Vec<Listener> {
        let count = if keys > MOST_LISTENERS { 0 } else { keys };
        (0..count).map(|_| Listener::default()).collect()
    }

    pub fn takes_unblock(&mut self, now: Instant) -> bool {
        let is_due = self.unblocks_at.is_some_and(|at| at <= now);
        if is_due {
            (self.unblocks_at, self.last) = (None, Some(now));
        }
        is_due
    }
}

/// When a link's leases are looked after.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The shortest lease in hand at the last heartbeat, and since.
    pub shortest: Option<Duration>,
    /// The next heartbeat; `None`: nothing is in hand.
    pub beat: Option<Instant>,
    /// A heartbeat was asked for at once.
    pub is_asked: bool,
    /// No lease expires before this.
    pub ends: Option<Instant>,
    /// When the listeners are to be checked.
    pub listener: Option<Instant>,
    /// When progress is to be sent.
    pub progress: Option<Instant>,
}

impl Schedule {
    /// How long to wait for the reply to a command.
    pub fn patience(&self) -> Duration {
        self.shortest.map_or(LONGEST_ANSWER, |shortest| {
            (shortest / 3).clamp(SHORTEST_ANSWER, LONGEST_ANSWER)
        })
    }

    pub fn interval(&self) -> Duration {
        (self.shortest.unwrap_or(SERVER_TTR) / 3).max(SHORTEST_BEAT)
    }

    /// How often this program checks that it was not stopped, while a fetch waits.
    pub fn pulse(&self, usual: Duration) -> Duration {
        (usual.min(self.shortest.unwrap_or(usual)) / 6)
            .clamp(Duration::from_millis(50), Duration::from_secs(1))
    }
}
