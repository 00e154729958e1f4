//! DQ.RESCHEDULE and DQ.KICK.

use crate::probe::Probe;

/// Jobs `d` (delayed), `r` (ready), `v` (reserved) and `x` (dead).
fn one_in_each_state(p: &mut Probe) {
    p.talk(
        "> DQ.ADD q v pv
        'v'
        > DQ.POP q
        [ 'v' 'pv' ? 1 ? ]
        > DQ.ADD q x px
        'x'
        > DQ.POP q
        [ 'x' 'px' ? 1 ? ]
        > DQ.NACK q x FATAL
        'dead'
        > DQ.ADD q r pr AT 5000
        'r'
        > DQ.ADD q d pd AT 4000000000000
        'd'",
    );
}

#[test]
fn reschedule_moves_delayed_and_ready_jobs() {
    let mut p = Probe::start();
    one_in_each_state(&mut p);
    p.talk(
        "> DQ.RESCHEDULE q AT 3900000000000 d r v x nobody
        2
        > DQ.PEEK q DELAYED COUNT 5
        [ [ 'r' 'pr' 3900000000000 0 0 ] [ 'd' 'pd' 3900000000000 0 0 ] ]
        > DQ.LEN q RESERVED
        1
        > DQ.LEN q DEAD
        1
        > DQ.RESCHEDULE q at 7000 d
        1
        > DQ.PEEK q READY
        [ [ 'd' 'pd' 7000 0 0 ] ]
        > DQ.POP q
        [ 'd' 'pd' ? 1 ? ]",
    );
    let before = p.time_us();
    p.says("DQ.RESCHEDULE q delay 500000 r", "1");
    let after = p.time_us();
    let due = p.field_int("DQ.GET q r", "due") as u64 * 1000;
    assert!(due >= before + 500_000_000 && due < after + 500_001_000);
    p.says("DQ.RESCHEDULE q DELAY 0 r nobody r r", "1");
    p.says("DQ.POP q", "[ 'r' 'pr' ? 1 ? ]");
}

#[test]
fn reschedule_of_nobody() {
    let mut p = Probe::start();
    p.all_unseen(
        "DQ.RESCHEDULE q DELAY 5 a b -> 0
        DQ.RESCHEDULE q AT 5 a -> 0
        EXISTS q -> 0",
    );
    one_in_each_state(&mut p);
    p.all_unseen(
        "DQ.RESCHEDULE q DELAY 5 v x nobody -> 0
        DQ.RESCHEDULE q AT 5000 r -> 1
        DQ.RESCHEDULE q AT 4000000000000 d -> 1",
    );
}

#[test]
fn reschedule_refuses() {
    let mut p = Probe::start();
    one_in_each_state(&mut p);
    let range = "-ERR value is not an integer or out of range";
    for word in ["AT", "DELAY"] {
        for value in [
            "-1",
            "x",
            "1.0",
            "\"\"",
            "4398046511104",
            "9223372036854775808",
        ] {
            p.unseen(&format!("DQ.RESCHEDULE q {word} {value} d"), range);
            p.unseen(&format!("DQ.RESCHEDULE none {word} {value} d"), range);
        }
    }
    p.unseen("DQ.RESCHEDULE q DELAY 4398046511103 d", range);
    p.unseen("DQ.RESCHEDULE none DELAY 4398046511103 d", range);
    p.unseen("DQ.RESCHEDULE q IN 5 d", "-ERR syntax error, ...");
    p.says("DQ.RESCHEDULE q AT 4398046511103 d", "1");
    let arity = "-ERR wrong number of arguments for 'dq.reschedule' command";
    for line in [
        "DQ.RESCHEDULE",
        "DQ.RESCHEDULE q",
        "DQ.RESCHEDULE q DELAY",
        "DQ.RESCHEDULE q DELAY 5",
    ] {
        p.unseen(line, arity);
    }
}

#[test]
fn reschedule_gives_another_priority() {
    let mut p = Probe::start();
    one_in_each_state(&mut p);
    p.unseen("DQ.RESCHEDULE q PRIORITY 0 d r", "2");
    p.seen("DQ.RESCHEDULE q PRIORITY -7 d r v x nobody d", "2");
    assert_eq!(p.field_int("DQ.GET q r", "priority"), -7);
    assert_eq!(p.field_int("DQ.GET q d", "due"), 4_000_000_000_000);
    p.seen("DQ.RESCHEDULE q priority 5 AT 3900000000000 d", "1");
    assert_eq!(p.field_int("DQ.GET q d", "due"), 3_900_000_000_000);
    assert_eq!(p.field_int("DQ.GET q d", "priority"), 5);
    // Only what a value and an id follow is an option.
    for id in ["PRIORITY", "DELAY", "AT", "3"] {
        p.run(&format!("DQ.ADD q {id} x"));
    }
    p.says("DQ.RESCHEDULE q AT 4000000000000 PRIORITY 3", "2");
    p.says("DQ.RESCHEDULE q PRIORITY 1 PRIORITY 3 d", "3");
    p.says("DQ.RESCHEDULE q PRIORITY 1 DELAY 3", "2");
    for (line, error) in [
        ("d r x y", "syntax error, ..."),
        ("DELAY 5 AT 6 d", "syntax error, ..."),
        ("AT 5 DELAY 6 d", "syntax error, ..."),
        ("PRIORITY x d", "value is not an integer or out of range"),
        (
            "PRIORITY 2147483648 d",
            "value is not an integer or out of range",
        ),
        (
            "PRIORITY 1 DELAY x d",
            "value is not an integer or out of range",
        ),
    ] {
        p.unseen(&format!("DQ.RESCHEDULE q {line}"), &format!("-ERR {error}"));
    }
}

