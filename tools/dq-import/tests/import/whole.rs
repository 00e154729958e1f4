//! A dq queue that moves to another server: whole, or job by job.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use redis::{from_redis_value, Value};

use self::row::{Home, Kind, ROWS};
use crate::cmd;
use crate::support::locate::server_binary;
use crate::support::{root, wait_until, Client, Server, PATIENCE};
use crate::world::{all_jobs, count, import, now_ms, run_of, url_of, Run, HOUR_MS, QUEUE};

#[allow(dead_code, reason = "not all columns are of use here")]
#[path = "../../../../src/queue/attr/row.rs"]
mod row;

const OLD: &str = "old";

/// The servers that are installed under target/servers, one of each version; at least the one that tests run against.
fn servers() -> Vec<PathBuf> {
    let here = fs::read_dir(root().join("target/servers"));
    let folders = here
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let names: BTreeSet<PathBuf> = folders
        .filter(|folder| !folder.ends_with("system"))
        .collect();
    let server = |folder: PathBuf| {
        let names = ["redis-server", "valkey-server"];
        names
            .map(|name| folder.join(name))
            .into_iter()
            .find(|file| file.is_file())
    };
    let mut all: Vec<PathBuf> = names.into_iter().filter_map(server).collect();
    // Redis and Valkey in turn, newer ones before older ones: no server reads what the one before it writes.
    all.sort_by_key(|path| {
        std::cmp::Reverse(path.parent().and_then(|it| {
            it.file_name()?
                .to_str()?
                .split_once('-')
                .map(|it| it.1.to_owned())
        }))
    });
    match all.is_empty() {
        true => vec![server_binary()],
        false => all,
    }
}

fn command(from: &Server, to: &Server, source: &[&str]) -> Command {
    let mut command = import(&url_of(from), &url_of(to));
    command.arg("dq").args(source);
    command
}

#[track_caller]
fn run(from: &Server, to: &Server, source: &[&str]) -> Run {
    run_of(command(from, to, source).output().expect("the tool runs"))
}

/// Leases, groups with limits, remembered ids, dead, done, blocked and recurring jobs. Returns a lease's token.
fn fill(client: &mut Client, key: &str) -> Vec<u8> {
    cmd!(
        client,
        "DQ.CFGSET",
        key,
        "GROUPMAX",
        1,
        "DEDUPE",
        HOUR_MS,
        "DONELEN",
        5,
        "TTR",
        HOUR_MS
    );
    for n in 0..30 {
        cmd!(
            client,
            "DQ.ADD",
            key,
            n,
            format!("body {n}"),
            "GROUP",
            n % 3,
            "PRIORITY",
            n % 5,
            "BACKOFF",
            2,
            10,
            20
        );
    }
    for (id, end) in [("dead", "FATAL"), ("retried", "FAIL")] {
        cmd!(client, "DQ.ADD", key, id, "x", "ATTEMPTS", 3);
        cmd!(client, "DQ.POP", key, "ID", id);
        cmd!(client, "DQ.NACK", key, id, end, "REASON", "why");
    }
    cmd!(client, "DQ.ADD", key, "done", "x");
    cmd!(client, "DQ.POP", key, "ID", "done");
    cmd!(client, "DQ.ACK", key, "done");
    let mut later = redis::cmd("DQ.ADD");
    later.arg((key, "later", "x", "DELAY", HOUR_MS, "TTL", HOUR_MS * 3));
    for row in ROWS.iter().filter(|row| matches!(row.home, Home::Tag(_))) {
        later.arg(row.word());
        match row.kind {
            Kind::Number { least, .. } => later.arg(least + 1),
            Kind::Text(_) => later.arg("text"),
            Kind::Ladder => later.arg((2, 10, 20)),
        };
    }
    later.query::<()>(client).expect("a job of all options");
    cmd!(client, "DQ.ADD", key, "blocked", "x", "AFTER", 1, "later", "ONDEAD", "RUN");
    cmd!(client, "DQ.ADD", key, "behind", "x", "AFTER", 2, "blocked", "later");
    cmd!(client, "DQ.ADD", key, "ids", "x", "AFTER", "GROUP", 2);
    cmd!(
        client,
        "DQ.ADD",
        key,
        "rule",
        "x",
        "CRON",
        "0 9 * * *",
        "TZ",
        "Europe/Berlin",
        "TIMES",
        4
    );
    cmd!(client, "DQ.ADD", key, "every", "x", "EVERY", HOUR_MS);
    let leased: Vec<Value> = from_redis_value(cmd!(client, "DQ.POP", key)).expect("a job");
    from_redis_value(leased[2].clone()).expect("a token")
}

