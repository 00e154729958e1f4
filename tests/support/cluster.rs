//! A cluster of masters on this machine, with all slots assigned.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use redis::Value;

use super::{wait_until, Builder, Client, Server, PATIENCE};
use crate::cmd;

const SLOTS: usize = 16384;

pub struct Cluster {
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// `count` masters with the module; each gets an equal share of the slots, in the nodes' order.
    #[track_caller]
    pub fn start(count: usize) -> Cluster {
        Cluster::start_with(count, Server::builder())
    }

    #[track_caller]
    pub fn start_with(count: usize, builder: Builder) -> Cluster {
        let builder = builder.cluster().config("cluster-node-timeout", 5000);
        let nodes: Vec<Server> = (0..count).map(|_| builder.clone().start()).collect();
        for (index, node) in nodes.iter().enumerate() {
            let (first, last) = (index * SLOTS / count, (index + 1) * SLOTS / count - 1);
            let mut client = node.connect();
            // Distinct epochs from the start, so that gossip need not resolve a collision later.
            cmd!(client, "CLUSTER", "SET-CONFIG-EPOCH", index + 1);
            cmd!(client, "CLUSTER", "ADDSLOTSRANGE", first, last);
        }
        let cluster = Cluster { nodes };
        cluster.meet_all();
        cluster.wait_until_ok();
        cluster
    }

    pub fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(Server::port).collect()
    }

    fn meet_all(&self) {
        let mut client = self.nodes[0].connect();
        for node in &self.nodes[1..] {
            cmd!(client, "CLUSTER", "MEET", "127.0.0.1", node.port());
        }
    }

    /// Waits until every node knows all others, sees all slots served, and is itself ready.
    #[track_caller]
    pub fn wait_until_ok(&self) {
        let count = self.nodes.len().to_string();
        for node in &self.nodes {
            let mut client = node.connect();
            wait_until("the cluster serves", PATIENCE, || {
                let state = cluster_info(&mut client);
                let is = |field: &str, value: &str| state.get(field).is_some_and(|it| it == value);
                is("cluster_state", "ok")
                    && is("cluster_slots_ok", "16384")
                    && is("cluster_known_nodes", &count)
            });
        }
    }

    /// Adds a replica of node `master`; it becomes the last one of `nodes`.
    #[track_caller]
    pub fn add_replica(&mut self, master: usize, builder: Builder) -> usize {
        let replica = builder
            .cluster()
            .config("cluster-node-timeout", 5000)
            .start();
        self.nodes.push(replica);
        let added = self.nodes.len() - 1;
        cmd!(
            self.nodes[0].connect(),
            "CLUSTER",
            "MEET",
            "127.0.0.1",
            self.nodes[added].port()
        );
        self.wait_until_ok();
        let id = self.id(master);
        cmd!(self.nodes[added].connect(), "CLUSTER", "REPLICATE", id);
        self.nodes[added].wait_for_link();
        self.nodes[added].wait_for_offset_of(&self.nodes[master]);
        added
    }

    #[track_caller]
    pub fn id(&self, node: usize) -> String {
        text(cmd!(self.nodes[node].connect(), "CLUSTER", "MYID"))
    }

    #[track_caller]
    pub fn slot_of(&self, key: impl redis::ToRedisArgs) -> u16 {
        redis::from_redis_value(cmd!(self.nodes[0].connect(), "CLUSTER", "KEYSLOT", key))
            .expect("a slot is a number")
    }

    /// The index of the node that itself says that it serves this key.
    #[track_caller]
    pub fn node_of(&self, key: impl redis::ToRedisArgs) -> usize {
        let slot = self.slot_of(key);
        let serves = |node: &Server| {
            let nodes = text(cmd!(node.connect(), "CLUSTER", "NODES"));
            nodes
                .lines()
                .find(|line| line.contains("myself,master"))
                .is_some_and(|line| line.split(' ').skip(8).any(|range| holds(range, slot)))
        };
        self.nodes
            .iter()
            .position(serves)
            .expect("a node serves the slot")
    }

    /// Marks a slot as moving from one node to another; the test calls MIGRATE and `finish_move`.
    #[track_caller]
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let (source, target) = (self.id(from), self.id(to));
        cmd!(
            self.nodes[to].connect(),
            "CLUSTER",
            "SETSLOT",
            slot,
            "IMPORTING",
            source
        );
        cmd!(
            self.nodes[from].connect(),
            "CLUSTER",
            "SETSLOT",
            slot,
            "MIGRATING",
            target
        );
    }

    /// Assigns the slot to the target first, then tells the other nodes, as `redis-cli --cluster reshard` does. Waits
    /// until all know the new epoch: a node that does not, and takes the slot next, would claim it with a lower epoch
    /// than the node before it. It would then lose the slot again, with all its keys.
    #[track_caller]
    pub fn finish_move(&self, slot: u16, from: usize, to: usize) {
        let others = (0..self.nodes.len()).filter(|node| ![to, from].contains(node));
        let others =
            others.filter(|&node| self.nodes[node].info("replication", "role") == "master");
        self.tell_owner(slot, to, [to, from].into_iter().chain(others));
        wait_until("all nodes know the latest epoch", PATIENCE, || {
            let epoch =
                |node: &Server| cluster_info(&mut node.connect()).remove("cluster_current_epoch");
            let epochs: Vec<_> = self.nodes.iter().map(epoch).collect();
            epochs.iter().all(|epoch| *epoch == epochs[0])
        });
    }

    /// Tells these nodes, in this order, which node owns the slot.
    #[track_caller]
    pub fn tell_owner(&self, slot: u16, owner: usize, nodes: impl IntoIterator<Item = usize>) {
        let id = self.id(owner);
        for node in nodes {
            let mut client = self.nodes[node].connect();
            cmd!(client, "CLUSTER", "SETSLOT", slot, "NODE", &id);
        }
    }

    /// Moves a slot with all its keys, as `redis-cli --cluster reshard` does.
    #[track_caller]
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        let mut source = self.nodes[from].connect();
        let port = self.nodes[to].port();
        loop {
            let keys: Vec<Vec<u8>> =
                redis::from_redis_value(cmd!(source, "CLUSTER", "GETKEYSINSLOT", slot, 100))
                    .expect("keys are strings");
            if keys.is_empty() {
                break;
            }
            let (host, nothing) = ("127.0.0.1", "");
            cmd!(source, "MIGRATE", host, port, nothing, 0, 60_000, "KEYS", keys);
        }
        self.finish_move(slot, from, to);
    }
}

