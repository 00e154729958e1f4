//! The examples as somebody sees them who runs them: a producer, a worker, and a server between them.

use std::collections::HashMap;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use redis::Value;

use crate::cmd;
use crate::library::{address, server, Library, Run};
use crate::support::{poll, Server, PATIENCE};

const QUEUE: &str = "mails";
/// A worker that says nothing for so long has lost its job; the examples' slow jobs take half as long again.
const LEASE_MS: u32 = 4000;

/// The longest that a worker may take to stop when it has no job.
const STOPS_WITHIN: Duration = Duration::from_secs(6);

/// The libraries that send a command again when its connection was lost, as the examples set them; with the others
/// the example says "trouble" and goes on.
const SEND_AGAIN: [&str; 1] = ["lettuce"];

pub type Outcome = Result<(), String>;

/// Where an example plays: on a server that it reaches through `port`.
pub struct Stage {
    library: Library,
    pub server: Server,
    pub port: u16,
    pub patience: Duration,
    /// How a worker is asked to stop.
    pub stop: &'static str,
}

pub fn all_hold(name: &str) {
    let Some(library) = Library::prepared(name) else {
        return;
    };
    let mut stage = Stage::new(library);
    type Scene = fn(&mut Stage) -> Outcome;
    let scenes: [(&str, Scene); 6] = [
        ("works", Stage::works),
        ("leaves a lost job alone", Stage::leaves_a_lost_job_alone),
        ("comes back", Stage::comes_back),
        ("stops while working", Stage::stops_while_working),
        ("stops while waiting", Stage::stops_while_waiting),
        (
            "stops whatever the server does",
            Stage::stops_whatever_the_server_does,
        ),
    ];
    for (title, scene) in scenes {
        if let Err(why) = scene(&mut stage) {
            panic!("{name}: {title}: {why}");
        }
    }
}

impl Stage {
    pub fn new(library: Library) -> Stage {
        let server = server();
        // So the queue, with its totals, stays when its last job goes.
        cmd!(server.connect(), "DQ.CFGSET", QUEUE);
        Stage {
            library,
            port: server.port(),
            server,
            patience: PATIENCE,
            stop: "TERM",
        }
    }

    /// Jobs are done, those that fail once more, and those that take longer than a lease but once.
    pub fn works(&mut self) -> Outcome {
        let worker = self.worker()?;
        let before = self.stats();
        for (id, text, delay) in [
            ("plain", "Dear Ann", "300"),
            ("flaky", "flaky Bob", "0"),
            ("slow", "slow Eve", "0"),
        ] {
            self.produce(id, text, delay, "added")?;
        }
        // Not twice, as long as it is there.
        self.produce("later", "Dear Liz", "3600000", "added")?;
        self.produce("later", "Dear Liz", "3600000", "already")?;
        self.until(&worker, "all are done", |after| {
            after["acked"] - before["acked"] == 3
        })?;
        for line in [
            "done plain (attempt 1)",
            "done flaky (attempt 2)",
            "done slow (attempt 1)",
        ] {
            self.until_said(&worker, line)?;
        }
        cmd!(self.server.connect(), "DQ.DEL", QUEUE, "later");
        let after = self.stats();
        for (total, expected) in [
            ("added", 4),
            ("delivered", 4),
            ("nacked", 1),
            ("timed-out", 0),
        ] {
            let count = after[total] - before[total];
            if count != expected {
                return Err(format!(
                    "{total}: {count}, not {expected}; {}",
                    worker.said()
                ));
            }
        }
        Ok(())
    }

    /// A worker that hung for longer than its lease must not acknowledge what somebody else has by then.
    pub fn leaves_a_lost_job_alone(&mut self) -> Outcome {
        let worker = self.worker()?;
        let touched = self.calls("touch");
        self.add("hung", "slow Kim");
        // Its first heartbeat shows that the job has reached it.
        self.until(&worker, "it has the job", |_| self.calls("touch") > touched)?;
        worker.signal("STOP");
        let mut other = self.server.connect();
        let delivery = cmd!(other, "DQ.BPOP", QUEUE, 20);
        worker.signal("CONT");
        let Value::Array(delivery) = delivery else {
            return Err("the lease of a worker that hangs does not end".to_owned());
        };
        self.until_said(&worker, "lost hung")?;
        let token: String = redis::from_redis_value(delivery[3].clone()).expect("digits");
        match cmd!(other, "DQ.ACK", QUEUE, "WITHTOKENS", "hung", token) {
            Value::Int(1) => Ok(()),
            other => Err(format!("acknowledged by who had lost it: {other:?}")),
        }
    }

