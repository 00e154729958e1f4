//! Effects of a future version: a server that meets them does not continue without them. With DQ.BREAK newer, a module
//! built for tests writes such a version.

use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::ExitStatus;

use crate::probe::show;
use crate::scene::{Lines, Scene};
use crate::support::{wait_until, Reply, Server, PATIENCE};

/// What a newer master writes: all in a future version; or, of a job that is there, a note that is critical.
const NEWER: [&[&str]; 2] = [
    &["DQ.BREAK newer", "DQ.ADD q unknown x"],
    &["DQ.BREAK q known CRITICAL new"],
];
const REFUSED: &str =
    "ERR queue data was written by a newer version of the module: install that version here first";
const ENDS: &str = "this server exits: what its master sends is written by a newer version";
const LOADED: &str = "this server exits: what it loads was written by a newer version";

fn newer() -> Server {
    Server::builder().breakable().aof().start()
}

#[track_caller]
fn assert_ended(server: &mut Server, why: &str) {
    let status: ExitStatus = server.wait_for_end();
    assert_eq!(status.code(), Some(1), "neither a signal nor a good end");
    assert!(server.log().contains(why), "{}", server.log());
    assert_eq!(server.crash(), None);
}

/// It exits before it differs from its master by one job; and it does not start again while it does not know that
/// version.
#[test]
fn a_replica_of_a_newer_master_ends() {
    NEWER.into_iter().for_each(a_replica_ends_at);
}

fn a_replica_ends_at(newer_lines: &[&str]) {
    let (master, mut replica) = (newer(), Server::builder().aof().start());
    replica.replica_of(&master);
    let mut client = master.raw();
    client.says("DQ.ADD q known x", "'known'");
    client.says("SET other 1", "+OK");
    master.assert_followed_by(&[&replica]);
    // Servers that write it anew after a full sync.
    wait_until("the replica's own file is there", PATIENCE, || {
        ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
            .iter()
            .all(|field| replica.number("persistence", field) == 0)
    });
    let before = replica.digest();
    newer_lines.iter().for_each(|line| drop(client.run(line)));
    client.says("SET behind 1", "+OK");
    assert_ended(&mut replica, ENDS);
    // Its files contain what it had until then, to the last byte.
    let mut alone = Server::builder()
        .aof()
        .with_files_of(replica.folder())
        .start();
    assert_eq!(alone.digest(), before);
    alone
        .raw()
        .run(&format!("REPLICAOF 127.0.0.1 {}", master.port()));
    assert_ended(&mut alone, REFUSED);
}

/// An option, and a note, that only a newer server knows stay with their job wherever an older one is the replica, is
/// promoted, and has the newer one as its replica.
#[test]
fn what_is_not_known_is_carried_on() {
    let (newer, older) = (newer(), Server::builder().aof().start());
    older.replica_of(&newer);
    let (mut of_newer, mut of_older) = (newer.raw(), older.raw());
    of_newer.says("DQ.ADD q done x CANARY sings KEEP 1000000", "'done'");
    of_newer.says("DQ.MADD q 1 dead x CANARY too BACKOFF 1 5", "[ 'dead' ]");
    of_newer.says(
        "DQ.ADD q again x EVERY 1000000 AT 1 CANARY still",
        "'again'",
    );
    for id in ["done", "dead", "again"] {
        of_newer.run(&format!("DQ.POP q ID {id} TTR 1000000"));
        of_newer.run(&format!("DQ.TOUCH q {id} PROGRESS half"));
        of_newer.says(&format!("DQ.BREAK q {id} NOTED new"), "+OK");
    }
    newer.assert_followed_by(&[&older]);
    of_older.says("REPLICAOF NO ONE", "+OK");
    of_older.run("DEBUG RELOAD");
    for line in [
        "DQ.ACK q done",
        "DQ.NACK q dead FATAL",
        "DQ.KICK q IDS 1 dead",
    ] {
        of_older.run(line);
    }
    newer.replica_of(&older);
    of_newer.says("CONFIG SET replica-read-only no", "+OK");
    older.assert_followed_by(&[&newer]);
    for (id, song, progress) in [
        ("done", "sings", "'half'"),
        ("dead", "too", "nil$"),
        ("again", "still", "'half'"),
    ] {
        let shown = of_newer.ask(&format!("DQ.GET q {id}"));
        for part in [
            format!("'canary' '{song}'"),
            format!("'progress' {progress}"),
        ] {
            assert!(shown.contains(&part), "{shown}");
        }
        of_newer.says(&format!("DQ.BREAK q {id} NOTED"), "'new'");
        assert!(!of_older.ask(&format!("DQ.GET q {id}")).contains("canary"));
    }
    of_older.says("DQ.ACK q again", "1");
    older.assert_followed_by(&[&newer]);
    of_newer.says("DQ.BREAK q again NOTED", "nil$");
}

