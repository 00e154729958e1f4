//! Small queues that nobody uses sleep as bytes: they take little memory, keep their data, and wake in time.

use crate::memory::{for_all, is_sanitized};
use crate::scene::{Lines, Scene};
use crate::support::{skipped, wait_until, Raw, Server, PATIENCE};

/// Bytes that a queue of a few jobs takes besides ids and payloads: much less if asleep, much more if awake.
const BESIDE: i64 = 600;

/// Of about so many bytes of ids and payloads.
fn is_asleep(client: &mut Raw, key: &str, content: i64) -> bool {
    client.int(&format!("MEMORY USAGE {key} SAMPLES 0")) < content + BESIDE
}

#[track_caller]
fn wait_for_sleep(client: &mut Raw, keys: &[&str]) {
    for key in keys {
        wait_until(format!("{key} sleeps"), PATIENCE, || {
            is_asleep(client, key, 100)
        });
    }
}

fn used(server: &Server) -> f64 {
    server.number("memory", "used_memory") as f64
}

/// Against a sorted set and a hash of the same jobs, in the same server.
#[test]
fn they_take_little() {
    const PAYLOAD: &str = "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp";
    let mut told = Vec::new();
    for (jobs, most) in [(1, 1.8), (2, 1.6), (5, 1.2), (20, 1.0), (64, 0.9)] {
        // A new one each time: what was flushed is freed step by step.
        let server = Server::start();
        let allocator = server.info("memory", "mem_allocator");
        if !allocator.starts_with("jemalloc") || is_sanitized(&server) {
            return skipped("sizes are those of jemalloc");
        }
        let mut client = server.raw();
        let queues = 4000 / jobs + 200;
        let mut fill = |lines: &[&str]| {
            let before = used(&server);
            for job in 0..jobs {
                let id = format!("job-{:012}", job * 7919 % 1000);
                for line in lines {
                    let line = line.replace("JOB", &id).replace("PAYLOAD", PAYLOAD);
                    for_all(&mut client, queues, &line);
                }
            }
            before
        };
        let before = fill(&[
            "ZADD z:1000000@ 9000000000000 JOB",
            "HSET h:1000000@ JOB PAYLOAD",
        ]);
        let other = used(&server) - before;
        let before = fill(&["DQ.ADD q:1000000@ JOB PAYLOAD DELAY 90000000"]);
        let mut ratio = f64::MAX;
        wait_until(format!("queues of {jobs} take little"), PATIENCE, || {
            ratio = (used(&server) - before) / other;
            ratio < most
        });
        told.push(format!("{jobs} jobs: {ratio:.2}"));
    }
    println!("{told:?} of a sorted set with a hash");
}

