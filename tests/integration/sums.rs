//! INFO dq over all queues: sums that are kept up to date equal those of a walk over all keys.

use crate::probe::{packed, plain, show};
use crate::scene::{now_ms, pair, Dice, Lines, Scene};
use crate::support::{wait_until, Raw, Reply, Server, PATIENCE};

const STATES: [&str; 5] = ["DELAYED", "READY", "RESERVED", "DEAD", "DONE"];
const SUMS: usize = STATES.len() + 3;

/// Queues and jobs by state, as INFO says.
fn told(client: &mut Raw) -> [u64; SUMS] {
    let text = plain(&client.run("INFO dq"));
    let field = |name: &str| {
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
        let value = values.find_map(|value| value.strip_prefix(':'));
        value
            .and_then(|value| value.parse().ok())
            .expect("a number")
    };
    [
        field("dq_queues"),
        field("dq_jobs_delayed"),
        field("dq_jobs_ready"),
        field("dq_jobs_reserved"),
        field("dq_jobs_dead"),
        field("dq_jobs_done"),
        field("dq_bytes"),
        field("dq_done_bytes"),
    ]
}

/// The same, found by asking each key of these databases.
fn found(client: &mut Raw, databases: usize) -> [u64; SUMS] {
    let mut sums = [0; SUMS];
    for database in 0..databases {
        client.run(&format!("SELECT {database}"));
        for key in client.words("KEYS *") {
            if plain(&client.run(&format!("TYPE {key}"))) != "dq-queue1" {
                continue;
            }
            sums[0] += 1;
            for (at, state) in STATES.iter().enumerate() {
                sums[at + 1] += client.int(&format!("DQ.LEN {key} {state}")) as u64;
            }
            sums[6] += bytes(client, &key, "bytes");
            sums[7] += bytes(client, &key, "done-bytes");
        }
    }
    client.run("SELECT 0");
    sums
}

fn bytes(client: &mut Raw, key: &str, name: &str) -> u64 {
    let stats = client.words(&format!("DQ.STATS {key}"));
    let at = stats.iter().position(|word| word == name);
    // The key may have expired since.
    at.and_then(|at| stats.get(at + 1)?.parse().ok())
        .unwrap_or(0)
}

fn all_sent(client: &mut Raw, lines: impl Iterator<Item = String>) {
    let sent = lines.map(|line| client.begin(&line)).count();
    (0..sent).for_each(|_| drop(client.read()));
}

/// The first call is right, and so is one after due times have come in all queues.
#[test]
fn are_exact_at_any_number_of_queues() {
    const QUEUES: u64 = 12_000;
    let server = Server::start();
    let mut client = server.raw();
    let key = |number: u64| format!("q{number}");
    for start in (0..QUEUES).step_by(1000) {
        let keys = move || (start..start + 1000).map(key);
        let due = 3_000_000_000_000u64;
        all_sent(
            &mut client,
            keys().map(|key| format!("DQ.ADD {key} later x AT {due}")),
        );
        all_sent(&mut client, keys().map(|key| format!("DQ.ADD {key} now x")));
    }
    // "later" and "now", with their payloads.
    assert_eq!(
        told(&mut client),
        [QUEUES, QUEUES, QUEUES, 0, 0, 0, 10 * QUEUES, 0]
    );
    for start in (0..QUEUES).step_by(1000) {
        let keys = (start..start + 1000).map(key);
        all_sent(
            &mut client,
            keys.map(|key| format!("DQ.RESCHEDULE {key} DELAY 1000 later")),
        );
    }
    let all_due = client.int("DQ.LEN q0 READY");
    wait_until("the dues have come", PATIENCE, || {
        client.int(&format!("DQ.LEN q{} READY", QUEUES - 1)) == 2
    });
    assert_eq!(
        told(&mut client),
        [QUEUES, 0, 2 * QUEUES, 0, 0, 0, 10 * QUEUES, 0],
        "{all_due}"
    );
    client.run("UNLINK q1 q2 q3");
    client.run("DQ.POP q4");
    let left = [QUEUES - 3, 0, 2 * QUEUES - 7, 1, 0, 0, 10 * (QUEUES - 3), 0];
    assert_eq!(told(&mut client), left);
    client.run("DEBUG RELOAD");
    assert_eq!(told(&mut client), left);
    client.run("FLUSHALL ASYNC");
    assert_eq!(told(&mut client), [0; SUMS]);
}

