//! DQ.CFGSET, DQ.CFGGET, DQ.PAUSE, DQ.RESUME, and what the settings do.

use crate::probe::{plain, Probe};
use crate::support::{wait_until, Reply, PATIENCE};

const DEFAULTS: &str =
    "[ 'ttr' 60000 'attempts' 0 'backoff' [ ] 'maxlen' 0 'maxbytes' 0 'deadlen' 0 'dedupe' 0 'maxreserved' 0 \
    'rate' [ 0 0 ] 'groupmax' 0 'grouprate' [ 0 0 ] 'groupfifo' 0 'donelen' 0 'donettl' 0 'donebytes' 0 'history' 0 'paused' 0 ]";

#[test]
fn names_and_defaults() {
    let mut p = Probe::start();
    p.talk(&format!(
        "> DQ.CFGGET q
        nil$
        3> DQ.CFGGET q
        nil
        > DQ.ADD q a x
        'a'
        > DQ.CFGGET q
        {DEFAULTS}
        3> DQ.CFGGET q
        {{ 'ttr' 60000 'attempts' 0 'backoff' [ ] 'maxlen' 0 'maxbytes' 0 'deadlen' 0 'dedupe' 0 'maxreserved' 0 'rate' [ 0 0 ] 'groupmax' 0 'grouprate' [ 0 0 ] 'groupfifo' 0 'donelen' 0 'donettl' 0 'donebytes' 0 'history' 0 'paused' 0 }}
        > DQ.CFGGET q q
        -ERR wrong number of arguments for 'dq.cfgget' command"
    ));
}

#[test]
fn every_setting_in_any_order_and_case() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.CFGSET q rate 100000 4398046511103 MaxReserved 4 dedupe 4398046511103 DEADLEN 3 maxlen 2 maxbytes 7 BACKOFF 2 5 4398046511103 \
         ATTEMPTS 4294967295 TTR 4398046511103
        +OK
        > DQ.CFGGET q
        [ 'ttr' 4398046511103 'attempts' 4294967295 'backoff' [ 5 4398046511103 ] 'maxlen' 2 'maxbytes' 7 'deadlen' 3 \
         'dedupe' 4398046511103 'maxreserved' 4 'rate' [ 100000 4398046511103 ] 'groupmax' 0 'grouprate' [ 0 0 ] 'groupfifo' 0 'donelen' 0 'donettl' 0 'donebytes' 0 'history' 0 'paused' 0 ]
        > DQ.CFGSET q TTR 1
        +OK
        > DQ.CFGGET q
        [ 'ttr' 1 'attempts' 4294967295 'backoff' [ 5 4398046511103 ] 'maxlen' 2 'maxbytes' 7 'deadlen' 3 \
         'dedupe' 4398046511103 'maxreserved' 4 'rate' [ 100000 4398046511103 ] 'groupmax' 0 'grouprate' [ 0 0 ] 'groupfifo' 0 'donelen' 0 'donettl' 0 'donebytes' 0 'history' 0 'paused' 0 ]
        > DQ.CFGSET q TTR 60000 ATTEMPTS 0 BACKOFF DEFAULT MAXLEN 0 MAXBYTES 0 DEADLEN 0 DEDUPE 0 MAXRESERVED 0 RATE 0 0
        +OK",
    );
    p.says("DQ.CFGGET q", DEFAULTS);
}

#[test]
fn makes_the_queue_and_keeps_it() {
    let mut p = Probe::start();
    p.seen("DQ.CFGSET q", "+OK");
    p.talk(
        "> TYPE q
        +dq-queue1
        > DQ.LEN q
        0
        > DQ.ADD q a x
        'a'
        > DQ.POP q NOACK
        [ 'a' 'x' nil$ 1 nil$ ]
        > EXISTS q
        1
        > DQ.PURGE q ALL
        0
        > EXISTS q
        1
        > DEL q
        1
        > DQ.CFGGET q
        nil$",
    );
    // Also one that is there already, and with the settings it has.
    p.run("DQ.ADD q a x");
    p.seen("DQ.CFGSET q TTR 60000", "+OK");
    p.says("DQ.DEL q a", "1");
    p.says("EXISTS q", "1");
}

#[test]
fn setting_what_is_set_is_nothing() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q TTR 5 BACKOFF 1 7 RATE 5 1000");
    p.all_unseen(
        "DQ.CFGSET q -> +OK
        DQ.CFGSET q TTR 5 -> +OK
        DQ.CFGSET q BACKOFF 1 7 RATE 5 1000 MAXLEN 0 -> +OK
        DQ.RESUME q -> +OK",
    );
    p.all_seen(
        "DQ.CFGSET q TTR 6 -> +OK
        DQ.CFGSET q RATE 0 0 -> +OK
        DQ.PAUSE q -> +OK",
    );
    p.unseen("DQ.PAUSE q", "+OK");
    p.all_seen(
        "DQ.PAUSE q 100000 -> +OK
        DQ.RESUME q -> +OK",
    );
}

