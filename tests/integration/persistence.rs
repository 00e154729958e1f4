//! What is on disk is what was in memory: RDB, AOF in all its forms, DUMP; and how servers continue from it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dq::queue::effect::Effect;

use crate::payloads::{forged, restore};
use crate::probe::{show, Probe};
use crate::scene::{now_ms, Lines};
use crate::support::place::last_aof;
use crate::support::{
    poll, root, skipped, wait_until, Builder, Raw, Reply, Server, Version, PATIENCE,
};
use crate::traffic::Traffic;

/// The files of this folder, in a server that does nothing by itself: a replica whose master is not there.
#[track_caller]
fn frozen(folder: &Path, builder: Builder) -> Server {
    builder
        .config("replicaof", "127.0.0.1 1")
        .with_files_of(folder)
        .start()
}

/// A queue that has something of everything, with times far enough not to change while it is looked at.
fn fill(client: &mut Raw) {
    for line in [
        "DQ.CFGSET full TTR 5000 ATTEMPTS 3 BACKOFF 2 10 20 MAXLEN 1000 DEADLEN 9 DEDUPE 600000 MAXRESERVED 50 RATE 1000 1000",
        "DQ.ADD full delayed payload DELAY 600000 PRIORITY -3 TTL 900000 BACKOFF 3 1 2 3 ATTEMPTS 7 TTR 77777",
        "DQ.ADD full ready \\x00\\xff\\x0d\\x0a",
        "DQ.ADD full \\x00\\xfe x",
        "DQ.ADD full again x PRIORITY -10",
        "DQ.POP full",
        "DQ.NACK full again DELAY 500000 PRIORITY -10",
        "DQ.ADD full leased x PRIORITY -9",
        "DQ.ADD full acked x PRIORITY -8",
        "DQ.ADD full dead x PRIORITY -7",
        "DQ.ADD full dead2 x PRIORITY -6",
        "DQ.POP full COUNT 4 TTR 600000",
        "DQ.ACK full acked",
        "DQ.NACK full dead2 FATAL",
        "DQ.NACK full dead FATAL",
        "DQ.ADD full expired-lease x PRIORITY -20 ATTEMPTS 5",
        "DQ.POP full TTR 1",
        "DQ.PAUSE full 600000",
        "DQ.CFGSET empty",
        "DQ.PAUSE paused",
        "DQ.ADD plain * x DELAY 600000",
        "PEXPIRE plain 600000",
        "SELECT 9",
        "DQ.ADD ninth a x",
        "DQ.POP ninth TTR 600000",
        "SELECT 0",
    ] {
        let reply = client.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
    wait_until("the short lease has ended", PATIENCE, || {
        client.ask("DQ.LEN full RESERVED") == "1"
    });
}

/// Large enough for several chunks.
fn fill_more(client: &mut Raw) {
    let payload = vec![0xfd; 3000];
    for number in 0..200u32 {
        let id = number.to_be_bytes();
        client.call(&[b"DQ.ADD", b"large", &id, &payload, b"DELAY", b"600000"]);
    }
    client.call(&[b"DQ.ADD", b"large", b"huge", &vec![7; 1 << 20]]);
    client.run("DQ.POP large TTR 600000");
}

#[track_caller]
fn stop_writing(server: &Server) -> String {
    server.raw().says("CLIENT PAUSE 60000 WRITE", "+OK");
    server.digest()
}

#[test]
fn rdb() {
    let server = Server::start();
    let mut client = server.raw();
    fill(&mut client);
    fill_more(&mut client);
    let mut traffic = Traffic::new(&server, 21);
    traffic.run(3000);
    traffic.persist();
    let digest = stop_writing(&server);
    client.says("SAVE", "+OK");
    assert_eq!(frozen(server.folder(), Server::builder()).digest(), digest);
    // Also when a fork has saved it.
    fs::remove_file(server.folder().join("dump.rdb")).expect("a dump");
    assert!(client.ask("BGSAVE").starts_with('+'));
    wait_until("the dump is written", PATIENCE, || {
        server.info("persistence", "rdb_bgsave_in_progress") == "0"
    });
    assert_eq!(server.info("persistence", "rdb_last_bgsave_status"), "ok");
    assert_eq!(frozen(server.folder(), Server::builder()).digest(), digest);
}

#[test]
fn aof() {
    for preamble in ["yes", "no"] {
        let builder = Server::builder().aof().config("appendfsync", "everysec");
        let builder = builder.config("aof-use-rdb-preamble", preamble);
        let server = builder.clone().start();
        let mut client = server.raw();
        fill(&mut client);
        fill_more(&mut client);
        let mut traffic = Traffic::new(&server, 22);
        traffic.run(2000);
        traffic.persist();
        let digest = stop_writing(&server);
        client.says("CONFIG SET appendfsync always", "+OK");
        let as_written = frozen(server.folder(), builder.clone());
        assert_eq!(
            as_written.digest(),
            digest,
            "preamble {preamble}, as written"
        );
        client.says("CLIENT UNPAUSE", "+OK");
        // Rewritten during the traffic.
        assert!(client.ask("BGREWRITEAOF").starts_with('+'));
        traffic.run(1500);
        wait_until("the AOF is rewritten", PATIENCE, || {
            server.info("persistence", "aof_rewrite_in_progress") == "0"
                && server.info("persistence", "aof_rewrite_scheduled") == "0"
        });
        assert_eq!(
            server.info("persistence", "aof_last_bgrewrite_status"),
            "ok"
        );
        let digest = stop_writing(&server);
        let rewritten = frozen(server.folder(), builder);
        assert_eq!(rewritten.digest(), digest, "preamble {preamble}, rewritten");
        assert!(!rewritten.log().contains("refused"), "{}", rewritten.log());
    }
}

#[test]
fn dump_restore_and_copy_are_equal() {
    let server = Server::start();
    let mut client = server.raw();
    fill(&mut client);
    fill_more(&mut client);
    let mut traffic = Traffic::new(&server, 23);
    traffic.rough = false;
    traffic.run(2000);
    // Restored on a server where nothing happens by itself.
    let still = Server::builder()
        .config("replicaof", "127.0.0.1 1")
        .config("replica-read-only", "no")
        .start();
    let mut there = still.raw();
    client.says("CLIENT PAUSE 60000 WRITE", "+OK");
    let Reply::Array(keys) = client.run("KEYS *") else {
        panic!("no keys");
    };
    assert!(keys.len() > 3);
    for key in &keys {
        let Reply::Bulk(key) = key else {
            panic!("no key")
        };
        let Reply::Bulk(payload) = client.call(&[b"DUMP", key]) else {
            panic!("no dump");
        };
        let digest = client.call(&[b"DEBUG", b"DIGEST-VALUE", key]);
        // The server's digest of a value also depends on whether its key expires.
        let Reply::Integer(ttl) = client.call(&[b"PTTL", key]) else {
            panic!("no TTL");
        };
        let ttl = ttl.max(0).to_string();
        assert_eq!(
            there.call(&[b"RESTORE", key, ttl.as_bytes(), &payload]),
            Reply::Simple("OK".into())
        );
        let name = String::from_utf8_lossy(key);
        assert_eq!(
            there.call(&[b"DEBUG", b"DIGEST-VALUE", key]),
            digest,
            "restored {name}"
        );
        assert_eq!(
            there.call(&[b"COPY", key, b"copy", b"REPLACE"]),
            Reply::Integer(1)
        );
        assert_eq!(
            there.call(&[b"DEBUG", b"DIGEST-VALUE", b"copy"]),
            digest,
            "copied {name}"
        );
        // And dumped again from there.
        let Reply::Bulk(again) = there.call(&[b"DUMP", b"copy"]) else {
            panic!("no dump");
        };
        there.call(&[b"RESTORE", b"again", ttl.as_bytes(), &again, b"REPLACE"]);
        assert_eq!(
            there.call(&[b"DEBUG", b"DIGEST-VALUE", b"again"]),
            digest,
            "{name} again"
        );
        there.says("DEL copy again", "2");
    }
}

/// Two queues that differ in one thing have two digests; how they came about is none.
#[test]
fn digests_tell_queues_apart() {
    let mut p = Probe::start();
    let options = [
        "AT 1000",
        "AT 1001",
        "AT 1000 PRIORITY 1",
        "AT 1000 TTR 5",
        "AT 1000 ATTEMPTS 1",
        "AT 1000 BACKOFF 1 5",
        "AT 1000 BACKOFF 2 5 5",
        "AT 1000 TTL 100000",
        "AT 1000 GROUP g",
        "AT 1000 KEEP 5",
        "AT 1000 COST 2",
        "AT 1000 LABEL l",
        "AT 1000 EVERY 60000",
    ];
    let mut digests = BTreeSet::new();
    for option in options {
        p.run(&format!("DQ.ADD q a x {option} REPLACE"));
        assert!(digests.insert(p.server.digest()), "{option}");
    }
    for line in [
        "DQ.ADD q a y AT 1000 REPLACE",
        "DQ.CFGSET q",
        "DQ.CFGSET q MAXLEN 5",
        "DQ.PAUSE q",
        "DQ.PAUSE q 100000",
        "DQ.RESUME q",
        "DQ.POP q TTR 100000",
        "DQ.TOUCH q a TTR 200000",
        "DQ.NACK q a DELAY 100000",
        "DQ.RESCHEDULE q AT 1000 a",
        "DQ.POP q",
        "DQ.NACK q a FATAL",
        "DQ.KICK q COUNT 1",
        "DQ.CFGSET q DEDUPE 100000",
        "DQ.POP q NOACK",
        "DQ.DEL q a",
    ] {
        p.run(line);
        let new = digests.insert(p.server.digest());
        // RESUME leads back to what was there before the PAUSE.
        assert!(new || line == "DQ.RESUME q", "{line}");
    }
    // The order is data.
    let digest = |p: &mut Probe, lines: &[&str]| {
        p.run("DEL q");
        lines.iter().for_each(|line| drop(p.run(line)));
        p.server.digest()
    };
    let (a, b) = ("DQ.ADD q a x AT 1000", "DQ.ADD q b x AT 1000");
    let ab = digest(&mut p, &[a, b]);
    assert_ne!(digest(&mut p, &[b, a]), ab);
    assert_eq!(digest(&mut p, &[b, a, "DQ.ADD q b x AT 1000 XX"]), ab);
    assert_eq!(digest(&mut p, &["DQ.ADD q c x", a, b, "DQ.DEL q c"]), ab);
}

/// Servers besides the one under test, to read what one of them writes.
fn all_servers() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["/usr/bin/redis-server", "/usr/bin/valkey-server"]
        .map(PathBuf::from)
        .into();
    let folder = root().join("target/servers");
    for name in [
        "redis-8.0/redis-server",
        "valkey-8.0/valkey-server",
        "valkey-9.1/valkey-server",
    ] {
        found.push(folder.join(name));
    }
    found.retain(|path| path.is_file());
    found
}

