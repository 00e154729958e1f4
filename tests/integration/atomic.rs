//! MULTI/EXEC, EVAL and FCALL; and time within a script, where no timer runs.

use crate::probe::{show, Probe};

#[test]
fn every_command_in_a_transaction() {
    let mut p = Probe::start();
    let lines = "
        DQ.CFGSET q TTR 100000 -> +OK
        DQ.ADD q a x -> 'a'
        DQ.ADD q b x DELAY 100000 -> 'b'
        DQ.POP q -> [ 'a' 'x' ? 1 ? ]
        DQ.TOUCH q a -> ?
        DQ.NACK q a -> 'ready'
        DQ.BPOP q 0 -> [ 'q' 'a' 'x' ? 2 ? ]
        DQ.NACK q a FATAL -> 'dead'
        DQ.KICK q COUNT 5 -> 1
        DQ.RESCHEDULE q DELAY 0 b -> 1
        DQ.LEN q READY -> 2
        DQ.PEEK q DEAD -> [ ]
        DQ.SCAN q 0 STATE dead -> [ '0' [ ] ]
        DQ.GET q nobody -> nil$
        DQ.PAUSE q -> +OK
        DQ.POP q COUNT 5 -> [ ]
        DQ.RESUME q -> +OK
        DQ.POP q ID b -> [ 'b' 'x' ? 1 ? ]
        DQ.ACK q b -> 1
        DQ.DEL q a -> 1
        DQ.PURGE q ALL -> 0
        DQ.MADD q 2 a 1 b 2 -> [ 'a' 'b' ]
        DQ.MADD q 2 c 3 a 3 -> [ 'c' nil$ ]";
    p.run("MULTI");
    let mut expected = Vec::new();
    for (line, reply) in crate::probe::pairs(lines) {
        p.says(line, "+QUEUED");
        expected.push(reply);
    }
    p.says("EXEC", &format!("[ {} ]", expected.join(" ")));
}

#[test]
fn a_broken_watch_does_nothing() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    p.run("WATCH q");
    p.says3("DQ.POP q", "[ 'a' 'x' ? 1 ? ]");
    p.run("MULTI");
    p.run("DQ.ACK q a");
    p.says("EXEC", "nil*");
    p.says("DQ.LEN q RESERVED", "1");
}

#[test]
fn in_scripts_and_functions() {
    let mut p = Probe::start();
    let script = "redis.call('DQ.ADD','q','a','x') local job=redis.call('DQ.POP','q') \
        return {job[1], job[4], redis.call('DQ.ACK','q','WITHTOKENS',job[1],job[3]), redis.call('DQ.LEN','q')}";
    assert_eq!(p.eval("EVAL", script), "[ 'a' 1 1 0 ]");
    let error = p.eval(
        "EVAL",
        "return redis.pcall('DQ.ADD','q','a','x','TTR','0').err",
    );
    assert_eq!(
        error,
        "'ERR\\x20value\\x20is\\x20not\\x20an\\x20integer\\x20or\\x20out\\x20of\\x20range'"
    );
    let library = "#!lua name=dqtest\nredis.register_function('take', function(keys) \
        redis.call('DQ.ADD', keys[1], 'f', 'x') return redis.call('DQ.POP', keys[1], 'NOACK')[1] end)";
    let mut raw = p.server.raw();
    raw.call(&[b"FUNCTION", b"LOAD", library.as_bytes()]);
    assert_eq!(show(&raw.call(&[b"FCALL", b"take", b"1", b"q"])), "'f'");
}

