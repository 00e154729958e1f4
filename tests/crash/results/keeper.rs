//! The only client that changes a queue, and clients that wait for the ends of its jobs.

use std::collections::{BTreeMap, BTreeSet};

use redis::{cmd, Cmd, ConnectionLike, Value};

use super::judge::Seen;
use super::model::{Job, Model, Op, Policy, State, What, SHORT};
use crate::clock::Clock;
use crate::link::{number, text};
use crate::rng::Rng;
use crate::support::raw::encode;
use crate::support::{Client, Raw, Reply};

/// An end that DQ.AWAIT reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub id: String,
    /// How many commands had been sent when the wait began.
    pub since: usize,
    pub outcome: String,
    pub value: Option<String>,
    pub at: Option<u64>,
    pub attempts: Option<u64>,
}

/// What was sent in one life, and the answers.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pub ops: Vec<Op>,
    /// How many of the commands were answered: the first ones.
    pub answered: usize,
    pub reports: Vec<Report>,
}

/// A client in DQ.AWAIT.
pub struct Waiter {
    id: String,
    since: usize,
    client: Raw,
}

impl Waiter {
    /// The report that it had received when its server died.
    pub fn reported(mut self) -> Option<Report> {
        let reply = Reply::parse(&self.client.read_to_end())?.0;
        Some(report(&self.id, self.since, &reply))
    }
}

impl Line {
    pub fn with(mut self, reports: impl Iterator<Item = Report>) -> Line {
        self.reports.extend(reports);
        self
    }

    /// For a server that is alive: each client that waits for an end that was answered must get a
    /// reply, too.
    pub fn complete(self, waiting: Vec<Waiter>) -> Line {
        let mut reports = Vec::new();
        for mut waiter in waiting {
            if self.end(&waiter.id, waiter.since).is_some() {
                let reply = waiter.client.read();
                reports.push(report(&waiter.id, waiter.since, &reply));
            }
        }
        self.with(reports.into_iter())
    }

    /// The command that ends that job, among those from `since` on.
    pub fn end(&self, id: &str, since: usize) -> Option<usize> {
        let after = self.ops[since..].iter().position(|op| op.what.ends(id));
        after.map(|at| since + at)
    }
}

pub fn report(id: &str, since: usize, reply: &Reply) -> Report {
    let words = |reply: &Reply| match reply {
        Reply::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Reply::Integer(number) => Some(number.to_string()),
        _ => None,
    };
    let Reply::Array(ends) = reply else {
        panic!("DQ.AWAIT of {id} -> {reply:?}");
    };
    let [Reply::Array(end)] = &ends[..] else {
        panic!("DQ.AWAIT of {id} -> {ends:?}");
    };
    let [of, outcome, value, at, attempts] = &end[..] else {
        panic!("DQ.AWAIT of {id} -> {end:?}");
    };
    assert_eq!(*of, Reply::bulk(id));
    let number = |reply| words(reply).map(|digits| digits.parse().expect("digits"));
    Report {
        id: id.to_owned(),
        since,
        outcome: words(outcome).expect("an outcome"),
        value: words(value),
        at: number(at),
        attempts: number(attempts),
    }
}

pub struct Keeper {
    pub policy: Policy,
    /// The queue's state if all sent commands are carried out.
    pub model: Model,
    rng: Rng,
    clock: Clock,
    tokens: BTreeMap<String, String>,
    serials: u64,
    /// Jobs with waiters in this life. They are not kicked in it: a wait may begin later than it
    /// was sent.
    awaited: BTreeSet<String>,
    /// It will disconnect without reading some answers.
    leaves: bool,
}

/// The connection can no longer be used.
struct Gone;

impl Keeper {
    pub fn new(policy: Policy, seed: u64) -> Keeper {
        let letter = u64::from(policy.queue.as_bytes()[0]);
        Keeper {
            policy,
            model: Model::default(),
            rng: Rng::new(seed << 8 ^ letter),
            clock: Clock::new(),
            tokens: BTreeMap::new(),
            serials: 0,
            awaited: BTreeSet::new(),
            leaves: false,
        }
    }

    pub fn begin_with(&mut self, model: Model, seen: &Seen) {
        self.model = model;
        self.tokens = seen.tokens();
    }

