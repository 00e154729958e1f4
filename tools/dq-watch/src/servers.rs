//! All servers that are read, and what is known of their queues.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::fleet::Out;
use crate::model::board::Board;
use crate::model::column::Now;
use crate::model::overall::{Figures, Overall, ServerInfo};
use crate::model::QueueKey;
use crate::read::cluster::Topology;
use crate::read::{Heard, News, Report, Request};

pub struct Servers {
    pub nodes: BTreeMap<String, NodeState>,
    pub board: Board,
    pub outbox: Vec<Out>,
    interval: Duration,
}

/// What is known of a node.
#[derive(Default)]
pub struct NodeState {
    pub figures: Option<Figures>,
    /// Why there is no connection; None if there is one.
    pub down: Option<String>,
    pub trouble: String,
    pub topology: Option<Topology>,
    /// Whether all its databases have been searched once.
    pub complete: bool,
    /// When they were last searched, since that: what is found from then on is new.
    searched: Option<Instant>,
}

impl NodeState {
    /// Whether its queues count. A cluster's replica has those of its master: they would count twice.
    pub fn counts(&self) -> bool {
        let topology = self.topology.as_ref();
        topology.is_none_or(|topology| topology.i_am_master)
    }
}

impl Servers {
    pub fn new(first_node: &str, interval: Duration) -> Servers {
        let nodes = [(first_node.to_owned(), NodeState::default())];
        Servers {
            nodes: nodes.into(),
            board: Board::default(),
            outbox: Vec::new(),
            interval,
        }
    }

    /// The clocks for ages: the servers', or this machine's if no server reports its own.
    pub fn now(&self) -> Now {
        let here = Instant::now();
        let figures = self.nodes.values().filter_map(|node| node.figures.as_ref());
        let server_ms = figures.filter_map(|it| it.clock_ms(here)).next();
        Now {
            here,
            server_ms: server_ms.unwrap_or_else(|| {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                since.map_or(0, |since| since.as_millis() as i64)
            }),
        }
    }

    pub fn overall(&self) -> Overall {
        let counted = self.nodes.values().filter(|node| node.counts());
        Overall::of(counted.filter_map(|node| node.figures.as_ref()))
    }

    /// Whether a node is down: its figures are then those of its last report.
    pub fn is_down(&self, node: &str) -> bool {
        self.nodes.get(node).is_none_or(|node| node.down.is_some())
    }

    /// The node that has this name or, as the cluster has it, this address.
    pub fn node_at(&self, address: &str) -> Option<String> {
        let is = |(name, node): &(&String, &NodeState)| {
            name.as_str() == address || node.topology.as_ref().is_some_and(|it| it.me == address)
        };
        self.nodes.iter().find(is).map(|(name, _)| name.clone())
    }

    /// Takes a report. Returns news for whoever asked: details, and results of actions.
    pub fn hear(&mut self, Report { node, news }: Report) -> Option<News> {
        let state = self.nodes.get_mut(&node)?; // else it was stopped meanwhile
        match &news {
            News::Down(why) => state.down = Some(why.clone()),
            // Who is not connected says so here.
            News::Acted { .. } | News::Dying { .. } => {}
            _ => state.down = None,
        }
        match news {
            News::Down(_) => {}
            News::Trouble(trouble) => state.trouble = trouble,
            News::Info { info, at } => hear_info(state, *info, at),
            News::Queues { read, at } => {
                for (key, heard) in read {
                    self.hear_queue(&node, key, heard, at);
                }
            }
            News::Scanned { found, complete } => {
                let since = state.searched.take();
                state.searched = complete.then(Instant::now);
                state.complete = complete;
                for key in found {
                    self.board.began(key, &node, since);
                }
            }
            News::Topology(topology) => self.hear_topology(&node, topology),
            other @ (News::Detail { .. }
            | News::Acted { .. }
            | News::Dying { .. }
            | News::Clients(_)) => return Some(other),
        }
        None
    }

    fn hear_queue(&mut self, node: &str, key: QueueKey, heard: Heard, at: Instant) {
        match heard {
            Heard::Figures(stats) => {
                self.board.read(&key, node, *stats, at, self.interval);
                let info = self.nodes.get(node).and_then(|it| it.figures.as_ref());
                if let (Some(row), Some(figures)) = (self.board.row_mut(&key), info) {
                    row.is_of_replica = figures.info.role == "slave";
                }
            }
            Heard::Vanished => self.board.vanished(&key, node),
            Heard::Forgotten => self.board.forget(&key, node),
            Heard::Refused(error) => self.board.refused(&key, node, error),
            Heard::Moved(address) => {
                // The other node will report it.
                if let Some(other) = self.node_at(&address).filter(|other| other != node) {
                    self.adopt(key, other);
                }
            }
        }
    }

    /// Records that this node has the queue now.
    pub fn adopt(&mut self, key: QueueKey, node: String) {
        self.board.found(key.clone(), &node);
        self.outbox.push(Out::To(node, Request::Adopt(key)));
    }

    /// Starts to read new masters; stops to read nodes that are down and no longer masters.
    fn hear_topology(&mut self, node: &str, topology: Topology) {
        if !topology.i_am_master {
            self.board.forget_node(node);
        }
        let masters = topology.masters.clone();
        if let Some(state) = self.nodes.get_mut(node) {
            state.topology = Some(topology);
        }
        for address in &masters {
            if self.node_at(address).is_none() {
                self.nodes.insert(address.clone(), NodeState::default());
                self.outbox.push(Out::Start(address.clone()));
            }
        }
        let listed = |name: &String| {
            masters
                .iter()
                .any(|it| self.node_at(it).as_ref() == Some(name))
        };
        let lost: Vec<String> = self
            .nodes
            .iter()
            .filter(|(name, state)| state.down.is_some() && !listed(name))
            .map(|(name, _)| name.clone())
            .collect();
        for name in lost {
            self.nodes.remove(&name);
            self.board.forget_node(&name);
            self.outbox.push(Out::Stop(name));
        }
    }
}

fn hear_info(state: &mut NodeState, info: ServerInfo, at: Instant) {
    match &mut state.figures {
        Some(figures) => figures.next(info, at),
        None => state.figures = Some(Figures::first(info, at)),
    }
}
