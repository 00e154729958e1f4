//! Files of every encoding version that a module has written: `encodings/<version>`, with the digest that their data
//! had then.

use std::path::{Path, PathBuf};

use crate::scene::Lines;
use crate::support::{root, wait_until, Raw, Server, PATIENCE};

const ENCODINGS: [(&str, &str); 2] = [
    ("1", "a8254faf2b2dd20bca3e971706925db2ac21e954"),
    ("2", "a8254faf2b2dd20bca3e971706925db2ac21e954"),
];

/// Loaded by a server that changes nothing by itself: a replica without its master.
#[test]
fn all_encodings_stay_readable() {
    for (version, digest) in ENCODINGS {
        let server = Server::builder()
            .config("replicaof", "127.0.0.1 1")
            // An AOF would be read instead.
            .config("appendonly", "no")
            .with_files_of(folder_of(version))
            .start();
        assert_eq!(server.digest(), digest, "encoding {version}");
        let mut client = server.raw();
        client.says("DQ.LEN full", "6");
        client.says("DQ.LEN large", "100");
        // The data is written as it was read.
        client.says("DEBUG RELOAD", "+OK");
        assert_eq!(server.digest(), digest, "encoding {version}, written again");
    }
}

/// Made by the build before failures were recorded and jobs had successors: a file, an AOF of effects, a DUMP.
#[test]
fn files_of_the_build_before_are_read() {
    let folder = folder_of("2-effects-1");
    let replica = |config: &str| {
        Server::builder()
            .config("replicaof", "127.0.0.1 1")
            .config("appendonly", config)
            .with_files_of(&folder)
            .start()
    };
    let file = replica("no");
    assert_eq!(file.digest(), "b3993c398b4df247ba21883f3d673284679231d7");
    // Its effects are applied as they are today: the end of a lease is recorded.
    let aof = replica("yes");
    let mut client = aof.raw();
    for (field, value) in [
        ("state", "dead"),
        ("reason", "lease ended"),
        ("failed", "1795311960796"),
        ("token", "1882521034601529344"),
    ] {
        let job = client.words("DQ.GET full once");
        let at = job.iter().position(|word| word == field);
        assert_eq!(at.map(|at| &*job[at + 1]), Some(value), "{field}");
    }
    client.says("DQ.LEN full", "4");
    client.says("DQ.LEN full DEAD", "2");
    client.says("DQ.LEN large", "100");
    let dump = std::fs::read(folder.join("full.dump")).expect("a DUMP");
    let server = Server::start();
    let mut client = server.raw();
    client.call(&[b"RESTORE", b"full", b"0", &dump]);
    let mut of_file = file.raw();
    for line in [
        "DQ.LEN full DEAD",
        "DQ.CFGGET full",
        "DEBUG DIGEST-VALUE full",
    ] {
        assert_eq!(client.ask(line), of_file.ask(line), "{line}");
    }
}

pub fn folder_of(name: &str) -> PathBuf {
    root().join("tests/integration/encodings").join(name)
}

/// As RDB and as AOF, on a replica, which expires no lease; and again as they are written now.
#[track_caller]
fn assert_read(folder: &Path, digest: &str, check: impl Fn(&mut Raw)) {
    for appendonly in ["no", "yes"] {
        let server = Server::builder()
            .config("replicaof", "127.0.0.1 1")
            .config("appendonly", appendonly)
            .with_files_of(folder)
            .start();
        assert_eq!(server.digest(), digest, "appendonly {appendonly}");
        let mut client = server.raw();
        check(&mut client);
        client.says("DEBUG RELOAD", "+OK");
        assert_eq!(server.digest(), digest, "{appendonly}, written again");
    }
}

