//! Replicas: equal to their master after whatever happened, unchanged by themselves, and ready to take its place.

use std::io::{Read, Write};
use std::time::Duration;

use crate::probe::{packed, show};
use crate::scene::{let_pass, now_ms, pair, Lines, Scene};
use crate::support::{wait_until, Raw, Reply, Server, Socket, PATIENCE};
use crate::traffic::Traffic;

#[test]
fn random_traffic_arrives() {
    let (master, replica) = pair(Server::builder().aof().config("appendfsync", "everysec"));
    let below = Server::start();
    below.replica_of(&replica);
    // Each version has traffic of its own.
    let (major, minor, patch) = master.version().number;
    let seed = u64::from(10_000 * major + 100 * minor + patch);
    let mut traffic = Traffic::new(&master, seed);
    for round in 0..8 {
        traffic.run(1500);
        match round % 4 {
            1 => {
                let before = master.number("stats", "sync_partial_ok");
                master.raw().run("CLIENT KILL TYPE replica");
                traffic.run(200);
                wait_until("a partial resync", PATIENCE, || {
                    master.number("stats", "sync_partial_ok") > before
                });
            }
            2 => {
                let before = master.number("stats", "sync_full");
                master.raw().says("DEBUG CHANGE-REPL-ID", "+OK");
                master.raw().run("CLIENT KILL TYPE replica");
                traffic.run(200);
                wait_until("a full resync", PATIENCE, || {
                    master.number("stats", "sync_full") > before
                });
            }
            3 => {
                // A payload must contain the same as effects.
                traffic.persist();
                let mut client = master.raw();
                client.says("CLIENT PAUSE 60000 WRITE", "+OK");
                let digest = master.digest();
                client.says("DEBUG RELOAD", "+OK");
                assert_eq!(master.digest(), digest, "after DEBUG RELOAD");
                client.says("CLIENT UNPAUSE", "+OK");
            }
            _ => {}
        }
        replica.wait_for_link();
        below.wait_for_link();
        master.assert_followed_by(&[&replica, &below]);
    }
    traffic.settles(&below);
    for server in [&replica, &below] {
        assert!(!server.log().contains("refused"), "{}", server.log());
    }
}

/// The replication stream says what happened, not what was asked, and in one piece.
#[test]
fn a_wake_up_travels_in_one_transaction() {
    let server = Server::builder().config("repl-diskless-sync", "no").start();
    let mut client = server.raw();
    let mut waiting = [
        server.waiting("DQ.BPOP a 0"),
        server.waiting("DQ.BPOP b 0"),
        server.waiting("DQ.BPOP c 0 NOACK"),
    ];
    let mut stream = Stream::of(&server);
    let at = now_ms() + 300;
    for key in ["a", "b", "c"] {
        client.run(&format!("DQ.ADD {key} j x AT {at}"));
    }
    for client in &mut waiting {
        client.delivery();
    }
    client.says("SET end x", "+OK");
    let commands = stream.until("SET");
    let names: Vec<&str> = commands.iter().map(|words| words[0].as_str()).collect();
    // Three ADDs; then the deliveries. (The server says SELECT and PING by itself.)
    let names: Vec<&str> = names
        .into_iter()
        .filter(|name| !["select", "ping", "replconf"].contains(&name.to_lowercase().as_str()))
        .collect();
    assert!(
        names
            .iter()
            .all(|name| ["DQ.APPLY", "MULTI", "EXEC", "SET"].contains(name)),
        "{names:?}"
    );
    let multi = names
        .iter()
        .position(|&name| name == "MULTI")
        .expect("a transaction");
    let exec = names
        .iter()
        .position(|&name| name == "EXEC")
        .expect("its end");
    assert!(
        names[multi..exec]
            .iter()
            .filter(|&&name| name == "DQ.APPLY")
            .count()
            >= 2,
        "{names:?}"
    );
    assert_eq!(names.iter().filter(|&&name| name == "DQ.APPLY").count(), 6);
}

