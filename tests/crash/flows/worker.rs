//! Clients that add jobs after others, and run jobs.

use std::sync::Mutex;

use redis::{cmd, Cmd, Value};

use super::record::{
    queue_of, Added, After, Answer, Blocked, Delivered, Ended, Event, Forked, How, Kicked, OnDead,
    Record, Span,
};
use super::QUEUES;
use crate::clock::Clock;
use crate::cmd;
use crate::link::{bytes, number, text};
use crate::rng::Rng;
use crate::support::{poll, wait_for, Client, Server, PATIENCE};

pub struct Worker<'a> {
    pub client: Client,
    pub rng: Rng,
    pub clock: Clock,
    /// Queues and ids of the latest jobs of all workers.
    pub known: &'a Mutex<Vec<(usize, String)>>,
    /// Part of the ids that it makes.
    pub name: String,
    pub serials: u64,
    pub events: Vec<Event>,
}

/// The connection can no longer be used.
struct Gone;

/// Errors that random graphs and a kill may cause.
const ERRORS: [&str; 3] = [
    "AFTER names a job that the queue does not hold",
    "AFTER would wait for itself",
    "Transaction discarded because of previous errors",
];

impl Worker<'_> {
    pub fn work(mut self) -> Vec<Event> {
        while self.step().is_ok() {}
        self.events
    }

    fn step(&mut self) -> Result<(), Gone> {
        match self.rng.below(100) {
            0..=39 => self.add(),
            40..=42 => self.del(),
            43..=46 => self.kick(),
            _ => self.pop(),
        }
    }

    /// Sends a command; None: no answer came.
    fn ask(&mut self, command: &Cmd) -> (Option<Value>, Span) {
        let sent_us = self.clock.stamp().at_us;
        let reply = self.client.call_raw(command);
        let span = Span {
            sent_us,
            ended_us: self.clock.stamp().at_us,
        };
        match reply {
            Ok(reply) => {
                let errors: Vec<&Value> = match &reply {
                    Value::Array(replies) => replies.iter().collect(),
                    reply => vec![reply],
                };
                for reply in errors {
                    if let Value::ServerError(error) = reply {
                        let details = error.details().unwrap_or_default();
                        assert!(ERRORS.contains(&details), "{error:?}");
                    }
                }
                (Some(reply), span)
            }
            Err(error) => {
                assert!(!error.is_timeout(), "no answer");
                (None, span)
            }
        }
    }

    fn tell(&mut self, event: Event) -> Result<(), Gone> {
        let is_unknown = event.is_unknown();
        self.events.push(event);
        match is_unknown {
            true => Err(Gone),
            false => Ok(()),
        }
    }

    fn new_id(&mut self, queue: usize) -> String {
        self.serials += 1;
        let queue = queue_of(QUEUES[queue]);
        format!("{queue}{}.{}", self.name, self.serials)
    }

    /// Some of the latest jobs of that queue.
    fn some_known(&mut self, queue: usize) -> Vec<String> {
        let known = self.known.lock().expect("no panic");
        let known = known.iter().rev().filter(|(of, _)| *of == queue);
        let mut ids: Vec<&String> = known.take(24).map(|(_, id)| id).collect();
        let count = (1 + self.rng.below(4)).min(ids.len() as u64);
        let picked = (0..count).map(|_| ids.swap_remove(self.rng.below(ids.len() as u64) as usize));
        picked.cloned().collect()
    }

    fn add(&mut self) -> Result<(), Gone> {
        let queue = self.rng.below(QUEUES.len() as u64) as usize;
        let mut group = self.rng.maybe(6, |rng| format!("g{}", rng.below(2)));
        let mut on_dead = *self.rng.pick(&OnDead::ALL);
        let after = match self.rng.below(10) {
            0 | 1 => After::Jobs(Vec::new()),
            2 => After::Group(format!("g{}", self.rng.below(2))),
            _ => After::Jobs(self.some_known(queue)),
        };
        if matches!(&after, After::Group(_)) {
            (group, on_dead) = (None, OnDead::Run);
        }
        let id = self.new_id(queue);
        let mut command = cmd("DQ.ADD");
        command.arg(QUEUES[queue]).arg(&id).arg("x");
        match &after {
            After::Group(group) => drop(command.arg("AFTER").arg("GROUP").arg(group)),
            After::Jobs(ids) if !ids.is_empty() => {
                command.arg("AFTER").arg(ids.len()).arg(ids);
                command.arg("ONDEAD").arg(on_dead.word());
            }
            After::Jobs(_) => {}
        }
        if let Some(group) = &group {
            command.arg("GROUP").arg(group);
        }
        let (reply, span) = self.ask(&command);
        let answer = answer(reply.as_ref(), |reply| bytes(reply).is_some());
        if answer == Answer::Yes {
            let mut known = self.known.lock().expect("no panic");
            known.push((queue, id.clone()));
        }
        self.tell(Event::Added(Added {
            id,
            group,
            after,
            on_dead,
            answer,
            span,
        }))
    }

    fn del(&mut self) -> Result<(), Gone> {
        let queue = self.rng.below(QUEUES.len() as u64) as usize;
        let Some(id) = self.some_known(queue).pop() else {
            return Ok(());
        };
        let (reply, span) = self.ask(cmd("DQ.DEL").arg(QUEUES[queue]).arg(&id));
        self.tell(Event::Ended(Ended {
            answer: answer(reply.as_ref(), |reply| *reply == Value::Int(1)),
            how: How::Deleted,
            id,
            span,
        }))
    }

    /// Kicks dead or blocked jobs.
    fn kick(&mut self) -> Result<(), Gone> {
        let queue = self.rng.below(QUEUES.len() as u64) as usize;
        let state = *self.rng.pick(&["DEAD", "BLOCKED"]);
        let (reply, _) = self.ask(cmd("DQ.PEEK").arg(QUEUES[queue]).arg(state));
        let Some(Value::Array(jobs)) = reply else {
            return Err(Gone);
        };
        let Some(Value::Array(job)) = jobs.first() else {
            return Ok(());
        };
        self.kick_id(queue, text(&job[0]))
    }

    fn kick_id(&mut self, queue: usize, id: String) -> Result<(), Gone> {
        let command = format!("DQ.KICK {} IDS 1 {id}", QUEUES[queue]);
        let words: Vec<&str> = command.split(' ').collect();
        let (reply, span) = self.ask(cmd(words[0]).arg(&words[1..]));
        self.tell(Event::Kicked(Kicked {
            answer: answer(reply.as_ref(), |reply| *reply == Value::Int(1)),
            id,
            span,
        }))
    }

    fn pop(&mut self) -> Result<(), Gone> {
        let queue = self.rng.below(QUEUES.len() as u64) as usize;
        let is_blocking = self.rng.one_in(4);
        let mut pop = cmd(if is_blocking { "DQ.BPOP" } else { "DQ.POP" });
        pop.arg(QUEUES[queue]);
        if is_blocking {
            pop.arg(0.004);
        }
        pop.arg(&["TTR", "80", "WITHRESULTS"]);
        let (reply, span) = self.ask(&pop);
        let job = match reply {
            Some(Value::Array(job)) => job,
            Some(_) => return Ok(()),
            None => return Err(Gone),
        };
        let job = delivered(&job[usize::from(is_blocking)..], span);
        let (id, token) = (job.id.clone(), job.token);
        self.events.push(Event::Delivered(job));
        match self.rng.below(40) {
            0..=2 => self.end(queue, id.clone(), token, How::Dead(format!("{id}-{token}"))),
            3..=5 => self.fork(queue, id, token),
            // Its lease expires.
            6 => Ok(()),
            7 | 8 => {
                let delay = self.rng.below(30);
                let mut nack = cmd("DQ.NACK");
                nack.arg(QUEUES[queue]).arg(id).arg("TOKEN").arg(token);
                self.ask(nack.arg("DELAY").arg(delay)).0.ok_or(Gone)?;
                Ok(())
            }
            _ => self.end(queue, id.clone(), token, How::Done(format!("{id}={token}"))),
        }
    }

    fn end(&mut self, queue: usize, id: String, token: u64, how: How) -> Result<(), Gone> {
        let mut command = Cmd::new();
        match &how {
            How::Done(result) => {
                command.arg("DQ.ACK").arg(QUEUES[queue]).arg("RESULTS");
                command.arg(&id).arg(token).arg(result);
            }
            How::Dead(reason) => {
                command.arg("DQ.NACK").arg(QUEUES[queue]).arg(&id);
                command.arg("TOKEN").arg(token);
                command.arg(&["FATAL", "REASON", reason]);
            }
            How::Deleted => unreachable!("by no worker"),
        }
        let (reply, span) = self.ask(&command);
        let took = |reply: &Value| *reply == Value::Int(1) || bytes(reply).is_some();
        self.tell(Event::Ended(Ended {
            answer: answer(reply.as_ref(), took),
            id,
            how,
            span,
        }))
    }

    /// Adds jobs, and gives its own job back until they have ended.
    fn fork(&mut self, queue: usize, id: String, token: u64) -> Result<(), Gone> {
        let children: Vec<String> = (0..1 + self.rng.below(3))
            .map(|_| self.new_id(queue))
            .collect();
        self.ask(&cmd("MULTI")).0.ok_or(Gone)?;
        for child in &children {
            let add = ["DQ.ADD", QUEUES[queue], child, "x"];
            self.ask(cmd(add[0]).arg(&add[1..])).0.ok_or(Gone)?;
        }
        let mut nack = cmd("DQ.NACK");
        nack.arg(QUEUES[queue]).arg(&id).arg("TOKEN").arg(token);
        nack.arg("SILENT").arg("AFTER").arg(children.len());
        self.ask(nack.arg(&children)).0.ok_or(Gone)?;
        let (reply, span) = self.ask(&cmd("EXEC"));
        let blocked = |reply: &Value| match reply {
            Value::Array(replies) => bytes(&replies[children.len()]) == Some(b"blocked".to_vec()),
            other => panic!("EXEC -> {other:?}"),
        };
        let forked = answer(reply.as_ref(), blocked);
        let is_known = forked != Answer::Unknown;
        for child in &children {
            self.events.push(Event::Added(Added {
                id: child.clone(),
                group: None,
                after: After::Jobs(Vec::new()),
                on_dead: OnDead::Wait,
                answer: if is_known {
                    Answer::Yes
                } else {
                    Answer::Unknown
                },
                span,
            }));
        }
        self.tell(Event::Forked(Forked {
            id,
            token,
            children,
            answer: forked,
        }))
    }
}

