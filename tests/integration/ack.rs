//! DQ.ACK, and when a token is valid.

use crate::probe::{pairs, Probe};

#[test]
fn those_with_a_current_token() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ACK q a
        0
        > DQ.ACK q WITHTOKENS a 1
        0
        > EXISTS q
        0
        > DQ.ADD q a x
        'a'
        > DQ.ADD q b x
        'b'
        > DQ.ADD q never x DELAY 100000
        'never'",
    );
    p.all_unseen(
        "DQ.ACK q a -> 0
        DQ.ACK q never nobody -> 0",
    );
    p.talk(
        "> DQ.POP q COUNT 2
        [ [ 'a' 'x' ? 1 ? ] [ 'b' 'x' ? 1 ? ] ]
        > DQ.ACK q a never nobody a b
        2
        > DQ.LEN q
        1
        > DQ.ACK q a b
        0",
    );
}

#[test]
fn with_tokens() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    p.run("DQ.ADD q b x");
    let (a, b) = (p.pop_token("DQ.POP q"), p.pop_token("DQ.POP q"));
    p.all_unseen(&format!(
        "DQ.ACK q WITHTOKENS a {b} -> 0
        DQ.ACK q withtokens b {a} -> 0
        DQ.ACK q WITHTOKENS a 0 b -1 -> 0
        DQ.ACK q WITHTOKENS a x b {b}x -> 0
        DQ.ACK q WITHTOKENS a \"\" b 1{b} -> 0
        DQ.ACK q WITHTOKENS a +{a} b 0{b} -> 0
        DQ.ACK q WITHTOKENS a {a}.0 b 99999999999999999999999999 -> 0
        DQ.ACK q WITHTOKENS {a} a -> 0"
    ));
    p.says(
        &format!("DQ.ACK q WithTokens a {a} nobody 5 b {b} a {a}"),
        "2",
    );
    p.says("EXISTS q", "0");
}

#[test]
fn shapes() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    p.run("DQ.ADD q WITHTOKENS x");
    p.run("DQ.POP q COUNT 2");
    let arity = "-ERR wrong number of arguments for 'dq.ack' command";
    p.all_unseen(&format!(
        "DQ.ACK -> {arity}
        DQ.ACK q -> {arity}
        DQ.ACK q WITHTOKENS -> {arity}
        DQ.ACK q WITHTOKENS a -> {arity}
        DQ.ACK q WITHTOKENS a 1 b -> -ERR syntax error, ..."
    ));
    // Unless it is the first argument, it is an id like any other.
    p.says("DQ.ACK q a WITHTOKENS", "2");
}

#[test]
fn a_late_ack_counts_while_nobody_else_got_the_job() {
    let mut p = Probe::start();
    for (added, state) in [("", "ready"), ("ATTEMPTS 1", "dead")] {
        for with_token in [false, true] {
            p.run(&format!("DQ.ADD q a x TTR 10 {added}"));
            let token = p.pop_token("DQ.POP q");
            p.until(&format!("DQ.LEN q {state}"), "1");
            assert_eq!(p.field_text("DQ.GET q a", "token"), format!("'{token}'"));
            assert_eq!(p.field_text("DQ.GET q a", "deadline"), "nil");
            p.unseen(&format!("DQ.ACK q WITHTOKENS a {}", token + 1), "0");
            let ack = if with_token {
                format!("DQ.ACK q WITHTOKENS a {token}")
            } else {
                "DQ.ACK q a".to_owned()
            };
            p.says(&ack, "1");
            p.says("EXISTS q", "0");
        }
    }
}

#[test]
fn a_new_delivery_ends_the_token() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x TTR 10");
    let first = p.pop_token("DQ.POP q");
    p.until("DQ.LEN q READY", "1");
    let second = p.pop_token("DQ.POP q TTR 100000");
    p.all_unseen(&format!(
        "DQ.ACK q WITHTOKENS a {first} -> 0
        DQ.NACK q a TOKEN {first} -> nil$
        DQ.TOUCH q a TOKEN {first} -> nil$"
    ));
    p.says(&format!("DQ.ACK q WITHTOKENS a {second}"), "1");
}

