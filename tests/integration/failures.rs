//! Why a job failed: REASON, what the end of a lease records, and how long it stays.

use crate::probe::Probe;

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
