//! The ways in which a queue gets to another server or process, one after the other; after each it must be the same.

use std::collections::BTreeMap;

use super::World;
use crate::probe::plain;
use crate::scene::Lines;
use crate::support::{poll, wait_until, Raw, Reply, Server, PATIENCE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Replica,
    Reload,
    /// A start from the AOF as the commands have written it.
    Aof,
    RewrittenAsRdb,
    RewrittenAsCommands,
    Promotion,
    /// The former master follows its former replica.
    Return,
}

impl Stage {
    pub const ALL: [Stage; 7] = [
        Stage::Replica,
        Stage::Reload,
        Stage::Aof,
        Stage::RewrittenAsRdb,
        Stage::RewrittenAsCommands,
        Stage::Promotion,
        Stage::Return,
    ];
}

/// Each key's digest, and a few of its jobs.
type Data = BTreeMap<String, (String, Vec<String>)>;

fn data(server: &Server) -> Data {
    let mut client = server.raw();
    let keys = client.words("KEYS *");
    let of = |key: String| {
        let digest = client.ask(&format!("DEBUG DIGEST-VALUE {key}"));
        let jobs = jobs_of(&mut client, &key);
        (key, (digest, jobs))
    };
    keys.into_iter().map(of).collect()
}

/// Sorted here, as the order of a scan is the server's.
fn jobs_of(client: &mut Raw, key: &str) -> Vec<String> {
    let Reply::Array(scanned) = client.run(&format!("DQ.SCAN {key} 0 COUNT 100")) else {
        return Vec::new();
    };
    let mut jobs: Vec<String> = match scanned.get(1) {
        Some(Reply::Array(ids)) => ids.iter().map(plain).collect(),
        _ => Vec::new(),
    };
    jobs.sort();
    jobs
}

/// Waits until the timer has expired what is overdue: the data is then the same several times in a row.
fn quiet(server: &Server) -> Data {
    let mut last = (0, data(server));
    let rest = poll(PATIENCE, || {
        let now = data(server);
        let same = if now == last.1 { last.0 + 1 } else { 0 };
        last = (same, now);
        (same == 4).then_some(())
    });
    assert!(rest.is_some(), "the queues do not come to rest");
    last.1
}

impl World {
    pub fn go_through(&mut self) -> Result<(), String> {
        let mut client = self.master.raw();
        self.work_on_all(&mut client)?;
        let expected = quiet(&self.master);
        client.says("CLIENT PAUSE 60000 WRITE", "+OK");
        self.replica.wait_for_offset_of(&self.master);
        self.same(Stage::Replica, &expected)?;
        let reloaded = client.ask("DEBUG RELOAD");
        if reloaded != "+OK" {
            return Err(format!("{:?}: {reloaded}", Stage::Reload));
        }
        self.same(Stage::Reload, &expected)?;
        client.says("CLIENT UNPAUSE", "+OK");
        self.restart(Stage::Aof)?;
        for (stage, preamble) in [
            (Stage::RewrittenAsRdb, "yes"),
            (Stage::RewrittenAsCommands, "no"),
        ] {
            self.rewrite(preamble);
            self.restart(stage)?;
        }
        self.promote()
    }

    /// The AOF is written anew.
    fn rewrite(&self, preamble: &str) {
        let mut client = self.master.raw();
        client.says(
            &format!("CONFIG SET aof-use-rdb-preamble {preamble}"),
            "+OK",
        );
        let rewrites = || self.master.info("stats", "total_forks");
        let before = rewrites();
        assert!(client.ask("BGREWRITEAOF").starts_with('+'));
        wait_until("the AOF is rewritten", PATIENCE, || {
            let idle = |field| self.master.info("persistence", field) == "0";
            rewrites() != before && idle("aof_rewrite_in_progress") && idle("aof_rewrite_scheduled")
        });
        let status = self.master.info("persistence", "aof_last_bgrewrite_status");
        assert_eq!(status, "ok");
    }

    /// The master, killed and started again, has its data and continues.
    fn restart(&mut self, stage: Stage) -> Result<(), String> {
        let expected = quiet(&self.master);
        self.master.kill();
        self.master.restart();
        self.same(stage, &expected)?;
        self.replica.wait_for_link();
        self.work_on_all(&mut self.master.raw())?;
        let expected = quiet(&self.master);
        self.replica.wait_for_offset_of(&self.master);
        self.same(Stage::Replica, &expected)
    }

    fn promote(&mut self) -> Result<(), String> {
        let expected = quiet(&self.master);
        self.replica.wait_for_offset_of(&self.master);
        self.replica.promote();
        std::mem::swap(&mut self.master, &mut self.replica);
        self.same(Stage::Promotion, &expected)?;
        self.work_on_all(&mut self.master.raw())?;
        self.replica.replica_of(&self.master);
        self.work_on_all(&mut self.master.raw())?;
        let expected = quiet(&self.master);
        self.replica.wait_for_offset_of(&self.master);
        self.same(Stage::Return, &expected)
    }

    /// Whether the server concerned has the same data now.
    fn same(&mut self, stage: Stage, expected: &Data) -> Result<(), String> {
        let server = match stage {
            Stage::Replica | Stage::Return => &self.replica,
            _ => &self.master,
        };
        if self.sabotaged == Some(stage) {
            let mut client = server.raw();
            client.says("CLIENT UNPAUSE", "+OK");
            client.says("CONFIG SET replica-read-only no", "+OK");
            client.says("DQ.ADD innocent sabotage x", "'sabotage'");
        }
        let now = data(server);
        for log in [&self.master, &self.replica].map(Server::log) {
            if let Some(line) = log.lines().find(|line| line.contains("effects on")) {
                return Err(format!("{stage:?}: {line}"));
            }
        }
        for key in expected.keys().chain(now.keys()) {
            let (before, after) = (expected.get(key), now.get(key));
            if before != after {
                let made_of = self.made_of.get(key);
                return Err(format!(
                    "{stage:?}: {key} differs\n{before:?}\n{after:?}\n{made_of:?}"
                ));
            }
        }
        Ok(())
    }
}
