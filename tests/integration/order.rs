//! Which job comes first: ready order, and every tie.

use crate::probe::{plain, Probe};
use crate::support::Reply;

const LAST: u64 = (1 << 42) - 1;

fn ids(p: &mut Probe, line: &str) -> String {
    let Reply::Array(jobs) = p.run(line) else {
        panic!("{line}")
    };
    let id = |job: &Reply| match job {
        Reply::Array(job) => plain(&job[0]),
        other => panic!("{other:?}"),
    };
    jobs.iter().map(id).collect::<Vec<_>>().join(" ")
}

#[test]
fn equal_dues_go_by_the_order_of_adding() {
    let mut p = Probe::start();
    for id in ["c", "a", "d", "b"] {
        p.run(&format!("DQ.ADD q {id} x AT 1000"));
        p.run(&format!("DQ.ADD q later-{id} x AT {LAST}"));
    }
    assert_eq!(ids(&mut p, "DQ.PEEK q READY COUNT 9"), "c a d b");
    let delayed = "later-c later-a later-d later-b";
    assert_eq!(ids(&mut p, "DQ.PEEK q DELAYED COUNT 9"), delayed);
    // Replaced is added anew; moved to the same due time is not.
    p.run("DQ.ADD q c y AT 1000 REPLACE");
    assert_eq!(ids(&mut p, "DQ.PEEK q READY COUNT 9"), "a d b c");
    p.run("DQ.RESCHEDULE q AT 2000 d");
    p.run("DQ.RESCHEDULE q AT 1000 d");
    assert_eq!(ids(&mut p, "DQ.PEEK q READY COUNT 9"), "a d b c");
    // The same holds for a job that was reserved and returned to its due time.
    p.run("DQ.POP q ID a");
    p.says("DQ.NACK q a SILENT", "'ready'");
    assert_eq!(ids(&mut p, "DQ.PEEK q READY COUNT 9"), "a d b c");
    p.run("DQ.POP q ID a TTR 5");
    p.until("DQ.LEN q READY", "4");
    assert_eq!(ids(&mut p, "DQ.POP q COUNT 9"), "a d b c");
}

#[test]
fn equal_deadlines_go_by_the_order_of_adding() {
    let mut p = Probe::start();
    for id in ["c", "a", "d", "b"] {
        p.run(&format!("DQ.ADD q {id} x AT 1000"));
    }
    for id in ["b", "d", "a", "c"] {
        p.run(&format!("DQ.POP q ID {id} TTR {LAST}"));
    }
    assert_eq!(ids(&mut p, "DQ.PEEK q RESERVED COUNT 9"), "c a d b");
}

#[test]
fn equal_instants_of_death_go_by_the_order_of_dying() {
    let mut p = Probe::start();
    // In one transaction, so mostly in one millisecond; the order is the same in any case.
    for id in ["c", "a", "d", "b"] {
        p.run(&format!("DQ.ADD q {id} x AT 1000 ATTEMPTS 1"));
    }
    p.run("DQ.POP q COUNT 9");
    p.run("MULTI");
    for id in ["b", "d", "a", "c"] {
        p.run(&format!("DQ.NACK q {id}"));
    }
    p.says("EXEC", "[ 'dead' 'dead' 'dead' 'dead' ]");
    assert_eq!(ids(&mut p, "DQ.PEEK q DEAD COUNT 9"), "b d a c");
    p.says("DQ.KICK q COUNT 2", "2");
    assert_eq!(ids(&mut p, "DQ.PEEK q DEAD COUNT 9"), "a c");
    assert_eq!(ids(&mut p, "DQ.PEEK q READY COUNT 9").len(), "b d".len());
    p.run("DQ.CFGSET q DEADLEN 1");
    assert_eq!(ids(&mut p, "DQ.PEEK q DEAD COUNT 9"), "c");
}

#[test]
fn leases_that_end_together_die_in_the_order_of_adding() {
    let mut p = Probe::start();
    for id in ["c", "a", "d", "b"] {
        p.run(&format!("DQ.ADD q {id} x AT 1000 ATTEMPTS 1"));
    }
    p.run("DQ.POP q COUNT 9 TTR 20");
    p.until("DQ.LEN q DEAD", "4");
    assert_eq!(ids(&mut p, "DQ.PEEK q DEAD COUNT 9"), "c a d b");
    let Reply::Array(dead) = p.run("DQ.PEEK q DEAD COUNT 9") else {
        panic!()
    };
    let at = |job: &Reply| match job {
        Reply::Array(job) => plain(&job[2]),
        other => panic!("{other:?}"),
    };
    assert_eq!(at(&dead[0]), at(&dead[3]), "since the deadline they share");
}

#[test]
fn a_priority_is_signed_and_smaller_is_first() {
    let mut p = Probe::start();
    for priority in [0, 7, -1, i32::MAX, i32::MIN, 1] {
        p.run(&format!("DQ.ADD q {priority} x PRIORITY {priority}"));
    }
    let order = "-2147483648 -1 0 1 7 2147483647";
    assert_eq!(ids(&mut p, "DQ.PEEK q READY COUNT 9"), order);
    assert_eq!(ids(&mut p, "DQ.POP q COUNT 9"), order);
}

#[test]
fn a_delayed_job_does_not_hold_up_others_of_worse_priority() {
    let mut p = Probe::start();
    p.run("DQ.ADD q urgent x PRIORITY -100 DELAY 100000");
    p.run("DQ.ADD q plain x");
    assert_eq!(ids(&mut p, "DQ.POP q COUNT 9"), "plain");
    p.run("DQ.RESCHEDULE q DELAY 0 urgent");
    assert_eq!(ids(&mut p, "DQ.POP q COUNT 9"), "urgent");
}

/// The digest depends on the order, and not on how it came about.
#[test]
fn order_is_data() {
    let mut p = Probe::start();
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

#[test]
fn the_digest_covers_every_field() {
    let mut p = Probe::start();
    let options = [
        "",
        "PRIORITY 1",
        "AT 1001",
        "TTR 5",
        "ATTEMPTS 1",
        "BACKOFF 1 5",
        "BACKOFF 2 5 5",
        "TTL 100000",
    ];
    let mut digests = std::collections::BTreeSet::new();
    for option in options {
        let at = if option.starts_with("AT") {
            ""
        } else {
            "AT 1000"
        };
        p.run(&format!("DQ.ADD q a x {at} {option} REPLACE"));
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
        // RESUME leads back to what was there before the PAUSE; DEL of the memory to the settings alone.
        assert!(new || line == "DQ.RESUME q", "{line}");
    }
}

#[test]
fn values_may_read_like_options() {
    let mut p = Probe::start();
    for id in ["COUNT", "NOACK", "NX", "TOKEN"] {
        p.says(&format!("DQ.ADD q {id} NX"), &format!("'{id}'"));
    }
    p.talk(
        "> DQ.POP q ID COUNT
        [ 'COUNT' 'NX' ? 1 ? ]
        > DQ.POP q ID NOACK NOACK
        [ 'NOACK' 'NX' nil$ 1 nil$ ]
        > DQ.NACK q COUNT TOKEN DELAY
        nil$
        > DQ.TOUCH q COUNT TOKEN TTR TTR 100000
        nil$
        > DQ.SCAN q 0 MATCH COUNT
        [ '0' [ 'COUNT' ] ]
        > DQ.ACK q COUNT WITHTOKENS
        1
        > DQ.GET q TOKEN
        [ 'id' 'TOKEN' 'payload' 'NX' ...",
    );
}