fn reserved_id(client: &mut Client, key: &str) -> Vec<u8> {
    let peeked: Vec<Vec<Value>> =
        from_redis_value(cmd!(client, "DQ.PEEK", key, "RESERVED")).expect("DQ.PEEK answers");
    from_redis_value(peeked[0][0].clone()).expect("an id")
}

fn digest(client: &mut Client, key: &str) -> Vec<String> {
    from_redis_value(cmd!(client, "DEBUG", "DIGEST-VALUE", key)).expect("a digest")
}

fn exists(client: &mut Client, key: &str) -> bool {
    count(cmd!(client, "EXISTS", key)) > 0
}

#[test]
fn a_queue_moves_through_all_servers_and_back() {
    let all = servers();
    let start = |binary: &PathBuf| Server::builder().binary(binary).start();
    let mut from = start(&all[0]);
    let token = fill(&mut from.connect(), OLD);
    let original = digest(&mut from.connect(), OLD);
    for binary in all.iter().skip(1).chain([&all[0]]) {
        let to = start(binary);
        run(&from, &to, &[OLD, "--delete-source"])
            .ok()
            .says("by DEBUG DIGEST-VALUE: equal");
        let mut client = to.connect();
        assert!(!exists(&mut from.connect(), OLD), "{}", from.version());
        let moved = digest(&mut client, QUEUE);
        assert_eq!(moved, original, "{} to {}", from.version(), to.version());
        assert_eq!(count(cmd!(client, "DBSIZE")), 1);
        cmd!(client, "RENAME", QUEUE, OLD);
        from = to;
    }
    let mut client = from.connect();
    let id = reserved_id(&mut client, OLD);
    assert_eq!(
        count(cmd!(client, "DQ.ACK", OLD, "WITHTOKENS", id, token)),
        1
    );
    assert_eq!(
        cmd!(client, "DQ.ADD", OLD, "done", "x"),
        Value::Nil,
        "it is remembered"
    );
}

#[test]
fn a_copy_is_compared_before_the_source_goes() {
    let (from, to) = (Server::start(), Server::start());
    let (mut source, mut target) = (from.connect(), to.connect());
    fill(&mut source, OLD);
    cmd!(source, "PEXPIRE", OLD, HOUR_MS * 24);
    run(&from, &to, &[OLD, "--dry-run"])
        .ok()
        .says("as a dump of");
    run(&from, &to, &[OLD, "--check"]).not_in_order("MISSING");
    assert_eq!(count(cmd!(target, "DBSIZE")), 0);
    // Workers may wait on the new queue, and keep it there, empty.
    cmd!(target, "DQ.CFGSET", QUEUE);
    run(&from, &to, &[OLD]).ok().says("imported whole");
    assert_eq!(digest(&mut source, OLD), digest(&mut target, QUEUE));
    assert!(count(cmd!(target, "PTTL", QUEUE)) > 0);
    run(&from, &to, &[OLD, "--check"]).ok();
    cmd!(target, "DQ.ADD", QUEUE, "new", "x");
    run(&from, &to, &[OLD, "--delete-source"]).not_in_order("--by-commands");
    assert!(exists(&mut source, OLD));
    cmd!(target, "DEL", QUEUE);
    run(&from, &to, &[OLD]).ok();
    run(&from, &to, &[OLD, "--delete-source"]).ok();
    assert!(!exists(&mut source, OLD));
    let run = run(&from, &to, &[OLD]);
    assert_eq!(run.code, 2, "{}", run.text);
    run.says("does not exist");
}

