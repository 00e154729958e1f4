//! An unconfigured queue's key goes with its last job, whatever removed that job.

use crate::probe::{packed, Probe};
use crate::scene::{Lines, Scene};
use crate::support::raw::Raw;

/// Lines that fill the queue, and the one that takes its last job.
const BY_COMMANDS: [(&str, &str); 11] = [
    ("DQ.ADD q a x; DQ.POP q", "DQ.ACK q a"),
    (
        "DQ.ADD q a x; DQ.POP q; DQ.NACK q a FATAL; DQ.ADD q b x",
        "DQ.DEL q a b",
    ),
    ("DQ.ADD q a x", "DQ.DEL q a"),
    ("DQ.ADD q a x", "DQ.DEL q UNRESERVED a"),
    ("DQ.ADD q a x", "DQ.POP q NOACK"),
    ("DQ.ADD q a x; DQ.ADD q b x", "DQ.POP q COUNT 5 NOACK"),
    ("DQ.ADD q a x", "DQ.BPOP q 0 NOACK"),
    ("DQ.ADD q a x DELAY 100000", "DQ.PURGE q DELAYED"),
    ("DQ.ADD q a x", "DQ.PURGE q READY"),
    ("DQ.ADD q a x; DQ.POP q", "DQ.PURGE q RESERVED"),
    (
        "DQ.ADD q a x; DQ.POP q; DQ.NACK q a FATAL",
        "DQ.PURGE q DEAD",
    ),
];

#[test]
fn by_commands() {
    let mut p = Probe::start();
    for (fill, take) in BY_COMMANDS {
        for line in fill.split("; ") {
            p.run(line);
        }
        p.says("EXISTS q", "1");
        p.events();
        p.run(take);
        p.says("EXISTS q", "0");
        assert_eq!(
            p.events().last().map(String::as_str),
            Some("del:q"),
            "{take}"
        );
    }
}

#[test]
fn not_if_configured_or_paused() {
    let mut p = Probe::start();
    for keep in ["DQ.CFGSET q", "DQ.PAUSE q", "DQ.PAUSE q 1"] {
        for (fill, take) in BY_COMMANDS {
            p.run(keep);
            p.says("EXISTS q", "1");
            p.run("DQ.RESUME q");
            for line in fill.split("; ") {
                p.run(line);
            }
            p.run(take);
            p.says(
                "DQ.STATS q",
                "[ 'delayed' 0 'ready' 0 'reserved' 0 'dead' 0 ...",
            );
            p.says("DEL q", "1");
            p.says("EXISTS q", "0");
        }
    }
}

/// No client asks anything but EXISTS, which looks into no queue.
#[test]
fn by_time() {
    // In units of time, 1u the shortest.
    let fills = [
        "DQ.ADD q a x TTL 1u DELAY 100000",
        "DQ.ADD q a x TTL 1u",
        "DQ.ADD q a x TTL 1u TTR 2u; DQ.POP q",
        "DQ.ADD q a x TTL 1u; DQ.POP q; DQ.NACK q a FATAL",
        "DQ.ADD q a x TTL 1u TTR 2u ATTEMPTS 1; DQ.POP q",
        "DQ.ADD q a x TTL 4u TTR 1u ATTEMPTS 1; DQ.POP q",
    ];
    let mut p = Probe::start();
    for fill in fills {
        // A busy machine may take longer over the commands than the job lives; then it is given a longer life.
        let unit_ms = (1..).map(|n| 10 << n).find(|&unit_ms| {
            let until_ms = p.time_ms() + unit_ms;
            for line in fill.split("; ") {
                let ms = |n: u64| format!("{}", n * unit_ms);
                let line = line.replace("1u", &ms(1)).replace("2u", &ms(2));
                p.run(&line.replace("4u", &ms(4)));
            }
            let there = p.int("EXISTS q");
            let in_time = p.time_ms() < until_ms;
            assert!(there == 1 || !in_time, "{fill}");
            p.until("EXISTS q", "0");
            p.until_events_end_with("del:q");
            in_time
        });
        assert!(unit_ms.is_some());
    }
}

/// An empty queue that was kept for two waiting clients.
#[test]
fn with_the_last_client_whose_wait_ends() {
    let mut p = Probe::start();
    let mut line: Vec<Raw> = (0..2).map(|_| p.server.raw()).collect();
    for client in &mut line {
        let both = [packed("DQ.BPOP q 0.3 NOACK"), packed("EXISTS q")].concat();
        client.send(&both);
    }
    p.server.wait_for_blocked(2);
    p.run("DQ.ADD q a x");
    assert_eq!(line[0].reply(), "[ 'q' 'a' 'x' nil$ 1 nil$ ]");
    assert_eq!(line[0].reply(), "1", "it is kept for the other");
    assert_eq!(line[1].reply(), "nil*");
    assert_eq!(line[1].reply(), "0");
}

#[test]
fn past_its_ttl_at_a_nack() {
    let mut p = Probe::start();
    let expires = p.in_time("expires", 10, |p, ms| {
        p.run(&format!("DQ.ADD q a x TTL {ms} TTR 100000"));
        p.run("DQ.POP q");
    });
    p.wait_until_ms(expires);
    p.says("DQ.NACK q a SILENT", "nil$");
    p.says("EXISTS q", "0");
}

#[test]
fn the_replica_hears_of_it() {
    let p = &mut Probe::start();
    let replica = crate::support::Server::start();
    replica.replica_of(&p.server);
    for (fill, take) in BY_COMMANDS {
        for line in fill.split("; ").chain([take]) {
            p.run(line);
        }
        replica.assert_same_data_as(&p.server);
        assert_eq!(replica.digest(), "0".repeat(40), "{take}");
    }
    p.run("DQ.ADD q a x TTL 10");
    p.until("EXISTS q", "0");
    replica.assert_same_data_as(&p.server);
}