/// No command that reads a clock, and no option, may be in the stream.
#[test]
fn effects_travel_not_commands() {
    let server = Server::builder().config("repl-diskless-sync", "no").start();
    let mut stream = Stream::of(&server);
    Traffic::new(&server, 7).run(1000);
    server.raw().says("SET end x", "+OK");
    for words in stream.until("SET") {
        let dq = words[0].to_uppercase().starts_with("DQ.");
        assert!(!dq || words[0] == "DQ.APPLY", "{words:?}");
    }
}

/// A replica that only reads.
struct Stream {
    socket: Socket,
    bytes: Vec<u8>,
}

impl Stream {
    fn of(server: &Server) -> Stream {
        let mut socket = Socket::tcp(server.port()).expect("a connection");
        socket.set_patience(PATIENCE);
        socket.write_all(&packed("SYNC")).expect("sent");
        let mut stream = Stream {
            socket,
            bytes: Vec::new(),
        };
        // Line breaks until the dump is ready, then `$length`, then the dump.
        let length = loop {
            let line_end = stream.bytes.iter().position(|&byte| byte == b'\n');
            match line_end {
                Some(end) => {
                    let line: Vec<u8> = stream.bytes.drain(..=end).collect();
                    if line[0] == b'$' {
                        let digits = String::from_utf8_lossy(&line[1..]).trim().to_owned();
                        break digits.parse::<usize>().expect("a length");
                    }
                }
                None => stream.receive("the dump"),
            }
        };
        while stream.bytes.len() < length {
            stream.receive("the dump");
        }
        stream.bytes.drain(..length);
        stream
    }

    fn receive(&mut self, what: &str) {
        let mut chunk = [0; 65536];
        let read = self.socket.read(&mut chunk);
        let count = read.unwrap_or_else(|error| panic!("no {what} in the stream: {error}"));
        assert_ne!(count, 0, "the server hung up");
        self.bytes.extend_from_slice(&chunk[..count]);
    }

    /// All commands up to this one.
    fn until(&mut self, last: &str) -> Vec<Vec<String>> {
        let mut commands = Vec::new();
        loop {
            while let Some((reply, length)) = Reply::parse(&self.bytes) {
                self.bytes.drain(..length);
                let Reply::Array(words) = reply else {
                    panic!("{}", show(&reply));
                };
                let words: Vec<String> = words.iter().map(crate::probe::plain).collect();
                let ends = words[0].eq_ignore_ascii_case(last);
                commands.push(words);
                if ends {
                    return commands;
                }
            }
            self.receive(last);
        }
    }
}

/// Timers fire on replicas too, and could write there.
#[test]
fn a_replica_never_changes_by_itself() {
    let (master, replica) = pair(Server::builder().config("repl-timeout", 3600));
    let mut client = master.raw();
    // Long enough for a busy machine to look at it before.
    client.says("DQ.CFGSET q DEDUPE 5000 DEADLEN 1", "+OK");
    for line in [
        "DQ.ADD q leased x",
        "DQ.ADD q dies x ATTEMPTS 1",
        "DQ.POP q COUNT 2 TTR 5000",
        "DQ.ADD q vanishes x DELAY 60000 TTL 5000",
        "DQ.ADD q comes x DELAY 5000",
        "DQ.ADD q done x PRIORITY -1",
        "DQ.POP q",
        "DQ.ACK q done",
        "DQ.PAUSE q 5000",
        "DQ.ADD single x y TTL 5000",
    ] {
        client.run(line);
    }
    let waiting = master.waiting("DQ.BPOP q 0");
    replica.wait_for_offset_of(&master);
    master.signal("STOP");
    let mut there = replica.raw();
    let digest = replica.digest();
    let due = there.words("DQ.PEEK q DELAYED");
    there.says("DQ.LEN q DELAYED", "2");
    there.says("DQ.LEN q RESERVED", "2");
    assert!(!due.is_empty());
    let_pass(Duration::from_millis(5200));
    // A job is due by the replica's own clock; leases and TTLs end when its master says so.
    there.says("DQ.LEN q DELAYED", "1");
    there.says("DQ.LEN q READY", "1");
    there.says("DQ.LEN q RESERVED", "2");
    there.says("DQ.LEN q DEAD", "0");
    there.says("EXISTS single", "1");
    for line in [
        "DQ.STATS q",
        "DQ.SCAN q 0",
        "DQ.GET q vanishes",
        "DQ.GET q leased",
        "DQ.PEEK q RESERVED",
        "INFO dq",
        "DQ.GET single x",
    ] {
        there.run(line);
    }
    assert_eq!(replica.digest(), digest);
    master.signal("CONT");
    wait_until("the master's word", PATIENCE, || {
        there.int("DQ.LEN q DEAD") == 1
    });
    wait_until("the master's word", PATIENCE, || {
        there.int("EXISTS single") == 0
    });
    drop(waiting);
    master.assert_followed_by(&[&replica]);
}