/// Over all queues in all databases, whatever happens to each.
#[test]
fn the_oldest_job_that_is_ready_is_known() {
    let server = Server::start();
    let mut client = server.raw();
    let mut oldest_due = || {
        let before = now_ms();
        let text = plain(&client.run("INFO dq"));
        let after = now_ms();
        let mut lines = text.lines();
        let age = lines.find_map(|line| line.strip_prefix("dq_oldest_ready_ms:"));
        let age: u64 = age.and_then(|age| age.parse().ok()).expect("a number");
        (before - age.min(before)..=after - age.min(after), age)
    };
    assert_eq!(oldest_due().1, 0);
    let mut other = server.raw();
    for key in 0..40 {
        other.run(&format!("DQ.ADD k{key} a x AT {}", 1_000_000 + key));
        other.run(&format!("DQ.ADD k{key} later x DELAY 1000000"));
    }
    assert!(oldest_due().0.contains(&1_000_000));
    other.run("DQ.POP k0 TTR 100000");
    assert!(oldest_due().0.contains(&1_000_001));
    for line in [
        "DEL k1",
        "DQ.PURGE k2 READY",
        "DQ.RESCHEDULE k3 DELAY 50000 a",
        "UNLINK k4",
    ] {
        other.run(line);
    }
    assert!(oldest_due().0.contains(&1_000_005));
    other.run("MOVE k5 1");
    other.run("RENAME k6 k6");
    assert!(oldest_due().0.contains(&1_000_005));
    other.run("DQ.NACK k0 a SILENT");
    assert!(oldest_due().0.contains(&1_000_000));
    other.run("DEBUG RELOAD");
    assert!(oldest_due().0.contains(&1_000_000));
    other.run("FLUSHALL");
    other.run("DQ.ADD q a x DELAY 100000");
    assert_eq!(oldest_due().1, 0, "what is not due is not old");
}

/// One of the many ways in which queues come, change and go.
fn line(dice: &mut Dice) -> String {
    let [key, other] = [0; 2].map(|_| format!("k{}", dice.below(5)));
    let id = dice.below(6);
    let line = match dice.below(30) {
        0..=5 => format!("DQ.ADD {key} {id} x DELAY {}", dice.below(3) * 20),
        6 => format!(
            "DQ.ADD {key} {id} x DELAY 100000 PRIORITY {}",
            dice.below(3)
        ),
        7 => format!("DQ.ADD {key} {id} x TTL 10 REPLACE"),
        8..=10 => format!("DQ.POP {key} TTR {}", [5, 100_000][dice.below(2) as usize]),
        11 => format!("DQ.POP {key} COUNT 3 NOACK"),
        12 => format!("DQ.ACK {key} 0 1 2 3 4 5"),
        13 => format!("DQ.NACK {key} {id} FATAL"),
        14 => format!("DQ.KICK {key} COUNT 2"),
        15 => format!("DQ.RESCHEDULE {key} DELAY {} {id}", dice.below(2) * 50),
        16 => format!(
            "DQ.PURGE {key} {}",
            dice.pick(&["READY", "DEAD", "DONE", "RESERVED", "ALL"])
        ),
        17 => format!(
            "DQ.CFGSET {key} DEADLEN {} DONELEN {}",
            dice.below(3),
            1 + dice.below(3)
        ),
        18 => format!("{} {key}", dice.pick(&["DEL", "UNLINK"])),
        19 => format!("RENAME {key} {other}"),
        20 => format!("MOVE {key} {}", dice.below(2)),
        21 => format!("COPY {key} {other} REPLACE"),
        22 => format!("COPY {key} {other} DB 1"),
        23 => "SWAPDB 0 1".into(),
        24 => format!("SET {key} x"),
        25 => format!("PEXPIRE {key} {}", dice.below(20)),
        26 => format!("SELECT {}", dice.below(2)),
        27 => format!("DQ.BPOP {key} {other} 0.01"),
        28 if dice.below(10) == 0 => dice.pick(&["FLUSHDB", "FLUSHALL ASYNC"]).into(),
        _ => format!("DQ.DEL {key} {id}"),
    };
    line
}

