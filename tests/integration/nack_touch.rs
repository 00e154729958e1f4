//! DQ.NACK and DQ.TOUCH.

use std::cell::Cell;

use crate::probe::Probe;

/// A queue `q` whose job `a` is reserved; the token.
fn reserved(p: &mut Probe, options: &str) -> u64 {
    p.run(&format!("DQ.ADD q a x REPLACE {options}"));
    p.pop_token("DQ.POP q ID a")
}

fn get(p: &mut Probe, name: &str) -> String {
    p.field_text("DQ.GET q a", name)
}

fn due(p: &mut Probe) -> u64 {
    p.field_int("DQ.GET q a", "due") as u64
}

#[test]
fn reaches_only_a_current_delivery() {
    let mut p = Probe::start();
    p.all_unseen(
        "DQ.NACK q a -> nil$
        DQ.TOUCH q a -> nil$
        EXISTS q -> 0",
    );
    p.run("DQ.ADD q a x");
    p.all_unseen(
        "DQ.NACK q a -> nil$
        DQ.NACK q a FATAL -> nil$
        DQ.NACK q nobody -> nil$
        DQ.TOUCH q a -> nil$
        DQ.TOUCH q nobody TTR 5 -> nil$",
    );
    p.says3("DQ.NACK q a", "nil");
    p.says3("DQ.TOUCH q a", "nil");
    let token = p.pop_token("DQ.POP q");
    for other in [
        format!("{}", token + 1),
        format!("0{token}"),
        "x".into(),
        "-1".into(),
        "\"\"".into(),
    ] {
        p.unseen(&format!("DQ.NACK q a TOKEN {other}"), "nil$");
        p.unseen(&format!("DQ.TOUCH q a TOKEN {other}"), "nil$");
    }
    p.says(&format!("DQ.NACK q a token {token}"), "'ready'");
}

#[test]
fn fail_waits_its_ladder() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x BACKOFF 3 100000 200000 300000");
    for wait in [100_000, 200_000, 300_000, 300_000] {
        p.run("DQ.POP q");
        let before = p.time_us();
        p.says("DQ.NACK q a", "'delayed'");
        let after = p.time_us();
        let due = due(&mut p) * 1000;
        assert!(
            due >= before + wait * 1000 && due < after + wait * 1000 + 1000,
            "{wait}"
        );
        // `Run now` does not count as a delivery.
        p.says("DQ.RESCHEDULE q DELAY 0 a", "1");
    }
    assert_eq!(get(&mut p, "attempts"), "4");
}

#[test]
fn a_step_past_the_last_instant_stops_there() {
    let mut p = Probe::start();
    reserved(&mut p, "BACKOFF 1 4398046511103");
    p.says("DQ.NACK q a", "'delayed'");
    assert_eq!(due(&mut p), 4_398_046_511_103);
}

#[test]
fn fail_without_a_ladder_is_ready_at_once() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x AT 1000");
    p.run("DQ.POP q");
    let before = p.time_ms();
    p.says("DQ.NACK q a FAIL", "'ready'");
    assert!(due(&mut p) >= before, "the due is new");
    p.says("DQ.POP q", "[ 'a' 'x' ? 2 ? ]");
}

#[test]
fn its_own_delay_counts_instead() {
    let mut p = Probe::start();
    reserved(&mut p, "BACKOFF 1 100000");
    p.says("DQ.NACK q a DELAY 0", "'ready'");
    p.run("DQ.POP q");
    let before = p.time_us();
    p.says("DQ.NACK q a DELAY 700000", "'delayed'");
    assert!(due(&mut p) * 1000 >= before + 700_000_000);
    assert_eq!(get(&mut p, "attempts"), "2");
    assert_eq!(get(&mut p, "backoff"), "[ 100000 ]");
}

#[test]
fn fail_with_attempts_used_up_is_dead() {
    let mut p = Probe::start();
    for options in ["", "FAIL", "DELAY 100000", "DELAY 0 FAIL"] {
        p.run("DQ.ADD q a x ATTEMPTS 2 REPLACE");
        p.run("DQ.POP q");
        p.says("DQ.NACK q a", "'ready'");
        p.run("DQ.POP q");
        let before = p.time_ms();
        p.says(&format!("DQ.NACK q a {options}"), "'dead'");
        let after = p.time_ms();
        let crate::support::Reply::Array(dead) = p.run("DQ.PEEK q DEAD") else {
            panic!()
        };
        let crate::support::Reply::Array(job) = &dead[0] else {
            panic!()
        };
        let crate::support::Reply::Integer(at) = job[2] else {
            panic!()
        };
        assert!((before..=after).contains(&(at as u64)));
    }
}

