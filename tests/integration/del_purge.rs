//! DQ.DEL and DQ.PURGE.

use crate::probe::Probe;

/// Jobs `d` (delayed), `r` (ready), `v` (reserved) and `x` (dead).
fn one_in_each_state(p: &mut Probe) {
    for id in ["v", "x"] {
        p.run(&format!("DQ.ADD q {id} x"));
        p.run("DQ.POP q");
    }
    p.run("DQ.NACK q x FATAL");
    p.run("DQ.ADD q r x");
    p.run("DQ.ADD q d x DELAY 1000000");
}

fn lens(p: &mut Probe) -> [i64; 4] {
    ["DELAYED", "READY", "RESERVED", "DEAD"].map(|state| p.int(&format!("DQ.LEN q {state}")))
}

#[test]
fn del_in_any_state() {
    let mut p = Probe::start();
    p.unseen("DQ.DEL q a b", "0");
    p.says("EXISTS q", "0");
    for id in ["d", "r", "v", "x"] {
        one_in_each_state(&mut p);
        p.unseen("DQ.DEL q nobody \"\"", "0");
        p.says(&format!("DQ.DEL q {id} nobody {id}"), "1");
        p.says(&format!("DQ.GET q {id}"), "nil$");
        p.says("DQ.DEL q d r v x", "3");
        p.says("EXISTS q", "0");
    }
}

#[test]
fn del_unreserved_leaves_reserved_jobs_alone() {
    let mut p = Probe::start();
    one_in_each_state(&mut p);
    p.unseen("DQ.DEL q UNRESERVED v", "0");
    p.says("DQ.DEL q unreserved d r v x", "3");
    assert_eq!(lens(&mut p), [0, 0, 1, 0]);
    p.says("DQ.DEL q v", "1");
    // Only as the first word, and then ids must follow.
    p.run("DQ.ADD q UNRESERVED x");
    p.run("DQ.ADD q a x");
    p.unseen(
        "DQ.DEL q UNRESERVED",
        "-ERR wrong number of arguments for 'dq.del' command",
    );
    p.says("DQ.DEL q a UNRESERVED", "2");
    p.run("DQ.ADD q UNRESERVED x");
    p.says("DQ.DEL q UNRESERVED UNRESERVED", "1");
}

#[test]
fn del_clears_the_memory() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DEDUPE 100000");
    for id in ["a", "b"] {
        p.run(&format!("DQ.ADD q {id} x"));
        p.run("DQ.POP q NOACK");
        p.unseen(&format!("DQ.ADD q {id} x"), "nil$");
    }
    // No job is deleted, but the id leaves the dedupe window, and that is a change.
    p.seen("DQ.DEL q a", "0");
    p.unseen("DQ.DEL q a", "0");
    p.says("DQ.ADD q a x", "'a'");
    p.unseen("DQ.ADD q b x", "nil$");
    p.says("DQ.DEL q UNRESERVED b", "0");
    p.says("DQ.ADD q b x", "'b'");
}

#[test]
fn purge_by_state() {
    let mut p = Probe::start();
    let cases = [
        ("delayed", [0, 1, 1, 1], 1),
        ("READY", [1, 0, 1, 1], 1),
        ("Reserved", [1, 1, 0, 1], 1),
        ("DEAD", [1, 1, 1, 0], 1),
        ("all", [0, 0, 0, 0], 4),
    ];
    for (state, left, purged) in cases {
        one_in_each_state(&mut p);
        p.says(&format!("DQ.PURGE q {state}"), &purged.to_string());
        assert_eq!(lens(&mut p), left);
        p.says("EXISTS q", if state == "all" { "0" } else { "1" });
        p.run("DEL q");
    }
}

#[test]
fn purge_of_nothing() {
    let mut p = Probe::start();
    for state in ["DELAYED", "READY", "RESERVED", "DEAD", "ALL"] {
        p.unseen(&format!("DQ.PURGE q {state}"), "0");
    }
    p.run("DQ.ADD q a x");
    p.all_unseen(
        "DQ.PURGE q DELAYED -> 0
        DQ.PURGE q RESERVED -> 0
        DQ.PURGE q DEAD -> 0
        DQ.PURGE q -> -ERR wrong number of arguments for 'dq.purge' command
        DQ.PURGE q ALL ALL -> -ERR wrong number of arguments for 'dq.purge' command
        DQ.PURGE q EVERYTHING -> -ERR syntax error, ...
        DQ.PURGE none EVERYTHING -> -ERR syntax error, ...",
    );
}

#[test]
fn purge_keeps_the_memory() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DEDUPE 100000");
    p.run("DQ.ADD q a x");
    p.run("DQ.POP q NOACK");
    p.run("DQ.ADD q b x");
    p.says("DQ.PURGE q ALL", "1");
    p.says("DQ.ADD q a x", "nil$");
    p.says("DQ.ADD q b x", "'b'");
}

#[test]
fn purge_of_many() {
    let mut p = Probe::start();
    let fill = "for i=1,30000 do redis.call('DQ.ADD','q',i,'x','DELAY',(i%2)*1000000) end";
    for (state, count, left) in [
        ("READY", 15_000, 15_000),
        ("DELAYED", 15_000, 15_000),
        ("ALL", 30_000, 0),
    ] {
        p.server.raw().call(&[b"EVAL", fill.as_bytes(), b"0"]);
        p.says(&format!("DQ.PURGE q {state}"), &count.to_string());
        p.says("DQ.LEN q", &left.to_string());
        p.run("DEL q");
    }
}

/// A lease that has ended by the clock counts as ended, though the timer could not run within the
/// script.
#[test]
fn purge_goes_by_the_clock() {
    let mut p = Probe::start();
    let script = "redis.call('DQ.ADD','q','a','x','TTR','10') \
        redis.call('DQ.ADD','q','keep','x','DELAY','100000') \
        spin(redis.call('DQ.POP','q')[5]) \
        return {redis.call('DQ.PURGE','q','RESERVED'), redis.call('DQ.PURGE','q','READY')}";
    assert_eq!(p.eval("EVAL", script), "[ 0 1 ]");
}

#[test]
fn what_they_leave() {
    let mut p = Probe::start();
    one_in_each_state(&mut p);
    p.seen("DQ.DEL q v", "1");
    p.raises("DQ.DEL q d", "1", "dq.del");
    p.raises("DQ.DEL q r x", "2", "dq.del del");
    one_in_each_state(&mut p);
    p.seen("DQ.PURGE q RESERVED", "1");
    p.raises("DQ.PURGE q DELAYED", "1", "dq.del");
    p.raises("DQ.PURGE q ALL", "2", "dq.del del");
}