fn answer(reply: Option<&Value>, is_yes: impl Fn(&Value) -> bool) -> Answer {
    match reply {
        None => Answer::Unknown,
        Some(reply) if is_yes(reply) => Answer::Yes,
        Some(_) => Answer::No,
    }
}

fn delivered(job: &[Value], span: Span) -> Delivered {
    let [id, _, token, _, _, Value::Array(results)] = job else {
        panic!("{job:?}");
    };
    let word = |value: &Value| bytes(value).map(|it| String::from_utf8(it).expect("text"));
    let result = |result: &Value| match result {
        Value::Array(parts) => (text(&parts[0]), word(&parts[1]), word(&parts[2])),
        other => panic!("no result: {other:?}"),
    };
    Delivered {
        id: text(id),
        token: text(token).parse().expect("digits"),
        results: results.iter().map(result).collect(),
        span,
    }
}

fn ids(client: &mut Client, queue: &str, state: &str) -> Vec<String> {
    match cmd!(client, "DQ.PEEK", queue, state, "COUNT", 100_000) {
        Value::Array(jobs) => jobs
            .iter()
            .map(|job| match job {
                Value::Array(job) => text(&job[0]),
                other => panic!("no job: {other:?}"),
            })
            .collect(),
        other => panic!("no jobs: {other:?}"),
    }
}