#[test]
fn follow_whatever_happens_to_queues() {
    let (master, replica) = pair(Server::builder());
    let (mut client, mut on_replica) = (master.raw(), replica.raw());
    let mut dice = Dice::new(14);
    let mut seen = [0; SUMS];
    for step in 0..4000 {
        let line = line(&mut dice);
        let reply = client.run(&line);
        if dice.below(40) == 0 {
            // A payload replaces the queue.
            if let Reply::Bulk(dump) = client.run("DUMP k1") {
                client.call(&[b"RESTORE", b"k2", b"0", &dump, b"REPLACE"]);
            }
        }
        if step % 8 > 0 {
            continue;
        }
        // Something may become due between the two.
        let (mut a, mut b) = ([0; SUMS], [1; SUMS]);
        wait_until(format!("{line} -> {}", show(&reply)), PATIENCE, || {
            (a, b) = (told(&mut client), found(&mut client, 2));
            a == b
        });
        (0..SUMS).for_each(|at| seen[at] += a[at]);
    }
    assert!(seen.iter().all(|&sum| sum > 0), "{seen:?}");
    replica.wait_for_offset_of(&master);
    wait_until("the replica's sums", PATIENCE, || {
        told(&mut on_replica) == found(&mut on_replica, 2)
    });
    // An expired key that still exists would be counted, and left out by a load: so none expires any more.
    for database in 0..2 {
        client.run(&format!("SELECT {database}"));
        for key in client.words("KEYS *") {
            client.run(&format!("PERSIST {key}"));
        }
    }
    client.run("SELECT 0");
    wait_until("before a load", PATIENCE, || {
        told(&mut client) == found(&mut client, 2)
    });
    client.run("DEBUG RELOAD");
    wait_until("after a load", PATIENCE, || {
        told(&mut client) == found(&mut client, 2)
    });
}

/// No client looks at the new queue, yet its leases expire in time.
#[test]
fn a_copy_is_known_whose_database_is_swapped_at_once() {
    let server = Server::start();
    let mut client = server.raw();
    client.run("DQ.ADD q a x TTR 300");
    client.run("DQ.POP q");
    for line in ["MULTI", "COPY q copy", "SWAPDB 0 1", "EXEC"] {
        client.run(line);
    }
    wait_until("both leases have ended", PATIENCE, || {
        server.number("dq", "dq_timed_out_total") == 2
    });
    let sums = told(&mut client);
    assert_eq!((sums, sums[0]), (found(&mut client, 2), 2));
}

/// Keys that the server evicts when memory is short.
#[test]
fn follow_what_is_evicted() {
    let server = Server::builder()
        .config("maxmemory-policy", "allkeys-lru")
        .start();
    let mut client = server.raw();
    let payload = "x".repeat(2000);
    for key in 0..2000 {
        // The first keys, which the server also considers oldest, have the oldest jobs.
        client.run(&format!("DQ.ADD q{key} a {payload} AT {}", 1000 + key));
        client.run(&format!("DQ.ADD q{key} later {payload} DELAY 10000000"));
    }
    assert_eq!(told(&mut client)[0], 2000);
    let used = server.number("memory", "used_memory");
    client.run(&format!("CONFIG SET maxmemory {}", used - 3_000_000));
    wait_until("some are evicted", PATIENCE, || {
        // A write makes the server check its memory.
        client.run("SET other x");
        server.number("stats", "evicted_keys") > 300
    });
    client.run("CONFIG SET maxmemory 0");
    let sums = told(&mut client);
    assert!(sums[0] <= 1700, "{sums:?}");
    assert_eq!(sums, found(&mut client, 1));
    let oldest = client.words("KEYS q*").into_iter();
    let oldest = oldest
        .map(|key| key[1..].parse::<u64>().expect("a number"))
        .min();
    let (before, age) = (now_ms(), server.number("dq", "dq_oldest_ready_ms"));
    let due = 1000 + oldest.expect("some are left");
    assert!((before - due..=now_ms() - due).contains(&age));
}

/// Even if the server does not report new names, INFO looks for the queue itself.
#[test]
fn a_queue_that_was_just_renamed_is_counted() {
    let server = Server::start();
    let mut client = server.raw();
    for number in 0..100 {
        client.run(&format!("SET {number} x"));
    }
    for lines in [
        "RENAME a b",
        "MOVE a 3",
        "COPY a b",
        "RENAME a b\nRENAME b c",
    ] {
        client.says("DQ.ADD a j x DELAY 100000", "'j'");
        let queues = u64::from(lines.starts_with("COPY")) + 1;
        // In one packet, before any timer.
        let sent: Vec<u8> = lines.lines().chain(["INFO dq"]).flat_map(packed).collect();
        client.send(&sent);
        lines.lines().for_each(|_| drop(client.read()));
        let info = plain(&client.read());
        let has = |field: String| info.lines().any(|line| line == field);
        assert!(has(format!("dq_queues:{queues}")), "{lines}: {info}");
        assert!(has(format!("dq_jobs_delayed:{queues}")), "{lines}: {info}");
        client.says("FLUSHALL", "+OK");
    }
}