    /// Waiting goes on over one connection as long as that lives, and on another one when it is killed or
    /// the server is restarted.
    pub fn comes_back(&mut self) -> Outcome {
        let worker = self.worker()?;
        self.waits_on_one_connection(&worker)?;
        let mut client = self.server.connect();
        let id = self.waiter(&worker)?;
        cmd!(client, "CLIENT", "KILL", "ID", id);
        self.until(
            &worker,
            "it waits again after its connection was killed",
            |_| self.waiter_now().is_some_and(|waiter| waiter != id),
        )?;
        if worker.said().contains("trouble") == SEND_AGAIN.contains(&self.library.name()) {
            return Err(format!("a lost connection: {}", worker.said()));
        }
        self.server.restart();
        self.waiter(&worker)?;
        self.add("after", "Dear Sue");
        self.until_said(&worker, "done after (attempt 1)")
    }

    /// How often that command was called since the server started.
    fn calls(&self, command: &str) -> i64 {
        let line = format!("cmdstat_dq.{command}");
        let stats = self.server.connect().info("commandstats", &line);
        let calls = stats
            .as_deref()
            .and_then(|line| line.strip_prefix("calls="));
        let number = calls.and_then(|line| line.split(',').next()?.parse::<i64>().ok());
        number.unwrap_or(0)
    }

    fn waits_on_one_connection(&self, worker: &Run) -> Outcome {
        let calls = || self.calls("bpop");
        let (id, before) = (self.waiter(worker)?, calls());
        // Two more have begun or ended, so at least one wait has ended without a job.
        self.until(worker, "a wait ends", |_| calls() >= before + 2)?;
        let now = self.waiter(worker)?;
        if now != id {
            return Err(format!(
                "a wait that ended cost the connection; {}",
                worker.said()
            ));
        }
        Ok(())
    }

    /// What it has it finishes; what comes meanwhile stays for others.
    pub fn stops_while_working(&mut self) -> Outcome {
        let worker = self.worker()?;
        let before = self.stats();
        self.add("last", "slow Tom");
        self.until(&worker, "it has the job", |stats| stats["reserved"] == 1)?;
        worker.signal(self.stop);
        self.add("left", "Dear Zoe");
        let (status, said) = worker.end(self.patience)?;
        if !in_good_order(status, &said) || !said.contains("done last (attempt 1)") {
            return Err(format!("{status}; it said:\n{said}"));
        }
        let after = self.stats();
        let acked = after["acked"] - before["acked"];
        if (acked, after["ready"], after["reserved"]) != (1, 1, 0) {
            return Err(format!("left behind: {after:?}; it said:\n{said}"));
        }
        cmd!(self.server.connect(), "DQ.DEL", QUEUE, "left");
        Ok(())
    }

    /// No job goes to a worker that has stopped.
    pub fn stops_while_waiting(&mut self) -> Outcome {
        let worker = self.worker()?;
        worker.signal(self.stop);
        let (status, said) = worker.end(self.patience)?;
        if !in_good_order(status, &said) {
            return Err(format!("{status}; it said:\n{said}"));
        }
        self.add("nobody", "Dear Max");
        let stats = self.stats();
        if (stats["waiting-clients"], stats["ready"]) != (0, 1) {
            return Err(format!("it is not gone: {stats:?}"));
        }
        cmd!(self.server.connect(), "DQ.DEL", QUEUE, "nobody");
        Ok(())
    }

    /// A server that is there and says nothing, one that has just gone, and one that has been gone for a while.
    pub fn stops_whatever_the_server_does(&mut self) -> Outcome {
        let (worker, within) = self.worker_and_patience()?;
        self.server.signal("STOP");
        let silent = stop_in_time(worker, self.stop, within);
        self.server.signal("CONT");
        silent.map_err(|why| format!("while the server is silent: {why}"))?;
        for noticed in [false, true] {
            let (worker, within) = self.worker_and_patience()?;
            self.server.kill();
            if noticed {
                self.until_said(&worker, "trouble")?;
            }
            let gone = stop_in_time(worker, self.stop, within);
            self.server.restart();
            gone.map_err(|why| format!("while the server is gone (noticed: {noticed}): {why}"))?;
        }
        Ok(())
    }