/// Atomic slot migration of Valkey 9.1: all at once, at the end of a copy.
impl Cluster {
    /// Whether the servers have atomic slot migration, and let modules take part.
    pub fn moves_atomically(&self) -> bool {
        let version = self.nodes[0].version();
        version.is_valkey() && version.at_least(9, 1)
    }

    #[track_caller]
    pub fn begin_atomic_move(&self, slot: u16, from: usize, to: usize) {
        let target = self.id(to);
        cmd!(
            self.nodes[from].connect(),
            "CLUSTER",
            "MIGRATESLOTS",
            "SLOTSRANGE",
            slot,
            slot,
            "NODE",
            target
        );
    }

    #[track_caller]
    pub fn move_slot_atomically(&self, slot: u16, from: usize, to: usize) {
        self.begin_atomic_move(slot, from, to);
        for node in [to, from] {
            self.wait_for_migration(node, &["success"]);
        }
    }

    /// Waits until the node's latest migration is in one of these states.
    #[track_caller]
    pub fn wait_for_migration(&self, node: usize, states: &[&str]) {
        let mut client = self.nodes[node].connect();
        wait_until(format!("the migration is {states:?}"), PATIENCE, || {
            let migrations = cmd!(client, "CLUSTER", "GETSLOTMIGRATIONS");
            let migrations: Vec<HashMap<String, String>> =
                redis::from_redis_value(migrations).expect("maps");
            // The latest migration is the first.
            let state = migrations.first().and_then(|latest| latest.get("state"));
            state.is_some_and(|state| states.contains(&state.as_str()))
        });
    }
}

/// Slot migration of Redis 8.4: the target imports the slots.
impl Cluster {
    pub fn imports_slots(&self) -> bool {
        let version = self.nodes[0].version();
        version.is_redis() && version.at_least(8, 4)
    }

    #[track_caller]
    pub fn import_slots(&self, slots: RangeInclusive<u16>, to: usize) {
        let mut client = self.nodes[to].connect();
        let (first, last) = slots.into_inner();
        let id = text(cmd!(client, "CLUSTER", "MIGRATION", "IMPORT", first, last));
        wait_until("the slots have come", PATIENCE, || {
            let tasks = cmd!(client, "CLUSTER", "MIGRATION", "STATUS", "ID", &id);
            let tasks: Vec<HashMap<String, Value>> = redis::from_redis_value(tasks).expect("maps");
            let state = tasks[0].get("state").cloned().map(text);
            state.as_deref() == Some("completed")
        });
        self.wait_until_ok();
    }
}

/// Whether a field of CLUSTER NODES after the eighth has the slot: `5461-10922`, `7000`, or `[93-<-...` (migrating).
fn holds(range: &str, slot: u16) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (first.parse::<u16>(), last.parse::<u16>()) {
        (Ok(first), Ok(last)) => (first..=last).contains(&slot),
        _ => false,
    }
}

fn cluster_info(client: &mut Client) -> HashMap<String, String> {
    text(cmd!(client, "CLUSTER", "INFO"))
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(field, value)| (field.to_owned(), value.to_owned()))
        .collect()
}

fn text(value: Value) -> String {
    redis::from_redis_value(value).expect("text")
}