#[test]
fn refuses() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q TTR 5000");
    let range = "-ERR value is not an integer or out of range";
    let syntax = "-ERR syntax error, ...";
    let words = [
        "TTR",
        "ATTEMPTS",
        "BACKOFF",
        "MAXLEN",
        "DEADLEN",
        "DEDUPE",
        "MAXRESERVED",
    ];
    for word in words {
        for value in ["-1", "x", "\"\"", "1.0", "9223372036854775808"] {
            p.unseen(&format!("DQ.CFGSET q {word} {value}"), range);
            p.unseen(&format!("DQ.CFGSET none {word} {value}"), range);
        }
        p.unseen(&format!("DQ.CFGSET q RATE 1 1 {word}"), syntax);
    }
    for options in [
        "TTR 0",
        "BACKOFF 1 0",
        "TTR 4398046511104",
        "DEDUPE 4398046511104",
        "BACKOFF 1 4398046511104",
        "ATTEMPTS 4294967296",
        "RATE 0 5",
        "RATE 5 0",
        "RATE -1 5",
        "RATE 5 -1",
        "RATE 4294967296 5",
        "RATE x 5",
        "RATE 5 4398046511104",
        "TTR 7 RATE 0 5",
    ] {
        p.unseen(&format!("DQ.CFGSET q {options}"), range);
        p.unseen(&format!("DQ.CFGSET none {options}"), range);
    }
    for options in [
        "NONSENSE",
        "5",
        "\"\"",
        "TTR 5 TTR 5",
        "RATE 5",
        "RATE",
        "RATE 5 5 5",
        "BACKOFF 2 1",
        "BACKOFF 1 1 1",
        "RATE 0 0 RATE 0 0",
        "PAUSED 1",
        "MAXLEN 1 maxlen 1",
    ] {
        p.unseen(&format!("DQ.CFGSET q {options}"), syntax);
        p.unseen(&format!("DQ.CFGSET none {options}"), syntax);
    }
    p.unseen(
        "DQ.CFGSET",
        "-ERR wrong number of arguments for 'dq.cfgset' command",
    );
    p.says("EXISTS none", "0");
}

#[test]
fn deadlen_keeps_the_youngest_dead() {
    let mut p = Probe::start();
    let bury = |p: &mut Probe, id: &str| {
        p.run(&format!("DQ.ADD q {id} x"));
        p.run(&format!("DQ.POP q ID {id}"));
        p.says(&format!("DQ.NACK q {id} FATAL"), "'dead'");
    };
    for id in ["a", "b", "c", "d"] {
        bury(&mut p, id);
    }
    p.says("DQ.CFGSET q DEADLEN 3", "+OK");
    p.says("DQ.LEN q DEAD", "3");
    p.says("DQ.GET q a", "nil$");
    bury(&mut p, "e");
    p.says(
        "DQ.PEEK q DEAD COUNT 9",
        "[ [ 'c' 'x' ? 1 0 ] [ 'd' 'x' ? 1 0 ] [ 'e' 'x' ? 1 0 ] ]",
    );
    assert_eq!(p.field_int("DQ.STATS q", "deleted"), 2);
    assert_eq!(p.field_int("DQ.STATS q", "died"), 5);
    // Jobs that die when their lease expires count, too.
    p.run("DQ.ADD q f x ATTEMPTS 1 TTR 5");
    p.run("DQ.POP q");
    p.until("DQ.GET q c", "nil$");
    p.says("DQ.LEN q DEAD", "3");
    p.says("DQ.CFGSET q DEADLEN 0", "+OK");
    bury(&mut p, "g");
    p.says("DQ.LEN q DEAD", "4");
}

#[test]
fn dedupe_refuses_what_is_finished() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DEDUPE 100000");
    for (id, finish) in [("acked", "DQ.ACK q acked"), ("popped", "PING")] {
        p.run(&format!("DQ.ADD q {id} x"));
        p.run(if id == "popped" {
            "DQ.POP q NOACK"
        } else {
            "DQ.POP q"
        });
        p.run(finish);
        p.unseen(&format!("DQ.ADD q {id} y"), "nil$");
        p.unseen(&format!("DQ.ADD q {id} y XX"), "nil$");
        p.says(&format!("DQ.GET q {id}"), "nil$");
        p.says(&format!("DQ.ADD q {id} y REPLACE"), &format!("'{id}'"));
        p.says(&format!("DQ.DEL q {id}"), "1");
    }
    // Deleted, purged and dead jobs are not finished.
    p.run("DQ.ADD q a x");
    p.run("DQ.PURGE q ALL");
    p.says("DQ.ADD q a x", "'a'");
    p.run("DQ.POP q");
    p.run("DQ.NACK q a FATAL");
    p.says("DQ.ADD q a x", "'a'");
    p.run("DQ.DEL q a");
    p.says("DQ.ADD q a x", "'a'");
}