/// The module's payload is the same on all servers; whether a server reads another's RDB version is its own matter.
#[test]
fn between_servers() {
    let source = Server::start();
    let mut client = source.raw();
    fill(&mut client);
    let digest = source.digest();
    client.says("SAVE", "+OK");
    let Reply::Bulk(payload) = client.run("DUMP full") else {
        panic!("no dump");
    };
    let of_full = client.ask("DEBUG DIGEST-VALUE full");
    let mut read = 0;
    for binary in all_servers() {
        let version = Version::of(&binary);
        if version == *source.version() {
            continue;
        }
        let builder = Server::builder()
            .binary(&binary)
            .config("replicaof", "127.0.0.1 1");
        let target = builder.clone().config("replica-read-only", "no").start();
        let mut there = target.raw();
        match there.call(&[b"RESTORE", b"full", b"0", &payload]) {
            Reply::Simple(_) => {
                assert_eq!(there.ask("DEBUG DIGEST-VALUE full"), of_full, "{version}");
                read += 1;
            }
            Reply::Error(text) if text.contains("version or checksum") => {
                println!("{version} does not read a dump of {}", source.version());
                continue;
            }
            other => panic!("{version}: {}", show(&other)),
        }
        let loaded = builder.with_files_of(source.folder()).start();
        assert_eq!(
            loaded.digest(),
            digest,
            "the RDB of {} in {version}",
            source.version()
        );
    }
    let is_old = source.version().is_redis() && !source.version().at_least(7, 2);
    if is_old && all_servers().len() > 1 {
        assert!(read > 0, "everybody reads what 7.0 wrote");
    } else if all_servers().len() < 2 {
        skipped("no other server: `make servers` gets some");
    } else if read == 0 {
        skipped(format!(
            "no other server reads a dump of {}",
            source.version()
        ));
    }
}

