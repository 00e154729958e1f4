//! What follows from what a node tells.

use std::time::Instant;

use super::{App, NodeState, Out};
use crate::model::column::Tone;
use crate::model::overall::{Figures, ServerInfo};
use crate::model::QueueKey;
use crate::read::acts::Act;
use crate::read::cluster::Topology;
use crate::read::{Heard, News, Report, Request};
use crate::text::escape;

impl App {
    pub fn hear(&mut self, Report { node, news }: Report) {
        let Some(state) = self.nodes.get_mut(&node) else {
            return; // stopped meanwhile
        };
        match news {
            News::Down(why) => state.down = Some(why),
            other => {
                state.down = None;
                self.hear_from_living(&node, other);
            }
        }
        self.settle();
    }

    fn hear_from_living(&mut self, node: &str, news: News) {
        match news {
            News::Down(_) => {}
            News::Trouble(trouble) => {
                if let Some(state) = self.nodes.get_mut(node) {
                    state.trouble = trouble;
                }
            }
            News::Info { info, at } => self.hear_info(node, *info, at),
            News::Queues { read, at } => {
                for (key, heard) in read {
                    self.hear_queue(node, key, heard, at);
                }
            }
            News::Scanned { found, complete } => {
                for key in found {
                    self.board.found(key, node);
                }
                if let Some(state) = self.nodes.get_mut(node) {
                    state.complete = complete;
                }
            }
            News::Detail { detail, found } => {
                let rows = self.job_rows();
                if let Some(view) = self.queue_view_mut() {
                    if view.detail(rows).as_ref() == Some(&detail) {
                        view.take(&detail, found);
                    }
                }
            }
            News::Acted {
                key,
                act,
                said,
                moved,
            } => self.hear_acted(key, act, said, moved),
            News::Topology(topology) => self.hear_topology(node, topology),
        }
    }

    fn hear_info(&mut self, node: &str, info: ServerInfo, at: Instant) {
        let Some(state) = self.nodes.get_mut(node) else {
            return;
        };
        match &mut state.figures {
            Some(figures) => figures.next(info, at),
            None => state.figures = Some(Figures::first(info, at)),
        }
    }

    fn hear_queue(&mut self, node: &str, key: QueueKey, heard: Heard, at: Instant) {
        match heard {
            Heard::Figures(stats) => self.board.read(&key, node, *stats, at, self.interval),
            Heard::Vanished => self.board.vanished(&key, node),
            Heard::Forgotten => self.board.forget(&key, node),
            Heard::Refused(error) => self.board.refused(&key, node, error),
            Heard::Moved(address) => {
                // Where it is now will be heard from there.
                if let Some(other) = self.node_at(&address).filter(|other| other != node) {
                    self.board.found(key.clone(), &other);
                    self.outbox.push(Out::To(other, Request::Adopt(key)));
                }
            }
        }
    }

    fn hear_acted(
        &mut self,
        key: QueueKey,
        act: Act,
        said: Result<String, String>,
        moved: Option<String>,
    ) {
        let elsewhere = moved.and_then(|address| self.node_at(&address));
        let again = self.sent_on.as_ref() == Some(&(key.clone(), act.clone()));
        if let (Some(node), false) = (elsewhere, again) {
            self.board.found(key.clone(), &node);
            self.outbox
                .push(Out::To(node.clone(), Request::Adopt(key.clone())));
            self.sent_on = Some((key.clone(), act.clone()));
            self.outbox.push(Out::To(node, Request::Act { key, act }));
            return;
        }
        self.sent_on = None;
        let name = escape::name(&key.name);
        match said {
            Ok(done) => self.say(format!("{name}: {done}"), Tone::Good),
            Err(error) => self.say(
                format!("{name}: {}", escape::line(error.as_bytes())),
                Tone::Bad,
            ),
        }
    }

    /// New masters are looked at as well; nodes that are down and no longer masters are let go.
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