/// Each kind of effect, also one by the timer, within MULTI, or from a script.
#[test]
fn all_that_a_newer_master_tells_is_met() {
    for line in [
        "DQ.POP q",
        "DQ.CFGSET q MAXLEN 7",
        "DQ.DEL q a",
        "EVAL return{redis.call('DQ.ADD',KEYS[1],'b','x')} 1 q",
        "DQ.ADD q soon x TTL 1",
        "DQ.MADD q 2 b x c x",
        "DQ.ADD q b x AFTER 1 a",
        "DQ.SIGNAL q a name",
    ] {
        let (master, mut replica) = (newer(), Server::start());
        replica.replica_of(&master);
        let mut client = master.raw();
        client.says("DQ.ADD q a x", "'a'");
        master.assert_followed_by(&[&replica]);
        client.says("DQ.BREAK newer", "+OK");
        client.run("MULTI");
        client.run(line);
        client.run("SET behind 1");
        client.run("EXEC");
        assert_ended(&mut replica, ENDS);
    }
}

/// A server starts neither from newer increments nor from a newer base, which is an RDB file.
#[test]
fn a_newer_aof_is_not_half_loaded() {
    for (is_base, lines) in [
        (false, NEWER[0]),
        (true, NEWER[0]),
        (false, NEWER[1]),
        (true, NEWER[1]),
    ] {
        let mut master = newer();
        let mut client = master.raw();
        client.says("DQ.ADD q known x", "'known'");
        lines.iter().for_each(|line| drop(client.run(line)));
        if is_base {
            client.run("BGREWRITEAOF");
            wait_until("a rewrite", PATIENCE, || {
                master.info("persistence", "aof_rewrite_in_progress") == "0"
                    && master.number("persistence", "aof_rewrites") > 0
            });
        }
        master.kill();
        let folder = master.folder().join("appendonlydir");
        let files = || {
            let files = fs::read_dir(&folder).expect("the folder of the AOF");
            let mut files: Vec<_> = files
                .map(|file| file.expect("a file").path())
                .map(|path| (path.clone(), fs::read(path).expect("its bytes")))
                .collect();
            files.sort();
            files
        };
        let before = files();
        let older = Server::builder().aof().with_files_of(master.folder());
        let log = older.try_start().err().expect("it does not start");
        assert!(log.contains(LOADED), "{log}");
        assert_eq!(files(), before);
    }
}

/// An RDB file by a newer encoding of the type, which its module's id tells: 9 characters of 6 bits, and 10 bits for
/// the encoding.
#[test]
fn an_rdb_of_a_newer_encoding_is_not_loaded() {
    let builder = Server::builder().config("appendonly", "no");
    let mut writer = builder.clone().config("rdbchecksum", "no").start();
    writer.raw().says("DQ.ADD q a x", "'a'");
    writer.save_and_stop();
    let file = writer.folder().join("dump.rdb");
    let written = fs::read(&file).expect("a file");
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let number = |letter: &u8| {
        letters
            .iter()
            .position(|it| it == letter)
            .expect("a letter")
    };
    let name = b"dq-queue1"
        .iter()
        .fold(0, |id, letter| id << 6 | number(letter) as u64);
    let ids: Vec<usize> = written
        .windows(8)
        .enumerate()
        .filter(|(_, bytes)| {
            u64::from_be_bytes((*bytes).try_into().expect("8 bytes")) >> 10 == name
        })
        .map(|(at, _)| at)
        .collect();
    assert!(!ids.is_empty(), "the id of the type");
    for (more, is_read) in [(0, true), (1, false)] {
        let mut changed = written.clone();
        for &at in &ids {
            changed[at + 7] += more;
        }
        fs::write(&file, &changed).expect("a file of ours");
        let started = builder.clone().with_files_of(writer.folder()).try_start();
        match started {
            Ok(server) => {
                assert!(is_read, "a newer encoding is loaded");
                server.raw().says("DQ.LEN q", "1");
            }
            Err(log) => assert!(!is_read && log.contains(LOADED), "{log}"),
        }
    }
}

/// If clients can write, a command that brings a newer queue is refused, and nothing else happens.
#[test]
fn who_restores_a_newer_queue_is_refused() {
    for lines in NEWER {
        let (source, master, replica) = (newer(), Server::start(), Server::start());
        replica.replica_of(&master);
        replica.raw().says("CONFIG SET replica-read-only no", "+OK");
        master.raw().says("DQ.ADD q mine x", "'mine'");
        master.assert_followed_by(&[&replica]);
        let before = master.digest();
        let mut client = source.raw();
        client.says("DQ.ADD q known x", "'known'");
        lines.iter().for_each(|line| drop(client.run(line)));
        let Reply::Bulk(payload) = client.run("DUMP q") else {
            panic!("no payload");
        };
        for server in [&master, &replica] {
            let reply = server
                .raw()
                .call(&[b"RESTORE", b"q", b"0", &payload, b"REPLACE"]);
            assert_eq!(show(&reply), "-ERR Bad data format");
            assert!(server.log().contains(REFUSED), "{}", server.log());
            assert_eq!(server.digest(), before);
        }
    }
}

/// An exit without the message, and an exit by the signal; effects of the same version end no server.
#[test]
fn canary_other_ends_are_not_taken_for_a_refusal() {
    for signal in ["TERM", "KILL"] {
        let (master, mut replica) = (newer(), Server::start());
        replica.replica_of(&master);
        let mut client = master.raw();
        client.says("DQ.ADD q known x", "'known'");
        client.run("DQ.POP q ID known TTR 60000");
        master.assert_followed_by(&[&replica]);
        replica.signal(signal);
        let judged = catch_unwind(AssertUnwindSafe(|| assert_ended(&mut replica, ENDS)));
        assert!(judged.is_err(), "{signal}");
    }
}