/// A field of a job, by DQ.GET.
fn field(client: &mut Client, queue: &str, id: &str, name: &str) -> Option<Value> {
    let Value::Array(words) = cmd!(client, "DQ.GET", queue, id) else {
        return None;
    };
    let mut pairs = words.chunks_exact(2);
    pairs
        .find(|pair| text(&pair[0]) == name)
        .map(|it| it[1].clone())
}

/// The blocked jobs of all queues, once nothing is under way any more.
pub fn blocked(client: &mut Client) -> Vec<Blocked> {
    QUEUES
        .iter()
        .map(|queue| {
            let found = poll(PATIENCE, || {
                let seen = seen_blocked(client, queue);
                super::judge::stuck(&seen).is_empty().then_some(seen)
            });
            // Otherwise left to the judge.
            found.unwrap_or_else(|| seen_blocked(client, queue))
        })
        .collect()
}

fn seen_blocked(client: &mut Client, queue: &str) -> Blocked {
    let mut seen = Blocked::default();
    for id in ids(client, queue, "BLOCKED") {
        let after = match field(client, queue, &id, "after") {
            Some(Value::Array(ids)) if !ids.is_empty() => {
                After::Jobs(ids.iter().map(text).collect())
            }
            // A job that was unblocked meanwhile no longer counts.
            Some(_) => match field(client, queue, &id, "after-group")
                .as_ref()
                .and_then(bytes)
            {
                Some(group) => After::Group(String::from_utf8(group).expect("text")),
                None => continue,
            },
            None => continue,
        };
        let waited: Vec<String> = match &after {
            After::Jobs(ids) => ids.clone(),
            After::Group(group) => vec![group.clone()],
        };
        for other in waited {
            let is_held = match &after {
                After::Jobs(_) => {
                    let state = field(client, queue, &other, "state");
                    state.is_some_and(|state| text(&state) != "done")
                }
                After::Group(_) => number(&cmd!(client, "DQ.LEN", queue, "GROUP", &other)) > 0,
            };
            if is_held {
                seen.held.insert(other);
            }
        }
        seen.jobs.insert(id, after);
    }
    seen
}

