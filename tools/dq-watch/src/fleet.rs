//! The reading threads, one for each node.

use std::collections::HashMap;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dq_connect::scope::Scope;
use dq_connect::target::Target;

use crate::read::node::Node;
use crate::read::{Report, Request};

/// What the fleet is asked to do with the threads of its nodes.
#[derive(Clone, Debug)]
pub enum Out {
    To(String, Request),
    /// Another node of the cluster, by its address.
    Start(String),
    Stop(String),
}

/// Is called with each report of a node.
type Tell = Arc<dyn Fn(Report) + Send + Sync>;

pub struct Fleet {
    first: Target,
    scope: Scope,
    tell: Tell,
    nodes: HashMap<String, Sender<Request>>,
    stopped: bool,
}

impl Fleet {
    /// Starts with a thread for the first node.
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

    /// Sets how all nodes are reached from now on.
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

    /// Sets the interval between readings, of all nodes and of those started later.
    pub fn pace(&mut self, interval: Duration) {
        self.scope.interval = interval;
        for sender in self.nodes.values() {
            let _ = sender.send(Request::Pace(interval));
        }
    }

    /// Stops all threads: nothing is read or reported any more.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.tell = Arc::new(|_| ());
        for (_, sender) in self.nodes.drain() {
            let _ = sender.send(Request::Stop);
        }
    }

    pub fn carry_out(&mut self, out: Out) {
        match out {
            // A thread that has ended takes no request; nothing is lost by that.
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
