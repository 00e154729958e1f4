//! Jobs after others, over the lives of a server that is killed, with `appendfsync always`. None is delivered before
//! all that it is after has ended, its results are the answered ones, and none is lost or blocked for ever.

mod judge;
mod record;
mod wide;
mod worker;

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::clock::Clock;
use crate::cmd;
use crate::report::seeds;
use crate::rng::Rng;
use crate::support::audit::assert_faultless;
use crate::support::poll;
use crate::workload::builder;

use judge::{judge, CANARIES};
use record::Record;
use worker::{blocked, drain, Worker};

pub const QUEUES: [&str; 2] = ["kept", "plain"];
const WORKERS: u64 = 3;

/// Plays at least `lives` lives, and more on a machine that is too busy for much to happen in each.
fn play(seed: u64, lives: u64) -> Record {
    let mut rng = Rng::new(seed ^ 0x666c_6f77);
    let mut server = builder().aof().config("appendfsync", "always").start();
    cmd!(server.connect(), "DQ.CFGSET", "kept", "DONETTL", 600_000);
    let (clock, known) = (Clock::new(), Mutex::new(Vec::new()));
    let mut record = Record::default();
    for life in 0.. {
        if life >= lives && (record.is_rich() || life > 10 * lives) {
            break;
        }
        let workers: Vec<Worker> = (0..WORKERS)
            .map(|number| Worker {
                client: server.connect(),
                rng: Rng::new(seed << 16 ^ life << 8 ^ number),
                clock,
                known: &known,
                name: format!("{life}.{number}"),
                serials: 0,
                events: Vec::new(),
            })
            .collect();
        let events = thread::scope(|scope| {
            let workers = workers.into_iter().map(|it| scope.spawn(|| it.work()));
            let workers: Vec<_> = workers.collect();
            poll(Duration::from_millis(rng.within(40, 200)), || None::<()>);
            server.kill();
            let events = workers.into_iter().map(|it| it.join().expect("a worker"));
            events.flatten().collect::<Vec<_>>()
        });
        record.events.extend(events);
        assert_faultless(&server.folder().join("appendonlydir"));
        server.restart();
        record.blocked.extend(blocked(&mut server.connect()));
    }
    drain(&server, clock, &mut record);
    server.assert_no_crash();
    record
}

#[test]
fn flows_survive_all_lives() {
    for seed in seeds(1) {
        let record = play(seed, 8);
        let found = judge(&record);
        let again = format!("DQ_SEED={seed} cargo test --no-default-features --test crash flows::");
        assert!(
            found.is_empty(),
            "{:#?}\nagain: {again}",
            &found[..found.len().min(5)]
        );
        println!("{record}");
        assert!(record.is_rich(), "{record}");
        for (fault, falsify) in CANARIES {
            let mut falsified = record.clone();
            assert!(falsify(&mut falsified), "nothing to try {fault:?} on");
            let is_seen = judge(&falsified).iter().any(|found| found.0 == fault);
            assert!(is_seen, "{fault:?} is not noticed");
        }
    }
}