#[test]
fn without_debug_each_job_is_compared() {
    let start = || {
        Server::builder()
            .config("enable-debug-command", "no")
            .start()
    };
    let (from, to) = (start(), start());
    let (mut source, mut target) = (from.connect(), to.connect());
    fill(&mut source, OLD);
    run(&from, &to, &[OLD]).ok().says("by DQ.GET of each job");
    for (change, back) in [
        (
            "DQ.RESCHEDULE jobs PRIORITY 7 later",
            "DQ.RESCHEDULE jobs PRIORITY 0 later",
        ),
        ("DQ.ADD jobs more x", "DQ.DEL jobs more"),
        ("DQ.CFGSET jobs MAXLEN 100", "DQ.CFGSET jobs MAXLEN 0"),
    ] {
        let mut send = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            target.call(redis::cmd(words[0]).arg(&words[1..]))
        };
        send(change);
        run(&from, &to, &[OLD, "--delete-source"]).not_in_order("DIFFERENT");
        send(back);
        run(&from, &to, &[OLD, "--check"]).ok();
    }
    run(&from, &to, &[OLD, "--delete-source"]).ok();
}

#[test]
fn a_queue_that_changes_meanwhile_stays() {
    let (from, to) = (Server::start(), Server::start());
    let (mut source, mut target) = (from.connect(), to.connect());
    fill(&mut source, OLD);
    // The target holds RESTORE back.
    cmd!(target, "CLIENT", "PAUSE", HOUR_MS, "WRITE");
    let mut running = command(&from, &to, &[OLD, "--delete-source"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the tool runs");
    wait_until("RESTORE waits", PATIENCE, || {
        let clients: String = from_redis_value(cmd!(target, "CLIENT", "LIST")).expect("text");
        clients.contains("cmd=restore") || running.try_wait().is_ok_and(|ended| ended.is_some())
    });
    cmd!(source, "DQ.ADD", OLD, "new", "x");
    cmd!(target, "CLIENT", "UNPAUSE");
    let ended = run_of(running.wait_with_output().expect("the tool ends"));
    ended.not_in_order("changed while it was copied");
    assert!(exists(&mut source, OLD));
    assert_eq!(count(cmd!(target, "DBSIZE")), 0);
}

#[test]
fn an_interrupted_move_is_finished() {
    let (from, to) = (Server::start(), Server::start());
    let (mut source, mut target) = (from.connect(), to.connect());
    fill(&mut source, OLD);
    let staged = format!("dq:moving:{{{QUEUE}}}:{OLD}");
    // As if the run had ended before the deletion, and after it.
    for _ in 0..2 {
        run(&from, &to, &[OLD]).ok();
        cmd!(target, "RENAME", QUEUE, &staged);
        run(&from, &to, &[OLD, "--delete-source"]).ok();
        cmd!(target, "RENAME", QUEUE, &staged);
        run(&from, &to, &[OLD, "--delete-source"]).ok();
        assert!(exists(&mut target, QUEUE) && !exists(&mut target, &staged));
        let dump: Vec<u8> = from_redis_value(cmd!(target, "DUMP", QUEUE)).expect("a dump");
        cmd!(source, "RESTORE", OLD, 0, dump);
        cmd!(target, "DEL", QUEUE);
    }
    // A producer made the source anew: nothing goes, neither here nor there.
    run(&from, &to, &[OLD]).ok();
    cmd!(target, "RENAME", QUEUE, &staged);
    cmd!(source, "DQ.ADD", OLD, "new", "x");
    let run = run(&from, &to, &[OLD, "--delete-source"]);
    assert_eq!(run.code, 2, "{}", run.text);
    run.says("interrupted run, and differs");
    assert!(exists(&mut target, &staged) && exists(&mut source, OLD));
}

#[test]
fn a_queue_is_not_moved_onto_itself() {
    let server = Server::start();
    let mut client = server.connect();
    fill(&mut client, QUEUE);
    let url = url_of(&server);
    for options in [&[][..], &["--delete-source"]] {
        let run = import(&url, &url.replace("127.0.0.1", "localhost"))
            .args(["dq", QUEUE])
            .args(options)
            .output();
        let run = run_of(run.expect("the tool runs"));
        assert_eq!(run.code, 2, "{}", run.text);
        run.says("the same server");
    }
    assert!(exists(&mut client, QUEUE));
}

#[test]
fn a_dump_that_is_too_large_comes_job_by_job() {
    let from = Server::start();
    let to = Server::builder()
        .config("proto-max-bulk-len", "1mb")
        .start();
    let (mut source, mut target) = (from.connect(), to.connect());
    // Random enough that no server packs it.
    let large: String = (0..150_000_u64)
        .map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40))
        .collect();
    for n in 0..3 {
        cmd!(source, "DQ.ADD", OLD, n, &large, "DELAY", HOUR_MS);
    }
    run(&from, &to, &[OLD, "--delete-source"])
        .ok()
        .says("more than the target's proto-max-bulk-len")
        .says("these do not come along")
        .counts(3, "deleted from the source");
    assert_eq!(count(cmd!(target, "DQ.LEN", QUEUE)), 3);
    assert!(!exists(&mut source, OLD));
}