    /// On a busy machine a stop takes longer, as does a start: so much is added.
    fn worker_and_patience(&self) -> Result<(Run, Duration), String> {
        let begun = Instant::now();
        let worker = self.worker()?;
        Ok((worker, STOPS_WITHIN + begun.elapsed()))
    }
}

fn stop_in_time(worker: Run, stop: &str, within: Duration) -> Outcome {
    worker.signal(stop);
    let (status, said) = worker.end(within)?;
    match in_good_order(status, &said) {
        true => Ok(()),
        false => Err(format!("{status}; it said:\n{said}")),
    }
}

fn in_good_order(status: ExitStatus, said: &str) -> bool {
    // A JVM that a signal ends says so, however well it has ended.
    const JVM_AFTER_SIGTERM: i32 = 128 + 15;
    let ended_well = status.success() || status.code() == Some(JVM_AFTER_SIGTERM);
    ended_well && said.trim_end().ends_with("stopped")
}

/// What the scenes are made of.
impl Stage {
    fn variables(&self) -> [(String, String); 2] {
        [
            address(self.port),
            ("LEASE_MS".to_owned(), LEASE_MS.to_string()),
        ]
    }

    /// A worker that waits.
    fn worker(&self) -> Result<Run, String> {
        let worker = self.library.run("example", &["work"], &self.variables());
        self.waiter(&worker)?;
        Ok(worker)
    }

    fn add(&self, id: &str, text: &str) {
        cmd!(self.server.connect(), "DQ.ADD", QUEUE, id, text);
    }

    /// With the example's own producer.
    fn produce(&self, id: &str, text: &str, delay_ms: &str, expected: &str) -> Outcome {
        let arguments = ["add", id, text, delay_ms];
        let producer = self.library.run("example", &arguments, &self.variables());
        let (status, said) = producer.end(self.patience)?;
        match status.success() && said.contains(expected) {
            true => Ok(()),
            false => Err(format!("{arguments:?} -> {status}, not {expected}: {said}")),
        }
    }

    fn stats(&self) -> HashMap<String, i64> {
        let Value::Array(fields) = cmd!(self.server.connect(), "DQ.STATS", QUEUE) else {
            panic!("the queue stays");
        };
        let pairs = fields.chunks(2).filter_map(|pair| match pair[1] {
            Value::Int(number) => Some((redis::from_redis_value(pair[0].clone()).ok()?, number)),
            _ => None,
        });
        pairs.collect()
    }

    /// The connection on which the worker waits, by its number.
    fn waiter_now(&self) -> Option<i64> {
        let list = cmd!(self.server.connect(), "CLIENT", "LIST");
        let list: String = redis::from_redis_value(list).expect("CLIENT LIST is text");
        let is_waiting = |line: &&str| line.contains("cmd=dq.bpop") && line.contains("flags=b");
        let line = list.lines().find(is_waiting)?;
        line.strip_prefix("id=")?.split(' ').next()?.parse().ok()
    }

    fn waiter(&self, worker: &Run) -> Result<i64, String> {
        poll(self.patience, || self.waiter_now())
            .ok_or_else(|| format!("no worker waits; it said:\n{}", worker.said()))
    }

    fn until(
        &self,
        worker: &Run,
        what: &str,
        holds: impl Fn(&HashMap<String, i64>) -> bool,
    ) -> Outcome {
        poll(self.patience, || holds(&self.stats()).then_some(())).ok_or_else(|| {
            format!(
                "in vain: {what}; {:?}; it said:\n{}",
                self.stats(),
                worker.said()
            )
        })
    }

    fn until_said(&self, worker: &Run, line: &str) -> Outcome {
        poll(self.patience, || worker.said().contains(line).then_some(()))
            .ok_or_else(|| format!("never said {line:?}, but:\n{}", worker.said()))
    }
}
