//! The servers: connects when it is asked, follows a cluster to the node that has a queue, and finds the queues.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use super::acts::{Act, Done};
use super::cluster::Topology;
use super::why::{self, Of};
use super::{node, reply};
use crate::model::clock;
use crate::model::overall::ServerInfo;
use crate::model::QueueKey;
use crate::text::escape;
use crate::text::why::Why;
use dq_connect::link::Link;
use dq_connect::scope::{Dbs, Scope};
use dq_connect::target::Target;
use redis::{Cmd, Value};

/// A search ends after this time, complete or not: a server may hold a hundred million keys that are no queues.
const SEARCH: Duration = Duration::from_secs(3);
const SCAN_COUNT: usize = 1000;

/// The node that the arguments name.
const FIRST: &str = "";

pub struct Reach {
    target: Target,
    pub scope: Scope,
    links: HashMap<String, Link>,
}

impl Reach {
    pub fn new(target: Target, scope: Scope) -> Reach {
        Reach {
            target,
            scope,
            links: HashMap::new(),
        }
    }

    /// The database of a queue of which none is named.
    pub fn db(&self) -> u32 {
        match &self.scope.dbs {
            Dbs::These(dbs) if !dbs.contains(&self.target.db()) => dbs[0],
            _ => self.target.db(),
        }
    }

    /// Whether the arguments let this queue be seen at all.
    pub fn allowed(&self, key: QueueKey) -> Result<QueueKey, String> {
        match self.scope.has(key.db, &key.name) {
            true => Ok(key),
            false => Err("this queue is not one of those that --queue and -n name".to_owned()),
        }
    }

    /// Why a queue or a job is not delivered, with all that its words need, and what time it is there. `None`: no such
    /// queue or job.
    pub fn explain(&mut self, key: &QueueKey, of: Of<'_>) -> Result<(Option<Why>, i64), String> {
        let mut commands = why::commands(&key.name, of);
        commands.push(redis::cmd("DQ.CFGGET").arg(&key.name).to_owned());
        let (mut values, now) = self.look(key, commands)?;
        let settings = values.pop().and_then(|value| reply::settings(&value));
        let more = why::more(&key.name, &values);
        values.extend(self.look(key, more)?.0);
        let said = why::read(&values, of, settings.as_ref());
        Ok((said.map_err(|error| escape::line(error.as_bytes()))?, now))
    }

    /// Read-only commands about one queue, answered by the node that has it. With the server's time, or this
    /// machine's where the user may not ask.
    pub fn look(
        &mut self,
        key: &QueueKey,
        commands: Vec<Cmd>,
    ) -> Result<(Vec<Value>, i64), String> {
        if commands.is_empty() {
            return Ok((Vec::new(), clock::now_ms()));
        }
        let mut node = FIRST.to_owned();
        for _ in 0..3 {
            let all = commands.iter().cloned().chain([redis::cmd("TIME")]);
            let mut values = self.ask(&node, all.map(|command| (key.db, command)).collect())?;
            let now = values.pop().and_then(|time| reply::time_ms(&time));
            let error = values.first().and_then(reply::error);
            match error.as_deref().and_then(reply::moved_to) {
                Some(address) => node = address.to_owned(),
                None => return Ok((values, now.unwrap_or_else(clock::now_ms))),
            }
        }
        Err("the cluster is moving this queue; try again".to_owned())
    }

    /// Changes something, once: after a lost connection it is not known what was done.
    pub fn act(&mut self, key: &QueueKey, act: &Act) -> Result<Result<Done, String>, String> {
        let mut node = FIRST.to_owned();
        for _ in 0..3 {
            // Connects anew if the connection is lost by now, where nothing is done yet.
            self.ask(&node, vec![(key.db, redis::cmd("PING"))])?;
            let link = self.links.get_mut(&node).ok_or("not connected")?;
            let said = act
                .carry_out(link, key)
                .inspect_err(|_| drop(self.links.remove(&node)))?;
            match said.as_ref().err().and_then(|error| reply::moved_to(error)) {
                Some(address) => node = address.to_owned(),
                None => return Ok(said),
            }
        }
        Err("the cluster is moving this queue; try again".to_owned())
    }

