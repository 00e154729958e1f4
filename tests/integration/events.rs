//! Keyspace events; time raises them, too.

use crate::probe::{show, Probe};
use crate::scene::{Lines, Scene};
use crate::support::{wait_until, PATIENCE};
use crate::turned::builder;

/// Command, reply, and its events, in one sequence: once in a command, however many jobs it concerns. Each is a change.
const OF_COMMANDS: &str = "
    DQ.CFGSET q TTR 50000           | +OK                        |
    DQ.PAUSE q                      | +OK                        |
    DQ.RESUME q                     | +OK                        |
    DQ.ADD q a x                    | 'a'                        | dq.add
    DQ.ADD q a x REPLACE            | 'a'                        | dq.add
    DQ.MADD q 2 b x c x             | [ 'b' 'c' ]                | dq.add
    DQ.POP q                        | [ 'a' 'x' ? 1 ? ]          | dq.pop
    DQ.TOUCH q a TTR 60000          | ?                          |
    DQ.NACK q a DELAY 900000        | 'delayed'                  | dq.nack
    DQ.RESCHEDULE q DELAY 600000 a  | 1                          |
    DQ.POP q COUNT 2                | [ [ 'b' ...                | dq.pop
    DQ.NACK q b FATAL               | 'dead'                     | dq.nack dq.dead
    DQ.NACK q c FATAL               | 'dead'                     | dq.nack dq.dead
    DQ.KICK q COUNT 9               | 2                          |
    DQ.POP q COUNT 9                | [ [ 'b' ...                | dq.pop
    DQ.ADD q b y NEXT DELAY 900000  | 'b'                        |
    DQ.ACK q b c                    | 2                          | dq.ack dq.add
    DQ.PURGE q DELAYED              | 2                          | dq.del
    DQ.ADD q a x                    | 'a'                        | dq.add
    DQ.DEL q a                      | 1                          | dq.del
    DQ.CFGSET q DONELEN 9           | +OK                        |
    DQ.ADD q a x                    | 'a'                        | dq.add
    DQ.POP q                        | [ 'a' 'x' ? 1 ? ]          | dq.pop
    DQ.ACK q a                      | 1                          | dq.ack
    DQ.PURGE q DONE                 | 1                          | dq.del
    DEL q                           | 1                          | del
    DQ.ADD q a x                    | 'a'                        | dq.add
    DQ.POP q NOACK                  | [ 'a' 'x' nil$ 1 nil$ ]    | dq.pop del
    DQ.MADD q 2 a x b x             | [ 'a' 'b' ]                | dq.add
    DQ.POP q COUNT 2                | [ [ 'a' ...                | dq.pop
    DQ.ACK q a b                    | 2                          | dq.ack del
    DQ.ADD q a x                    | 'a'                        | dq.add
    DQ.DEL q a                      | 1                          | dq.del del
    DQ.ADD q a x                    | 'a'                        | dq.add
    DQ.PURGE q ALL                  | 1                          | dq.del del
";

/// The same with dq.ready, which is raised once of a job that a command makes ready.
const OF_READY_JOBS: &str = "
    DQ.CFGSET q DONELEN 9                  | +OK               |
    DQ.ADD q a x DELAY 900000              | 'a'               | dq.add
    DQ.RESCHEDULE q DELAY 0 a              | 1                 | dq.ready
    DQ.POP q                               | [ 'a' 'x' ? 1 ? ] | dq.pop
    DQ.NACK q a FATAL                      | 'dead'            | dq.nack dq.dead
    DQ.KICK q IDS 1 a                      | 1                 | dq.ready
    DQ.POP q                               | [ 'a' 'x' ? 1 ? ] | dq.pop
    DQ.ADD q a y NEXT                      | 'a'               |
    DQ.ACK q a                             | 1                 | dq.ack dq.add dq.ready
    DQ.POP q                               | [ 'a' 'y' ? 1 ? ] | dq.pop
    DQ.NACK q a SILENT AWAIT s DELAY 900000| 'delayed'         | dq.nack
    DQ.SIGNAL q a s                        | 1                 | dq.ready
    DQ.ADD q b x AFTER 1 a                 | 'b'               | dq.add
    DQ.POP q                               | [ 'a' 'y' ? 1 ? ] | dq.pop
    DQ.ACK q a                             | 1                 | dq.ready dq.ack
    DQ.KICK q IDS 1 a                      | 1                 | dq.ready
    DQ.POP q ID a                          | [ 'a' 'y' ? 1 ? ] | dq.pop
    DQ.ADD q a z NEXT                      | 'a'               |
    DQ.NACK q a FATAL                      | 'dead'            | dq.nack dq.dead dq.add dq.ready
";

#[test]
fn of_commands() {
    for (rows, ready) in [(OF_COMMANDS, false), (OF_READY_JOBS, true)] {
        let mut p = Probe::start();
        p.ready_events = ready;
        for row in rows.trim().lines() {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            p.raises(cells[0], cells[1], cells[2]);
        }
    }
}

/// Other than a due that comes, what time does is a change.
#[test]
fn of_time() {
    let mut p = Probe::of(builder());
    p.run("DQ.CLOCK SET 4000000000000");
    for (lines, events) in [
        ("DQ.ADD q a x TTR 20|DQ.POP q", "dq.timeout"),
        (
            "DQ.ADD q a x TTR 20 ATTEMPTS 1|DQ.POP q",
            "dq.timeout dq.dead",
        ),
        ("DQ.ADD q a x TTL 20 DELAY 100000", "dq.expired del"),
        (
            "DQ.ADD q a x TTL 10 TTR 30|DQ.POP q",
            "dq.timeout dq.expired del",
        ),
        ("DQ.ADD q a x EVERY 60000 DELAY 10 GRACE 10", "dq.missed"),
    ] {
        p.run("DEL q");
        lines.split('|').for_each(|line| drop(p.run(line)));
        p.events();
        p.watch();
        p.run("DQ.CLOCK ADVANCE 50");
        p.until_events(events);
        assert!(p.watch_is_touched(), "{events}");
    }
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
        wait_until("dq.ready", PATIENCE, || {
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
    wait_until("one is due", PATIENCE, || p.int("DQ.LEN old READY") == 1);
    p.ready_events = true;
    p.run("CONFIG SET notify-keyspace-events Egd");
    let mut seen = Vec::new();
    wait_until("dq.ready", PATIENCE, || {
        seen.append(&mut p.events());
        seen.contains(&"dq.ready:q".to_owned())
    });
    p.run("DQ.POP old");
    seen.append(&mut p.events());
    assert_eq!(seen, ["dq.ready:q", "dq.pop:old"]);
}

#[test]
fn in_the_database_of_the_queue() {
    let mut p = Probe::start();
    let mut raw = p.server.raw();
    raw.call(&[b"SUBSCRIBE", b"__keyevent@3__:dq.timeout"]);
    p.run("SELECT 3");
    p.run("DQ.ADD q a x TTR 10");
    p.run("DQ.POP q");
    let message = show(&raw.read());
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
        show(&raw.read()),
        "[ 'message' '__keyspace@0__:q' 'dq.add' ]"
    );
    p.run("DQ.DEL q a");
    assert_eq!(
        show(&raw.read()),
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
fn a_blocked_client_pops_with_events() {
    let mut p = Probe::start();
    let mut waiting = p.server.waiting("DQ.BPOP q 0");
    p.run("DQ.ADD q a x");
    waiting.reply();
    assert_eq!(p.events(), ["dq.add:q", "dq.pop:q"]);
    p.watch();
    let _waiting = p.server.waiting("DQ.BPOP q 0 NOACK");
    assert!(!p.watch_is_touched(), "waiting is no change");
}
