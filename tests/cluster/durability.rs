//! What is lost by which fault, by settings of persistence and replication: the figures of docs/reliability.md, and as
//! a test what its table calls nothing.
//!
//! One client adds jobs, another takes each second one of them and acknowledges it, until a fault ends that. Then what is
//! there is compared with what was answered.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redis::Value;

use crate::cmd;
use crate::failover::with_replica;
use crate::scene::let_pass;
use crate::sentinel::{is_replica, Watched};
use crate::support::place::preloaded;
use crate::support::{wait_until, Builder, Client, Server, PATIENCE};

const QUEUE: &str = "{x}q";

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// SIGKILL: what the kernel has been given stays.
    Killed,
    /// Only what has been synced stays, the least that a disk which keeps its word has.
    PowerLoss,
}

/// What clients were answered, and when.
#[derive(Default)]
struct Answers {
    added: Vec<Instant>,
    acked: Vec<(usize, Instant)>,
    /// The job whose acknowledgement has no answer.
    in_hand: Option<usize>,
}

/// Whether a replica has what this client has written.
fn is_replicated(client: &mut Client) -> bool {
    let wait = client.call_raw(redis::cmd("WAIT").arg(1).arg(20_000));
    matches!(wait, Ok(Value::Int(1..)))
}

/// Adds jobs until it is over, or the server refuses or hangs up: every second one for later.
fn add(client: &mut Client, waits: bool, over: &AtomicBool) -> Vec<Instant> {
    let mut added = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let delay = if added.len() % 2 == 0 { 3_600_000 } else { 0 };
        let mut command = redis::cmd("DQ.ADD");
        command
            .arg(QUEUE)
            .arg(added.len())
            .arg("x")
            .arg("DELAY")
            .arg(delay);
        let Ok(Value::BulkString(_)) = client.call_raw(&command) else {
            break;
        };
        if waits && !is_replicated(client) {
            break;
        }
        added.push(Instant::now());
    }
    added
}

/// Takes and acknowledges jobs, likewise.
fn work(
    client: &mut Client,
    waits: bool,
    over: &AtomicBool,
    done: &AtomicUsize,
) -> (Vec<(usize, Instant)>, Option<usize>) {
    let mut acked = Vec::new();
    while !over.load(Ordering::Relaxed) {
        match client.call_raw(redis::cmd("DQ.BPOP").arg(QUEUE).arg(0.05)) {
            Ok(Value::Nil) => continue,
            Ok(Value::Array(job)) => {
                let [_, Value::BulkString(id), _, Value::BulkString(token), ..] = &job[..] else {
                    panic!("{job:?} is no delivery");
                };
                let number = String::from_utf8_lossy(id).parse().expect("an id of ours");
                let mut ack = redis::cmd("DQ.ACK");
                ack.arg(QUEUE).arg("WITHTOKENS").arg(id).arg(token);
                let is_acked = matches!(client.call_raw(&ack), Ok(Value::Int(1)));
                if !is_acked || waits && !is_replicated(client) {
                    return (acked, Some(number));
                }
                acked.push((number, Instant::now()));
                done.store(acked.len(), Ordering::Relaxed);
            }
            _ => break,
        }
    }
    (acked, None)
}

impl Answers {
    /// What `server` has answered until that has happened to it, and its clients have noticed.
    fn during(server: &mut Server, waits: bool, fault: impl FnOnce(&mut Server)) -> Answers {
        let (over, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        let [mut producer, mut worker] = [server.connect(), server.connect()];
        thread::scope(|scope| {
            let adding = scope.spawn(|| add(&mut producer, waits, &over));
            let working = scope.spawn(|| work(&mut worker, waits, &over, &done));
            // Also where it fails: the clients would go on for ever.
            let befallen = catch_unwind(AssertUnwindSafe(|| {
                wait_until("some jobs are done", PATIENCE, || {
                    done.load(Ordering::Relaxed) > 20
                });
                fault(server);
            }));
            over.store(true, Ordering::Relaxed);
            befallen.unwrap_or_else(|panic| resume_unwind(panic));
            let added = adding.join().expect("no panic");
            let (acked, in_hand) = working.join().expect("no panic");
            Answers {
                added,
                acked,
                in_hand,
            }
        })
    }
}

/// A row of the table.
#[derive(Default)]
struct Losses {
    runs: usize,
    added: usize,
    lost: usize,
    acked: usize,
    again: usize,
    /// From the first answer that was lost to the last one.
    span: Duration,
}

impl Losses {
    /// What is lost is always the end of what was answered.
    #[track_caller]
    fn of(answers: &Answers, there: &BTreeSet<usize>) -> Losses {
        let Answers { added, acked, .. } = answers;
        let done: BTreeSet<usize> = acked
            .iter()
            .map(|(id, _)| *id)
            .chain(answers.in_hand)
            .collect();
        let is_lost = |id: &usize| !done.contains(id) && !there.contains(id);
        let lost: Vec<usize> = (0..added.len()).filter(is_lost).collect();
        if let Some(&first) = lost.first() {
            let later = (first..added.len())
                .step_by(2)
                .find(|id| there.contains(id));
            assert_eq!(
                later, None,
                "it is there, {first} is not, which was answered before"
            );
        }
        let again: Vec<Instant> = acked
            .iter()
            .filter(|(id, _)| there.contains(id))
            .map(|(_, at)| *at)
            .collect();
        let first = lost
            .iter()
            .map(|&id| added[id])
            .chain(again.iter().copied())
            .min();
        let last = added.last().copied().max(acked.last().map(|(_, at)| *at));
        Losses {
            runs: 1,
            added: added.len(),
            lost: lost.len(),
            acked: acked.len(),
            again: again.len(),
            span: first
                .zip(last)
                .map_or(Duration::ZERO, |(first, last)| last - first),
        }
    }