#[test]
fn job_by_job_what_can_be_told_comes_along() {
    let (from, to) = (Server::start(), Server::start());
    let (mut source, mut target) = (from.connect(), to.connect());
    fill(&mut source, OLD);
    cmd!(source, "DQ.PAUSE", OLD);
    let (free, paying) = (&b"free\xff"[..], "paying");
    cmd!(source, "DQ.GROUPSET", OLD, free, "MAX", 0, "RATE", 5, 1000);
    cmd!(source, "DQ.GROUPSET", OLD, paying, "WEIGHT", 3);
    cmd!(source, "DQ.PAUSE", OLD, "GROUP", paying);
    cmd!(source, "DQ.ADD", OLD, "UNRESERVED", "x", "DELAY", HOUR_MS);
    run(&from, &to, &[OLD, "--by-commands", "--delete-source"])
        .ok()
        .says("these do not come along")
        .says("settings come along")
        .counts(1, "left: a worker has it")
        .counts(1, "left: it is dead");
    let fields = [
        "payload",
        "priority",
        "group",
        "ttr",
        "backoff",
        "keep",
        "cost",
        "after",
        "after-group",
        "on-dead",
        "cron",
        "tz",
        "every",
    ];
    let before = Server::start();
    fill(&mut before.connect(), OLD);
    for (id, _) in all_jobs(&mut target) {
        let get = |client: &mut Client, key: &str| -> std::collections::HashMap<String, Value> {
            from_redis_value(cmd!(client, "DQ.GET", key, &id)).expect("a job")
        };
        if id != "UNRESERVED" {
            let (was, is) = (get(&mut before.connect(), OLD), get(&mut target, QUEUE));
            for field in fields {
                assert_eq!(was[field], is[field], "{field} of {id}");
            }
        }
    }
    for name in [free, paying.as_bytes()] {
        let was = cmd!(source, "DQ.GROUPGET", OLD, name);
        assert_eq!(cmd!(target, "DQ.GROUPGET", QUEUE, name), was);
    }
    // What is left: the leased, the dead and the done one.
    assert_eq!(count(cmd!(source, "DQ.LEN", OLD)), 1);
    assert_eq!(count(cmd!(target, "DQ.LEN", QUEUE, "BLOCKED")), 3);
    assert_eq!(count(cmd!(target, "DQ.LEN", QUEUE)), 30 - 1 + 7 + 1);
    let now = now_ms();
    let times: Vec<Value> =
        from_redis_value(cmd!(target, "DQ.NEXT", QUEUE, "every")).expect("instants");
    assert!(count(times[0].clone()) as u64 > now);
}
