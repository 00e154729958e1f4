//! Reads the servers: a thread for each node, which sends one pipeline per interval and reports the replies. The screen
//! never waits for a server.

pub mod acts;
pub mod blocked;
mod cli;
pub mod cluster;
pub mod deaths;
pub mod detail;
pub mod known;
pub mod link;
pub mod node;
pub mod records;
pub mod reply;
pub mod said;
pub mod target;

use std::sync::Weak;
use std::time::{Duration, Instant};

use crate::model::overall::ServerInfo;
use crate::model::stats::Stats;
use crate::model::QueueKey;
use acts::Act;
use blocked::{Doomed, Dying};
use cluster::Topology;
use detail::{Detail, Found};
use target::Target;

/// Which databases are searched for queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dbs {
    These(Vec<u32>),
    /// Those that have keys.
    All,
}

/// What is read, and how often; the same for all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub dbs: Dbs,
    pub interval: Duration,
    /// None: as the server says.
    pub cluster: Option<bool>,
    /// If not empty, only these are read, and nothing is searched for.
    pub queues: Vec<Vec<u8>>,
}

impl Scope {
    /// Whether that queue is one of those that are read.
    pub fn has(&self, key: &QueueKey) -> bool {
        let of_db = match &self.dbs {
            Dbs::All => true,
            Dbs::These(dbs) => dbs.contains(&key.db),
        };
        of_db && (self.queues.is_empty() || self.queues.contains(&key.name))
    }

    /// Whether one of these databases may have queues that are not read.
    pub fn leaves_out(&self, mut dbs: impl Iterator<Item = u32>) -> bool {
        let is_left_out = |db| match &self.dbs {
            Dbs::All => false,
            Dbs::These(these) => !these.contains(&db),
        };
        !self.queues.is_empty() || dbs.any(is_left_out)
    }
}

impl Default for Scope {
    fn default() -> Scope {
        Scope {
            dbs: Dbs::These(vec![0]),
            interval: Duration::from_secs(1),
            cluster: None,
            queues: Vec::new(),
        }
    }
}

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
        dying: Result<Dying, String>,
    },
    Topology(Topology),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_has_its_databases_and_queues() {
        let of = |dbs, queues: &[&str]| Scope {
            dbs,
            queues: queues.iter().map(|name| name.as_bytes().to_vec()).collect(),
            ..Scope::default()
        };
        let key = |db, name: &str| QueueKey::new(db, name);
        let all = of(Dbs::All, &[]);
        assert!(all.has(&key(7, "q")));
        let two = of(Dbs::These(vec![0, 3]), &[]);
        assert!(two.has(&key(3, "q")) && !two.has(&key(1, "q")));
        let one = of(Dbs::These(vec![0]), &["orders"]);
        assert!(one.has(&key(0, "orders")));
        assert!(!one.has(&key(0, "order")) && !one.has(&key(1, "orders")));
    }
}