    pub fn play(
        &mut self,
        client: &mut Client,
        waiters: &mut Vec<Raw>,
        rounds: Option<u64>,
    ) -> (Line, Vec<Waiter>) {
        let (mut line, mut waiting) = (Line::default(), Vec::new());
        self.leaves = rounds.is_none() && self.rng.one_in(3);
        self.awaited.clear();
        for _ in 0..rounds.unwrap_or(u64::MAX) {
            if self
                .round(client, waiters, &mut line, &mut waiting)
                .is_err()
            {
                break;
            }
        }
        (line, waiting)
    }

    fn round(
        &mut self,
        client: &mut Client,
        waiters: &mut Vec<Raw>,
        line: &mut Line,
        waiting: &mut Vec<Waiter>,
    ) -> Result<(), Gone> {
        let begin = self.beginnings();
        self.send(client, begin, line)?;
        let leaves = self.leaves && self.rng.one_in(25);
        let waits = if leaves { 1 } else { 12 };
        for id in self.model.ids(|job| job.state == State::Reserved) {
            if self.rng.one_in(waits) {
                let Some(mut client) = waiters.pop() else {
                    break;
                };
                let wait = [
                    b"DQ.AWAIT",
                    self.policy.queue.as_bytes(),
                    b"0",
                    id.as_bytes(),
                ];
                if !client.try_send(&encode(&wait)) {
                    return Err(Gone);
                }
                self.awaited.insert(id.clone());
                let since = line.ops.len();
                waiting.push(Waiter { id, since, client });
            }
        }
        let ends = self.ends();
        // Only DQ.AWAIT shows that these took effect.
        if leaves {
            let bytes = self.bytes_of(ends, line).0;
            client.try_send(&bytes);
            return Err(Gone);
        }
        self.send(client, ends, line)
    }

    /// Adds jobs, and kicks ended ones.
    fn beginnings(&mut self) -> Vec<What> {
        let mut claims = Vec::new();
        for _ in 0..self.rng.within(2, 9) {
            self.serials += 1;
            let keep = *self.rng.pick(self.policy.keeps);
            claims.push(What::Add {
                id: format!("{}{}", self.policy.queue, self.serials),
                keep,
            });
        }
        // A job that may be removed at any moment is left out.
        let stays = |job: &Job| match job.state {
            State::Done { .. } => job.keep != Some(SHORT),
            State::Dead { .. } => true,
            _ => false,
        };
        for id in self.model.ids(stays) {
            match self.rng.below(24) {
                0 | 1 if !self.awaited.contains(&id) => claims.push(What::Kick(id)),
                2 | 3 => claims.push(What::Del(id)),
                _ => {}
            }
        }
        claims.push(What::Pop);
        claims
    }

    fn ends(&mut self) -> Vec<What> {
        let mut open = self.model.ids(|job| job.state == State::Reserved);
        let mut claims = Vec::new();
        while !open.is_empty() {
            let at = self.rng.below(open.len() as u64) as usize;
            let id = open.swap_remove(at);
            self.serials += 1;
            let text = format!("{}-{}", self.policy.queue, self.serials);
            claims.push(match self.rng.below(12) {
                0 => What::Fatal { id, reason: text },
                1 => What::Del(id),
                2 => What::Ack(vec![(id, None)]),
                3 => continue,
                _ => {
                    let more = self.rng.below(3).min(open.len() as u64) as usize;
                    let ids = std::iter::once(id).chain(open.drain(..more));
                    let result = |(at, id)| (id, Some(format!("{text}.{at}")));
                    What::Ack(ids.enumerate().map(result).collect())
                }
            });
        }
        claims
    }

    /// Sends all commands at once, and reads the answers.
    fn send(
        &mut self,
        client: &mut Client,
        claims: Vec<What>,
        line: &mut Line,
    ) -> Result<(), Gone> {
        let first = line.ops.len();
        let (mut bytes, expected) = self.bytes_of(claims, line);
        for (at, expected) in (first..line.ops.len()).zip(expected) {
            let op = &line.ops[at];
            let mut reply = read(client, &mut bytes)?;
            if op.in_transaction {
                read(client, &mut bytes)?;
                reply = match read(client, &mut bytes)? {
                    Value::Array(mut replies) => replies.remove(0),
                    other => panic!("EXEC of {op:?} -> {other:?}"),
                };
            }
            line.answered += 1;
            match op.what {
                What::Pop => self.take(&reply, &expected),
                _ => assert_eq!(printed(&reply), expected, "{op:?}"),
            }
        }
        Ok(())
    }