#[test]
fn leases_end_by_the_clock() {
    let mut p = Probe::start();
    for (asked, expected) in [
        ("redis.call('DQ.LEN','q','READY')", "1"),
        ("redis.call('DQ.POP','q','TTR','100000')[4]", "2"),
        ("redis.call('DQ.POP','q','ID','a')[4]", "2"),
        ("redis.call('DQ.GET','q','a')[6]", "'ready'"),
        ("redis.call('DQ.RESCHEDULE','q','DELAY','5','a')", "1"),
        ("redis.call('DQ.TOUCH','q','a') or 'nil'", "'nil'"),
        ("redis.call('DQ.ACK','q','a')", "1"),
        ("redis.call('DQ.DEL','q','UNRESERVED','a')", "1"),
        ("redis.call('DQ.NACK','q','a','SILENT')", "'ready'"),
        ("#redis.call('DQ.PEEK','q','RESERVED')", "0"),
        ("redis.call('DQ.PURGE','q','READY')", "1"),
    ] {
        p.run("DEL q");
        let script = format!(
            "redis.call('DQ.ADD','q','a','x') spin(redis.call('DQ.POP','q','TTR','5')[5]) return {asked}"
        );
        assert_eq!(p.eval("EVAL", &script), expected, "{asked}");
    }
}

#[test]
fn deaths_come_by_the_clock() {
    let mut p = Probe::start();
    for (asked, expected) in [
        ("redis.call('DQ.LEN','q','DEAD')", "1"),
        ("redis.call('DQ.POP','q') or 'nil'", "'nil'"),
        ("redis.call('DQ.KICK','q','COUNT','1')", "1"),
        ("redis.call('DQ.KICK','q','IDS','1','a')", "1"),
        ("redis.call('DQ.NACK','q','a') or 'nil'", "'nil'"),
        ("redis.call('DQ.ADD','q','a','y')", "'a'"),
        ("redis.call('DQ.ACK','q','a')", "1"),
        ("redis.call('DQ.PURGE','q','DEAD')", "1"),
    ] {
        p.run("DEL q");
        let script = format!(
            "redis.call('DQ.ADD','q','a','x','ATTEMPTS','1') \
             spin(redis.call('DQ.POP','q','TTR','5')[5]) return {asked}"
        );
        assert_eq!(p.eval("EVAL", &script), expected, "{asked}");
    }
}

#[test]
fn ttls_end_by_the_clock() {
    let mut p = Probe::start();
    for (asked, expected) in [
        ("redis.call('DQ.LEN','q')", "1"),
        ("redis.call('DQ.POP','q')[1]", "'other'"),
        ("redis.call('DQ.POP','q','ID','a') or 'nil'", "'nil'"),
        ("redis.call('DQ.GET','q','a') or 'nil'", "'nil'"),
        ("redis.call('DQ.ADD','q','a','x')", "'a'"),
        ("redis.call('DQ.ADD','q','b','x')", "'b'"),
        ("redis.call('DQ.ADD','q','a','x','XX') or 'nil'", "'nil'"),
        ("redis.call('DQ.RESCHEDULE','q','DELAY','0','a')", "0"),
        ("redis.call('DQ.DEL','q','a')", "0"),
        ("redis.call('DQ.PURGE','q','ALL')", "1"),
    ] {
        p.run("DEL q");
        p.run("DQ.CFGSET q MAXLEN 2");
        let script = format!(
            "redis.call('DQ.ADD','q','other','x') redis.call('DQ.ADD','q','a','x','TTL','5','PRIORITY','-1') \
             spin(now() + 6) return {asked}"
        );
        assert_eq!(p.eval("EVAL", &script), expected, "{asked}");
    }
}

#[test]
fn looking_in_a_script_that_may_not_write() {
    let mut p = Probe::of(crate::support::Server::builder().aof());
    p.run("DQ.ADD q a x");
    p.run("DQ.POP q TTR 30");
    let script = "spin(now() + 50) return redis.call('DQ.LEN','q','READY')";
    assert_eq!(p.eval("EVAL_RO", script), "1");
    p.says("DQ.POP q", "[ 'a' 'x' ? 2 ? ]");
    let digest = p.server.digest();
    p.server.kill();
    p.server.restart();
    assert_eq!(p.server.digest(), digest);
}
