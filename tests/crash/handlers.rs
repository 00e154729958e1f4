//! Handlers with steps, signals and waits, over the lives of a server that is killed. A step that was answered exists
//! for the next attempt, and no step exists that nobody wrote. A token that is not current writes nothing, and no
//! signal is lost between checking for it and waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use std::{fmt, thread};

use redis::{cmd, Value};

use crate::cmd;
use crate::link::{ask, number, text, Said};
use crate::report::seeds;
use crate::rng::Rng;
use crate::support::audit::assert_faultless;
use crate::support::{poll, wait_until, Client, Server, PATIENCE};
use crate::workload::builder;

const JOBS: u64 = 60;
const WORKERS: usize = 3;
const TTR_MS: u64 = 40;
/// Steps of a handler, before it waits for its signal and after it.
const STEPS: usize = 6;
const SIGNAL: &str = "signal";

/// An action of a worker, and its answer.
#[derive(Clone, Debug)]
enum Event {
    /// With the steps that came with the delivery.
    Delivered {
        id: String,
        token: u64,
        steps: BTreeMap<String, String>,
    },
    /// A step; no two commands write the same value.
    Step {
        id: String,
        token: u64,
        value: String,
        answer: Answer,
    },
    Signal {
        id: String,
        answer: Answer,
    },
    Acked {
        answer: Answer,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Carried out.
    Yes,
    No,
    /// The connection died before the answer.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A step that was answered is missing later.
    Lost,
    /// A step exists that was never sent, or was refused.
    FromNowhere,
    /// A token wrote a step after a later token was issued and had written.
    Stale,
    /// A job was not delivered though its signal was sent.
    Deaf,
}

#[derive(Clone, Default)]
struct Record {
    /// All events; those of one worker are in order.
    events: Vec<Event>,
    /// Jobs that are left at the end though all were signalled.
    left: Vec<String>,
}

struct Found(Vec<(Fault, String)>);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut shown = self.0.iter().take(10);
        shown.try_for_each(|(fault, text)| writeln!(f, "{fault:?}: {text}"))
    }
}

impl Record {
    fn judge(&self) -> Found {
        let mut found = Found(Vec::new());
        for event in &self.events {
            if let Event::Delivered { id, token, steps } = event {
                self.judge_delivery(id, *token, steps, &mut found);
            }
        }
        for id in &self.left {
            found.0.push((Fault::Deaf, id.clone()));
        }
        found
    }

    /// Values name their writers: all writers with smaller tokens have written earlier, and every step that was
    /// answered exists.
    fn judge_delivery(
        &self,
        id: &str,
        token: u64,
        steps: &BTreeMap<String, String>,
        found: &mut Found,
    ) {
        let mut asked = BTreeSet::new();
        for event in &self.events {
            match event {
                Event::Step {
                    id: of,
                    token: by,
                    value,
                    answer,
                } if of == id => {
                    if *answer != Answer::No {
                        asked.insert(value.as_str());
                    }
                    let is_there = steps.contains_key(value);
                    if *answer == Answer::Yes && *by < token && !is_there {
                        let text = format!("{value} of {id} at the delivery {token}");
                        found.0.push((Fault::Lost, text));
                    }
                    if is_there && *by >= token {
                        let text = format!("{value} of {id} before the delivery {token}");
                        found.0.push((Fault::Stale, text));
                    }
                }
                Event::Signal { id: of, answer } if of == id && *answer != Answer::No => {
                    asked.insert(SIGNAL);
                }
                _ => {}
            }
        }
        for name in steps.keys().filter(|name| !asked.contains(name.as_str())) {
            let text = format!("{name} of {id} at the delivery {token}");
            found.0.push((Fault::FromNowhere, text));
        }
    }
}

fn answer(said: &Said) -> Answer {
    match said {
        Said::Reply(Value::Int(1)) => Answer::Yes,
        Said::Reply(_) => Answer::No,
        Said::Refused | Said::Nothing => Answer::Unknown,
    }
}

struct Worker {
    client: Client,
    rng: Rng,
    events: Vec<Event>,
    /// A delivery that it gave back: its token can write nothing any more.
    former: Option<(String, u64)>,
    writes: u64,
}

/// The connection can no longer be used.
struct Gone;

impl Worker {
    fn work(mut self) -> Vec<Event> {
        while self.handle().is_ok() {}
        self.events
    }

