//! The server's own rules, which hold for every command: users, memory, replicas, the module itself.

use crate::probe::show;
use crate::scene::{pair, Lines, Scene};
use crate::support::{raw, skipped, wait_until, Raw, Server, PATIENCE};

#[test]
fn acl_sees_every_key() {
    let server = Server::start();
    let mut admin = server.raw();
    admin.says("ACL SETUSER worker on nopass ~q* +@all", "+OK");
    admin.says("ACL SETUSER reader on nopass %R~q* +@all", "+OK");
    admin.says(
        "ACL SETUSER named on nopass ~q* -@all +dq.add +dq.bpop",
        "+OK",
    );
    admin.says("DQ.ADD q a x", "'a'");
    let mut worker = login(&server, "worker");
    for line in [
        "DQ.BPOP q x 0",
        "DQ.BPOP x q 0",
        "DQ.BPOP q x q 0 COUNT 2 TTR 5 NOACK",
        "DQ.BPOP q q2 q3 x 0.1 NOACK",
        "DQ.ADD x a x",
        "DQ.POP x",
        "DQ.GET x a",
        "DQ.CFGSET x",
        "DQ.APPLY x x",
    ] {
        is_refused(&mut worker, line);
    }
    // The server knows of the first key only.
    admin.says("ACL DRYRUN worker DQ.BPOP q x 0", "+OK");
    let refused = admin.ask("ACL DRYRUN worker DQ.BPOP x q 0");
    assert!(refused.contains("permissions"), "{refused}");
    worker.begin("DQ.BPOP q2 q 0 COUNT 1");
    assert!(worker.reply().contains("'a'"));
    let mut reader = login(&server, "reader");
    for line in READS {
        let reply = reader.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
    for line in WRITES.iter().chain(&["DQ.GET x a", "DQ.APPLY q x"]) {
        is_refused(&mut reader, line);
    }
    let mut named = login(&server, "named");
    named.says("DQ.ADD q c x", "'c'");
    is_refused(&mut named, "DQ.ACK q c");
    is_refused(&mut named, "DQ.BPOP q x 0");
    assert_eq!(server.blocked(), 0);
}

const READS: [&str; 10] = [
    "DQ.GET q a",
    "DQ.LEN q",
    "DQ.FORECAST q FROM 5 TO 9 BUCKETS 2",
    "DQ.STATS q",
    "DQ.EXPLAIN q",
    "DQ.PEEK q READY",
    "DQ.SCAN q 0",
    "DQ.GROUPS q 0",
    "DQ.GROUPGET q g",
    "DQ.CFGGET q",
];
const WRITES: [&str; 9] = [
    "DQ.POP q",
    "DQ.ADD q b x",
    "DQ.BPOP q 0.01",
    "DQ.DEL q a",
    "DQ.ACK q a",
    "DQ.PAUSE q",
    "DQ.CFGSET q",
    "DQ.GROUPSET q g MAX 1",
    "DQ.PURGE q ALL",
];

fn login(server: &Server, user: &str) -> Raw {
    let mut client = server.raw();
    client.says(&format!("AUTH {user} x"), "+OK");
    client
}

#[track_caller]
fn is_refused(client: &mut Raw, line: &str) {
    let reply = client.ask(line);
    assert!(reply.starts_with("-NOPERM "), "{line} -> {reply}");
}

#[test]
fn acl_categories() {
    let server = Server::start();
    if server.version().is_redis() && !server.version().at_least(7, 2) {
        return skipped("Redis 7.0 knows no ACL categories of modules' commands");
    }
    let mut admin = server.raw();
    for (user, rules) in [
        ("worker", "~q* +@all -@admin"),
        ("reader", "%R~q* +@read"),
        ("writer", "~q* +@write"),
        ("safe", "~q* +@all -@dangerous"),
        ("lister", "~q* +@list"),
        ("patient", "~q* +@all -@blocking"),
    ] {
        admin.says(&format!("ACL SETUSER {user} on nopass {rules}"), "+OK");
    }
    admin.says("DQ.ADD q a x", "'a'");
    let mut reader = login(&server, "reader");
    for line in READS {
        let reply = reader.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
    let mut lister = login(&server, "lister");
    for line in WRITES {
        is_refused(&mut reader, line);
        is_refused(&mut lister, line);
    }
    for user in ["worker", "safe", "reader"] {
        is_refused(&mut login(&server, user), "DQ.APPLY q x");
    }
    is_refused(&mut login(&server, "patient"), "DQ.BPOP q 0.01");
    let mut writer = login(&server, "writer");
    writer.says("DQ.ADD q b x", "'b'");
    is_refused(&mut writer, "DQ.GET q b");
}

#[test]
fn the_keys_of_commands() {
    let server = Server::start();
    let mut client = server.raw();
    for (line, keys) in [
        // The first is all that a key specification can tell.
        ("DQ.BPOP a b c 0", "a"),
        ("DQ.BPOP a 0 COUNT 5", "a"),
        ("DQ.BPOP COUNT 5 0", "COUNT"),
        ("DQ.ADD q i p", "q"),
        ("DQ.ACK q i j", "q"),
        ("DQ.SCAN q 0", "q"),
        ("DQ.APPLY q x", "q"),
    ] {
        let got = client.words(&format!("COMMAND GETKEYS {line}"));
        assert_eq!(got.join(" "), keys, "{line}");
    }
    for line in ["DQ.BPOP a", "DQ.BPOP", "DQ.BPOP 0 NOACK"] {
        let reply = client.ask(&format!("COMMAND GETKEYS {line}"));
        // "0 NOACK": the key 0 with the timeout NOACK.
        assert!(
            reply.starts_with('-') || line.ends_with("0 NOACK"),
            "{line} -> {reply}"
        );
    }
    for (line, flags) in [
        ("DQ.BPOP q r 0", "RW"),
        ("DQ.ADD q i p", "RW"),
        ("DQ.GET q i", "RO"),
        ("DQ.LEN q", "RO"),
    ] {
        let reply = client.ask(&format!("COMMAND GETKEYSANDFLAGS {line}"));
        assert!(
            reply.contains(&format!("'q' [ +{flags} ")),
            "{line} -> {reply}"
        );
    }
}

/// Out of memory: commands that add are refused, commands that remove work, and the timer continues.
#[test]
fn out_of_memory() {
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    for number in 0..10 {
        client.run(&format!("DQ.ADD q {number} x"));
    }
    client.run("DQ.POP q COUNT 2 TTR 200");
    client.says("DQ.ADD q later x DELAY 2000 PRIORITY -1", "'later'");
    let mut waiting = server.waiting("DQ.BPOP q2 0");
    client.says("CONFIG SET maxmemory 1000", "+OK");
    for line in ["DQ.ADD q more x", "DQ.CFGSET new TTR 5", "DQ.PAUSE new"] {
        let reply = client.ask(line);
        assert!(reply.starts_with("-OOM "), "{line} -> {reply}");
    }
    client.begin("DQ.POP q");
    let job = client.delivery();
    assert!(client.int(&format!("DQ.TOUCH q {} TTR 90000", job.id)) as u64 > job.deadline);
    client.says(&format!("DQ.ACK q {}", job.id), "1");
    client.says("DQ.DEL q 9", "1");
    client.run("DQ.POP q ID 8");
    client.says("DQ.NACK q 8", "'ready'");
    client.says("DQ.RESCHEDULE q DELAY 5 8", "1");
    for line in [
        "DQ.CFGSET q DEADLEN 9 DEDUPE 0",
        "DQ.PAUSE q",
        "DQ.RESUME q",
    ] {
        client.says(line, "+OK");
    }
    wait_until("leases end", PATIENCE, || {
        server.number("dq", "dq_timed_out_total") == 2
    });
    wait_until("the last job is due", PATIENCE, || {
        client.int("DQ.LEN q DELAYED") == 0
    });
    client.begin("DQ.BPOP q 0");
    assert_eq!(client.delivery().id, "later");
    client.says("DQ.PURGE q ALL", "9");
    client.says("CONFIG SET maxmemory 0", "+OK");
    client.says("DQ.ADD q2 a x", "'a'");
    assert_eq!(waiting.delivery().id, "a");
    server.assert_followed_by(&[&replica]);
}

#[test]
fn the_module_stays() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x DELAY 200", "'a'");
    let mut waiting = server.waiting("DQ.BPOP q 0");
    let reply = client.ask("MODULE UNLOAD dq");
    assert!(reply.starts_with("-ERR "), "{reply}");
    let module = crate::support::locate::module_path();
    let reply = client.call(&[b"MODULE", b"LOAD", module.to_string_lossy().as_bytes()]);
    assert!(show(&reply).starts_with("-ERR "), "{}", show(&reply));
    // From another path it is another library, of the same name.
    let copy = server.folder().join("copy.so");
    std::fs::copy(&module, &copy).expect("a copy of the module");
    let reply = client.call(&[b"MODULE", b"LOAD", copy.to_string_lossy().as_bytes()]);
    assert!(show(&reply).starts_with("-ERR "), "{}", show(&reply));
    assert_eq!(waiting.delivery().id, "a");
    client.says("DQ.ACK q a", "1");
}

/// A read-only command may find an expired lease: the server must replicate what follows from that, wherever such a
/// command may be called.
#[test]
fn reading_what_is_past_anywhere() {
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    let flagged: &[u8] = b"#!lua flags=no-writes\nreturn redis.call('DQ.LEN', KEYS[1], 'RESERVED')";
    let plain: &[u8] = b"return redis.call('DQ.LEN', KEYS[1], 'RESERVED')";
    let library =
        b"#!lua name=lib\nredis.register_function{function_name='len', flags={'no-writes'}, \
        callback=function(keys) return redis.call('DQ.LEN', keys[1], 'RESERVED') end}";
    client.call(&[b"FUNCTION", b"LOAD", library]);
    let multi = [
        raw::encode(&[b"MULTI"]),
        raw::encode(&[b"DQ.LEN", b"q", b"RESERVED"]),
        raw::encode(&[b"EXEC"]),
    ];
    let looks = [
        raw::encode(&[b"DQ.LEN", b"q", b"RESERVED"]),
        raw::encode(&[b"EVAL_RO", plain, b"1", b"q"]),
        raw::encode(&[b"EVAL", flagged, b"1", b"q"]),
        raw::encode(&[b"EVAL", plain, b"1", b"q"]),
        raw::encode(&[b"FCALL_RO", b"len", b"1", b"q"]),
        multi.concat(),
    ];
    for look in looks {
        client.run("DEL q");
        client.says("DQ.ADD q a x", "'a'");
        client.says("DQ.ADD q b x ATTEMPTS 1", "'b'");
        client.run("DQ.POP q COUNT 2 TTR 20");
        // In one packet: the leases end while the server sleeps, and the query comes before the timer.
        let mut bytes = raw::encode(&[b"DEBUG", b"SLEEP", b"0.05"]);
        bytes.extend(&look);
        client.send(&bytes);
        assert_eq!(client.reply(), "+OK");
        let mut reply = client.reply();
        if reply == "+OK" {
            client.read();
            reply = client.reply();
        }
        assert!(reply == "0" || reply == "[ 0 ]", "{reply}");
        client.says("DQ.LEN q DEAD", "1");
        server.assert_followed_by(&[&replica]);
    }
    server.assert_no_crash();
}