#[test]
fn dedupe_counts_from_the_ack_with_the_window_of_that_moment() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DEDUPE 150");
    p.run("DQ.ADD q a x");
    p.run("DQ.POP q");
    let acked = p.time_us();
    p.says("DQ.ACK q a", "1");
    p.run("DQ.CFGSET q DEDUPE 1000000");
    p.until("DQ.ADD q a x", "'a'");
    assert!(p.time_us() >= acked + 150_000, "never shorter than asked");
    p.run("DQ.POP q");
    p.says("DQ.ACK q a", "1");
    p.run("DQ.CFGSET q DEDUPE 1");
    let now = p.time_ms();
    p.wait_until_ms(now + 20);
    p.unseen("DQ.ADD q a x", "nil$");
    p.run("DQ.CFGSET q DEDUPE 0");
    p.run("DQ.CFGSET q DEDUPE 1000000");
    p.says("DQ.ADD q a x", "'a'");
}

#[test]
fn maxreserved() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q MAXRESERVED 2");
    for id in 1..=6 {
        p.run(&format!("DQ.ADD q {id} x"));
    }
    p.says(
        "DQ.POP q COUNT 9 TTR 1000000",
        "[ [ '1' 'x' ? 1 ? ] [ '2' 'x' ? 1 ? ] ]",
    );
    p.all_unseen(
        "DQ.POP q -> nil*
        DQ.POP q ID 4 -> nil*
        DQ.POP q COUNT 2 -> [ ]",
    );
    p.talk(
        "> DQ.POP q NOACK
        [ '3' 'x' nil$ 1 nil$ ]
        > DQ.ACK q 1
        1
        > DQ.POP q COUNT 9 TTR 20
        [ [ '4' 'x' ? 1 ? ] ]",
    );
    p.until("DQ.POP q COUNT 9", "[ [ '4' 'x' ? 2 ? ] ]");
    for (free, next) in [
        ("DQ.NACK q 2 DELAY 1000000", '5'),
        ("DQ.NACK q 4 FATAL", '6'),
    ] {
        p.run(free);
        p.says("DQ.POP q", &format!("[ '{next}' 'x' ? 1 ? ]"));
    }
    p.run("DQ.ADD q 7 x");
    p.says("DQ.POP q", "nil*");
    // A lower limit takes no job from a worker.
    p.run("DQ.CFGSET q MAXRESERVED 1");
    p.says("DQ.LEN q RESERVED", "2");
    p.run("DQ.DEL q 5");
    p.says("DQ.POP q", "nil*");
    p.run("DQ.CFGSET q MAXRESERVED 0");
    p.says("DQ.POP q", "[ '7' 'x' ? 1 ? ]");
}

#[test]
fn rate_is_an_exact_sliding_window() {
    const WINDOW_MS: u64 = 60;
    let mut p = Probe::start();
    p.run("DQ.CFGSET q RATE 3 60");
    for id in 0..15 {
        p.run(&format!("DQ.ADD q {id} x"));
    }
    // NOACK counts, too; the times are bounds on when each was delivered.
    let mut deliveries: Vec<(u64, u64)> = Vec::new();
    wait_until("all deliveries", PATIENCE, || {
        let option = if deliveries.len().is_multiple_of(2) {
            "NOACK"
        } else {
            ""
        };
        let before = p.time_us();
        if p.ask(&format!("DQ.POP q {option}")) != "nil*" {
            deliveries.push((before, p.time_us()));
        }
        deliveries.len() == 15
    });
    for four in deliveries.windows(4) {
        assert!(four[3].1 - four[0].0 >= WINDOW_MS * 1000, "{four:?}");
    }
}

#[test]
fn rate_limits_one_command() {
    let mut p = Probe::start();
    for id in 0..9 {
        p.run(&format!("DQ.ADD q {id} x"));
    }
    p.run("DQ.POP q COUNT 2");
    p.run("DQ.CFGSET q RATE 4 1000000");
    // The window begins when it is set.
    assert_eq!(p.words("DQ.POP q COUNT 9").len(), 4);
    p.all_unseen(
        "DQ.POP q COUNT 9 -> [ ]
        DQ.POP q NOACK -> nil*
        DQ.POP q ID 7 -> nil*",
    );
    p.run("DQ.CFGSET q RATE 0 0");
    assert_eq!(p.words("DQ.POP q COUNT 9").len(), 3);
}