    fn handle(&mut self) -> Result<(), Gone> {
        let mut pop = cmd("DQ.BPOP");
        pop.arg("handlers").arg(0.05).arg("TTR").arg(TTR_MS);
        let (id, token, steps) = match ask(&mut self.client, pop.arg("WITHSTEPS")) {
            Said::Reply(Value::Array(reply)) => delivered(&reply),
            Said::Reply(_) => return Ok(()),
            _ => return Err(Gone),
        };
        let done = steps.len();
        let is_signalled = steps.contains_key(SIGNAL);
        self.events.push(Event::Delivered {
            id: id.clone(),
            token,
            steps,
        });
        for number in done..2 * STEPS {
            if number >= STEPS && !is_signalled {
                return self.wait(&id, token);
            }
            self.step(&id, token)?;
            match self.rng.below(12) {
                0 => return self.give_back(&id, token),
                // Its lease expires, and it continues.
                1 => thread::sleep(Duration::from_millis(TTR_MS / 2)),
                _ => {}
            }
        }
        self.end(&id, token)
    }

    fn step(&mut self, id: &str, token: u64) -> Result<(), Gone> {
        self.writes += 1;
        let value = format!("{token}-{}", self.writes);
        let mut step = cmd("DQ.STEP");
        step.arg("handlers").arg(id).arg(token);
        let answer = answer(&ask(&mut self.client, step.arg(&value).arg("x")));
        self.events.push(Event::Step {
            id: id.to_owned(),
            token,
            value,
            answer,
        });
        match answer {
            Answer::Unknown => Err(Gone),
            _ => Ok(()),
        }
    }

    /// Gives the job back to wait, as a handler does that has seen no signal.
    fn wait(&mut self, id: &str, token: u64) -> Result<(), Gone> {
        let mut nack = cmd("DQ.NACK");
        nack.arg("handlers").arg(id).arg("TOKEN").arg(token);
        nack.arg("SILENT").arg("AWAIT").arg(SIGNAL);
        self.tell(&nack)?;
        self.try_former(id, token)
    }

    fn give_back(&mut self, id: &str, token: u64) -> Result<(), Gone> {
        let mut nack = cmd("DQ.NACK");
        nack.arg("handlers").arg(id).arg("TOKEN").arg(token);
        nack.arg("DELAY").arg(self.rng.below(20));
        self.tell(&nack)?;
        self.try_former(id, token)
    }

    /// Writes with a token that is no longer valid: that of an earlier delivery, or else this one.
    fn try_former(&mut self, id: &str, token: u64) -> Result<(), Gone> {
        let former = self.former.replace((id.to_owned(), token));
        let (id, token) = former.unwrap_or_else(|| (id.to_owned(), token));
        self.step(&id, token)
    }

    fn end(&mut self, id: &str, token: u64) -> Result<(), Gone> {
        let mut ack = cmd("DQ.ACK");
        ack.arg("handlers").arg("WITHTOKENS").arg(id).arg(token);
        let answer = answer(&ask(&mut self.client, &ack));
        self.events.push(Event::Acked { answer });
        match answer {
            Answer::Unknown => Err(Gone),
            _ => Ok(()),
        }
    }

    fn tell(&mut self, command: &redis::Cmd) -> Result<(), Gone> {
        match ask(&mut self.client, command) {
            Said::Reply(_) => Ok(()),
            _ => Err(Gone),
        }
    }
}

fn delivered(reply: &[Value]) -> (String, u64, BTreeMap<String, String>) {
    let [_, id, _, token, _, _, Value::Array(steps)] = reply else {
        panic!("{reply:?}");
    };
    let pairs = steps.chunks_exact(2);
    let steps = pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
    (text(id), text(token).parse().expect("digits"), steps)
}

/// Sends each job its signal once, at random moments; repeats it if the answer is unknown.
fn signal(client: &mut Client, rng: &mut Rng, open: &mut Vec<String>) -> Vec<Event> {
    let mut events = Vec::new();
    while !open.is_empty() {
        let at = rng.below(open.len() as u64) as usize;
        let id = open[at].clone();
        let mut signal = cmd("DQ.SIGNAL");
        let answer = answer(&ask(client, signal.arg("handlers").arg(&id).arg(SIGNAL)));
        events.push(Event::Signal { id, answer });
        if answer == Answer::Unknown {
            break;
        }
        open.swap_remove(at);
        thread::sleep(Duration::from_millis(rng.below(12)));
    }
    events
}

