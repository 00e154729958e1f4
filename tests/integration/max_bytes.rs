//! MAXBYTES, and the bytes that DQ.STATS reports.

use crate::probe::Probe;

fn bytes(p: &mut Probe) -> i64 {
    p.field_int("DQ.STATS q", "bytes")
}

const FULL: &str = "-MAXBYTES queue is full";

#[test]
fn an_add_that_makes_the_sum_larger_is_refused() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q MAXBYTES 10");
    p.says("DQ.ADD q a 12345", "'a'");
    p.says("DQ.ADD q b 123", "'b'");
    assert_eq!(bytes(&mut p), 10);
    p.unseen("DQ.ADD q c \"\"", FULL);
    // The condition is looked at first; what is replaced is taken off first.
    p.unseen("DQ.ADD q a 123456789", "nil$");
    p.unseen("DQ.ADD q a 123456 REPLACE", FULL);
    p.says("DQ.ADD q a 54321 REPLACE", "'a'");
    p.says("DQ.ADD q a 1 XX", "'a'");
    assert_eq!(bytes(&mut p), 6);
    // A lower limit removes nothing, and lets smaller ones in.
    p.run("DQ.CFGSET q MAXBYTES 3");
    p.says("DQ.ADD q b 12 REPLACE", "'b'");
    p.unseen("DQ.ADD q b 123 REPLACE", FULL);
    // A made id weighs, too.
    p.run("DQ.CFGSET q MAXBYTES 20");
    p.unseen("DQ.ADD q * 12", FULL);
    p.says("DQ.ADD q * \"\"", "?");
    assert_eq!(bytes(&mut p), 20);
    p.run("DQ.CFGSET q MAXLEN 3");
    p.unseen("DQ.ADD q d x", "-MAXLEN queue is full");
    for value in ["-1", "x", "9223372036854775808"] {
        p.unseen(
            &format!("DQ.CFGSET q MAXBYTES {value} MAXLEN 0"),
            "-ERR value is not an integer or out of range",
        );
    }
}

#[test]
fn dead_jobs_and_successors_weigh() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q MAXBYTES 12 MAXLEN 2");
    for id in ["a", "b"] {
        p.run(&format!("DQ.ADD q {id} 123"));
        p.run(&format!("DQ.POP q ID {id}"));
    }
    p.run("DQ.NACK q b FATAL REASON weightless");
    assert_eq!(bytes(&mut p), 8);
    p.unseen("DQ.ADD q a 1234 NEXT", FULL);
    p.says("DQ.ADD q a 123 NEXT", "'a'");
    assert_eq!(bytes(&mut p), 12);
    p.says("DQ.ADD q a 321 NEXT", "'a'");
    p.unseen("DQ.ADD q a 4321 NEXT", FULL);
    p.says("DQ.ADD q a 1234567 REPLACE", "'a'");
    assert_eq!(bytes(&mut p), 12);
    p.says("DQ.PURGE q DEAD", "1");
    assert_eq!(bytes(&mut p), 8);
    let digest = p.server.digest();
    p.run("DEBUG RELOAD");
    assert_eq!((bytes(&mut p), p.server.digest()), (8, digest));
    assert_eq!(p.field_text("DQ.CFGGET q", "maxbytes"), "12");
}

/// At once, though their memory is freed in steps.
#[test]
fn purged_jobs_weigh_nothing() {
    let mut p = Probe::start();
    for id in 0..3000 {
        let delay = if id % 3 == 0 { "DELAY 100000" } else { "" };
        p.run(&format!("DQ.ADD q {id:04} 123 {delay}"));
    }
    p.run("DQ.POP q COUNT 500");
    assert_eq!(bytes(&mut p), 21_000);
    p.says("DQ.PURGE q READY", "1500");
    assert_eq!(bytes(&mut p), 10_500);
    p.says("DQ.PURGE q RESERVED", "500");
    assert_eq!(bytes(&mut p), 7000);
    p.run("DQ.CFGSET q MAXBYTES 7007");
    p.says("DQ.ADD q 0001 123", "'0001'");
    p.unseen("DQ.ADD q 0002 123", FULL);
    p.until("DQ.PURGE q DELAYED", "1000");
    assert_eq!(bytes(&mut p), 7);
}

/// A result counts once for all jobs after that one, whenever they came, and goes with the last of them.
#[test]
fn results_weigh_once_and_go_with_the_last() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 10");
    p.run("DQ.ADD q a x");
    for id in 0..2 {
        p.run(&format!("DQ.ADD q early{id} x AFTER 1 a"));
    }
    let token = p.pop_token("DQ.POP q ID a");
    p.says(&format!("DQ.ACK q RESULTS a {token} 0123456789"), "1");
    for id in 0..3 {
        p.run(&format!("DQ.ADD q later{id} x AFTER 1 a"));
    }
    let after = |p: &mut Probe| {
        let all = bytes(p);
        (all, p.server.digest())
    };
    let before = after(&mut p);
    assert_eq!(before.0, 5 * 7 + 10);
    p.run("DEBUG RELOAD");
    assert_eq!(after(&mut p), before);
    p.says("DQ.DEL q early0 early1 later1 later2", "4");
    // What a replaced job held is taken off first, unless the new one holds it, too.
    p.run("DQ.CFGSET q MAXBYTES 5");
    p.unseen("DQ.ADD q later0 1234567890123456789 REPLACE", FULL);
    p.unseen("DQ.ADD q later0 12 REPLACE AFTER 1 a", FULL);
    p.unseen("DQ.ADD q b x AFTER 1 a", FULL);
    p.says("DQ.ADD q later0 12345678901 REPLACE", "'later0'");
    assert_eq!(bytes(&mut p), 17);
    for line in [
        "DQ.ADD q j 1234567890 XX",
        "DQ.MADD q 1 j 1234567890 REPLACE",
        "DQ.ADD q j 1234567890",
    ] {
        p.run("DQ.CFGSET q MAXBYTES 0");
        p.run("DQ.PURGE q BLOCKED");
        p.run("DQ.ADD q j x REPLACE AFTER 1 a");
        if !line.contains("REPLACE") && !line.contains("XX") {
            p.run("DQ.POP q ID j");
            p.run("DQ.NACK q j FATAL");
        }
        p.run("DQ.CFGSET q MAXBYTES 1");
        let reply = p.ask(line);
        assert!(reply.contains("'j'"), "{line}: {reply}");
        assert_eq!(bytes(&mut p), 17 + 11);
    }
}

/// A job whose TTL, or whose last lease, has ended makes room, though the timer has not fired.
#[test]
fn what_is_over_makes_room() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q MAXBYTES 4");
    for _ in 0..20 {
        p.says("DQ.ADD q a 123 TTL 1", "'a'");
        let gone = p.time_ms() + 2;
        p.wait_until_ms(gone);
        p.says("DQ.ADD q b 123", "'b'");
        p.run("DQ.DEL q b");
    }
}
