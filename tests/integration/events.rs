//! Keyspace events; time raises them, too.

use crate::probe::Probe;

#[test]
fn of_a_lease_that_ends() {
    let mut p = Probe::start();
    p.in_time("deadline", 20, |p, ms| {
        p.run("DQ.CFGSET q");
        p.run(&format!("DQ.ADD q a x TTR {ms}"));
        p.run("DQ.POP q");
        p.events();
        p.watch();
    });
    p.until_events("dq.timeout");
    assert!(p.watch_is_touched(), "the end of a lease is a change");
}

#[test]
fn of_a_job_that_dies_of_it() {
    let mut p = Probe::start();
    p.in_time("deadline", 20, |p, ms| {
        p.run(&format!("DQ.ADD q a x TTR {ms} ATTEMPTS 1"));
        p.run("DQ.POP q");
        p.events();
        p.watch();
    });
    p.until_events("dq.timeout dq.dead");
    assert!(p.watch_is_touched());
}

#[test]
fn of_a_ttl() {
    let mut p = Probe::start();
    p.in_time("expires", 20, |p, ms| {
        p.run(&format!("DQ.ADD q a x TTL {ms} DELAY 100000"));
        p.events();
        p.watch();
    });
    p.until_events("dq.expired del");
    assert!(p.watch_is_touched());
}

#[test]
fn of_a_lease_that_ends_past_the_ttl() {
    let mut p = Probe::start();
    p.in_time("expires", 10, |p, ms| {
        p.run(&format!("DQ.ADD q a x TTL {ms} TTR {}", ms * 3));
        p.run("DQ.POP q");
        p.events();
    });
    p.until_events("dq.timeout dq.expired del");
    p.says("EXISTS q", "0");
}

#[test]
fn of_a_due_that_comes() {
    let mut p = Probe::start();
    p.ready_events = true;
    for i in 0..3 {
        p.run(&format!("DQ.ADD q {i} x DELAY {}", 30 + i * 40));
        let mut seen = Vec::new();
        let due = p.field_int(&format!("DQ.GET q {i}"), "due") as u64;
        p.watch();
        crate::support::wait_until("dq.ready", crate::support::PATIENCE, || {
            seen.append(&mut p.events());
            seen.contains(&"dq.ready:q".to_owned())
        });
        assert!(p.time_ms() >= due);
        assert_eq!(seen, ["dq.add:q", "dq.ready:q"]);
        assert!(!p.watch_is_touched(), "the coming of a due is no change");
    }
}

/// A subscriber that comes at run time is told of jobs that become ready later, and of none that was ready before.
#[test]
fn of_a_due_that_comes_to_a_job_from_before_they_were_wanted() {
    let mut p = Probe::start();
    p.run("CONFIG SET notify-keyspace-events Eg");
    p.run("DQ.ADD old a x DELAY 1");
    p.run("DQ.ADD q a x DELAY 300");
    crate::support::wait_until("one is due", crate::support::PATIENCE, || {
        p.int("DQ.LEN old READY") == 1
    });
    p.ready_events = true;
    p.run("CONFIG SET notify-keyspace-events Egd");
    let mut seen = Vec::new();
    crate::support::wait_until("dq.ready", crate::support::PATIENCE, || {
        seen.append(&mut p.events());
        seen.contains(&"dq.ready:q".to_owned())
    });
    p.run("DQ.POP old");
    seen.append(&mut p.events());
    assert_eq!(seen, ["dq.ready:q", "dq.pop:old"]);
}

#[test]
fn ready_once_for_a_rescheduled_job() {
    let mut p = Probe::start();
    p.ready_events = true;
    p.run("DQ.ADD q a x DELAY 100000");
    p.events();
    p.run("DQ.RESCHEDULE q DELAY 0 a");
    p.until_events("dq.ready");
}

#[test]
fn in_the_database_of_the_queue() {
    let mut p = Probe::start();
    let mut raw = p.server.raw();
    raw.call(&[b"SUBSCRIBE", b"__keyevent@3__:dq.timeout"]);
    p.run("SELECT 3");
    p.run("DQ.ADD q a x TTR 10");
    p.run("DQ.POP q");
    let message = crate::probe::show(&raw.read());
    assert_eq!(message, "[ 'message' '__keyevent@3__:dq.timeout' 'q' ]");
}

#[test]
fn by_key_as_well() {
    let mut p = Probe::start();
    p.run("CONFIG SET notify-keyspace-events Kd");
    let mut raw = p.server.raw();
    raw.call(&[b"SUBSCRIBE", b"__keyspace@0__:q"]);
    p.run("DQ.ADD q a x DELAY 100000");
    assert_eq!(
        crate::probe::show(&raw.read()),
        "[ 'message' '__keyspace@0__:q' 'dq.add' ]"
    );
    p.run("DQ.DEL q a");
    assert_eq!(
        crate::probe::show(&raw.read()),
        "[ 'message' '__keyspace@0__:q' 'dq.del' ]"
    );
}

#[test]
fn none_where_the_class_is_off() {
    let mut p = Probe::start();
    p.run("CONFIG SET notify-keyspace-events Eg");
    p.run("DQ.ADD q a x");
    p.run("DQ.POP q");
    p.run("DQ.ACK q a");
    assert_eq!(p.events(), ["del:q"]);
}

#[test]
fn each_once_in_a_command() {
    let mut p = Probe::start();
    for id in ["a", "b", "c"] {
        p.run(&format!("DQ.ADD q {id} x"));
    }
    p.raises("DQ.POP q COUNT 2", "[ [ ...", "dq.pop");
    p.raises("DQ.ACK q a b", "2", "dq.ack");
    p.raises("DQ.ADD q c y REPLACE DELAY 100000", "'c'", "dq.add");
    p.raises("DQ.PURGE q ALL", "1", "dq.del del");
}

#[test]
fn of_settings_there_are_none() {
    let mut p = Probe::start();
    p.raises("DQ.CFGSET q TTR 5", "+OK", "");
    p.raises("DQ.PAUSE q", "+OK", "");
    p.raises("DQ.RESUME q", "+OK", "");
}

#[test]
fn a_blocked_client_pops_with_events() {
    let mut p = Probe::start();
    let mut raw = p.server.raw();
    raw.send(&crate::probe::packed("DQ.BPOP q 0"));
    crate::support::wait_until("it waits", crate::support::PATIENCE, || {
        p.server.info("clients", "blocked_clients") == "1"
    });
    p.run("DQ.ADD q a x");
    raw.read();
    assert_eq!(p.events(), ["dq.add:q", "dq.pop:q"]);
    p.watch();
    raw.send(&crate::probe::packed("DQ.BPOP q 0 NOACK"));
    crate::support::wait_until("it waits", crate::support::PATIENCE, || {
        p.server.info("clients", "blocked_clients") == "1"
    });
    assert!(!p.watch_is_touched(), "waiting is no change");
}