    /// A connection that was kept may be lost by now: asks once more over a new one.
    fn ask(&mut self, node: &str, commands: Vec<(u32, Cmd)>) -> Result<Vec<Value>, String> {
        if let Some(link) = self.links.get_mut(node) {
            if let Ok(values) = link.look(commands.clone()) {
                return Ok(values);
            }
            self.links.remove(node);
        }
        let target = match node {
            FIRST => self.target.clone(),
            address => self.target.at(address).ok_or("a node without an address")?,
        };
        let link = target.connect();
        let mut link = link.map_err(|error| format!("{}: {error}", target.name()))?;
        let values = link.look(commands)?;
        self.links.insert(node.to_owned(), link);
        Ok(values)
    }

    // --- Which queues there are

    /// The queues that may be seen, by name, and whether those are all.
    pub fn queues(&mut self) -> Result<(BTreeSet<QueueKey>, bool), String> {
        if let (Dbs::These(dbs), false) = (&self.scope.dbs, self.scope.queues.is_empty()) {
            let of = |db: &u32| {
                self.scope
                    .queues
                    .iter()
                    .map(|name| QueueKey::new(*db, name.clone()))
                    .collect::<Vec<_>>()
            };
            return Ok((dbs.iter().flat_map(of).collect(), true));
        }
        let (mut found, until) = (BTreeSet::new(), Instant::now() + SEARCH);
        for node in self.nodes()? {
            for db in self.dbs(&node)? {
                if !self.search(&node, db, until, &mut found)? {
                    return Ok((found, false));
                }
            }
        }
        Ok((found, true))
    }

    fn search(
        &mut self,
        node: &str,
        db: u32,
        until: Instant,
        found: &mut BTreeSet<QueueKey>,
    ) -> Result<bool, String> {
        let mut cursor = b"0".to_vec();
        while Instant::now() < until {
            let value = self
                .ask(node, vec![node::scan(&(db, cursor), SCAN_COUNT)])?
                .remove(0);
            let Some([next, names]) = reply::array(&value) else {
                return Err(reply::error(&value).unwrap_or_default());
            };
            let names = reply::array(names)
                .unwrap_or_default()
                .iter()
                .filter_map(reply::bytes);
            found.extend(names.map(|name| QueueKey::new(db, name)));
            cursor = reply::bytes(next).unwrap_or_default();
            if cursor == b"0" {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// All masters of a cluster, or the one server.
    fn nodes(&mut self) -> Result<Vec<String>, String> {
        let is_cluster = match self.scope.cluster {
            Some(said) => said,
            None => self.info(FIRST)?.cluster,
        };
        if !is_cluster {
            return Ok(vec![FIRST.to_owned()]);
        }
        let nodes = redis::cmd("CLUSTER").arg("NODES").to_owned();
        let value = self.ask(FIRST, vec![(0, nodes)])?.remove(0);
        match reply::text(&value) {
            Some(text) => Ok(Topology::parse(&text, &self.target.host()).masters),
            None => Err(reply::error(&value).unwrap_or_default()),
        }
    }

    fn dbs(&mut self, node: &str) -> Result<Vec<u32>, String> {
        if let Dbs::These(dbs) = &self.scope.dbs {
            return Ok(dbs.clone());
        }
        let info = self.info(node)?;
        Ok(info.dbs.iter().map(|(db, _)| *db).collect())
    }

    fn info(&mut self, node: &str) -> Result<ServerInfo, String> {
        let value = self
            .ask(node, vec![(self.db(), node::info_command())])?
            .remove(0);
        match reply::text(&value) {
            Some(text) => Ok(ServerInfo::parse(&text)),
            None => Err(reply::error(&value).unwrap_or_default()),
        }
    }
}
