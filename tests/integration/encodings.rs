//! Files of every version of the format: `encodings/<version>`, with the digest that their data had when they were
//! written. `make golden` writes those of today's version.

use std::fs;
use std::path::{Path, PathBuf};

use crate::scene::Lines;
use crate::support::place::{copy_folder, new_folder};
use crate::support::{root, wait_until, Raw, Reply, Server, PATIENCE};

pub const VERSIONS: [&str; 1] = ["1"];

pub fn folder_of(version: &str) -> PathBuf {
    root().join("tests/integration/encodings").join(version)
}

/// What DQ.GET shows of the jobs of each half, in its order.
const JOBS: &[(&str, &[&str])] = &[
    (
        "plain",
        &["'payload' 'x'", "'state' 'delayed'", "'due' 4000000000000"],
    ),
    (
        "all",
        &[
            "'state' 'delayed' 'priority' -5",
            "'ttr' 7000 'attempts' 0 'max-attempts' 3 'backoff' [ 100 200 ]",
            "'expires' ",
            "'group' 'HALF-group'",
            "'keep' 5 'cost' 9",
        ],
    ),
    ("done", &["'state' 'done'", "'result' 'result\\x00\\xff'"]),
    (
        "kept",
        &["'state' 'done'", "'keep' 1000000000000", "'result' nil$"],
    ),
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
    (
        "signalled",
        &["'state' 'delayed'", "'steps' [ 'approved' 'yes' ]"],
    ),
    ("led", &["'state' 'reserved'", "'next' 'after'"]),
    ("a", &["'state' 'dead'", "'reason' 'no\\x20route'"]),
    (
        "join",
        &[
            "'state' 'blocked'",
            "'after' [ 'HALF-a' ]",
            "'on-dead' 'wait'",
            "'results' [ [ 'HALF-done' 'done' 'result\\x00\\xff' ] [ 'HALF-a' nil$ nil$ ] ]",
        ],
    ),
    (
        "run",
        &[
            "'state' 'ready'",
            "'results' [ [ 'HALF-a' 'dead' 'no\\x20route' ] ]",
        ],
    ),
    (
        "die",
        &["'state' 'dead'", "'reason' 'after\\x20HALF-a:\\x20dead'"],
    ),
    (
        "behind",
        &["'state' 'blocked'", "'after-group' 'HALF-group'"],
    ),
    (
        "cron",
        &[
            "'cron' '0\\x209\\x20*\\x20*\\x20MON' 'tz' 'Europe/Berlin'",
            "'grace' 60000",
            "'runs' 1",
        ],
    ),
    (
        "every",
        &[
            "'state' 'reserved'",
            "'every' 3600000",
            "'times' 7",
            "'runs' 0",
        ],
    ),
];

/// One of each thing that a queue may hold, under names that begin with `half`.
fn fill(client: &mut Raw, half: &str) {
    const LONG: &str = "TTR 1000000000000";
    let line = |text: &str| text.replace("HALF", half);
    let take = |client: &mut Raw, id: &str| {
        let delivery = client.words(&line(&format!("DQ.POP full ID HALF-{id} {LONG}")));
        delivery[2].clone()
    };
    let run = |client: &mut Raw, text: &str| {
        let reply = client.ask(&line(text));
        assert!(
            !reply.starts_with('-') && reply != "nil$",
            "{text} -> {reply}"
        );
    };
    run(client, "DQ.CFGSET full DONELEN 100 DEDUPE 1000000000000 MAXLEN 1000 MAXBYTES 100000 GROUPMAX 50 RATE 100000 1000");
    for id in [
        "done",
        "kept KEEP 1000000000000",
        "unkept KEEP 0",
        "steps",
        "waits",
        "signalled",
        "led",
        "a",
    ] {
        let (id, options) = id.split_once(' ').unwrap_or((id, ""));
        run(client, &format!("DQ.ADD full HALF-{id} x {options}"));
    }
    run(client, "DQ.ADD full HALF-plain x AT 4000000000000");
    run(client, "DQ.ADD full HALF-all x AT 4000000000000 PRIORITY -5 TTR 7000 ATTEMPTS 3 BACKOFF 2 100 200 TTL 1000000000000 GROUP HALF-group KEEP 5 COST 9");
    run(
        client,
        "DQ.MADD full 2 HALF-m1 x HALF-m2 y AT 4000000000000 GROUP HALF-group KEEP 5",
    );
    run(client, "DQ.ADD full HALF-join x AFTER 2 HALF-done HALF-a");
    run(client, "DQ.ADD full HALF-run x AFTER 1 HALF-a ONDEAD RUN");
    run(client, "DQ.ADD full HALF-die x AFTER 1 HALF-a ONDEAD DIE");
    run(client, "DQ.ADD full HALF-behind x AFTER GROUP HALF-group");
    run(client, "DQ.ADD full HALF-cron x AT 1700000000000 CRON 0\\x209\\x20*\\x20*\\x20MON TZ Europe/Berlin GRACE 60000");
    run(
        client,
        "DQ.ADD full HALF-every x AT 1700000000000 EVERY 3600000 TIMES 7 JITTER 1000",
    );
    let token = take(client, "done");
    run(
        client,
        &format!("DQ.ACK full RESULTS HALF-done {token} result\\x00\\xff"),
    );
    for id in ["kept", "unkept"] {
        take(client, id);
        run(client, &format!("DQ.ACK full HALF-{id}"));
    }
    let token = take(client, "steps");
    run(
        client,
        &format!("DQ.TOUCH full HALF-steps PROGRESS half {LONG}"),
    );
    run(
        client,
        &format!("DQ.STEP full HALF-steps {token} paid 1 sent \\x00"),
    );
    for id in ["waits", "signalled"] {
        take(client, id);
        run(
            client,
            &format!("DQ.NACK full HALF-{id} SILENT AWAIT approved"),
        );
    }
    run(client, "DQ.SIGNAL full HALF-signalled approved yes");
    run(client, "DQ.RESCHEDULE full AT 4000000000000 HALF-signalled");
    take(client, "led");
    run(
        client,
        "DQ.ADD full HALF-led after NEXT AT 4000000000000 COST 3",
    );
    take(client, "every");
    take(client, "a");
    run(client, "DQ.NACK full HALF-a FATAL REASON no\\x20route");
}