#[test]
fn pause_until_resumed() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    p.run("DQ.ADD q v x PRIORITY -1 TTR 1000000");
    p.run("DQ.POP q");
    p.talk(
        "> DQ.PAUSE q
        +OK
        > DQ.POP q
        nil*
        > DQ.POP q ID a NOACK
        nil*
        > DQ.POP q COUNT 5
        [ ]
        > DQ.ADD q b x
        'b'
        > DQ.LEN q READY
        2
        > DQ.TOUCH q v
        ?
        > DQ.ACK q v
        1",
    );
    assert_eq!(p.field_int("DQ.STATS q", "paused"), -1);
    assert_eq!(p.field_int("DQ.CFGGET q", "paused"), -1);
    p.says("DQ.RESUME q", "+OK");
    assert_eq!(p.field_int("DQ.STATS q", "paused"), 0);
    p.says("DQ.POP q", "[ 'a' 'x' ? 1 ? ]");
}

#[test]
fn dues_and_leases_go_on_in_a_pause() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x TTR 20");
    p.run("DQ.POP q");
    p.run("DQ.ADD q b x DELAY 20");
    p.run("DQ.PAUSE q");
    p.until("DQ.LEN q READY", "2");
    p.says("DQ.POP q", "nil*");
}

#[test]
fn a_pause_ends_by_itself() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    let before = p.time_us();
    p.says("DQ.PAUSE q 80", "+OK");
    let after = p.time_us();
    let end = p.field_int("DQ.STATS q", "paused") as u64;
    assert!(end * 1000 >= before + 80_000 && end * 1000 < after + 81_000);
    assert_eq!(p.field_int("DQ.CFGGET q", "paused") as u64, end);
    p.until("DQ.POP q", "[ 'a' 'x' ? 1 ? ]");
    assert!(p.time_ms() >= end);
    assert_eq!(p.field_int("DQ.STATS q", "paused"), 0);
    assert_eq!(p.field_int("DQ.CFGGET q", "paused"), 0);
}

#[test]
fn the_second_pause_counts() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    p.run("DQ.PAUSE q 1000000");
    p.run("DQ.PAUSE q 10");
    p.until("DQ.POP q", "[ 'a' 'x' ? 1 ? ]");
    p.run("DQ.ADD q b x");
    p.run("DQ.PAUSE q 10");
    p.run("DQ.PAUSE q");
    let now = p.time_ms();
    p.wait_until_ms(now + 30);
    p.says("DQ.POP q", "nil*");
}

#[test]
fn pause_makes_the_queue_stay_and_resume_does_not_unmake_it() {
    let mut p = Probe::start();
    p.unseen("DQ.RESUME q", "+OK");
    p.says("EXISTS q", "0");
    p.seen("DQ.PAUSE q", "+OK");
    p.talk(
        "> DQ.RESUME q
        +OK
        > EXISTS q
        1
        > DQ.ADD q a x
        'a'
        > DQ.DEL q a
        1
        > EXISTS q
        1",
    );
}

#[test]
fn pause_refuses() {
    let mut p = Probe::start();
    let range = "-ERR value is not an integer or out of range";
    for value in [
        "0",
        "-1",
        "x",
        "\"\"",
        "4398046511103",
        "4398046511104",
        "9223372036854775808",
    ] {
        p.unseen(&format!("DQ.PAUSE q {value}"), range);
    }
    p.all_unseen(
        "DQ.PAUSE -> -ERR wrong number of arguments for 'dq.pause' command
        DQ.PAUSE q 5 5 -> -ERR wrong number of arguments for 'dq.pause' command
        DQ.RESUME -> -ERR wrong number of arguments for 'dq.resume' command
        DQ.RESUME q 5 -> -ERR wrong number of arguments for 'dq.resume' command",
    );
    p.says("EXISTS q", "0");
}

#[test]
fn settings_survive_dump_and_restore() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q TTR 5 ATTEMPTS 3 BACKOFF 1 7 MAXLEN 9 DEADLEN 8 DEDUPE 100000 MAXRESERVED 6 RATE 5 1000");
    p.run("DQ.ADD q a x");
    p.run("DQ.POP q NOACK");
    p.run("DQ.PAUSE q 1000000");
    let settings = p.ask("DQ.CFGGET q");
    let digest = p.server.digest();
    p.run("COPY q q2");
    p.says("DQ.CFGGET q2", &settings);
    p.says("DQ.ADD q2 a x", "nil$");
    let Reply::Bulk(dump) = p.run("DUMP q") else {
        panic!("a dump")
    };
    p.run("FLUSHALL");
    assert_eq!(
        plain(&p.server.raw().call(&[b"RESTORE", b"q", b"0", &dump])),
        "OK"
    );
    p.says("DQ.CFGGET q", &settings);
    p.says("DQ.ADD q a x", "nil$");
    assert_eq!(p.server.digest(), digest);
}