#[test]
fn silent_does_not_count() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x AT 1000 ATTEMPTS 1 BACKOFF 1 100000");
    p.run("DQ.ADD q b x AT 2000");
    for _ in 0..3 {
        p.says("DQ.POP q", "[ 'a' 'x' ? 1 ? ]");
        p.says("DQ.NACK q a SILENT", "'ready'");
        assert_eq!((due(&mut p), get(&mut p, "attempts")), (1000, "0".into()));
    }
    p.says("DQ.POP q", "[ 'a' 'x' ? 1 ? ]");
    p.says("DQ.NACK q a silent delay 100000", "'delayed'");
    assert_eq!(get(&mut p, "attempts"), "0");
    assert!(due(&mut p) > 100_000);
}

#[test]
fn fatal_is_dead_now() {
    let mut p = Probe::start();
    for options in ["FATAL", "FATAL DELAY 5", "PRIORITY 3 FATAL"] {
        reserved(&mut p, "ATTEMPTS 0");
        p.says(&format!("DQ.NACK q a {options}"), "'dead'");
        p.says("DQ.LEN q DEAD", "1");
        assert_eq!(get(&mut p, "token"), "nil");
    }
    assert_eq!(get(&mut p, "priority"), "3");
}

#[test]
fn a_new_priority() {
    let mut p = Probe::start();
    reserved(&mut p, "PRIORITY 5");
    p.run("DQ.ADD q b x PRIORITY 1");
    p.says("DQ.NACK q a PRIORITY -2147483648", "'ready'");
    p.says("DQ.POP q", "[ 'a' 'x' ? 2 ? ]");
    p.says("DQ.NACK q a", "'ready'");
    assert_eq!(get(&mut p, "priority"), "-2147483648");
    p.run("DQ.POP q");
    p.says("DQ.NACK q a SILENT PRIORITY 7 DELAY 0", "'ready'");
    p.says("DQ.POP q", "[ 'b' 'x' ? 1 ? ]");
}

#[test]
fn past_its_ttl_it_vanishes() {
    let mut p = Probe::start();
    let reserve = |p: &mut Probe, ms: u64| {
        p.run(&format!("DQ.ADD q a x TTL {ms} TTR 100000"));
        p.run("DQ.POP q");
    };
    for options in ["", "SILENT", "FATAL", "DELAY 1000"] {
        let expires = p.in_time("expires", 15, |p, ms| {
            p.run("DQ.CFGSET q DEADLEN 0");
            reserve(p, ms);
        });
        p.wait_until_ms(expires);
        p.raises(&format!("DQ.NACK q a {options}"), "nil$", "dq.expired");
        assert_eq!(p.field_int("DQ.STATS q", "expired"), 1);
        p.says("DQ.LEN q", "0");
        p.run("DEL q");
    }
    // Of an unconfigured queue the key goes.
    let expires = p.in_time("expires", 15, reserve);
    p.wait_until_ms(expires);
    p.says("DQ.NACK q a", "nil$");
    p.says("EXISTS q", "0");
}

#[test]
fn nack_refuses() {
    let mut p = Probe::start();
    reserved(&mut p, "");
    let syntax = "-ERR syntax error, ...";
    for options in [
        "SILENT FAIL",
        "FAIL FATAL",
        "SILENT FATAL",
        "FAIL FAIL",
        "TOKEN",
        "DELAY",
        "PRIORITY",
        "NONSENSE",
        "TOKEN 1 TOKEN 1",
        "DELAY 1 DELAY 1",
        "PRIORITY 1 PRIORITY 1",
        "b",
    ] {
        p.unseen(&format!("DQ.NACK q a {options}"), syntax);
        p.unseen(&format!("DQ.NACK none a {options}"), syntax);
    }
    let range = "-ERR value is not an integer or out of range";
    for options in [
        "DELAY -1",
        "DELAY x",
        "DELAY 4398046511104",
        "DELAY 4398046511103",
        "DELAY 9223372036854775808",
        "PRIORITY 2147483648",
        "PRIORITY -2147483649",
        "PRIORITY x",
        "SILENT DELAY 4398046511103",
    ] {
        p.unseen(&format!("DQ.NACK q a {options}"), range);
        p.unseen(&format!("DQ.NACK none a {options}"), range);
    }
    p.says("DQ.NACK q a PRIORITY 2147483647", "'ready'");
}