/// Made by the build before jobs had groups, with rules, failures and successors.
#[test]
fn files_from_before_groups_are_read() {
    const DIGEST: &str = "8cd9dae0adcc4dbd06a27fca47360d2756f75ef6";
    let folder = folder_of("4-effects-3");
    assert_read(&folder, DIGEST, |client| {
        client.says("DQ.LEN full", "5");
        client.says("DQ.LEN full DEAD", "1");
        client.says("DQ.GROUPS full 0", "[ '0' [ ] ]");
    });
    let dump = std::fs::read(folder.join("full.dump")).expect("a DUMP");
    let server = Server::start();
    let mut client = server.raw();
    client.call(&[b"RESTORE", b"full", b"0", &dump]);
    // Its jobs work beside others that have a group.
    client.says("DQ.ADD full new x GROUP tenant", "'new'");
    client.says("DQ.ACK full leased", "1");
    client.says("DQ.LEN full GROUP tenant", "1");
    client.says("DQ.LEN full", "6");
}

/// Made by the build before jobs had notes, with groups, rules and a successor.
#[test]
fn files_from_before_notes_are_read() {
    const DIGEST: &str = "88e4c6ac024469d743c4b3aa092957fc248f6a98";
    let folder = folder_of("5-effects-4");
    assert_read(&folder, DIGEST, |client| {
        client.says("DQ.LEN full", "7");
        client.says("DQ.LEN full GROUP tenant", "2");
        client.says("DQ.LEN full DEAD", "1");
        let words = client.words("DQ.GET full leased");
        assert!(words.windows(2).any(|field| field == ["next", "after"]));
    });
    let dump = std::fs::read(folder.join("full.dump")).expect("a DUMP");
    let server = Server::start();
    let mut client = server.raw();
    client.call(&[b"RESTORE", b"full", b"0", &dump]);
    // Its jobs work, and may have notes.
    client.says("DQ.ACK full leased", "1");
    client.says("DQ.ADD full leased x REPLACE KEEP 5", "'leased'");
    client.says("DQ.LEN full", "7");
}

/// Made by the build before jobs could recur, with failures, successors and a remembered id.
#[test]
fn files_from_before_recurring_jobs_are_read() {
    const DIGEST: &str = "096cf8e6b67e71c75dff0921e94724d54037f8cb";
    const JOBS: [(&str, &str); 5] = [
        (
            "delayed",
            "state delayed due 4000000000000 attempts 0 reason nil$ next nil$",
        ),
        (
            "leased",
            "state reserved due 1795336924321 attempts 1 reason nil$ next after",
        ),
        (
            "dead",
            "state dead due 1795336924321 attempts 1 reason no\\x20route next nil$",
        ),
        (
            "once",
            "state dead due 1795336924321 attempts 1 reason lease\\x20ended next nil$",
        ),
        (
            "retried",
            "state delayed due 2795336924440 attempts 1 reason  next nil$",
        ),
    ];
    let folder = folder_of("3-effects-2");
    assert_read(&folder, DIGEST, |client| {
        for (id, expected) in JOBS {
            let words = client.words(&format!("DQ.GET full {id}"));
            let wanted = ["state", "due", "attempts", "reason", "next"];
            let fields = words.chunks(2).filter(|field| wanted.contains(&&*field[0]));
            let fields: Vec<String> = fields.map(|field| field.join(" ")).collect();
            assert_eq!(fields.join(" "), expected.replace("\\x20", " "), "{id}");
        }
    });
    let dump = std::fs::read(folder.join("full.dump")).expect("a DUMP");
    let server = Server::start();
    let mut client = server.raw();
    client.call(&[b"RESTORE", b"full", b"0", &dump]);
    client.says("DQ.LEN full", "3");
    client.says("DQ.LEN full DEAD", "2");
    // Its jobs work: the successor takes its place, and other jobs may recur.
    client.says("DQ.ACK full leased", "1");
    client.says("DQ.LEN full DELAYED", "3");
    client.says("DQ.ADD full each x EVERY 60000", "'each'");
    client.says("DQ.LEN full", "4");
}

