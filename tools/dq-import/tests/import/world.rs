//! A server with an old structure and a queue, and runs of the tool on them.

use std::collections::HashMap;
use std::env;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use redis::{from_redis_value, Value};

use crate::support::{Client, Server};
use crate::{cmd, support};

pub const HOUR_MS: u64 = 3_600_000;

/// The key of the queue that everything is imported into.
pub const QUEUE: &str = "jobs";

pub struct World {
    pub server: Server,
    pub client: Client,
    source: Vec<String>,
}

/// The result of a run of the tool.
pub struct Run {
    pub code: i32,
    pub text: String,
}

impl Run {
    #[track_caller]
    pub fn ok(self) -> Run {
        assert_eq!(self.code, 0, "{}", self.text);
        self
    }

    /// The check failed (exit code 1), as opposed to an error (2).
    #[track_caller]
    pub fn not_in_order(self, hint: &str) -> Run {
        assert_eq!(self.code, 1, "{}", self.text);
        assert!(self.text.contains("NOT in order"), "{}", self.text);
        self.says(hint)
    }

    #[track_caller]
    pub fn says(self, what: &str) -> Run {
        assert!(self.text.contains(what), "no {what:?} in\n{}", self.text);
        self
    }

    /// A line of a tally: `     17  in the queue, such as ...`.
    #[track_caller]
    pub fn counts(self, count: usize, what: &str) -> Run {
        let line = format!("{count:>9}  {what}");
        self.says(&line)
    }
}

impl World {
    /// `source`: the words that name the source on the command line.
    pub fn new(source: &[&str]) -> World {
        let server = Server::start();
        let client = server.connect();
        World {
            server,
            client,
            source: source.iter().map(|word| word.to_string()).collect(),
        }
    }

    pub fn url(&self) -> String {
        url_of(&self.server)
    }

    pub fn command(&self, options: &[&str]) -> Command {
        let mut command = import(&self.url(), &self.url());
        command.args(options).args(&self.source);
        command
    }

    #[track_caller]
    pub fn run(&self, options: &[&str]) -> Run {
        let output = self.command(options).output().expect("the tool runs");
        run_of(output)
    }

    pub fn start(&self, options: &[&str]) -> Child {
        self.command(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the tool runs")
    }

    /// Due time and payload of a job in the queue.
    pub fn job(&mut self, id: &str) -> Option<Job> {
        job(&mut self.client, id)
    }

    pub fn len(&mut self) -> usize {
        count(cmd!(self.client, "DQ.LEN", QUEUE))
    }

    /// Adds members with their scores.
    pub fn zadd(&mut self, key: &str, members: impl IntoIterator<Item = (String, String)>) {
        let mut command = redis::cmd("ZADD");
        command.arg(key);
        for (member, score) in members {
            command.arg(score).arg(member);
        }
        self.client.call(&command);
    }

    pub fn zcard(&mut self, key: &str) -> usize {
        count(cmd!(self.client, "ZCARD", key))
    }
}

/// The program, to import into the queue.
pub fn import(from: &str, to: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dq"));
    command.args(["import", "--from", from, "-u", to, "--queue", QUEUE]);
    command
}

pub fn url_of(server: &Server) -> String {
    format!("redis://127.0.0.1:{}", server.port())
}

pub fn run_of(output: Output) -> Run {
    let text = [output.stdout, output.stderr].concat();
    Run {
        code: output.status.code().unwrap_or(-1),
        text: String::from_utf8_lossy(&text).into_owned(),
    }
}

pub fn count(value: Value) -> usize {
    from_redis_value(value).expect("an integer")
}

#[derive(Debug, PartialEq)]
pub struct Job {
    pub payload: String,
    pub due_ms: u64,
    pub priority: i64,
    pub ttr_ms: u64,
    pub max_attempts: u64,
    pub backoff: Vec<u64>,
}

pub fn job(client: &mut Client, id: &str) -> Option<Job> {
    let answer = cmd!(client, "DQ.GET", QUEUE, id);
    let mut fields: HashMap<String, Value> =
        from_redis_value::<Option<_>>(answer).expect("DQ.GET answers")?;
    let mut field = |name: &str| fields.remove(name).expect("a field of DQ.GET");
    Some(Job {
        payload: from_redis_value(field("payload")).expect("text"),
        due_ms: from_redis_value(field("due")).expect("an instant"),
        priority: from_redis_value(field("priority")).expect("a number"),
        ttr_ms: from_redis_value(field("ttr")).expect("a number"),
        max_attempts: from_redis_value(field("max-attempts")).expect("a number"),
        backoff: from_redis_value(field("backoff")).expect("numbers"),
    })
}

/// Id and job of everything in the queue.
pub fn all_jobs(client: &mut Client) -> HashMap<String, Job> {
    let answer = cmd!(client, "DQ.PEEK", QUEUE, "DELAYED", "COUNT", 10_000);
    let peeked: Vec<(String, Value, Value, Value, Value)> =
        from_redis_value(answer).expect("DQ.PEEK answers");
    peeked
        .into_iter()
        .map(|(id, ..)| {
            let job = job(client, &id).expect("a job that was peeked");
            (id, job)
        })
        .collect()
}

pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_millis() as u64
}

/// The folder of a real library; None, with a message, if it is missing. In CI it must exist.
pub fn library(name: &str, file: &str) -> Option<PathBuf> {
    let folder = env::var_os("DQ_IMPORT_REAL").map(|root| PathBuf::from(root).join(name));
    let found = folder.filter(|folder| folder.join(file).exists());
    if found.is_none() {
        missing(name);
    }
    found
}

pub fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        missing(name);
    }
    found
}

fn missing(what: &str) {
    assert!(env::var_os("CI").is_none(), "{what} must be there in CI");
    support::skipped(format!("{what} is not there"));
}
