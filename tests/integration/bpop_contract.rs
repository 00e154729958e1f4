//! DQ.BPOP: its arguments and replies. How clients wait is tested elsewhere.

use std::time::Duration;

use crate::probe::{packed, show, Probe};
use crate::support::{wait_until, Raw, Reply, PATIENCE};

/// Sends DQ.BPOP from a client of its own, and waits until it is blocked.
fn wait_for(p: &mut Probe, line: &str) -> Raw {
    let waiting = |p: &mut Probe| {
        p.server
            .info("clients", "blocked_clients")
            .parse::<u32>()
            .expect("a number")
    };
    let before = waiting(p);
    let mut raw = p.server.raw();
    raw.send(&packed(line));
    wait_until("the client waits", PATIENCE, || waiting(p) == before + 1);
    raw
}

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
fn the_first_key_that_has_one() {
    let mut p = Probe::start();
    p.run("DQ.ADD two a x");
    p.run("DQ.ADD three b x PRIORITY -9");
    p.run("DQ.ADD one c x DELAY 1000000");
    p.says("DQ.BPOP one two three 0", "[ 'two' 'a' 'x' ? 1 ? ]");
    p.says("DQ.BPOP one two three 0", "[ 'three' 'b' 'x' ? 1 ? ]");
    // Naming a key twice does no harm.
    p.run("DQ.ADD two d x");
    p.says("DQ.BPOP one one two two 0", "[ 'two' 'd' 'x' ? 1 ? ]");
}

#[test]
fn nil_when_the_timeout_ends() {
    let mut p = Probe::start();
    for (line, ms) in [
        ("DQ.BPOP q 0.05", 50),
        ("DQ.BPOP a b c 0.02 COUNT 5 NOACK", 20),
        ("DQ.BPOP q 0.001", 1),
    ] {
        let before = p.time_us();
        p.says(line, "nil*");
        assert!(p.time_us() >= before + ms * 1000, "{line}");
    }
    p.says3("DQ.BPOP q 0.01", "nil");
    p.says3("DQ.BPOP q 0.01 COUNT 3", "nil");
    p.says("EXISTS q", "0");
    p.run("DQ.ADD q a x DELAY 100000");
    p.unseen("DQ.BPOP q none 0.01", "nil*");
    p.unseen("DQ.BPOP q none 0.01 COUNT 5 NOACK", "nil*");
}

#[test]
fn waits_for_a_due() {
    let mut p = Probe::start();
    let mut raw = wait_for(&mut p, "DQ.BPOP q 0 COUNT 2 TTR 4000000");
    p.run("DQ.ADD q a x DELAY 60");
    let due = p.field_int("DQ.GET q a", "due") as u64;
    let reply = raw.read();
    assert!(p.time_ms() >= due);
    assert!(
        crate::probe::fits(&show(&reply), "[ 'q' [ [ 'a' 'x' ? 1 ? ] ] ]"),
        "{reply:?}"
    );
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
fn getkeys() {
    let mut p = Probe::start();
    p.talk(
        "> COMMAND GETKEYS DQ.BPOP a 0
        [ 'a' ]
        > COMMAND GETKEYS DQ.BPOP a b c 0 COUNT 5 NOACK TTR 7
        [ 'a' ]
        > COMMAND GETKEYS DQ.BPOP COUNT 5 0
        [ 'COUNT' ]
        > COMMAND GETKEYS DQ.BPOP a 0 count 5
        [ 'a' ]
        > COMMAND GETKEYS DQ.ADD q a x
        [ 'q' ]
        > COMMAND GETKEYS DQ.STATS q
        [ 'q' ]",
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
    let one = wait_for(&mut p, "DQ.BPOP q other q 0");
    let _two = wait_for(&mut p, "DQ.BPOP q 0");
    assert_eq!(p.field_int("DQ.STATS q", "waiting-clients"), 2);
    drop(one);
    wait_until("one has left", PATIENCE, || {
        p.field_int("DQ.STATS q", "waiting-clients") == 1
    });
}

#[test]
fn an_emptied_key_goes_with_the_last_who_waits() {
    let mut p = Probe::start();
    for is_served in [true, false] {
        p.run("DQ.ADD q a x DELAY 100000");
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let mut raw = p.server.raw();
            let Reply::Integer(id) = raw.call(&[b"CLIENT", b"ID"]) else {
                panic!()
            };
            raw.send(&packed("DQ.BPOP q 0 NOACK"));
            waiting.push((id, raw));
            let count = waiting.len() as i64;
            wait_until("it waits", PATIENCE, || {
                p.field_int("DQ.STATS q", "waiting-clients") == count
            });
        }
        p.says("DQ.DEL q a", "1");
        for (id, mut raw) in waiting {
            p.says("EXISTS q", "1");
            if is_served {
                p.says("DQ.ADD q b x", "'b'");
            } else {
                p.until(&format!("CLIENT UNBLOCK {id}"), "1");
            }
            raw.read();
        }
        p.says("EXISTS q", "0");
    }
}

#[test]
fn deletion_leaves_waiters_waiting() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q TTR 5000");
    let mut raw = wait_for(&mut p, "DQ.BPOP q 0");
    for gone in ["DEL q", "FLUSHALL"] {
        p.run(gone);
        p.says("EXISTS q", "0");
        assert_eq!(raw.try_read(Duration::from_millis(5)), None);
        p.run("DQ.CFGSET q TTR 5000");
    }
    p.run("DEL q");
    p.run("SET q string");
    assert_eq!(raw.try_read(Duration::from_millis(5)), None);
    p.run("DEL q");
    p.run("DQ.ADD q a x");
    assert!(show(&raw.read()).starts_with("[ 'q' 'a' "));
}