#[test]
fn nack_and_touch_reach_a_job_whose_lease_ended() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x TTR 10");
    let token = p.pop_token("DQ.POP q");
    p.until("DQ.LEN q READY", "1");
    // The job is not reserved, so there is no lease to prolong; but the delivery may still be given back.
    p.unseen(&format!("DQ.TOUCH q a TOKEN {token}"), "nil$");
    p.says(
        &format!("DQ.NACK q a TOKEN {token} DELAY 100000"),
        "'delayed'",
    );
    p.unseen(&format!("DQ.ACK q WITHTOKENS a {token}"), "0");
}

#[test]
fn nack_and_touch_do_not_reach_a_dead_job() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x TTR 10 ATTEMPTS 1");
    let token = p.pop_token("DQ.POP q");
    p.until("DQ.LEN q DEAD", "1");
    p.all_unseen(&format!(
        "DQ.NACK q a -> nil$
        DQ.NACK q a TOKEN {token} -> nil$
        DQ.NACK q a FATAL PRIORITY 7 -> nil$
        DQ.TOUCH q a -> nil$
        DQ.TOUCH q a TOKEN {token} TTR 5 -> nil$"
    ));
    p.says(&format!("DQ.ACK q WITHTOKENS a {token}"), "1");
}

/// Whatever makes a token invalid, a job with that id exists again afterwards.
#[test]
fn what_ends_a_token() {
    let lines = "
        DQ.NACK q a -> 'ready'
        DQ.NACK q a SILENT -> 'ready'
        DQ.NACK q a DELAY 100000 -> 'delayed'
        DQ.NACK q a FATAL -> 'dead'
        DQ.ADD q a y REPLACE -> 'a'
        DQ.ADD q a y XX -> 'a'";
    let mut p = Probe::start();
    for (line, reply) in pairs(lines) {
        p.run("DQ.ADD q a x REPLACE");
        let token = p.pop_token("DQ.POP q");
        p.says(line, reply);
        is_stale(&mut p, token);
    }
    p.run("DQ.ADD q a x REPLACE");
    let token = p.pop_token("DQ.POP q");
    p.says("DQ.DEL q a", "1");
    p.run("DQ.ADD q a x");
    is_stale(&mut p, token);
}

#[test]
fn reschedule_and_kick_end_a_token() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x TTR 10");
    let token = p.pop_token("DQ.POP q");
    p.until("DQ.LEN q READY", "1");
    p.says("DQ.RESCHEDULE q DELAY 0 a", "1");
    is_stale(&mut p, token);
    p.run("DQ.POP q");
    p.until("DQ.LEN q READY", "1");
    let due = p.field_int("DQ.GET q a", "due");
    let token = p
        .field_text("DQ.GET q a", "token")
        .trim_matches('\'')
        .parse()
        .expect("t");
    p.seen(&format!("DQ.RESCHEDULE q AT {} a", due - 1), "1");
    is_stale(&mut p, token);

    p.run("DQ.ADD q a x TTR 10 ATTEMPTS 1 REPLACE");
    let token = p.pop_token("DQ.POP q");
    p.until("DQ.LEN q DEAD", "1");
    p.says("DQ.KICK q IDS 1 a", "1");
    is_stale(&mut p, token);
}

fn is_stale(p: &mut Probe, token: u64) {
    assert_eq!(p.field_text("DQ.GET q a", "token"), "nil");
    p.all_unseen(&format!(
        "DQ.ACK q a -> 0
        DQ.ACK q WITHTOKENS a {token} -> 0
        DQ.NACK q a -> nil$
        DQ.NACK q a TOKEN {token} -> nil$
        DQ.TOUCH q a -> nil$
        DQ.TOUCH q a TOKEN {token} -> nil$"
    ));
}