#[test]
fn touch_gives_a_fresh_lease() {
    let mut p = Probe::start();
    let token = reserved(&mut p, "TTR 50000");
    let cases = [
        (String::new(), 50_000),
        (format!("TOKEN {token}"), 50_000),
        ("TTR 70000".into(), 70_000),
        // As long as the last one.
        (String::new(), 70_000),
        (format!("ttr 80000 token {token}"), 80_000),
        ("TTR 100".into(), 100),
    ];
    for (options, ms) in cases {
        let before = p.time_us();
        let deadline = p.int(&format!("DQ.TOUCH q a {options}")) as u64 * 1000;
        let after = p.time_us();
        assert!(
            deadline >= before + ms * 1000 && deadline < after + ms * 1000 + 1000,
            "{options}"
        );
    }
    p.says("DQ.TOUCH q a TTR 4398046511103", "4398046511103");
    assert_eq!(get(&mut p, "deadline"), "4398046511103");
    assert_eq!(get(&mut p, "ttr"), "50000");
    assert_eq!(get(&mut p, "token"), format!("'{token}'"));
    // A delivery's own TTR is its last one.
    p.run("DQ.NACK q a");
    p.run("DQ.POP q TTR 300000");
    let before = p.time_us();
    assert!(p.int("DQ.TOUCH q a") as u64 * 1000 >= before + 300_000_000);
}

#[test]
fn a_touched_lease_lasts() {
    let mut p = Probe::start();
    let given_ms = Cell::new(0);
    p.in_time("deadline", 60, |p, ms| {
        given_ms.set(ms);
        reserved(p, &format!("TTR {ms}"));
        p.run("DQ.TOUCH q a TTR 100000");
    });
    let ends_without = p.time_ms() + given_ms.get();
    p.wait_until_ms(ends_without);
    p.says("DQ.LEN q RESERVED", "1");
    let deadline = p.int("DQ.TOUCH q a TTR 200") as u64;
    p.until("DQ.LEN q READY", "1");
    assert!(p.time_ms() >= deadline);
}

#[test]
fn touch_refuses() {
    let mut p = Probe::start();
    reserved(&mut p, "");
    for options in [
        "TOKEN",
        "TTR",
        "TTR 5 TTR 5",
        "TOKEN 1 TOKEN 1",
        "NONSENSE",
        "DELAY 5",
    ] {
        p.unseen(&format!("DQ.TOUCH q a {options}"), "-ERR syntax error, ...");
    }
    for value in ["0", "-1", "x", "4398046511104", "9223372036854775808"] {
        let range = "-ERR value is not an integer or out of range";
        p.unseen(&format!("DQ.TOUCH q a TTR {value}"), range);
        p.unseen(&format!("DQ.TOUCH none a TTR {value}"), range);
    }
}

#[test]
fn what_they_leave() {
    let mut p = Probe::start();
    reserved(&mut p, "TTR 90000");
    p.seen("DQ.TOUCH q a TTR 95000", "?");
    p.seen("DQ.NACK q a", "'ready'");
    p.run("DQ.POP q");
    p.raises("DQ.TOUCH q a TTR 93000", "?", "");
    p.raises("DQ.NACK q a", "'ready'", "dq.nack");
    p.run("DQ.POP q");
    p.raises("DQ.NACK q a DELAY 100000", "'delayed'", "dq.nack");
    p.run("DQ.RESCHEDULE q DELAY 0 a");
    p.run("DQ.POP q");
    p.seen("DQ.NACK q a FATAL", "'dead'");
    reserved(&mut p, "");
    p.raises("DQ.NACK q a FATAL", "'dead'", "dq.nack dq.dead");
}