/// A server that is killed once its files hold `base` and `incr`; its files, and their digest.
fn write() -> PathBuf {
    let folder = new_folder();
    let mut server = Server::builder().aof().config("save", "''").start();
    let mut client = server.raw();
    fill(&mut client, "base");
    client.run("BGREWRITEAOF");
    wait_until("the AOF is rewritten", PATIENCE, || {
        server.info("persistence", "aof_rewrite_in_progress") == "0"
            && server.info("persistence", "aof_rewrite_scheduled") == "0"
    });
    fill(&mut client, "incr");
    wait_until("nothing is under way", PATIENCE, || {
        client.ask("DQ.GET full incr-die").contains("'dead'")
    });
    client.says("SAVE", "+OK");
    let Reply::Bulk(dump) = client.run("DUMP full") else {
        panic!("no DUMP");
    };
    let digest = server.digest();
    server.kill();
    copy_folder(
        &server.folder().join("appendonlydir"),
        &folder.join("appendonlydir"),
    );
    fs::copy(server.folder().join("dump.rdb"), folder.join("dump.rdb")).expect("a copy");
    fs::write(folder.join("full.dump"), dump).expect("room");
    fs::write(folder.join("digest"), digest).expect("room");
    folder
}

/// As RDB and as AOF, on a replica, which changes nothing by itself; and again as they are written now.
#[track_caller]
fn are_read(folder: &Path) {
    let digest = fs::read_to_string(folder.join("digest")).expect("a digest");
    for appendonly in ["no", "yes"] {
        let server = Server::builder()
            .config("replicaof", "127.0.0.1 1")
            .config("appendonly", appendonly)
            .with_files_of(folder)
            .start();
        assert_eq!(server.digest(), digest, "appendonly {appendonly}");
        let mut client = server.raw();
        for half in ["base", "incr"] {
            for (id, expected) in JOBS {
                let shown = client.ask(&format!("DQ.GET full {half}-{id}"));
                for part in *expected {
                    let part = part.replace("HALF", half);
                    assert!(shown.contains(&part), "{half}-{id}: {shown}, not {part}");
                }
            }
        }
        client.says("DEBUG RELOAD", "+OK");
        assert_eq!(server.digest(), digest, "{appendonly}, written again");
    }
}

#[test]
fn files_of_all_versions_are_read() {
    VERSIONS
        .iter()
        .for_each(|version| are_read(&folder_of(version)));
}

/// What is written today is read; `DQ_GOLDEN` names a folder in which the files stay.
#[test]
fn files_of_today_are_read() {
    let folder = write();
    are_read(&folder);
    if let Some(golden) = std::env::var_os("DQ_GOLDEN").map(PathBuf::from) {
        let _ = fs::remove_dir_all(&golden);
        copy_folder(&folder, &golden);
    }
    let _ = fs::remove_dir_all(folder);
}

/// What was blocked, done and unfinished goes on.
#[test]
fn dumps_of_all_versions_go_on() {
    for version in VERSIONS {
        let dump = fs::read(folder_of(version).join("full.dump")).expect("a DUMP");
        let server = Server::start();
        let mut client = server.raw();
        client.call(&[b"RESTORE", b"full", b"0", &dump]);
        for (line, id, state) in [
            (
                "DQ.SIGNAL full base-waits approved yes",
                "base-waits",
                "ready",
            ),
            ("DQ.KICK full IDS 1 base-a", "base-join", "blocked"),
            ("DQ.DEL full base-a", "base-join", "dead"),
            (
                "DQ.DEL full base-all base-m1 base-m2",
                "base-behind",
                "ready",
            ),
            ("DQ.ACK full base-led", "base-led", "delayed"),
        ] {
            client.run(line);
            let job = client.ask(&format!("DQ.GET full {id}"));
            assert!(job.contains(&format!("'state' '{state}'")), "{line}: {job}");
        }
    }
}