/// Made by the first build with outcomes, flows and steps. One half of `full` is in the base of its AOF, the other one
/// in the increment.
#[test]
fn files_with_outcomes_flows_and_steps_are_read() {
    const DIGEST: &str = "6e90ec7edc87dcfee1a9f44ca79cbb6a87ee84de";
    /// What DQ.GET shows of them, in its order.
    const JOBS: [(&str, &[&str]); 12] = [
        ("done", &["'state' 'done'", "'result' 'result\\x00\\xff'"]),
        ("kept", &["'state' 'done'", "'keep' 1000000000000", "'result' nil$"]),
        ("unkept", &["nil$"]),
        (
            "steps",
            &[
                "'state' 'reserved'",
                "'progress' 'half'",
                "'steps' [ 'paid' '1' 'sent' '\\x00' ]",
            ],
        ),
        ("waits", &["'due' 4398046511103", "'awaits' 'approved'"]),
        ("signalled", &["'state' 'delayed'", "'steps' [ 'approved' 'yes' ]"]),
        (
            "join",
            &[
                "'state' 'blocked'",
                "'after' [ 'HALF-a' ]",
                "'on-dead' 'wait'",
                "'results' [ [ 'HALF-done' 'done' 'result\\x00\\xff' ] [ 'HALF-a' nil$ nil$ ] [ 'HALF-b' 'done' 'of\\x20b' ] ]",
            ],
        ),
        ("run", &["'state' 'ready'", "'results' [ [ 'HALF-a' 'dead' 'no\\x20route' ] ]"]),
        ("die", &["'state' 'dead'", "'reason' 'after\\x20HALF-a:\\x20dead'"]),
        ("c", &["'state' 'blocked'", "'after' [ 'HALF-member' ]"]),
        ("behind", &["'state' 'blocked'", "'after-group' 'HALF-group'"]),
        ("m1", &["'state' 'delayed'", "'group' 'HALF-group'", "'keep' 5"]),
    ];
    let folder = folder_of("5-effects-5");
    assert_read(&folder, DIGEST, |client| {
        for half in ["base", "incr"] {
            for (id, expected) in JOBS {
                let shown = client.ask(&format!("DQ.GET full {half}-{id}"));
                for part in expected {
                    let part = part.replace("HALF", half);
                    assert!(shown.contains(&part), "{half}-{id}: {shown}, not {part}");
                }
            }
        }
        client.says("DQ.LEN full BLOCKED", "6");
        client.says("DQ.LEN full DONE", "8");
    });
}

/// DUMPs of the same build: what was blocked, done and unfinished continues.
#[test]
fn dumps_with_outcomes_flows_and_steps_go_on() {
    let folder = folder_of("5-effects-5");
    let server = Server::start();
    let mut client = server.raw();
    for key in ["full", "wide"] {
        let dump = std::fs::read(folder.join(format!("{key}.dump"))).expect("a DUMP");
        client.call(&[b"RESTORE", key.as_bytes(), b"0", &dump]);
    }
    // Dumped when the root had ended, and most of 1500 jobs were still blocked.
    wait_until("all are free", PATIENCE, || {
        client.ask("DQ.LEN wide BLOCKED") == "0"
    });
    client.says("DQ.LEN wide READY", "1500");
    let job = client.ask("DQ.GET wide j1499");
    assert!(
        job.contains("'results' [ [ 'root' 'done' 'result' ] ]"),
        "{job}"
    );
    client.says(
        "DQ.AWAIT full 60 base-done",
        "[ [ 'base-done' 'done' 'result\\x00\\xff' 1795495779728 1 ] ]",
    );
    for (line, id, state) in [
        (
            "DQ.SIGNAL full base-waits approved yes",
            "base-waits",
            "ready",
        ),
        ("DQ.KICK full IDS 1 base-a", "base-join", "blocked"),
        ("DQ.DEL full base-a", "base-join", "dead"),
        (
            "DQ.DEL full base-member base-m1 base-m2",
            "base-behind",
            "ready",
        ),
    ] {
        client.run(line);
        let job = client.ask(&format!("DQ.GET full {id}"));
        assert!(job.contains(&format!("'state' '{state}'")), "{line}: {job}");
    }
}