#[test]
fn tokens_grow_whatever_happens_to_the_queue() {
    let mut p = Probe::start();
    let mut last = 0;
    let steps = [
        "PING",
        "DEL q",
        "FLUSHALL",
        "UNLINK q",
        "DQ.PURGE q ALL",
        "RENAME q q2",
        "RENAME q2 q",
        "COPY q2 q REPLACE",
        "DEBUG RELOAD",
        "SWAPDB 0 1",
        "SWAPDB 0 1",
    ];
    for step in steps {
        for i in 0..50 {
            p.run(&format!("DQ.ADD q {i} x REPLACE TTR 100000"));
            let token = p.pop_token(&format!("DQ.POP q ID {i}"));
            assert!(token > last, "{token} after {last}, {step}");
            last = token;
        }
        p.run("COPY q q2 REPLACE");
        let reply = p.ask(step);
        assert!(!reply.starts_with('-'), "{step}: {reply}");
    }
}

#[test]
fn restore_raises_the_floor() {
    let mut p = Probe::start();
    // Tokens like those of a server whose clock runs ahead: drawn in bulk within about a millisecond.
    let script = b"for i=1,20000 do redis.call('DQ.ADD','q','a','x','REPLACE') redis.call('DQ.POP','q') end \
        return redis.call('DUMP','q')";
    let crate::support::Reply::Bulk(dump) = p.server.raw().call(&[b"EVAL", script, b"0"]) else {
        panic!("a dump")
    };
    let token: u64 = p
        .field_text("DQ.GET q a", "token")
        .trim_matches('\'')
        .parse()
        .expect("t");
    let other = Probe::start();
    let mut raw = other.server.raw();
    let restored = raw.call(&[b"RESTORE", b"q", b"0", &dump]);
    assert_eq!(restored, crate::support::Reply::Simple("OK".into()));
    let mut other = other;
    assert_eq!(other.server.digest(), p.server.digest());
    other.says(&format!("DQ.ACK q WITHTOKENS a {token}"), "1");
    other.run("DQ.ADD q a x");
    assert!(other.pop_token("DQ.POP q") > token);
}

#[test]
fn a_copy_honours_its_own_leases() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    let token = p.pop_token("DQ.POP q");
    p.talk(&format!(
        "> COPY q q2
        1
        > DQ.ACK q WITHTOKENS a {token}
        1
        > EXISTS q
        0
        > DQ.TOUCH q2 a TOKEN {token} TTR 1000000
        ?
        > DQ.ACK q2 WITHTOKENS a {token}
        1
        > EXISTS q2
        0"
    ));
}

#[test]
fn a_stale_token_reaches_nobody_in_a_queue_made_anew() {
    for gone in [
        "DEL q",
        "UNLINK q",
        "FLUSHALL",
        "DQ.PURGE q ALL",
        "DQ.DEL q a",
    ] {
        let mut p = Probe::start();
        p.run("DQ.ADD q a x");
        let token = p.pop_token("DQ.POP q");
        p.run(gone);
        p.run("DQ.ADD q a x");
        assert!(p.pop_token("DQ.POP q") > token);
        p.all_unseen(&format!(
            "DQ.ACK q WITHTOKENS a {token} -> 0
            DQ.NACK q a TOKEN {token} -> nil$
            DQ.TOUCH q a TOKEN {token} -> nil$"
        ));
    }
}

#[test]
fn what_it_leaves() {
    let mut p = Probe::start();
    for id in ["a", "b", "c"] {
        p.run(&format!("DQ.ADD q {id} x"));
    }
    p.run("DQ.POP q COUNT 3");
    p.seen("DQ.ACK q a", "1");
    p.raises("DQ.ACK q b a", "1", "dq.ack");
    p.raises("DQ.ACK q c", "1", "dq.ack del");
}
