//! Recurring jobs over the lives of a server that is killed. The occurrences of a rule grow along its grid, each is
//! finished once, and as many have run as clients were told.

use std::collections::BTreeMap;
use std::time::Duration;
use std::{fmt, thread};

use redis::{cmd, Value};

use crate::clock::Clock;
use crate::cmd;
use crate::history::Stamp;
use crate::link::{ask, number, text, Said};
use crate::report::seeds;
use crate::rng::Rng;
use crate::support::audit::assert_faultless;
use crate::support::{poll, wait_until, Client, Server, PATIENCE};
use crate::workload::builder;

/// The shortest interval that a rule may have.
const EVERY_MS: u64 = 1000;
const RULES: u64 = 200;
const WORKERS: usize = 2;
const TTR_MS: u64 = 60;

/// One delivery, as its worker saw it.
#[derive(Clone, Debug)]
struct Run {
    id: String,
    occurrence: u64,
    token: u64,
    deadline: u64,
    came: Stamp,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The worker lets the lease expire.
    Left,
    Acked,
    /// The ACK came when there was another delivery, or none.
    TooLate,
    GivenBack,
    /// The connection died before the answer of ACK or NACK.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Not an instant of the rule.
    OffGrid,
    Early,
    /// Not later than an occurrence that was finished, or earlier than one before it.
    NotGrown,
    /// Delivered again while its lease was live.
    TwoLeases,
    /// `runs` is not the number of acknowledged occurrences.
    Miscounted,
}

/// Everything that is judged: all deliveries, and the runs of each rule at the end.
struct Record {
    firsts: BTreeMap<String, u64>,
    runs: Vec<Run>,
    counted: BTreeMap<String, u64>,
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
        for (id, &first) in &self.firsts {
            let of_rule = self.runs.iter().filter(|run| run.id == *id);
            let mut runs: Vec<&Run> = of_rule.collect();
            runs.sort_by_key(|run| run.token);
            judge_each(&runs, first, &mut found);
            for pair in runs.windows(2) {
                judge_pair(pair[0], pair[1], &mut found);
            }
            self.judge_count(id, &runs, &mut found);
        }
        found
    }

    fn judge_count(&self, id: &str, runs: &[&Run], found: &mut Found) {
        let with = |fate| runs.iter().filter(|run| run.fate == fate).count() as u64;
        let (least, most) = (with(Fate::Acked), with(Fate::Acked) + with(Fate::Unknown));
        let counted = self.counted[id];
        if !(least..=most).contains(&counted) {
            let text = format!("{id}: {counted} runs, {least} to {most} acknowledged");
            found.0.push((Fault::Miscounted, text));
        }
    }
}

fn judge_each(runs: &[&Run], first: u64, found: &mut Found) {
    for run in runs {
        let is_on_grid =
            run.occurrence >= first && (run.occurrence - first).is_multiple_of(EVERY_MS);
        if !is_on_grid {
            found.0.push((Fault::OffGrid, format!("{run:?}")));
        }
        if run.came.wall_ms() < run.occurrence {
            found.0.push((Fault::Early, format!("{run:?}")));
        }
    }
}

fn judge_pair(before: &Run, run: &Run, found: &mut Found) {
    let text = || format!("{run:?} after {before:?}");
    let least = before.occurrence + u64::from(before.fate == Fate::Acked);
    if run.occurrence < least {
        found.0.push((Fault::NotGrown, text()));
    }
    // Unless ACK or NACK may have ended the delivery, its lease must be over when the next reply arrives.
    let goes_on = matches!(before.fate, Fate::Left | Fate::TooLate);
    if goes_on && run.came.wall_ms() < before.deadline {
        found.0.push((Fault::TwoLeases, text()));
    }
}

/// Pops jobs, and acknowledges most of them, until the connection fails.
fn work(client: &mut Client, clock: Clock, rng: &mut Rng) -> Vec<Run> {
    let mut runs = Vec::new();
    loop {
        let mut pop = cmd("DQ.BPOP");
        let pop = pop
            .arg("rules")
            .arg(1)
            .arg("COUNT")
            .arg(8)
            .arg("TTR")
            .arg(TTR_MS);
        let reply = match ask(client, pop.arg("WITHDUE")) {
            Said::Reply(Value::Array(reply)) => reply,
            Said::Reply(_) => continue,
            _ => return runs,
        };
        let [_, Value::Array(jobs)] = reply.as_slice() else {
            panic!("{reply:?}");
        };
        let came = clock.stamp();
        let first = runs.len();
        runs.extend(jobs.iter().map(|job| delivered(job, came)));
        for run in &mut runs[first..] {
            run.fate = end(client, run, rng);
        }
        if runs.last().is_some_and(|run| run.fate == Fate::Unknown) {
            return runs;
        }
    }
}

fn delivered(job: &Value, came: Stamp) -> Run {
    let Value::Array(job) = job else {
        panic!("no job: {job:?}");
    };
    let [id, _, token, _, deadline, occurrence] = job.as_slice() else {
        panic!("no job: {job:?}");
    };
    Run {
        id: text(id),
        occurrence: number(occurrence),
        token: text(token).parse().expect("digits"),
        deadline: number(deadline),
        came,
        fate: Fate::Left,
    }
}

