//! Why a job failed: REASON, what the end of a lease records, and how long it stays.

use crate::probe::{show, Probe};
use crate::support::Server;
use crate::turned::builder;

fn failure(p: &mut Probe) -> (String, String) {
    let reason = p.field_text("DQ.GET q a", "reason");
    (reason, p.field_text("DQ.GET q a", "failed"))
}

fn reserved(p: &mut Probe, options: &str) {
    p.run(&format!("DQ.ADD q a x REPLACE {options}"));
    p.run("DQ.POP q ID a");
}

#[test]
fn a_reason_stays_until_the_next_failure() {
    let mut p = Probe::start();
    reserved(&mut p, "");
    assert_eq!(failure(&mut p), ("nil".into(), "nil".into()));
    let before = p.time_ms();
    p.seen("DQ.NACK q a REASON no\\x00route", "'ready'");
    let (reason, failed) = failure(&mut p);
    let failed_ms: u64 = failed.parse().expect("an instant");
    assert_eq!(reason, "'no\\x00route'");
    assert!((before..=p.time_ms()).contains(&failed_ms));
    p.run("DQ.POP q ID a");
    // Given back without a failure, it keeps the earlier instant and reason.
    p.says("DQ.NACK q a SILENT", "'ready'");
    p.run("DQ.RESCHEDULE q DELAY 0 PRIORITY 3 a");
    p.run("DQ.POP q ID a");
    p.run("DQ.TOUCH q a");
    assert_eq!(failure(&mut p), ("'no\\x00route'".into(), failed));
    // An empty text is not nil; with a text SILENT notes one, too.
    p.says("DQ.NACK q a SILENT REASON \"\"", "'ready'");
    assert_eq!(failure(&mut p).0, "''");
    p.run("DQ.POP q ID a");
    p.says("DQ.NACK q a", "'ready'");
    let (reason, failed) = failure(&mut p);
    assert_eq!(reason, "nil");
    assert!(failed.parse::<u64>().is_ok());
    p.run("DQ.ADD q a x REPLACE");
    assert_eq!(failure(&mut p), ("nil".into(), "nil".into()));
}

#[test]
fn a_dead_job_tells_why_also_when_kicked_copied_and_loaded() {
    let mut p = Probe::start();
    reserved(&mut p, "");
    p.says("DQ.NACK q a FATAL REASON broken", "'dead'");
    let dead = failure(&mut p);
    assert_eq!(dead.0, "'broken'");
    let digest = p.server.digest();
    p.run("DEBUG RELOAD");
    assert_eq!(p.server.digest(), digest);
    assert_eq!(failure(&mut p), dead);
    p.run("COPY q r");
    assert_eq!(p.field_text("DQ.GET r a", "reason"), "'broken'");
    p.says("DQ.KICK q COUNT 1", "1");
    assert_eq!(failure(&mut p), dead);
    // It is data: another reason gives another digest.
    reserved(&mut p, "");
    p.run("DQ.NACK q a FATAL REASON broken");
    let one = p.ask("DEBUG DIGEST-VALUE r");
    p.run("DQ.KICK r COUNT 1");
    p.run("DQ.POP r");
    p.run("DQ.NACK r a FATAL REASON broke");
    assert_ne!(p.ask("DEBUG DIGEST-VALUE r"), one);
}

#[test]
fn a_lease_that_ends_is_a_failure() {
    let mut p = Probe::start();
    for attempts in ["", "ATTEMPTS 1"] {
        let before = p.time_ms();
        reserved(&mut p, &format!("{attempts} TTR 20"));
        let after = p.time_ms();
        p.until("DQ.LEN q RESERVED", "0");
        let (reason, failed) = failure(&mut p);
        assert_eq!(reason, "'lease\\x20ended'");
        let deadline: u64 = failed.parse().expect("an instant");
        // A wait counts from the next full millisecond.
        assert!((before + 20..=after + 21).contains(&deadline));
    }
    assert_eq!(p.field_text("DQ.GET q a", "state"), "'dead'");
}

#[test]
fn only_the_first_kilobyte_is_kept_and_only_failed_jobs_pay() {
    let mut p = Probe::start();
    for id in 0..100 {
        p.run(&format!("DQ.ADD q {id} x"));
        p.run("DQ.POP q");
    }
    let before = p.int("MEMORY USAGE q");
    let long = "r".repeat(5000);
    for id in 0..50 {
        p.says(&format!("DQ.NACK q {id} FATAL REASON {long}"), "'dead'");
    }
    let after = p.int("MEMORY USAGE q");
    assert_eq!(
        p.field_text("DQ.GET q 1", "reason"),
        format!("'{}'", &long[..1024])
    );
    assert!(
        (50 * 1024..50 * 1400).contains(&(after - before)),
        "{before} {after}"
    );
    p.unseen("DQ.NACK q 60 REASON", "-ERR syntax error, ...");
    p.unseen("DQ.NACK q 60 REASON a REASON b", "-ERR syntax error, ...");
}

/// A queue `q` with HISTORY 3 and without waits, at the instant 4000000000000 of the clock for tests.
fn with_history() -> Probe {
    let mut p = Probe::of(builder());
    p.run("DQ.CLOCK SET 4000000000000");
    p.run("DQ.CFGSET q HISTORY 3 BACKOFF 0 TTR 1000");
    p
}

fn history(p: &mut Probe, id: &str) -> String {
    show(&p.field(&format!("DQ.GET q {id}"), "history"))
}