/// Ids grow over restarts even if the clock steps back: here an id was drawn from a clock an hour ahead.
#[test]
fn ids_and_tokens_go_on_growing() {
    let hour_ahead = now_ms() + 3_600_000;
    for way in [
        "rdb",
        "aof",
        "rewritten",
        "rewritten with preamble",
        "replica",
    ] {
        let builder = match way {
            "rdb" => Server::builder(),
            "rewritten with preamble" => Server::builder().aof(),
            _ => Server::builder().aof().config("aof-use-rdb-preamble", "no"),
        };
        let mut server = builder.start();
        let mut client = server.raw();
        let payload = forged(
            &mut client,
            &[
                Effect::Minted {
                    ms: hour_ahead,
                    seq: 5,
                    token: 0,
                },
                Effect::Floors {
                    seq: 0,
                    death: 0,
                    token: hour_ahead << 20,
                },
                Effect::Configured(Default::default()),
            ],
        );
        let restored = restore(&mut client, b"q", &payload);
        assert_eq!(restored, Reply::Simple("OK".into()));
        client.says("DQ.ADD other * x", &format!("'{hour_ahead}-6'"));
        client.begin("DQ.POP other");
        let before: u64 = client.delivery().token.parse().expect("a token");
        assert!(before > hour_ahead << 20);
        let other = match way {
            "rdb" => {
                server.save_and_stop();
                server.restart();
                None
            }
            "replica" => {
                let replica = Server::start();
                replica.replica_of(&server);
                replica.promote();
                Some(replica)
            }
            _ => {
                if way != "aof" {
                    assert!(client.ask("BGREWRITEAOF").starts_with('+'));
                    let done = poll(PATIENCE, || {
                        let idle = server.info("persistence", "aof_rewrite_in_progress") == "0";
                        let file = last_aof(server.folder());
                        (idle && file.to_string_lossy().contains(".2.incr.")).then_some(())
                    });
                    assert!(done.is_some(), "the AOF is rewritten");
                }
                server.kill();
                server.restart();
                None
            }
        };
        let mut client = other.as_ref().unwrap_or(&server).raw();
        client.says("DQ.ADD third * x", &format!("'{hour_ahead}-7'"));
        client.begin("DQ.POP third");
        let after: u64 = client.delivery().token.parse().expect("a token");
        assert!(after > before, "{way}: {after} after {before}");
    }
}