fn end(client: &mut Client, run: &Run, rng: &mut Rng) -> Fate {
    let command = match rng.below(10) {
        0 => return Fate::Left,
        1 => {
            let mut nack = cmd("DQ.NACK");
            nack.arg("rules").arg(&run.id).arg("TOKEN").arg(run.token);
            nack.arg("DELAY").arg(rng.below(40)).to_owned()
        }
        _ => {
            let mut ack = cmd("DQ.ACK");
            ack.arg("rules")
                .arg("WITHTOKENS")
                .arg(&run.id)
                .arg(run.token)
                .to_owned()
        }
    };
    match ask(client, &command) {
        Said::Reply(Value::Int(1)) => Fate::Acked,
        Said::Reply(Value::Int(_) | Value::Nil) => Fate::TooLate,
        Said::Reply(_) => Fate::GivenBack,
        Said::Refused | Said::Nothing => Fate::Unknown,
    }
}

fn play(seed: u64, lives: u64) -> Record {
    let (clock, mut rng) = (Clock::new(), Rng::new(seed));
    let mut server = builder().aof().start();
    let mut firsts = BTreeMap::new();
    for number in 0..RULES {
        let (id, first) = (
            format!("r{number}"),
            clock.stamp().wall_ms() + rng.below(EVERY_MS),
        );
        cmd!(
            server.connect(),
            "DQ.ADD",
            "rules",
            &id,
            "x",
            "AT",
            first,
            "EVERY",
            EVERY_MS
        );
        firsts.insert(id, first);
    }
    let mut runs = Vec::new();
    for life in 0..lives {
        let workers: Vec<(Client, Rng)> = (0..WORKERS)
            .map(|worker| (server.connect(), Rng::new(seed ^ life << 8 ^ worker as u64)))
            .collect();
        thread::scope(|scope| {
            let began = |(mut client, mut rng): (Client, Rng)| {
                scope.spawn(move || work(&mut client, clock, &mut rng))
            };
            let workers: Vec<_> = workers.into_iter().map(began).collect();
            poll(Duration::from_millis(rng.within(300, 900)), || None::<()>);
            server.kill();
            for worker in workers {
                runs.extend(worker.join().expect("a worker that ends"));
            }
        });
        assert_faultless(&server.folder().join("appendonlydir"));
        server.restart();
    }
    let counted = count(&server, &firsts);
    server.assert_no_crash();
    Record {
        firsts,
        runs,
        counted,
    }
}

/// How often each rule has run, as the server counts.
fn count(server: &Server, firsts: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut client = server.connect();
    wait_until("all are there", PATIENCE, || {
        let held = cmd!(client, "DQ.LEN", "rules");
        number(&held) == RULES
    });
    let runs_of = |id: &String| {
        let reply = cmd!(client, "DQ.GET", "rules", id);
        let Value::Array(fields) = reply else {
            panic!("{id}: {reply:?}");
        };
        let mut pairs = fields.chunks_exact(2);
        let runs = pairs.find(|pair| text(&pair[0]) == "runs");
        (id.clone(), number(&runs.expect("a rule's runs")[1]))
    };
    firsts.keys().map(runs_of).collect()
}

#[test]
fn occurrences_grow_over_all_lives() {
    for seed in seeds(1) {
        let record = play(seed, 7);
        let found = record.judge();
        assert!(found.0.is_empty(), "seed {seed}: {found}");
        let finished = record.runs.iter().filter(|run| run.fate == Fate::Acked);
        let (all, finished) = (record.runs.len(), finished.count());
        let again = record.runs.len() - finished;
        println!("{all} deliveries, {finished} occurrences finished, {again} others");
        assert!(
            finished > RULES as usize && again > 20,
            "hardly anything ran"
        );
        canaries(&record);
    }
}

/// Each fault, planted into a real record.
fn canaries(record: &Record) {
    let acked = record.runs.iter().position(|run| run.fate == Fate::Acked);
    let acked = acked.expect("one was finished");
    let changed = |change: &dyn Fn(&mut Record)| {
        let mut changed = Record {
            firsts: record.firsts.clone(),
            runs: record.runs.clone(),
            counted: record.counted.clone(),
        };
        change(&mut changed);
        changed.judge().0
    };
    let again = |fate, token: u64, later_ms: u64| {
        move |it: &mut Record| {
            it.runs[acked].fate = fate;
            let mut run = it.runs[acked].clone();
            run.token += token;
            run.came.wall_us = (run.deadline + later_ms - 1) * 1000;
            it.runs.push(run);
        }
    };
    let planted: [(Fault, Vec<(Fault, String)>); 5] = [
        (
            Fault::OffGrid,
            changed(&|it| it.runs[acked].occurrence += 1),
        ),
        (
            Fault::Early,
            changed(&|it| it.runs[acked].came = Stamp::default()),
        ),
        (Fault::NotGrown, changed(&again(Fate::Acked, 1, 1))),
        (Fault::TwoLeases, changed(&again(Fate::Left, 1, 0))),
        (
            Fault::Miscounted,
            changed(&|it| it.counted.values_mut().for_each(|runs| *runs += 1000)),
        ),
    ];
    for (fault, found) in planted {
        let is_seen = found.iter().any(|(seen, _)| *seen == fault);
        assert!(is_seen, "{fault:?} was not noticed");
    }
}
