//! A client as applications have it. In a cluster it learns from MOVED, follows ASK, and tries again
//! where the cluster says so; under Sentinel it asks who is master; and after a lost connection it
//! finds its way anew.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use redis::{Cmd, Value};

use crate::support::{poll, Client, Socket, PATIENCE};

/// What is answered while slots or masters change.
const PASSING: [&str; 5] = [
    "TRYAGAIN",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "NOREPLICAS",
];

/// Who knows where the data are.
#[derive(Clone)]
pub enum Guides {
    /// The nodes of a cluster.
    Nodes(Vec<u16>),
    /// Sentinels, of a master by that name.
    Sentinels(Vec<u16>, &'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Answer(Value),
    /// The connection was lost: nobody knows whether the command was carried out.
    Unknown,
}

pub struct Router {
    guides: Guides,
    /// Who is asked next.
    next: usize,
    connections: HashMap<u16, Client>,
    /// Where the keys of a hash tag were served last.
    homes: HashMap<String, u16>,
    /// Redirections followed so far.
    pub moved: usize,
    pub asked: usize,
}

impl Router {
    pub fn new(guides: &Guides) -> Router {
        Router {
            guides: guides.clone(),
            next: 0,
            connections: HashMap::new(),
            homes: HashMap::new(),
            moved: 0,
            asked: 0,
        }
    }

    /// The answer of the node that serves the key. An error that is not the cluster's own fails the test.
    #[track_caller]
    pub fn call(&mut self, key: &str, command: &Cmd) -> Outcome {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let is_known = self.homes.contains_key(key);
            let answer = self
                .locate(key)
                .and_then(|port| Some((port, self.ask(port, command, false)?)));
            let Some((port, result)) = answer else {
                self.homes.remove(key);
                if is_known {
                    return Outcome::Unknown;
                }
                pause();
                continue;
            };
            match result {
                Ok(value) => {
                    self.homes.insert(key.to_owned(), port);
                    return Outcome::Answer(value);
                }
                Err(error) => match self.redirected(key, command, &error) {
                    Some(outcome) => return outcome,
                    None => continue,
                },
            }
        }
        panic!("nobody serves {key} within {PATIENCE:?}")
    }

    /// Where the key is served, or somebody who will say so.
    fn locate(&mut self, key: &str) -> Option<u16> {
        if let Some(&port) = self.homes.get(key) {
            return Some(port);
        }
        self.next += 1;
        match self.guides.clone() {
            Guides::Nodes(ports) => Some(ports[self.next % ports.len()]),
            Guides::Sentinels(ports, name) => {
                let mut question = redis::cmd("SENTINEL");
                question.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
                let sentinel = ports[self.next % ports.len()];
                let address = self.ask(sentinel, &question, false)?.ok()?;
                let (_, port): (String, u16) = redis::from_redis_value(address).ok()?;
                Some(port)
            }
        }
    }

    /// What an error means: another node, or the same question again.
    #[track_caller]
    fn redirected(&mut self, key: &str, command: &Cmd, error: &str) -> Option<Outcome> {
        let (code, rest) = error.split_once(' ').unwrap_or((error, ""));
        let address = rest
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok());
        match (code, address) {
            ("MOVED", Some(port)) => {
                self.moved += 1;
                self.homes.insert(key.to_owned(), port);
                None
            }
            ("ASK", Some(port)) => {
                self.asked += 1;
                match self.ask(port, command, true) {
                    Some(Ok(value)) => Some(Outcome::Answer(value)),
                    Some(Err(_)) => {
                        pause();
                        None
                    }
                    None => Some(Outcome::Unknown),
                }
            }
            ("READONLY" | "UNBLOCKED", _) => {
                self.homes.remove(key);
                pause();
                None
            }
            _ if PASSING.contains(&code) => {
                pause();
                None
            }
            _ => panic!("{key}: {error}"),
        }
    }

    /// The answer of one node, an error reply as text; None where there is none.
    fn ask(&mut self, port: u16, command: &Cmd, asking: bool) -> Option<Result<Value, String>> {
        let client = match self.connections.entry(port) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert(connect(port)?),
        };
        if asking && client.call_raw(&redis::cmd("ASKING")).is_err() {
            self.connections.remove(&port);
            return None;
        }
        match client.call_raw(command) {
            Ok(Value::ServerError(error)) => Some(Err(format!(
                "{} {}",
                error.code(),
                error.details().unwrap_or_default()
            ))),
            Ok(value) => Some(Ok(value)),
            Err(_) => {
                self.connections.remove(&port);
                None
            }
        }
    }
}

fn connect(port: u16) -> Option<Client> {
    Socket::tcp(port).ok().map(Client::new)
}

/// Between two attempts.
fn pause() {
    poll(Duration::from_millis(20), || None::<()>);
}