    /// Notes the commands as sent; returns their bytes, and the expected answers.
    fn bytes_of(&mut self, claims: Vec<What>, line: &mut Line) -> (Vec<u8>, Vec<String>) {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for what in claims {
            let op = Op {
                sent_ms: self.clock.stamp().wall_ms(),
                in_transaction: self.rng.one_in(4) && !matches!(what, What::Pop),
                what,
            };
            let command = self.command(&op.what).get_packed_command();
            match op.in_transaction {
                true => {
                    bytes.extend(encode(&[b"MULTI"]));
                    bytes.extend(command);
                    bytes.extend(encode(&[b"EXEC"]));
                }
                false => bytes.extend(command),
            }
            expected.push(self.answer(&op.what));
            self.model.carry_out(self.policy, &op);
            line.ops.push(op);
        }
        (bytes, expected)
    }

    fn command(&self, what: &What) -> Cmd {
        let (name, arguments): (_, Vec<&str>) = match what {
            What::Add { id, .. } => ("DQ.ADD", vec![id, "payload"]),
            What::Pop => ("DQ.POP", vec!["COUNT", "10000", "TTR", "600000"]),
            What::Ack(jobs) => {
                let is_plain = jobs.iter().all(|(_, result)| result.is_none());
                let mut words = vec![if is_plain { "WITHTOKENS" } else { "RESULTS" }];
                for (id, result) in jobs {
                    words.extend([id, self.tokens[id].as_str()]);
                    words.extend(result.as_deref());
                }
                ("DQ.ACK", words)
            }
            What::Fatal { id, reason } => {
                let token = self.tokens[id].as_str();
                (
                    "DQ.NACK",
                    vec![id, "TOKEN", token, "FATAL", "REASON", reason],
                )
            }
            What::Del(id) => ("DQ.DEL", vec![id]),
            What::Kick(id) => ("DQ.KICK", vec!["IDS", "1", id]),
        };
        let mut command = cmd(name);
        command.arg(self.policy.queue).arg(arguments);
        if let What::Add { keep: Some(ms), .. } = what {
            command.arg("KEEP").arg(ms);
        }
        command
    }

    /// The expected answer; of a POP the ids.
    fn answer(&self, what: &What) -> String {
        match what {
            What::Add { id, .. } => id.clone(),
            What::Pop => self.model.ids(|job| job.state == State::Ready).join(" "),
            What::Ack(jobs) => jobs.len().to_string(),
            What::Fatal { .. } => "dead".to_owned(),
            What::Del(_) | What::Kick(_) => "1".to_owned(),
        }
    }

    fn take(&mut self, reply: &Value, expected: &str) {
        let Value::Array(jobs) = reply else {
            panic!("DQ.POP -> {reply:?}");
        };
        let mut ids = Vec::new();
        for job in jobs {
            let Value::Array(job) = job else {
                panic!("DQ.POP -> {reply:?}");
            };
            ids.push(text(&job[0]));
            self.tokens.insert(text(&job[0]), text(&job[2]));
        }
        ids.sort();
        assert_eq!(ids.join(" "), expected, "DQ.POP");
    }
}

fn printed(reply: &Value) -> String {
    match reply {
        Value::Int(_) => number(reply).to_string(),
        other => text(other),
    }
}

/// Sends the rest of `bytes`, and reads one reply.
fn read(client: &mut Client, bytes: &mut Vec<u8>) -> Result<Value, Gone> {
    match client.req_packed_command(&std::mem::take(bytes)) {
        Ok(Value::ServerError(error)) => panic!("{error:?}"),
        Ok(reply) => Ok(reply),
        Err(error) => {
            assert!(!error.is_timeout(), "no answer");
            Err(Gone)
        }
    }
}
