//! Results over the lives of a server that is killed. With `appendfsync always`, an end that was answered, or that
//! DQ.AWAIT reported, exists in the next life: the job's state, result, instant and place among the done jobs.
//!
//! Only one client changes each queue, so what it has sent, in order, is the queue's history. The next life must have
//! everything that was answered, and a prefix of the rest.

mod judge;
mod keeper;
mod model;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::cmd;
use crate::report::seeds;
use crate::rng::Rng;
use crate::support::audit::assert_faultless;
use crate::support::{poll, Raw, Reply, Server};

use judge::{judge, look, Found, Seen};
use keeper::{Keeper, Line, Report, Waiter};
use model::{Model, Op, Policy, What, POLICIES};

const LIVES: u64 = 8;
const WAITERS: usize = 40;

/// One queue in one life.
#[derive(Clone)]
struct Life {
    policy: Policy,
    before: Model,
    line: Line,
    seen: Seen,
}

impl Life {
    fn judge(&self) -> Result<(usize, Model), Found> {
        judge(self.policy, &self.before, &self.line, &self.seen)
    }
}

struct Run {
    seed: u64,
    server: Server,
    rng: Rng,
    keepers: Vec<Keeper>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let preamble = ["yes", "no"][seed as usize % 2];
        let builder = Server::builder().aof();
        let server = builder.config("aof-use-rdb-preamble", preamble).start();
        for policy in POLICIES {
            let mut client = server.connect();
            if let Some(ms) = policy.ttl_ms {
                cmd!(client, "DQ.CFGSET", policy.queue, "DONETTL", ms);
            }
            if let Some(most) = policy.most {
                cmd!(client, "DQ.CFGSET", policy.queue, "DONELEN", most);
            }
        }
        let keepers = POLICIES.map(|policy| Keeper::new(policy, seed));
        Run {
            seed,
            server,
            rng: Rng::new(seed),
            keepers: keepers.into(),
        }
    }

    /// Plays until the server is killed, or for so many rounds. `files` may change the files with which the next life
    /// begins.
    fn live(&mut self, rounds: Option<u64>, files: impl FnOnce(&Server)) -> Vec<Life> {
        let before: Vec<Model> = self.keepers.iter().map(|it| it.model.clone()).collect();
        let life = Duration::from_millis(self.rng.within(15, 50));
        let server = &mut self.server;
        if rounds.is_none() && self.rng.one_in(3) {
            cmd!(server.connect(), "BGREWRITEAOF");
        }
        let lines = thread::scope(|scope| {
            let threads: Vec<_> = self
                .keepers
                .iter_mut()
                .map(|keeper| {
                    let mut client = server.connect();
                    let mut waiters: Vec<Raw> = (0..WAITERS).map(|_| accepted(server)).collect();
                    scope.spawn(move || keeper.play(&mut client, &mut waiters, rounds))
                })
                .collect();
            if rounds.is_none() {
                poll(life, || None::<()>);
                server.kill();
            }
            let lines = threads.into_iter().map(|it| it.join().expect("a keeper"));
            lines.collect::<Vec<_>>()
        });
        let lines: Vec<Line> = lines
            .into_iter()
            .map(|(line, waiting)| match rounds {
                None => line.with(waiting.into_iter().filter_map(Waiter::reported)),
                Some(_) => line.complete(waiting),
            })
            .collect();
        if rounds.is_none() {
            assert_faultless(&self.server.folder().join("appendonlydir"));
            files(&self.server);
            self.server.restart();
        }
        let mut client = self.server.connect();
        let lives = self.keepers.iter().zip(before).zip(lines);
        lives
            .map(|((keeper, before), line)| Life {
                policy: keeper.policy,
                seen: look(&mut client, keeper.policy.queue, &before, &line),
                before,
                line,
            })
            .collect()
    }

    /// Judges the lives; the next one begins with what is known now.
    fn go_on(&mut self, lives: &[Life], tally: &mut Tally) {
        for (life, keeper) in lives.iter().zip(&mut self.keepers) {
            match life.judge() {
                Ok((carried_out, model)) => {
                    tally.add(life, carried_out);
                    keeper.begin_with(model, &life.seen);
                }
                Err(found) => panic!(
                    "{} of {}\nagain: DQ_SEED={} cargo test --no-default-features --test crash results::",
                    found, life.policy.queue, self.seed
                ),
            }
        }
    }
}

/// A connection that the server has accepted, so that it gets commands in the order of sending.
fn accepted(server: &Server) -> Raw {
    let mut client = server.raw();
    assert_eq!(client.call(&[b"PING"]), Reply::Simple("PONG".into()));
    client
}

#[derive(Debug, Default)]
struct Tally {
    answered: usize,
    /// Commands that were carried out, but not answered.
    unanswered: usize,
    results: usize,
    reported: usize,
    /// Reports of commands that were not answered.
    reported_first: usize,
}