/// Leases, due times, TTLs and pauses that were set on a master continue on its replica.
#[test]
fn promotion_continues() {
    let (mut master, replica) = pair(Server::builder());
    let below = Server::start();
    below.replica_of(&replica);
    let mut client = master.raw();
    // No lease and no delay ends before.
    let due = now_ms() + 3000;
    for name in ["stays", "renamed", "moved", "copied", "swapped", "restored"] {
        for line in [
            format!("DQ.ADD {name} leased x"),
            format!("DQ.ADD {name} dies x ATTEMPTS 1"),
            format!("DQ.POP {name} COUNT 2 TTR 3000"),
            format!("DQ.ADD {name} comes x DELAY 3000"),
            format!("DQ.ADD {name} vanishes x DELAY 60000 TTL 3000"),
        ] {
            client.run(&line);
        }
    }
    client.says("RENAME renamed new", "+OK");
    client.says("MOVE moved 1", "1");
    client.says("COPY copied copy", "1");
    client.says("DEL copied", "1");
    client.says("SWAPDB 0 2", "+OK");
    let Reply::Bulk(payload) = ({
        client.says("SELECT 2", "+OK");
        client.run("DUMP restored")
    }) else {
        panic!("no dump");
    };
    client.says("DEL restored", "1");
    client.call(&[b"RESTORE", b"again", b"0", &payload]);
    master.assert_followed_by(&[&replica, &below]);
    master.kill();
    replica.promote();
    let mut waiting: Vec<Raw> = [
        ("stays", 2),
        ("new", 2),
        ("moved", 1),
        ("copy", 2),
        ("swapped", 2),
        ("again", 2),
    ]
    .into_iter()
    .map(|(name, db)| {
        let mut client = replica.raw();
        client.says(&format!("SELECT {db}"), "+OK");
        client.begin(&format!("DQ.BPOP {name} 0"));
        client
    })
    .collect();
    for client in &mut waiting {
        let job = client.delivery();
        assert!(now_ms() >= due, "{} of {} came early", job.id, job.key);
        client.begin(&format!("DQ.BPOP {} 0", job.key));
        client.delivery();
        let left = format!("DQ.LEN {}", job.key);
        wait_until("both are reserved, the others gone", PATIENCE, || {
            client.int(&left) == 2
        });
    }
    wait_until("jobs have died and vanished", PATIENCE, || {
        replica.number("dq", "dq_died_total") == 6 && replica.number("dq", "dq_expired_total") == 6
    });
    replica.assert_followed_by(&[&below]);
}