    fn take_in(&mut self, run: Losses) {
        self.runs += run.runs;
        self.added += run.added;
        self.lost += run.lost;
        self.acked += run.acked;
        self.again += run.again;
        self.span = self.span.max(run.span);
    }

    #[track_caller]
    fn assert_none(&self, what: &str) {
        assert!(self.added > 0 && self.acked > 0, "{what}: nothing was done");
        assert_eq!((self.lost, self.again), (0, 0), "{what}: {self}");
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Losses {
            runs,
            added,
            lost,
            acked,
            again,
            span,
        } = self;
        write!(
            f,
            "{runs} | {lost} of {added} | {again} of {acked} | {} ms",
            span.as_millis()
        )
    }
}

/// The ids of all jobs.
fn there(server: &Server) -> BTreeSet<usize> {
    let (mut client, mut ids, mut cursor) = (server.connect(), BTreeSet::new(), 0);
    loop {
        let reply = cmd!(client, "DQ.SCAN", QUEUE, cursor, "COUNT", 1000);
        let found: (u64, Vec<usize>) =
            redis::from_redis_value(reply).expect("a cursor and ids of ours");
        cursor = found.0;
        ids.extend(found.1);
        if cursor == 0 {
            return ids;
        }
    }
}

/// Cuts each file of data to what has been synced of it.
fn lose_power(server: &Server) {
    let folder = server.folder();
    let files = |folder: &Path| {
        fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect::<Vec<_>>()
    };
    let all: Vec<PathBuf> = [files(folder), files(&folder.join("appendonlydir"))].concat();
    let is_data = |file: &&PathBuf| {
        file.extension()
            .is_some_and(|it| it == "aof" || it == "rdb" || it == "manifest")
    };
    for file in all.iter().filter(is_data) {
        let data = fs::metadata(file).expect("a file of our own");
        let note =
            fs::read_to_string(folder.join(format!("synced-{}", data.ino()))).unwrap_or_default();
        let synced = note.parse().unwrap_or(0);
        if synced < data.len() {
            let file = fs::OpenOptions::new().write(true).open(file);
            file.and_then(|file| file.set_len(synced))
                .expect("a file of our own");
        }
    }
}

/// A server alone, with these settings, that has lived for `life`.
fn alone(builder: &Builder, fault: Fault, life: Duration) -> Losses {
    let own = Server::start(); // whose folder goes with it
    let library = preloaded(include_str!("durability.c"), own.folder());
    let mut server = builder.clone().env("LD_PRELOAD", library).start();
    let answers = Answers::during(&mut server, false, |server| {
        let_pass(life);
        server.kill();
    });
    server.wait_for_orphan();
    if fault == Fault::PowerLoss {
        lose_power(&server);
    }
    server.restart();
    Losses::of(&answers, &there(&server))
}

/// How a replica takes over.
#[derive(Clone, Copy, PartialEq)]
enum TakeOver {
    /// The master is killed.
    Killed,
    /// By the command FAILOVER.
    Asked,
    /// The replica is promoted while the master goes on for this long, as where the network is parted.
    Parted(Duration),
}

fn replicated(builder: &Builder, how: TakeOver, waits: bool, life: Duration) -> Losses {
    let (mut master, replica) = (builder.clone().start(), builder.clone().start());
    replica.replica_of(&master);
    let answers = Answers::during(&mut master, waits, |master| {
        let_pass(life);
        match how {
            TakeOver::Killed => {
                master.kill();
                wait_until("the link is down", PATIENCE, || {
                    replica.info("replication", "master_link_status") == "down"
                });
                replica.promote();
            }
            TakeOver::Asked => {
                cmd!(
                    master.connect(),
                    "FAILOVER",
                    "TO",
                    "127.0.0.1",
                    replica.port()
                );
                wait_until("they have changed places", PATIENCE, || {
                    replica.info("replication", "role") == "master"
                });
            }
            TakeOver::Parted(time) => {
                replica.promote();
                let_pass(time);
                master.follow(&replica);
            }
        }
    });
    Losses::of(&answers, &there(&replica))
}

/// How a master that others watch over fails.
#[derive(Clone, Copy, PartialEq)]
enum Failure {
    Killed,
    /// It stands still until another one is master, and then goes on until it is told so.
    Frozen,
}

impl Failure {
    fn befall(self, master: &mut Server, mut replaced: impl FnMut() -> bool) {
        match self {
            Failure::Killed => master.kill(),
            Failure::Frozen => master.signal("STOP"),
        }
        wait_until("another one is master", PATIENCE, &mut replaced);
        if self == Failure::Frozen {
            master.signal("CONT");
            wait_until("it has been told", PATIENCE, || is_replica(master));
        }
    }
}

fn under_sentinel(builder: &Builder, failure: Failure, life: Duration) -> Losses {
    let mut watched = Watched::start_with(builder);
    let mut master = watched.servers.remove(0);
    let port = master.port().to_string();
    let answers = Answers::during(&mut master, false, |master| {
        let_pass(life);
        failure.befall(master, || watched.port() != port);
    });
    let is_master = |server: &&Server| server.port().to_string() == watched.port();
    let new = watched
        .servers
        .iter()
        .find(is_master)
        .expect("one of the replicas");
    Losses::of(&answers, &there(new))
}

fn in_a_cluster(failure: Failure, life: Duration) -> Losses {
    let (mut cluster, master, replica) = with_replica(QUEUE);
    let new = cluster.nodes.remove(replica);
    let answers = Answers::during(&mut cluster.nodes[master], false, |master| {
        let_pass(life);
        failure.befall(master, || new.info("replication", "role") == "master");
    });
    Losses::of(&answers, &there(&new))
}

/// A snapshot is begun each second in which something has changed.
fn settings() -> [(&'static str, Builder); 4] {
    let aof = |policy: &str| Server::builder().aof().config("appendfsync", policy);
    [
        ("AOF, `appendfsync always`", aof("always")),
        ("AOF, `appendfsync everysec`", aof("everysec")),
        ("AOF, `appendfsync no`", aof("no")),
        (
            "RDB alone, `save 1 1`",
            Server::builder().config("save", "1 1"),
        ),
    ]
}

/// No write without a replica that was heard of within about a second.
fn needs_replicas() -> Builder {
    let builder = Server::builder().config("min-replicas-to-write", 1);
    builder.config("min-replicas-max-lag", 1)
}

#[test]
fn what_is_said_to_lose_nothing_loses_nothing() {
    let life = Duration::from_millis(300);
    let [(name, always), .., (_, rdb)] = settings();
    for fault in [Fault::Killed, Fault::PowerLoss] {
        alone(&always, fault, life).assert_none(name);
    }
    let plain = Server::builder();
    replicated(&plain, TakeOver::Killed, true, life).assert_none("WAIT");
    replicated(&plain, TakeOver::Asked, false, life).assert_none("FAILOVER");
    // A snapshot cannot have what came after it: this would be noticed.
    let lost = alone(&rdb, Fault::PowerLoss, life);
    assert!(lost.lost > 0, "a canary that must lose something: {lost}");
}

/// The rows of docs/reliability.md, by `make durability`.
#[test]
#[ignore = "a measurement"]
fn figures() {
    const RUNS: u64 = 10;
    println!("| Setting | Fault | Runs | Jobs lost | Jobs done that come again | At most |\n|---|---|---|---|---|---|");
    let row = |setting: &str, fault: &str, run: &dyn Fn(Duration) -> Losses| {
        let mut sum = Losses::default();
        for number in 0..RUNS {
            sum.take_in(run(Duration::from_millis(1500 + 170 * number)));
        }
        println!("| {setting} | {fault} | {sum} |");
    };
    for (name, builder) in settings() {
        row(name, "`kill -9`", &|life| {
            alone(&builder, Fault::Killed, life)
        });
        row(name, "power", &|life| {
            alone(&builder, Fault::PowerLoss, life)
        });
    }
    let (plain, guarded) = (Server::builder(), needs_replicas());
    let parted = TakeOver::Parted(Duration::from_secs(5));
    let replica = "a replica";
    row(replica, "`kill -9`, it is promoted", &|life| {
        replicated(&plain, TakeOver::Killed, false, life)
    });
    row(
        "a replica, `WAIT 1` after each command",
        "`kill -9`, it is promoted",
        &|life| replicated(&plain, TakeOver::Killed, true, life),
    );
    row(replica, "`FAILOVER`", &|life| {
        replicated(&plain, TakeOver::Asked, false, life)
    });
    row(
        replica,
        "it is promoted, the master goes on for 5 s",
        &|life| replicated(&plain, parted, false, life),
    );
    row(
        "a replica, `min-replicas-to-write 1`",
        "it is promoted, the master goes on for 5 s",
        &|life| replicated(&guarded, parted, false, life),
    );
    for (failure, fault) in [
        (Failure::Killed, "`kill -9`"),
        (Failure::Frozen, "stands still, and goes on"),
    ] {
        for (setting, builder) in [
            ("Sentinel, two replicas", &plain),
            (
                "Sentinel, two replicas, `min-replicas-to-write 1`",
                &guarded,
            ),
        ] {
            row(setting, fault, &|life| {
                under_sentinel(builder, failure, life)
            });
        }
        row("cluster, one replica", fault, &|life| {
            in_a_cluster(failure, life)
        });
    }
}
