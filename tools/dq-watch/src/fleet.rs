//! The threads that read, one for each node.

use std::collections::HashMap;
use std::sync::mpsc::{channel, Sender};
use std::thread;

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

pub struct Fleet<T> {
    first: Target,
    scope: Scope,
    tell: T,
    nodes: HashMap<String, Sender<Request>>,
}

impl<T: Fn(Report) + Clone + Send + 'static> Fleet<T> {
    /// The first node is read from now on.
    pub fn start(first: Target, scope: Scope, tell: T) -> Fleet<T> {
        let mut fleet = Fleet {
            scope,
            tell,
            nodes: HashMap::new(),
            first: first.clone(),
        };
        fleet.read(first);
        fleet
    }

    fn read(&mut self, target: Target) {
        let (sender, requests) = channel();
        let name = target.name();
        let node = Node::new(target, self.scope.clone(), requests, self.tell.clone());
        thread::spawn(move || node.run());
        self.nodes.insert(name, sender);
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
                if let Some(target) = self.first.at(&address) {
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
