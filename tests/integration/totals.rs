//! What DQ.STATS and INFO dq count.

use crate::probe::{plain, Probe};
use crate::support::{skipped, Reply};

const TOTALS: [&str; 8] = [
    "added",
    "delivered",
    "acked",
    "nacked",
    "timed-out",
    "died",
    "deleted",
    "expired",
];

/// The totals that are not 0.
fn totals(p: &mut Probe, key: &str) -> String {
    let counts = TOTALS.map(|name| (name, p.field_int(&format!("DQ.STATS {key}"), name)));
    let counts = counts.iter().filter(|(_, count)| *count != 0);
    counts
        .map(|(name, count)| format!("{name}={count}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A configured queue, so that its totals outlive its jobs.
fn start() -> Probe {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q");
    p
}

#[test]
fn of_commands() {
    let cases: [(&[&str], &str); 16] = [
        (&["DQ.ADD q a x"], "added=1"),
        (
            &["DQ.ADD q a x", "DQ.ADD q a x", "DQ.ADD q b x XX"],
            "added=1",
        ),
        (
            &["DQ.ADD q a x", "DQ.ADD q a x REPLACE"],
            "added=2 deleted=1",
        ),
        (&["DQ.ADD q a x", "DQ.ADD q a x XX"], "added=2 deleted=1"),
        (&["DQ.ADD q a x", "DQ.POP q"], "added=1 delivered=1"),
        (&["DQ.ADD q a x", "DQ.POP q NOACK"], "added=1 delivered=1"),
        (&["DQ.ADD q a x", "DQ.BPOP q 0"], "added=1 delivered=1"),
        (
            &["DQ.ADD q a x", "DQ.POP q", "DQ.ACK q a b"],
            "added=1 delivered=1 acked=1",
        ),
        (
            &["DQ.ADD q a x", "DQ.POP q", "DQ.NACK q a", "DQ.NACK q a"],
            "added=1 delivered=1 nacked=1",
        ),
        (
            &["DQ.ADD q a x", "DQ.POP q", "DQ.NACK q a SILENT"],
            "added=1 delivered=1 nacked=1",
        ),
        (
            &["DQ.ADD q a x", "DQ.POP q", "DQ.NACK q a FATAL"],
            "added=1 delivered=1 nacked=1 died=1",
        ),
        (
            &[
                "DQ.ADD q a x",
                "DQ.POP q",
                "DQ.NACK q a FATAL",
                "DQ.ADD q a y",
            ],
            "added=2 delivered=1 nacked=1 died=1 deleted=1",
        ),
        (
            &["DQ.ADD q a x", "DQ.ADD q b x", "DQ.DEL q a b c"],
            "added=2 deleted=2",
        ),
        (
            &[
                "DQ.ADD q a x",
                "DQ.ADD q b x DELAY 100000",
                "DQ.PURGE q ALL",
            ],
            "added=2 deleted=2",
        ),
        (
            &["DQ.ADD q a x", "DQ.RESCHEDULE q DELAY 5 a", "DQ.PAUSE q"],
            "added=1",
        ),
        (
            &["DQ.POP q", "DQ.ACK q a", "DQ.DEL q a", "DQ.KICK q COUNT 5"],
            "",
        ),
    ];
    for (lines, expected) in cases {
        let mut p = start();
        lines.iter().for_each(|line| drop(p.run(line)));
        assert_eq!(totals(&mut p, "q"), expected, "{lines:?}");
    }
}

#[test]
fn of_time() {
    // Before which of the job's instants all commands must have been sent.
    let cases: [(&str, &[&str], &str, &str); 4] = [
        (
            "deadline",
            &["DQ.ADD q a x TTR MS", "DQ.POP q"],
            "timed-out",
            "added=1 delivered=1 timed-out=1",
        ),
        (
            "deadline",
            &["DQ.ADD q a x TTR MS ATTEMPTS 1", "DQ.POP q"],
            "died",
            "added=1 delivered=1 timed-out=1 died=1",
        ),
        (
            "expires",
            &["DQ.ADD q a x TTL MS"],
            "expired",
            "added=1 expired=1",
        ),
        (
            "expires",
            &[
                "DQ.ADD q a x TTR 10000 TTL MS",
                "DQ.POP q",
                "DQ.TOUCH q a TTR MS",
            ],
            "expired",
            "added=1 delivered=1 timed-out=1 expired=1",
        ),
    ];
    for (name, lines, last, expected) in cases {
        let mut p = start();
        p.in_time(name, 10, |p, ms| {
            p.run("DQ.CFGSET q");
            let line = |line: &&str| drop(p.run(&line.replace("MS", &ms.to_string())));
            lines.iter().for_each(line);
        });
        let waiting = || p.field_int("DQ.STATS q", last) == 1;
        crate::support::wait_until(last, crate::support::PATIENCE, waiting);
        assert_eq!(totals(&mut p, "q"), expected, "{lines:?}");
    }
}

#[test]
fn deadlen_deletes() {
    let mut p = start();
    p.run("DQ.CFGSET q DEADLEN 1");
    for id in ["a", "b"] {
        p.run(&format!("DQ.ADD q {id} x"));
        p.run("DQ.POP q");
        p.run(&format!("DQ.NACK q {id} FATAL"));
    }
    assert_eq!(
        totals(&mut p, "q"),
        "added=2 delivered=2 nacked=2 died=2 deleted=1"
    );
}

#[test]
fn renamed_and_moved_they_stay() {
    let mut p = start();
    p.run("DQ.ADD q a x");
    p.run("DQ.POP q");
    let lateness = p.ask("DQ.STATS q");
    p.run("RENAME q q2");
    assert_eq!(totals(&mut p, "q2"), "added=1 delivered=1");
    p.run("RENAME q2 q");
    p.says("MOVE q 1", "1");
    p.run("SELECT 1");
    p.says("DQ.STATS q", &lateness);
}

#[test]
fn copied_and_restored_they_begin_at_0() {
    let mut p = start();
    p.run("DQ.ADD q a x");
    p.run("DQ.POP q");
    p.run("COPY q q2");
    assert_eq!(totals(&mut p, "q2"), "");
    assert_eq!(p.field_int("DQ.STATS q2", "lateness-count"), 0);
    let Reply::Bulk(dump) = p.run("DUMP q") else {
        panic!("a dump")
    };
    p.server.raw().call(&[b"RESTORE", b"q3", b"0", &dump]);
    let zero =
        p.field_int("DQ.STATS q3", "lateness-sum") + p.field_int("DQ.STATS q3", "lateness-max");
    assert_eq!((totals(&mut p, "q3").as_str(), zero), ("", 0));
    assert_eq!(totals(&mut p, "q"), "added=1 delivered=1");
    p.run("DEBUG RELOAD");
    let counted_again = totals(&mut p, "q");
    assert_eq!(counted_again, "", "not persisted");
}

#[test]
fn they_are_not_data() {
    let mut p = start();
    p.run("DQ.ADD q a x AT 5000");
    let digest = p.server.digest();
    p.run("DQ.ADD q b x");
    p.run("DQ.DEL q b");
    assert_eq!(p.server.digest(), digest);
}

fn info(p: &mut Probe) -> Vec<(String, String)> {
    let text = plain(&p.run("INFO dq"));
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn info_field(p: &mut Probe, name: &str) -> u64 {
    let fields = info(p);
    let found = fields.iter().find(|(field, _)| field == name);
    let (_, value) = found.unwrap_or_else(|| panic!("no {name} in {fields:?}"));
    value.parse().expect("a plain number")
}

#[test]
fn info_over_all_queues() {
    let mut p = Probe::start();
    if info(&mut p).is_empty() {
        return skipped("this module has no INFO dq yet");
    }
    let names = [
        "dq_queues",
        "dq_jobs_delayed",
        "dq_jobs_ready",
        "dq_jobs_reserved",
        "dq_jobs_dead",
        "dq_waiting_clients",
        "dq_added_total",
        "dq_delivered_total",
        "dq_acked_total",
        "dq_nacked_total",
        "dq_timed_out_total",
        "dq_died_total",
        "dq_deleted_total",
        "dq_expired_total",
        "dq_lateness_us_count",
        "dq_lateness_us_sum",
        "dq_lateness_us_max",
        "dq_timer_fires_total",
        "dq_timer_late_us_max",
        "dq_renames_heard",
    ];
    for name in names {
        info_field(&mut p, name);
    }
    p.run("DQ.ADD one a x");
    p.run("DQ.ADD one b x DELAY 100000");
    p.run("SELECT 5");
    p.run("DQ.ADD two a x");
    p.run("DQ.ADD two b x PRIORITY -1 TTR 1000000");
    p.run("DQ.POP two");
    p.run("DQ.ADD two c x PRIORITY -1");
    p.run("DQ.POP two");
    p.run("DQ.NACK two c FATAL");
    let expected = [
        ("dq_queues", 2),
        ("dq_jobs_delayed", 1),
        ("dq_jobs_ready", 2),
        ("dq_jobs_reserved", 1),
        ("dq_jobs_dead", 1),
        ("dq_waiting_clients", 0),
        ("dq_added_total", 5),
        ("dq_delivered_total", 2),
        ("dq_nacked_total", 1),
        ("dq_died_total", 1),
        ("dq_lateness_us_count", 2),
        ("dq_acked_total", 0),
    ];
    for (name, value) in expected {
        assert_eq!(info_field(&mut p, name), value, "{name}");
    }
    // The totals never fall, whatever happens to queues.
    for gone in ["DEL two", "FLUSHALL", "DEBUG RELOAD"] {
        p.run(gone);
        assert_eq!(info_field(&mut p, "dq_added_total"), 5, "{gone}");
        assert_eq!(info_field(&mut p, "dq_delivered_total"), 2, "{gone}");
    }
    let jobs = [
        "dq_queues",
        "dq_jobs_delayed",
        "dq_jobs_ready",
        "dq_jobs_reserved",
        "dq_jobs_dead",
    ];
    for name in jobs {
        assert_eq!(info_field(&mut p, name), 0, "{name}");
    }
}

/// However a queue comes and goes, the sums over all queues are right.
#[test]
fn info_follows_the_queues() {
    let mut p = Probe::start();
    if info(&mut p).is_empty() {
        return skipped("this module has no INFO dq yet");
    }
    let fill = ["DQ.ADD q a x", "DQ.ADD q b x DELAY 100000", "DQ.POP q"];
    let cases = [
        ("PING", 1, 1),
        ("COPY q q2", 2, 2),
        ("RENAME q2 q3", 2, 2),
        ("COPY q q3 REPLACE", 2, 2),
        ("MOVE q3 4", 2, 2),
        ("SWAPDB 0 4", 2, 2),
        ("SWAPDB 0 4", 2, 2),
        ("DEBUG RELOAD", 2, 2),
        ("DEL q", 1, 1),
        ("FLUSHDB ASYNC", 1, 1),
        ("FLUSHALL ASYNC", 0, 0),
    ];
    fill.iter().for_each(|line| drop(p.run(line)));
    for (line, queues, delayed) in cases {
        let reply = p.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
        let expected = [queues, delayed, delayed];
        let fields = ["dq_queues", "dq_jobs_delayed", "dq_jobs_reserved"];
        // Without keyspace events the timer looks for a queue under its new name.
        crate::support::wait_until(line, crate::support::PATIENCE, || {
            fields.map(|field| info_field(&mut p, field)) == expected
        });
    }
}