fn play(seed: u64, lives: u64) -> Record {
    let mut rng = Rng::new(seed);
    let mut server = builder().aof().config("appendfsync", "always").start();
    let mut open: Vec<String> = (0..JOBS).map(|number| format!("h{number}")).collect();
    for id in &open {
        let delay = rng.below(300);
        cmd!(
            server.connect(),
            "DQ.ADD",
            "handlers",
            id,
            "x",
            "DELAY",
            delay
        );
    }
    let mut record = Record::default();
    for life in 0..lives {
        let mut signaller = server.connect();
        let workers: Vec<Worker> = (0..WORKERS as u64)
            .map(|worker| Worker {
                client: server.connect(),
                rng: Rng::new(seed ^ life << 8 ^ worker),
                events: Vec::new(),
                former: None,
                writes: (life * 10 + worker) * 1_000_000,
            })
            .collect();
        let mut signals_rng = Rng::new(seed ^ life << 8 ^ 0xff);
        thread::scope(|scope| {
            let workers: Vec<_> = workers
                .into_iter()
                .map(|worker| scope.spawn(move || worker.work()))
                .collect();
            let open = &mut open;
            let signals = scope.spawn(move || signal(&mut signaller, &mut signals_rng, open));
            poll(Duration::from_millis(rng.within(100, 400)), || None::<()>);
            server.kill();
            for worker in workers {
                record
                    .events
                    .extend(worker.join().expect("a worker that ends"));
            }
            record
                .events
                .extend(signals.join().expect("an end of signals"));
        });
        assert_faultless(&server.folder().join("appendonlydir"));
        server.restart();
    }
    finish(&server, open, &mut record);
    server.assert_no_crash();
    record
}

/// Signals all jobs that are not signalled yet, and runs all to their end.
fn finish(server: &Server, mut open: Vec<String>, record: &mut Record) {
    let mut client = server.connect();
    record
        .events
        .extend(signal(&mut client, &mut Rng::new(1), &mut open));
    let mut worker = Worker {
        client: server.connect(),
        rng: Rng::new(2),
        events: Vec::new(),
        former: None,
        writes: u64::MAX / 2,
    };
    let deadline = std::time::Instant::now() + PATIENCE;
    while number(&cmd!(client, "DQ.LEN", "handlers")) > 0 && std::time::Instant::now() < deadline {
        assert!(worker.handle().is_ok(), "the server lives");
    }
    record.events.append(&mut worker.events);
    let reply = cmd!(client, "DQ.PEEK", "handlers", "DELAYED", "COUNT", JOBS);
    if let Value::Array(left) = reply {
        record.left = left.iter().map(|job| format!("{job:?}")).collect();
    }
    wait_until("none is ready or reserved", PATIENCE, || {
        number(&cmd!(client, "DQ.LEN", "handlers")) == record.left.len() as u64
    });
}

#[test]
fn steps_and_signals_survive_all_lives() {
    for seed in seeds(1) {
        let record = play(seed, 8);
        let found = record.judge();
        assert!(found.0.is_empty(), "seed {seed}: {found}");
        let count = |is: &dyn Fn(&Event) -> bool| record.events.iter().filter(|it| is(it)).count();
        let written = count(&|it| {
            matches!(
                it,
                Event::Step {
                    answer: Answer::Yes,
                    ..
                }
            )
        });
        let refused = count(&|it| {
            matches!(
                it,
                Event::Step {
                    answer: Answer::No,
                    ..
                }
            )
        });
        let unknown = count(&|it| {
            matches!(
                it,
                Event::Step {
                    answer: Answer::Unknown,
                    ..
                }
            )
        });
        let ended = count(&|it| {
            matches!(
                it,
                Event::Acked {
                    answer: Answer::Yes,
                    ..
                }
            )
        });
        println!(
            "{written} steps written, {refused} refused, {unknown} unknown, {ended} jobs done"
        );
        assert!(
            written > 200 && refused > 20 && ended > 20,
            "hardly anything ran"
        );
        canaries(&record);
    }
}

/// Each fault, planted into a real record.
fn canaries(record: &Record) {
    let later = record.events.iter().position(|event| match event {
        Event::Delivered { steps, .. } => steps.keys().any(|name| name != SIGNAL),
        _ => false,
    });
    let later = later.expect("a delivery with steps");
    let changed = |change: &dyn Fn(&mut BTreeMap<String, String>, &mut u64)| {
        let mut changed = record.clone();
        if let Event::Delivered { steps, token, .. } = &mut changed.events[later] {
            change(steps, token);
        }
        changed.judge().0
    };
    let lost = changed(&|steps, _| steps.clear());
    let nowhere = changed(&|steps, _| drop(steps.insert("1-1".into(), "x".into())));
    let stale = changed(&|_, token| *token = 1);
    let deaf = Record {
        left: vec!["h0".into()],
        ..record.clone()
    };
    for (fault, found) in [
        (Fault::Lost, lost),
        (Fault::FromNowhere, nowhere),
        (Fault::Stale, stale),
        (Fault::Deaf, deaf.judge().0),
    ] {
        let is_seen = found.iter().any(|(seen, _)| *seen == fault);
        assert!(is_seen, "{fault:?} was not noticed");
    }
}