#[test]
fn only_another_due_ends_the_token() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x AT 5000 TTR 20");
    let token = p.pop_token("DQ.POP q");
    p.until("DQ.LEN q READY", "1");
    p.unseen("DQ.RESCHEDULE q AT 5000 a", "1");
    p.seen("DQ.RESCHEDULE q AT 5000 PRIORITY 4 a", "1");
    assert_eq!(p.field_text("DQ.GET q a", "token"), format!("'{token}'"));
    p.seen("DQ.RESCHEDULE q AT 6000 a", "1");
    assert_eq!(p.field_text("DQ.GET q a", "token"), "nil");
}

#[test]
fn reschedule_leaves() {
    let mut p = Probe::start();
    one_in_each_state(&mut p);
    p.seen("DQ.RESCHEDULE q AT 3900000000000 d r", "2");
    p.raises("DQ.RESCHEDULE q AT 3800000000000 d", "1", "");
    // The job is as it was but for its due time.
    p.run("DQ.ADD q full x PRIORITY 3 TTR 7 ATTEMPTS 5 BACKOFF 1 9 TTL 1000000");
    let before = p.ask("DQ.GET q full");
    p.run("DQ.RESCHEDULE q AT 3800000000000 full");
    let due = p.field_int("DQ.GET q full", "due");
    assert_eq!(due, 3_800_000_000_000);
    let old_due = before.split(' ').nth(10).expect("the due");
    assert_eq!(
        p.ask("DQ.GET q full").replace("'delayed'", "'ready'"),
        before.replace(old_due, "3800000000000")
    );
}

fn bury(p: &mut Probe, ids: &[&str]) {
    for id in ids {
        p.run(&format!("DQ.ADD q {id} x PRIORITY 4 REPLACE"));
        p.run(&format!("DQ.POP q ID {id}"));
        p.says(&format!("DQ.NACK q {id} FATAL"), "'dead'");
    }
}

#[test]
fn kick_takes_the_longest_dead_first() {
    let mut p = Probe::start();
    bury(&mut p, &["c", "a", "e", "b", "d"]);
    let before = p.time_ms();
    p.talk(
        "> DQ.KICK q COUNT 2
        2
        > DQ.LEN q READY
        2
        > DQ.GET q e
        [ 'id' 'e' 'payload' 'x' 'state' 'dead' 'priority' 4 'due' ? 'deadline' nil$ 'ttr' 60000 \
         'attempts' 1 'max-attempts' 0 'backoff' [ ] 'expires' nil$ 'token' nil$ ...
        > DQ.GET q c
        [ 'id' 'c' 'payload' 'x' 'state' 'ready' 'priority' 4 'due' ? 'deadline' nil$ 'ttr' 60000 \
         'attempts' 0 'max-attempts' 0 'backoff' [ ] 'expires' nil$ 'token' nil$ ...",
    );
    assert!(p.field_int("DQ.GET q c", "due") as u64 >= before, "due now");
    p.talk(
        "> DQ.POP q
        [ 'c' 'x' ? 1 ? ]
        > DQ.POP q
        [ 'a' 'x' ? 1 ? ]
        > DQ.KICK q count 9223372036854775807
        3
        > DQ.KICK q COUNT 1
        0
        > DQ.LEN q DEAD
        0",
    );
}

#[test]
fn kick_by_ids() {
    let mut p = Probe::start();
    bury(&mut p, &["a", "b", "c"]);
    p.run("DQ.ADD q live x");
    p.talk(
        "> DQ.KICK q IDS 4 c live nobody c
        1
        > DQ.KICK q ids 1 b
        1
        > DQ.PEEK q DEAD COUNT 9
        [ [ 'a' 'x' ? 1 4 ] ]",
    );
    p.all_unseen(
        "DQ.KICK q IDS 2 live nobody -> 0
        DQ.KICK none IDS 1 a -> 0
        DQ.KICK none COUNT 5 -> 0",
    );
    p.says("EXISTS none", "0");
}

#[test]
fn kick_refuses() {
    let mut p = Probe::start();
    bury(&mut p, &["a", "b"]);
    let range = "-ERR value is not an integer or out of range";
    for value in ["0", "-1", "x", "\"\"", "9223372036854775808"] {
        p.unseen(&format!("DQ.KICK q COUNT {value}"), range);
        p.unseen(&format!("DQ.KICK q IDS {value} a"), range);
    }
    let syntax = "-ERR syntax error, ...";
    for rest in [
        "IDS 2 a",
        "IDS 1 a b",
        "IDS 1",
        "IDS 9223372036854775807 a",
        "COUNT 1 a",
        "ALL 1",
    ] {
        p.unseen(&format!("DQ.KICK q {rest}"), syntax);
        p.unseen(&format!("DQ.KICK none {rest}"), syntax);
    }
    for line in ["DQ.KICK", "DQ.KICK q", "DQ.KICK q COUNT"] {
        p.unseen(line, "-ERR wrong number of arguments for 'dq.kick' command");
    }
}

#[test]
fn kick_leaves() {
    let mut p = Probe::start();
    bury(&mut p, &["a", "b"]);
    p.seen("DQ.KICK q COUNT 1", "1");
    p.events();
    p.ready_events = true;
    p.run("DQ.KICK q IDS 1 b");
    p.until_events("dq.ready");
}