impl Tally {
    fn add(&mut self, life: &Life, carried_out: usize) {
        let line = &life.line;
        self.answered += line.answered;
        self.unanswered += carried_out - line.answered;
        let done = line.ops[..line.answered].iter().map(|op| match &op.what {
            What::Ack(jobs) => jobs.iter().filter(|(_, result)| result.is_some()).count(),
            _ => 0,
        });
        self.results += done.sum::<usize>();
        self.reported += line.reports.len();
        let is_open = |it: &&Report| line.end(&it.id, it.since) >= Some(line.answered);
        self.reported_first += line.reports.iter().filter(is_open).count();
    }

    fn is_enough(&self) -> bool {
        self.results > 100 && self.reported_first > 5
    }
}

#[test]
fn results_survive_all_lives() {
    let mut tally = Tally::default();
    // On a busy machine little is under way when a server dies: then more servers are killed.
    for (done, seed) in seeds(8).enumerate() {
        if done >= 2 && tally.is_enough() {
            break;
        }
        let mut run = Run::new(seed);
        for _ in 0..LIVES {
            let lives = run.live(None, |_| ());
            run.go_on(&lives, &mut tally);
        }
        let lives = run.live(Some(4), |_| ());
        run.go_on(&lives, &mut tally);
        run.server.assert_no_crash();
    }
    println!("{tally:?}");
    assert!(tally.is_enough(), "{tally:?}");
}

/// The file is restored to the begin of the life.
#[test]
fn canary_a_file_that_lacks_an_end_is_noticed() {
    let files = |server: &Server| -> Vec<(PathBuf, Vec<u8>)> {
        let folder = fs::read_dir(server.folder().join("appendonlydir")).expect("a folder");
        let paths = folder.map(|entry| entry.expect("a file").path());
        paths
            .map(|path| (path.clone(), fs::read(path).expect("its bytes")))
            .collect()
    };
    // On a busy machine a server may be killed before it has answered anything.
    let lives = (1..100).find_map(|seed| {
        let mut run = Run::new(seed);
        let before = files(&run.server);
        let lives = run.live(None, |_| {
            for (path, bytes) in before {
                fs::write(path, bytes).expect("a file of ours");
            }
        });
        lives.iter().all(|it| it.line.answered > 0).then_some(lives)
    });
    for life in lives.expect("lives with answers") {
        assert!(life.judge().is_err(), "{}", life.policy.queue);
    }
}

/// Each fault, planted into what really happened.
#[test]
fn canary_falsified_lives_are_noticed() {
    let mut run = Run::new(4);
    let lives = run.live(Some(30), |_| ());
    for life in &lives {
        if let Err(found) = life.judge() {
            panic!("{found}");
        }
        for (name, falsify) in judge::FAULTS {
            let mut falsified = life.clone();
            if falsify(&mut falsified.line, &mut falsified.seen) {
                let queue = life.policy.queue;
                assert!(falsified.judge().is_err(), "{queue}: {name} is not noticed");
            } else {
                assert_ne!(life.policy.queue, "ttl", "nothing to try {name} on");
            }
        }
    }
}

/// One job was acknowledged with a result, and the client got no answer.
#[test]
fn canary_a_report_binds() {
    let op = |what| Op {
        sent_ms: 0,
        what,
        in_transaction: false,
    };
    let id = || "a".to_owned();
    let line = |reports| Line {
        ops: vec![
            op(What::Add {
                id: id(),
                keep: None,
            }),
            op(What::Pop),
            op(What::Ack(vec![(id(), Some("result".into()))])),
        ],
        answered: 2,
        reports,
    };
    let report = Report {
        id: id(),
        since: 2,
        outcome: "done".into(),
        value: Some("result".into()),
        at: Some(5),
        attempts: Some(1),
    };
    let reserved = [("state", "reserved"), ("attempts", "1")];
    let done = [
        ("state", "done"),
        ("attempts", "1"),
        ("result", "result"),
        ("finished", "5"),
    ];
    let judged = |reports: &[Report], seen: &Seen| {
        let verdict = judge(
            POLICIES[0],
            &Model::default(),
            &line(reports.to_vec()),
            seen,
        );
        verdict.ok().map(|(carried_out, _)| carried_out)
    };
    let (reserved, done) = (Seen::of("a", &reserved), Seen::of("a", &done));
    assert_eq!(judged(&[], &reserved), Some(2));
    assert_eq!(judged(&[], &done), Some(3));
    assert_eq!(judged(std::slice::from_ref(&report), &done), Some(3));
    assert_eq!(judged(std::slice::from_ref(&report), &reserved), None);
    let later = Report {
        at: Some(6),
        ..report
    };
    assert_eq!(judged(&[later], &done), None);
}
