//! Figures for docs/cluster.md, not tests: `cargo test --test cluster -- --ignored --nocapture`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::resharding::{moves, Move};
use crate::scene::{let_pass, Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::{Raw, Server};

const BATCH: usize = 100;

/// The longest that a PING takes until `done`.
fn longest_ping(node: &Server, done: &AtomicBool) -> Duration {
    let mut client = node.raw();
    let mut longest = Duration::ZERO;
    while !done.load(Ordering::Relaxed) {
        let start = Instant::now();
        // Patience of its own: this is about how long it takes.
        client.begin("PING");
        while client.try_read(Duration::from_secs(60)).is_none() {}
        longest = longest.max(start.elapsed());
        let_pass(Duration::from_millis(1));
    }
    longest
}

fn move_a_big_queue(how: &str, move_slot: Move, jobs: usize) {
    let cluster = Cluster::start(2);
    let from = cluster.node_of("{x}q");
    let (to, slot) = (1 - from, cluster.slot_of("{x}q"));
    let (source, target) = (&cluster.nodes[from], &cluster.nodes[to]);
    let mut client = source.raw();
    let payload = "x".repeat(64);
    for first in (0..jobs).step_by(10_000) {
        for id in first..first + 10_000 {
            client.begin(&format!(
                "DQ.ADD {{x}}q job-{id:012} {payload} DELAY 3600000"
            ));
        }
        (0..10_000).for_each(|_| drop(client.read()));
    }
    let done = AtomicBool::new(false);
    let cpu = [source.cpu(), target.cpu()];
    thread::scope(|scope| {
        let pings = [source, target].map(|node| scope.spawn(|| longest_ping(node, &done)));
        let start = Instant::now();
        move_slot(&cluster, slot, from, to);
        let took = start.elapsed();
        done.store(true, Ordering::Relaxed);
        let [of_source, of_target] = pings.map(|ping| ping.join().expect("no panic"));
        println!(
            "{jobs} jobs, {how}: {took:.2?}; longest PING on the source {of_source:.0?}, on the target \
             {of_target:.0?}; CPU {:.2} s and {:.2} s",
            source.cpu() - cpu[0],
            target.cpu() - cpu[1],
        );
    });
    assert_eq!(target.raw().int("DQ.LEN {x}q"), jobs as i64);
}

#[test]
#[ignore = "a measurement"]
fn big_queues_on_the_move() {
    for jobs in [10_000, 100_000, 1_000_000] {
        let hows = ["by MIGRATE", "by CLUSTER MIGRATESLOTS"];
        for (how, move_slot) in hows.into_iter().zip(moves(&Cluster::start(2))) {
            move_a_big_queue(how, move_slot, jobs);
        }
    }
}

/// Two shards on each master: `orders:{n}`, with n so that they are spread evenly.
fn shards(cluster: &Cluster) -> Vec<(usize, String)> {
    let mut shards: Vec<(usize, String)> = Vec::new();
    for number in 0.. {
        let key = format!("orders:{{{number}}}");
        let node = cluster.node_of(&key);
        if shards.iter().filter(|(of, _)| *of == node).count() < 2 {
            shards.push((node, key));
        }
        if shards.len() == 2 * cluster.nodes.len() {
            break;
        }
    }
    shards
}

/// ADD, POP and ACK of so many jobs, in batches.
fn in_batches(client: &mut Raw, key: &str, batches: usize) {
    for batch in 0..batches {
        for number in 0..BATCH {
            client.begin(&format!("DQ.ADD {key} {batch}-{number} payload"));
        }
        (0..BATCH).for_each(|_| drop(client.read()));
        client.run(&format!("DQ.POP {key} COUNT {BATCH}"));
        let ids: Vec<String> = (0..BATCH)
            .map(|number| format!("{batch}-{number}"))
            .collect();
        let acked = client.int(&format!("DQ.ACK {key} {}", ids.join(" ")));
        assert_eq!(acked, BATCH as i64);
    }
}

/// One job at a time, for a client that waits.
fn one_by_one(client: &mut Raw, waiting: &mut Raw, key: &str, jobs: usize) {
    for number in 0..jobs {
        waiting.begin(&format!("DQ.BPOP {key} 0"));
        client.says(
            &format!("DQ.ADD {key} {number} payload"),
            &format!("'{number}'"),
        );
        waiting.delivery();
        client.says(&format!("DQ.ACK {key} {number}"), "1");
    }
}

/// Microseconds of server CPU per job, over all masters.
fn cost_per_job(cluster: &Cluster, jobs: usize, work: impl Fn(&Server, &str) + Sync) -> f64 {
    let cpu = || cluster.nodes.iter().map(Scene::cpu).sum::<f64>();
    let shards = shards(cluster);
    let before = cpu();
    thread::scope(|scope| {
        for (node, key) in &shards {
            scope.spawn(|| work(&cluster.nodes[*node], key));
        }
    });
    1e6 * (cpu() - before) / (jobs * shards.len()) as f64
}

#[test]
#[ignore = "a measurement"]
fn server_cpu_per_job_by_masters() {
    const BATCHES: usize = 300;
    const SINGLE: usize = 3000;
    for masters in 1..=3 {
        let cluster = Cluster::start(masters);
        let batched = cost_per_job(&cluster, BATCHES * BATCH, |node, key| {
            in_batches(&mut node.raw(), key, BATCHES);
        });
        let single = cost_per_job(&cluster, SINGLE, |node, key| {
            one_by_one(&mut node.raw(), &mut node.raw(), key, SINGLE);
        });
        println!(
            "{masters} masters: {batched:.2} us of server CPU per job in batches of {BATCH}, {single:.0} \
             us one by one for waiting clients"
        );
    }
}
