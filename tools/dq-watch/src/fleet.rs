//! The threads that read, one for each node.

use std::collections::HashMap;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::read::node::Node;
use crate::read::target::Target;
use crate::read::{Report, Request, Scope};

/// What is to be done for those who look.
#[derive(Clone, Debug)]
pub enum Out {
    To(String, Request),
    /// Another node of the cluster.
    Start(String),
    Stop(String),
}

/// Is told what the nodes tell.
type Tell = Arc<dyn Fn(Report) + Send + Sync>;

pub struct Fleet {
    first: Target,
    scope: Scope,
    tell: Tell,
    nodes: HashMap<String, Sender<Request>>,
    stopped: bool,
}

impl Fleet {
    /// The first node is read from now on.
    pub fn start(
        first: Target,
        scope: Scope,
        tell: impl Fn(Report) + Send + Sync + 'static,
    ) -> Fleet {
        let mut fleet = Fleet {
            scope,
            tell: Arc::new(tell),
            nodes: HashMap::new(),
            stopped: false,
            first: first.clone(),
        };
        fleet.read(first);
        fleet
    }

    fn read(&mut self, target: Target) {
        let (sender, requests) = channel();
        let name = target.name();
        let tell = Arc::clone(&self.tell);
        let node = Node::new(target, self.scope.clone(), requests, move |report| {
            tell(report)
        });
        thread::spawn(move || node.run());
        self.nodes.insert(name, sender);
    }

    /// All nodes are reached in this way from now on.
    pub fn set_target(&mut self, first: Target) {
        for (name, sender) in &self.nodes {
            let target = match *name == first.name() {
                true => Some(first.clone()),
                false => first.at(name),
            };
            if let Some(target) = target {
                let _ = sender.send(Request::Target(Box::new(target)));
            }
        }
        self.first = first;
    }

    /// To all nodes, and those that come.
    pub fn pace(&mut self, interval: Duration) {
        self.scope.interval = interval;
        for sender in self.nodes.values() {
            let _ = sender.send(Request::Pace(interval));
        }
    }

    /// Nothing is read any more, and nothing told.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.tell = Arc::new(|_| ());
        for (_, sender) in self.nodes.drain() {
            let _ = sender.send(Request::Stop);
        }
    }

    pub fn carry_out(&mut self, out: Out) {
        match out {
            // A thread that has ended takes nothing any more; that is no loss.
            Out::To(node, request) => {
                if let Some(sender) = self.nodes.get(&node) {
                    let _ = sender.send(request);
                }
            }
            Out::Start(address) => {
                if let Some(target) = self.first.at(&address).filter(|_| !self.stopped) {
                    self.read(target);
                }
            }
            Out::Stop(node) => {
                if let Some(sender) = self.nodes.remove(&node) {
                    let _ = sender.send(Request::Stop);
                }
            }
        }
    }
}
