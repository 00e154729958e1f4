//! Reads the servers: a thread for each node, which sends one pipeline per interval and reports the replies. The screen
//! never waits for a server.

pub mod acts;
pub mod blocked;
pub mod cli;
pub mod cluster;
pub mod deaths;
pub mod detail;
pub mod known;
pub mod node;
pub mod reach;
pub mod records;
pub mod reply;
pub mod said;
pub mod shares;
pub mod stays;
pub mod why;

use std::sync::Weak;
use std::time::{Duration, Instant};

use dq_connect::target::Target;

use crate::model::overall::ServerInfo;
use crate::model::stats::Stats;
use crate::model::QueueKey;
use acts::Act;
use blocked::Doomed;
use cluster::Topology;
use deaths::Told;
use detail::{Detail, Found};

/// What the screen asks of a node.
#[derive(Clone, Debug)]
pub enum Request {
    Watch(Watch),
    Act {
        key: QueueKey,
        act: Act,
    },
    /// Which blocked jobs die with these; asked for while somebody holds the other end.
    Dying {
        key: QueueKey,
        doomed: Doomed,
        wanted: Weak<()>,
    },
    /// This queue is said to be on this node now.
    Adopt(QueueKey),
    /// The time between two readings, from now on.
    Pace(Duration),
    /// How the node is reached from now on.
    Target(Box<Target>),
    Stop,
}

/// What the screen shows of this node's queues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    pub visible: Vec<QueueKey>,
    pub detail: Option<Detail>,
    /// Whether it is wanted who is connected.
    pub clients: bool,
}

/// A node's report, with its name.
#[derive(Debug)]
pub struct Report {
    pub node: String,
    pub news: News,
}

#[derive(Debug)]
pub enum News {
    Down(String),
    /// Connected, but the server refuses to be read (loading, wrong user); empty once it no longer does.
    Trouble(String),
    Info {
        info: Box<ServerInfo>,
        at: Instant,
    },
    Queues {
        read: Vec<(QueueKey, Heard)>,
        at: Instant,
    },
    /// Newly found queues, and whether all databases have been searched once.
    Scanned {
        found: Vec<QueueKey>,
        complete: bool,
    },
    Detail {
        detail: Detail,
        found: Found,
    },
    /// The result of an action; `moved` if another node has the queue and nothing was done.
    Acted {
        key: QueueKey,
        act: Act,
        said: Result<String, String>,
        moved: Option<String>,
    },
    /// The blocked jobs that die, or why that is not known.
    Dying {
        wanted: Weak<()>,
        dying: Result<Told, String>,
    },
    Topology(Topology),
    /// Who is connected; None: that is not known.
    Clients(Option<Vec<reply::Client>>),
}

/// What a node reports of a queue.
#[derive(Debug)]
pub enum Heard {
    Figures(Box<Stats>),
    Vanished,
    /// Gone for so long that it is no longer asked for.
    Forgotten,
    Refused(String),
    /// Another node has it.
    Moved(String),
}
