//! DQ.BPOP: its arguments and replies. How clients wait is tested elsewhere.

use crate::probe::{packed, show, Probe};
use crate::scene::Scene;
use crate::support::{wait_until, PATIENCE};

#[test]
fn as_pop_where_one_is_ready() {
    let mut p = Probe::start();
    for id in ["a", "b", "c", "d", "e"] {
        p.run(&format!("DQ.ADD q {id} x"));
    }
    p.talk(
        "> DQ.BPOP q 0
        [ 'q' 'a' 'x' ? 1 ? ]
        > DQ.BPOP q 1.5 COUNT 2
        [ 'q' [ [ 'b' 'x' ? 1 ? ] [ 'c' 'x' ? 1 ? ] ] ]
        3> DQ.BPOP q 1e1 NOACK
        [ 'q' 'd' 'x' nil 1 nil ]
        > DQ.BPOP q 0.001 noack ttr 5 count 9
        [ 'q' [ [ 'e' 'x' nil$ 1 nil$ ] ] ]",
    );
    p.run("DQ.ADD q a y REPLACE");
    let before = p.time_us();
    let deadline: u64 = p.words("DQ.BPOP q 0 TTR 700000")[5]
        .parse()
        .expect("a deadline");
    assert!(deadline * 1000 >= before + 700_000_000);
}

#[test]
fn waiting_in_resp3() {
    let mut p = Probe::start();
    let mut raw = p.server.raw();
    raw.call(&[b"HELLO", b"3"]);
    raw.send(&packed("DQ.BPOP q 0 NOACK"));
    wait_until("it waits", PATIENCE, || {
        p.server.info("clients", "blocked_clients") == "1"
    });
    p.run("DQ.ADD q a x");
    assert_eq!(show(&raw.read()), "[ 'q' 'a' 'x' nil 1 nil ]");
    p.until("EXISTS q", "0");
}

#[test]
fn its_options_are_read_from_the_end() {
    let mut p = Probe::start();
    // Keys may look like options; COUNT and TTR only if they are not last.
    for key in ["COUNT", "NOACK", "5"] {
        p.run(&format!("DQ.ADD {key} a x"));
    }
    p.talk(
        "> DQ.BPOP NOACK 0 NOACK
        [ 'NOACK' 'a' 'x' nil$ 1 nil$ ]
        > DQ.BPOP COUNT 5 0
        [ 'COUNT' 'a' 'x' ? 1 ? ]
        > DQ.BPOP q 5 0 COUNT 1
        [ '5' [ [ 'a' 'x' ? 1 ? ] ] ]",
    );
}

#[test]
fn refuses() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    let range = "-ERR value is not an integer or out of range";
    for value in ["0", "-1", "x", "9223372036854775808"] {
        p.unseen(&format!("DQ.BPOP q 1 COUNT {value}"), range);
        p.unseen(&format!("DQ.BPOP q 1 TTR {value}"), range);
    }
    p.unseen("DQ.BPOP q 1 TTR 4398046511104", range);
    for options in ["NOACK NOACK", "COUNT 1 COUNT 1", "TTR 5 NOACK TTR 5"] {
        p.unseen(&format!("DQ.BPOP q 1 {options}"), "-ERR syntax error, ...");
    }
    let no_float = "-ERR timeout is not a float or out of range";
    for timeout in [
        "x", "\"\"", "inf", "nan", "1e400", "1e300", "1x", "\\x201", "1,5",
    ] {
        p.unseen(&format!("DQ.BPOP q {timeout}"), no_float);
        p.unseen(&format!("DQ.BPOP none {timeout}"), no_float);
    }
    for timeout in ["-1", "-0.001", "-1e3", "-inf"] {
        p.unseen(&format!("DQ.BPOP q {timeout}"), "-ERR timeout is negative");
    }
    for line in ["DQ.BPOP", "DQ.BPOP q"] {
        p.unseen(line, "-ERR wrong number of arguments for 'dq.bpop' command");
    }
    // Not an option's word, so it is the timeout.
    p.unseen("DQ.BPOP q 1 NONSENSE", no_float);
}

/// Otherwise options would become keys, and the client would wait for ever on a key named COUNT.
#[test]
fn a_forgotten_timeout() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    for (line, word) in [
        ("q COUNT 5", "COUNT"),
        ("none count 5", "COUNT"),
        ("q TTR 5000", "TTR"),
        ("q NOACK", "NOACK"),
        ("q COUNT 5 NOACK", "COUNT"),
        ("q NOACK TTR 1 COUNT 5", "NOACK"),
        ("q COUNT x", "COUNT"),
        ("COUNT 5", "COUNT"),
        ("NOACK NOACK", "NOACK"),
        ("q 1 COUNT", "COUNT"),
        ("q none TTR", "TTR"),
        ("q withdue", "WITHDUE"),
        ("none q COUNT 5", "COUNT"),
        ("none q p NOACK TTR 5", "NOACK"),
        ("q withterms", "WITHTERMS"),
        ("q LEASE x", "LEASE"),
        ("q none LEASE", "LEASE"),
    ] {
        p.unseen(
            &format!("DQ.BPOP {line}"),
            &format!("-ERR timeout is missing before {word}"),
        );
    }
    // LEASE is a key where it would leave no timeout.
    p.run("DEL q");
    p.run("DQ.ADD lease a x");
    for line in [
        "lease 0.01",
        "q lease 0.01",
        "q none lease 0.01 NOACK",
        "q lease 0 COUNT 1",
        "7 lease 0 COUNT 1",
        "q lease lease 0.01 LEASE 5000",
        "q lease 0.01 lease 5000",
    ] {
        let reply = p.ask(&format!("DQ.BPOP {line}"));
        assert!(reply.contains("'lease'"), "{line}: {reply}");
        p.run("DQ.DEL lease a");
        p.run("DQ.ADD lease a x");
    }
    p.says("DQ.BPOP q 0.01 LEASE 5000", "nil*");
    // What looks like a number is a wrong one.
    for wrong in ["1s", "nan", ".", "-inf", "\"\""] {
        let reply = p.ask(&format!("DQ.BPOP none {wrong} COUNT 5"));
        assert!(!reply.contains("missing"), "{wrong}: {reply}");
    }
}

#[test]
fn wrong_types_in_the_order_of_keys() {
    let mut p = Probe::start();
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    p.run("SET s v");
    p.run("DQ.ADD q a x");
    p.unseen("DQ.BPOP s q 0", wrong);
    p.unseen("DQ.BPOP none s q 0", wrong);
    p.says("DQ.BPOP q s 0", "[ 'q' 'a' 'x' ? 1 ? ]");
    p.unseen("DQ.BPOP q s 0", wrong);
    p.unseen("DQ.BPOP s 0 COUNT 5", wrong);
}

#[test]
fn waiting_clients_are_counted() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q");
    assert_eq!(p.field_int("DQ.STATS q", "waiting-clients"), 0);
    let one = p.server.waiting("DQ.BPOP q other q 0");
    let _two = p.server.waiting("DQ.BPOP q 0");
    assert_eq!(p.field_int("DQ.STATS q", "waiting-clients"), 2);
    drop(one);
    wait_until("one has left", PATIENCE, || {
        p.field_int("DQ.STATS q", "waiting-clients") == 1
    });
}
