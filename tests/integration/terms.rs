//! WITHTERMS and LEASE: what worker libraries need of DQ.POP and DQ.BPOP.

use crate::probe::{fits, packed, show, Probe};
use crate::scene::Scene;
use crate::support::Reply;

#[test]
fn withterms_tells_ttr_attempts_and_the_next_wait() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ADD q a x
        'a'
        > DQ.POP q WITHTERMS
        [ 'a' 'x' ? 1 ? [ 60000 0 nil$ ] ]
        > DQ.ADD q b x AT 2000 TTR 700000 ATTEMPTS 9 BACKOFF 2 1000 5000
        'b'
        > DQ.POP q WITHTERMS WITHDUE
        [ 'b' 'x' ? 1 ? 2000 [ 700000 9 1000 ] ]
        > DQ.NACK q b DELAY 0
        'ready'
        3> DQ.POP q COUNT 3 withterms
        [ [ 'b' 'x' ? 2 ? [ 700000 9 5000 ] ] ]
        > DQ.NACK q b SILENT DELAY 0
        'ready'
        > DQ.BPOP q 0 COUNT 1 WITHTERMS
        [ 'q' [ [ 'b' 'x' ? 2 ? [ 700000 9 5000 ] ] ] ]
        > DQ.NACK q b DELAY 0
        'ready'
        > DQ.BPOP none q 0 WITHTERMS NOACK WITHDUE
        [ 'q' 'b' 'x' nil$ 3 nil$ ? [ 700000 9 5000 ] ]
        > DQ.ADD q c x EVERY 1000 DELAY 0 TTR 50000
        'c'
        3> DQ.POP q NOACK WITHTERMS
        [ 'c' 'x' nil 1 nil [ 50000 0 nil ] ]",
    );
    p.unseen("DQ.POP q WITHTERMS WITHTERMS", "-ERR syntax error, ...");
}

/// The wait in the reply is the one that a NACK then uses.
#[test]
fn the_wait_is_that_of_the_nack_which_follows() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x BACKOFF 3 100000 200000 300000");
    for step in [100_000, 200_000, 300_000, 300_000] {
        p.says(
            "DQ.POP q WITHTERMS",
            &format!("[ 'a' 'x' ? ? ? [ 60000 0 {step} ] ]"),
        );
        let before = p.time_ms();
        p.says("DQ.NACK q a", "'delayed'");
        let waits = p.field_int("DQ.GET q a", "due") as u64 - before;
        assert!((step..step + 50_000).contains(&waits), "{waits}");
        p.run("DQ.RESCHEDULE q DELAY 0 a");
    }
}

/// The length of the lease that a POP has given.
fn lease(p: &mut Probe, line: &str) -> u64 {
    let before = p.time_us();
    let Reply::Array(words) = p.run(line) else {
        panic!("no job")
    };
    let Some(Reply::Integer(deadline)) = words.last() else {
        panic!("{words:?}")
    };
    // Up to the half minute: no test takes as long.
    (*deadline as u64 * 1000 - before) / 30_000_000 * 30_000
}

#[test]
fn lease_is_in_place_of_the_servers_default_alone() {
    let mut p = Probe::start();
    p.run("DQ.ADD q plain x");
    p.run("DQ.ADD q own x TTR 120000");
    p.run("DQ.ADD q own2 x TTR 120000");
    p.run("DQ.CFGSET q TTR 240000");
    p.run("DQ.ADD q queues x");
    assert_eq!(lease(&mut p, "DQ.POP q ID plain LEASE 480000"), 480_000);
    // A heartbeat without TTR keeps that length.
    let before = p.time_us();
    let touched = p.int("DQ.TOUCH q plain") as u64;
    assert!(touched * 1000 >= before + 480_000_000);
    assert_eq!(lease(&mut p, "DQ.POP q ID own LEASE 480000"), 120_000);
    assert_eq!(lease(&mut p, "DQ.POP q ID queues LEASE 480000"), 240_000);
    assert_eq!(lease(&mut p, "DQ.BPOP q 0 LEASE 480000"), 120_000);
    p.run("DQ.ADD r a x");
    assert_eq!(lease(&mut p, "DQ.BPOP none r 0 LEASE 480000"), 480_000);
    p.run("DQ.ADD r a x REPLACE");
    p.says("DQ.POP r NOACK LEASE 5", "[ 'a' 'x' nil$ 1 nil$ ]");
}

#[test]
fn the_default_is_that_of_the_delivery() {
    let mut p = Probe::start();
    let mut waiting = p.server.raw();
    waiting.send(&packed("DQ.BPOP q 0 LEASE 480000"));
    p.server.wait_for_blocked(1);
    p.run("CONFIG SET dq.default-ttr 90000");
    let before = p.time_us();
    p.run("DQ.ADD q a x");
    let Reply::Array(words) = waiting.read() else {
        panic!("no job")
    };
    let Some(Reply::Integer(deadline)) = words.last() else {
        panic!("{words:?}")
    };
    assert!(*deadline as u64 * 1000 >= before + 480_000_000);
    p.run("DQ.ADD q b x TTR 60000");
    assert_eq!(lease(&mut p, "DQ.POP q LEASE 480000"), 60_000);
}

#[test]
fn a_waiting_client_gets_terms_from_the_command_and_from_the_timer() {
    let mut p = Probe::start();
    let mut waiting = p.server.raw();
    for (options, add, expected) in [
        // Handed over by the command itself, and by the timer.
        ("", "", "[ 'q' 'a' 'x' ? 1 ? [ 70000 0 5 ] ]"),
        ("COUNT 2", "", "[ 'q' [ [ 'a' 'x' ? 1 ? [ 70000 0 5 ] ] ] ]"),
        (
            "NOACK",
            "DELAY 1",
            "[ 'q' 'a' 'x' nil$ 1 nil$ [ 70000 0 5 ] ]",
        ),
    ] {
        waiting.send(&packed(&format!("DQ.BPOP q 0 WITHTERMS {options}")));
        p.server.wait_for_blocked(1);
        p.run(&format!("DQ.ADD q a x TTR 70000 BACKOFF 1 5 {add}"));
        let reply = show(&waiting.read());
        assert!(fits(&reply, expected), "{reply}");
        p.run("DQ.ACK q a");
    }
}