/// All that a small queue may have.
fn furnish(client: &mut Raw) -> [&'static str; 6] {
    for line in [
        "DQ.ADD delayed a x DELAY 9000000 PRIORITY 3 BACKOFF 2 10 20",
        "DQ.ADD delayed b x DELAY 9000000",
        "DQ.ADD ready a x PRIORITY 7 TTL 9000000",
        "DQ.ADD ready b x PRIORITY -7",
        "DQ.ADD ready c x",
        "DQ.ADD reserved a x",
        "DQ.POP reserved TTR 9000000",
        "DQ.ADD dead a x",
        "DQ.POP dead",
        "DQ.NACK dead a FATAL REASON because",
        "DQ.ADD followed a x DELAY 9000000",
        "DQ.ADD followed a y NEXT",
        "DQ.CFGSET settled TTR 5000 MAXLEN 10",
        "DQ.ADD settled a x",
        "DQ.PAUSE settled 9000000",
    ] {
        let reply = client.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
    [
        "delayed", "ready", "reserved", "dead", "followed", "settled",
    ]
}

/// What DQ.STATS counts: totals, which are not part of the data.
fn totals(client: &mut Raw, key: &str) -> Vec<String> {
    const NAMES: [&str; 3] = ["added", "delivered", "nacked"];
    let words = client.words(&format!("DQ.STATS {key}"));
    let mut totals = Vec::new();
    for pair in words.windows(2) {
        if NAMES.contains(&pair[0].as_str()) {
            totals.extend(pair.to_vec());
        }
    }
    assert_eq!(totals.len(), 2 * NAMES.len(), "{words:?}");
    totals
}

#[test]
fn they_are_what_they_were() {
    let server = Server::start();
    let replica = Server::start();
    replica.replica_of(&server);
    let mut client = server.raw();
    let keys = furnish(&mut client);
    let digest = server.digest();
    let dumps: Vec<String> = keys
        .iter()
        .map(|key| client.ask(&format!("DUMP {key}")))
        .collect();
    let counted = keys.map(|key| totals(&mut client, key));
    wait_for_sleep(&mut client, &keys);
    assert_eq!(server.digest(), digest);
    for (key, dump) in keys.iter().zip(dumps) {
        assert_eq!(client.ask(&format!("DUMP {key}")), dump, "{key}");
        client.says(&format!("COPY {key} {key}:copy DB 1"), "1");
        assert!(is_asleep(&mut client, key, 100), "{key} is not woken");
    }
    wait_for_sleep(&mut replica.raw(), &keys);
    server.assert_followed_by(&[&replica]);
    for (key, counted) in keys.iter().zip(counted) {
        assert_eq!(totals(&mut client, key), counted, "{key}");
    }
    wait_for_sleep(&mut client, &keys);
    let with_copies = server.digest();
    client.says("DEBUG RELOAD", "+OK");
    assert_eq!(server.digest(), with_copies);
    client.says("FLUSHDB", "+OK");
    assert_eq!(server.number("dq", "dq_queues"), keys.len() as u64);
}

/// Due times, leases and TTLs work while a queue sleeps; INFO knows them without waking it.
#[test]
fn they_wake_in_time() {
    let server = Server::start();
    let mut client = server.raw();
    let mut waiting = server.waiting("DQ.BPOP waited 0");
    for line in [
        "DQ.ADD waited a x DELAY 6000",
        "DQ.ADD leased a x",
        "DQ.POP leased TTR 6000",
        "DQ.ADD expiring a x DELAY 90000 TTL 6000",
        "DQ.ADD expiring b x DELAY 90000",
        "DQ.ADD counted a x DELAY 6000",
    ] {
        client.run(line);
    }
    wait_until("a due is counted", PATIENCE, || {
        server.number("dq", "dq_jobs_ready") >= 1
    });
    wait_for_sleep(&mut client, &["counted"]);
    assert_eq!(waiting.delivery().id, "a");
    wait_until("the lease has ended", PATIENCE, || {
        server.number("dq", "dq_timed_out_total") == 1
    });
    client.says("DQ.LEN leased READY", "1");
    wait_until("the TTL has ended", PATIENCE, || {
        server.number("dq", "dq_expired_total") == 1
    });
    client.says("DQ.LEN expiring", "1");
    wait_for_sleep(&mut client, &["waited", "leased", "expiring", "counted"]);
}

/// Who works on its jobs is no data, and yet known when it wakes.
#[test]
fn they_know_who_works() {
    let server = Server::start();
    let (mut client, mut worker) = (server.raw(), server.raw());
    worker.says("CLIENT SETNAME worker", "+OK");
    for id in 0..4 {
        client.run(&format!("DQ.ADD q {id} x"));
        let popper = if id % 2 == 0 {
            &mut worker
        } else {
            &mut client
        };
        popper.run("DQ.POP q TTR 900000");
    }
    client.says("CLIENT SETNAME client", "+OK");
    wait_for_sleep(&mut client, &["q"]);
    for id in 0..4 {
        let fields = client.words(&format!("DQ.GET q {id}"));
        let name = if id % 2 == 0 { "worker" } else { "client" };
        assert!(fields.contains(&name.to_owned()), "{id}: {fields:?}");
    }
}

/// A sleeping queue stays asleep wherever it is moved.
#[test]
fn they_sleep_under_other_names() {
    let server = Server::start();
    let mut client = server.raw();
    for key in ["a", "b", "c", "d"] {
        client.run(&format!("DQ.ADD {key} job x DELAY 900000"));
    }
    client.says("RENAME a renamed", "+OK");
    client.says("MOVE b 1", "1");
    wait_for_sleep(&mut client, &["renamed", "c", "d"]);
    client.says("RENAME c late", "+OK");
    client.says("DQ.LEN late", "1");
    client.says("DQ.LEN renamed", "1");
    wait_for_sleep(&mut client, &["renamed", "late"]);
    // Awake when the databases change places.
    client.says("DQ.LEN renamed", "1");
    client.says("SWAPDB 0 1", "+OK");
    client.says("DQ.LEN b", "1");
    wait_for_sleep(&mut client, &["b"]);
    client.says("SELECT 1", "+OK");
    client.says("DQ.LEN d", "1");
    client.says("DEL late", "1");
    wait_for_sleep(&mut client, &["renamed", "d"]);
    assert_eq!(server.number("dq", "dq_queues"), 3);
}

/// Large queues, and those with state that a snapshot does not contain, do not sleep.
#[test]
fn others_stay_awake() {
    let server = Server::start();
    let mut client = server.raw();
    for_all(&mut client, 65, "DQ.ADD many job-@ x DELAY 900000");
    client.says("DQ.CFGSET rated RATE 5 900000", "+OK");
    client.run("DQ.ADD rated a x");
    client.run("DQ.ADD grouped a x GROUP g DELAY 900000");
    client.run("DQ.ADD recurring a x EVERY 900000");
    client.run("DQ.ADD small a x DELAY 900000");
    wait_for_sleep(&mut client, &["small"]);
    // Twice, so that the others have had their look.
    client.says("DQ.LEN small", "1");
    wait_for_sleep(&mut client, &["small"]);
    for key in ["rated", "grouped", "recurring"] {
        assert!(!is_asleep(&mut client, key, 100), "{key}");
    }
    assert!(!is_asleep(&mut client, "many", 65 * 7));
}

/// Memory of large jobs, and of jobs of many sizes: what only a few of them leave free is released first.
#[test]
fn what_is_left_of_more_sleeps() {
    const LARGE: usize = 930;
    let server = Server::start();
    let mut client = server.raw();
    let mut left = 0;
    for size in (1..=448).step_by(16) {
        let payload = "p".repeat(size);
        for_all(
            &mut client,
            20,
            &format!("DQ.ADD sizes {size}:@ {payload} DELAY 900000"),
        );
        for_all(&mut client, 19, &format!("DQ.DEL sizes {size}:@"));
        left += size + 8;
    }
    let payload = "p".repeat(LARGE);
    for_all(
        &mut client,
        32,
        &format!("DQ.ADD large job-@ {payload} DELAY 900000"),
    );
    for_all(&mut client, 28, "DQ.DEL large job-@");
    for (key, content) in [("sizes", left), ("large", 4 * (LARGE + 8))] {
        wait_until(format!("{key} sleeps"), PATIENCE, || {
            client.int(&format!("MEMORY USAGE {key} SAMPLES 0")) < content as i64 * 5 / 4
        });
    }
    client.says("DQ.LEN sizes", "28");
    client.says("DQ.LEN large", "4");
}

/// Used more often than the rounds come by: one key, and two names in turn.
#[test]
fn queues_that_come_and_go_leave_nothing() {
    const TURNS: usize = 150_000;
    let server = Server::start();
    let mut client = server.raw();
    client.run("DQ.ADD a x p DELAY 900000");
    let before = used(&server);
    let turn = ["DQ.ADD q a p", "DEL q", "RENAME a b", "RENAME b a"];
    for chunk in 0..TURNS / 100 {
        for _ in 0..100 {
            for line in turn {
                client.begin(line);
            }
        }
        for _ in 0..100 * turn.len() {
            let reply = client.reply();
            assert!(!reply.starts_with('-'), "{chunk}: {reply}");
        }
    }
    let grown = used(&server) - before;
    assert!(grown < 1_500_000.0, "{grown} bytes");
}