/// Tokens and ids of the new master are larger than all of the old one's.
#[test]
fn promotion_goes_on_counting() {
    let (master, replica) = pair(Server::builder());
    let mut client = master.raw();
    let (mut ids, mut tokens) = (Vec::new(), Vec::new());
    let mut one = |client: &mut Raw| {
        let Reply::Bulk(id) = client.run("DQ.ADD q * x") else {
            panic!("no id");
        };
        let id = String::from_utf8(id).expect("digits");
        let (ms, seq) = id.split_once('-').expect("ms-seq");
        ids.push((
            ms.parse::<u64>().expect("ms"),
            seq.parse::<u64>().expect("seq"),
        ));
        client.begin("DQ.POP q");
        tokens.push(client.delivery().token.parse::<u64>().expect("a token"));
    };
    for _ in 0..50 {
        one(&mut client);
    }
    client.run("DEL q");
    one(&mut client);
    replica.wait_for_offset_of(&master);
    replica.promote();
    let mut client = replica.raw();
    for _ in 0..50 {
        one(&mut client);
    }
    assert!(ids.is_sorted_by(|a, b| a < b));
    assert!(tokens.is_sorted_by(|a, b| a < b));
}

/// A master that has become a replica has timers left over.
#[test]
fn demotion_with_armed_deadlines() {
    let (master, other) = (Server::start(), Server::start());
    let mut client = master.raw();
    client.run("DQ.ADD q leased x");
    client.run("DQ.POP q TTR 2000");
    client.run("DQ.ADD q comes x DELAY 2000 TTL 2100");
    let mut waiting = master.waiting("DQ.BPOP q 0");
    let mut there = other.raw();
    there.run("DQ.ADD q theirs x");
    there.run("DQ.POP q TTR 60000");
    master.replica_of(&other);
    assert!(waiting.reply().starts_with("-UNBLOCKED "));
    let_pass(Duration::from_millis(2200));
    master.assert_same_data_as(&other);
    master.raw().says("DQ.LEN q RESERVED", "1");
    // And back: it looks after its own queue again.
    there.run("DQ.ADD q soon x DELAY 200 PRIORITY -1");
    master.wait_for_offset_of(&other);
    master.promote();
    other.replica_of(&master);
    let mut waiting = master.raw();
    waiting.begin("DQ.BPOP q 0");
    assert_eq!(waiting.delivery().id, "soon");
    master.assert_followed_by(&[&other]);
}

#[test]
fn wait_counts_what_the_timer_writes() {
    let (master, replica) = pair(Server::builder());
    let mut client = master.raw();
    client.says("DQ.ADD q a x", "'a'");
    client.says("WAIT 1 20000", "1");
    replica.raw().says("DQ.LEN q READY", "1");
    // A waiting client is served by the timer; WAIT on the served connection waits for that.
    let mut waiting = master.waiting("DQ.BPOP none 0");
    client.says("DQ.ADD none b x DELAY 100", "'b'");
    waiting.delivery();
    client.says("SET x y", "+OK");
    client.says("WAIT 1 20000", "1");
    replica.raw().says("DQ.LEN none RESERVED", "1");
    replica.signal("STOP");
    client.says("DQ.ADD q c x", "'c'");
    client.says("WAIT 1 100", "0");
    replica.signal("CONT");
}

/// Read from the socket without a file in between, onto a replica that has data of its own.
#[test]
fn diskless_resync_over_other_data() {
    for mode in ["disabled", "on-empty-db", "swapdb"] {
        let master = Server::builder()
            .config("repl-diskless-sync", "yes")
            .start();
        let replica = Server::builder().config("repl-diskless-load", mode).start();
        let mut traffic = Traffic::new(&master, 11);
        traffic.run(2000);
        let mut there = Traffic::new(&replica, 12);
        there.run(1000);
        drop(there);
        replica.replica_of(&master);
        traffic.run(1000);
        master.assert_followed_by(&[&replica]);
        replica.promote();
        let mut client = replica.raw();
        client.run("DQ.ADD fresh a x DELAY 50");
        client.begin("DQ.BPOP fresh 0");
        assert_eq!(client.delivery().id, "a", "{mode}");
        replica.assert_no_crash();
    }
}