/// Runs everything that can run, and the dead jobs again, until nothing is left, or what is left is
/// stuck.
pub fn drain(server: &Server, clock: Clock, record: &mut Record) {
    let known = Mutex::new(Vec::new());
    let mut worker = Worker {
        client: server.connect(),
        rng: Rng::new(1),
        clock,
        known: &known,
        name: "drain".into(),
        serials: 0,
        events: Vec::new(),
    };
    for (number, queue) in QUEUES.into_iter().enumerate() {
        let left = poll(PATIENCE, || {
            worker.take_all(number);
            let dead = ids(&mut worker.client, queue, "DEAD");
            for id in &dead {
                let reason = field(&mut worker.client, queue, id, "reason").map(|it| text(&it));
                let event = Event::Died(id.clone(), reason.unwrap_or_default());
                worker.events.push(event);
                assert!(worker.kick_id(number, id.clone()).is_ok());
            }
            let client = &mut worker.client;
            let length = cmd!(client, "DQ.LEN", queue);
            (dead.is_empty() && length == Value::Int(0)).then_some(())
        });
        if left.is_none() {
            record
                .left
                .extend(ids(&mut worker.client, queue, "BLOCKED"));
        }
    }
    record.events.append(&mut worker.events);
    wait_for("nothing is reserved", PATIENCE, || {
        let mut reserved = QUEUES
            .iter()
            .map(|queue| number(&cmd!(worker.client, "DQ.LEN", queue, "RESERVED")));
        reserved.all(|length| length == 0).then_some(())
    });
}

impl Worker<'_> {
    fn take_all(&mut self, queue: usize) {
        loop {
            let mut pop = cmd("DQ.POP");
            pop.arg(QUEUES[queue])
                .arg(&["COUNT", "100", "TTR", "600000"]);
            let (reply, span) = self.ask(pop.arg("WITHRESULTS"));
            let Some(Value::Array(jobs)) = reply else {
                panic!("DQ.POP -> {reply:?}");
            };
            for job in &jobs {
                let Value::Array(job) = job else {
                    panic!("DQ.POP -> {jobs:?}");
                };
                let job = delivered(job, span);
                let (id, token) = (job.id.clone(), job.token);
                self.events.push(Event::Delivered(job));
                let how = How::Done(format!("{id}={token}"));
                assert!(self.end(queue, id, token, how).is_ok(), "the server lives");
            }
            if jobs.is_empty() {
                return;
            }
        }
    }
}
