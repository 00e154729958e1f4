//! What DQ.STATS and INFO dq count.

use crate::probe::{plain, Probe};
use crate::support::Reply;

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