/// Sends the lines, and expects that none is an error.
fn all(p: &mut Probe, lines: &str) {
    for line in lines.lines().map(str::trim) {
        let reply = show(&p.run(line));
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
}

#[test]
fn history_is_set_within_its_bounds() {
    let mut p = Probe::start();
    p.all_unseen(
        "DQ.CFGSET q HISTORY 101 -> -ERR value is not an integer or out of range
        DQ.CFGSET q HISTORY -1 -> -ERR value is not an integer or out of range
        DQ.CFGSET q HISTORY -> -ERR syntax error, ...
        DQ.CFGSET q HISTORY 1 HISTORY 1 -> -ERR syntax error, ...",
    );
    p.seen("DQ.CFGSET q history 100", "+OK");
    assert_eq!(p.field_int("DQ.CFGGET q", "history"), 100);
    p.unseen("DQ.CFGSET q HISTORY 100", "+OK");
    p.run("DQ.ADD q a x");
    assert_eq!(history(&mut p, "a"), "[ ]");
    p.seen("DQ.CFGSET q HISTORY 0", "+OK");
    p.run("DQ.POP q");
    p.run("DQ.NACK q a REASON why");
    assert_eq!(history(&mut p, "a"), "[ ]");
}

#[test]
fn history_has_the_last_attempts_that_failed() {
    let mut p = with_history();
    let long = "r".repeat(300);
    all(
        &mut p,
        &format!(
            "DQ.ADD q a x
            DQ.POP q
            DQ.CLOCK ADVANCE 7
            DQ.NACK q a REASON {long}
            DQ.POP q
            DQ.NACK q a SILENT REASON none
            DQ.POP q
            DQ.CLOCK ADVANCE 1000"
        ),
    );
    let first = format!(
        "[ 1 4000000000000 4000000000007 'nacked' '{}' ]",
        &long[..256]
    );
    let timeout = "[ 2 4000000000007 4000000001007 'timeout' nil ]";
    assert_eq!(history(&mut p, "a"), format!("[ {first} {timeout} ]"));
    // It takes the place of what the end of its lease left.
    all(
        &mut p,
        "DQ.CLOCK ADVANCE 5
        DQ.NACK q a REASON \"\"",
    );
    let late = "[ 2 4000000000007 4000000001012 'nacked' '' ]";
    assert_eq!(history(&mut p, "a"), format!("[ {first} {late} ]"));
    all(
        &mut p,
        "DQ.POP q
        DQ.NACK q a
        DQ.POP q
        DQ.NACK q a FATAL",
    );
    let third = "[ 3 4000000001012 4000000001012 'nacked' nil ]";
    let fatal = "[ 4 4000000001012 4000000001012 'fatal' nil ]";
    let last = format!("[ {late} {third} {fatal} ]");
    assert_eq!(history(&mut p, "a"), last);
    // A smaller one trims at the next failure; 0 keeps what is there.
    all(
        &mut p,
        "DQ.CFGSET q HISTORY 2
        DQ.KICK q COUNT 1",
    );
    assert_eq!(history(&mut p, "a"), last);
    all(
        &mut p,
        "DQ.POP q
        DQ.NACK q a REASON again",
    );
    let again = "[ 1 4000000001012 4000000001012 'nacked' 'again' ]";
    assert_eq!(history(&mut p, "a"), format!("[ {fatal} {again} ]"));
    all(
        &mut p,
        "DQ.CFGSET q HISTORY 0
        DQ.POP q
        DQ.NACK q a",
    );
    assert_eq!(history(&mut p, "a"), format!("[ {fatal} {again} ]"));
    p.run("DQ.ADD q a x REPLACE");
    assert_eq!(history(&mut p, "a"), "[ ]");
}

#[test]
fn history_is_data_and_counts_for_donebytes_alone() {
    let mut p = with_history();
    all(
        &mut p,
        "DQ.CFGSET q DONELEN 5 MAXBYTES 8
        DQ.ADD q a x
        DQ.POP q
        DQ.NACK q a REASON four",
    );
    assert_eq!(p.field_int("DQ.STATS q", "bytes"), 2);
    let before = history(&mut p, "a");
    let digest = p.server.digest();
    p.run("DEBUG RELOAD");
    assert_eq!((p.server.digest(), history(&mut p, "a")), (digest, before));
    let replica = Server::start();
    replica.replica_of(&p.server);
    all(
        &mut p,
        "DQ.POP q
        DQ.NACK q a REASON fives
        COPY q r
        DQ.POP q
        DQ.ACK q a",
    );
    let both = "[ [ 1 4000000000000 4000000000000 'nacked' 'four' ] \
        [ 2 4000000000000 4000000000000 'nacked' 'fives' ] ]";
    assert_eq!(history(&mut p, "a"), both);
    assert_eq!(show(&p.field("DQ.GET r a", "history")), both);
    assert_eq!(p.field_int("DQ.STATS q", "done-bytes"), 2 + 4 + 5);
    replica.wait_for_offset_of(&p.server);
    replica.assert_same_data_as(&p.server);
    p.run("DQ.KICK q IDS 1 a");
    assert_eq!(history(&mut p, "a"), both);
    // One that is too large for DONEBYTES by it is not kept.
    all(
        &mut p,
        "DQ.CFGSET q DONEBYTES 10
        DQ.POP q
        DQ.ACK q a",
    );
    p.says("DQ.GET q a", "nil$");
}
