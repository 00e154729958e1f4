//! The simulation's random operations against real servers whose clock the tests control. The model judges each reply,
//! all that DQ.GET shows, and what is left when a server was killed or a replica took its place.
//!
//! A restarted server has the wall clock, hours behind or ahead of the one before.
//! `DQ_SEED=n` replays one seed, `DQ_SOAK_SECONDS=n` continues with new seeds for so long (`make soak`).

#[allow(dead_code)]
#[path = "../simulation/generate.rs"]
mod generate;
#[allow(dead_code)]
#[path = "../simulation/master.rs"]
mod master;
#[allow(dead_code)]
#[path = "../simulation/model/mod.rs"]
mod model;
#[allow(dead_code)]
#[path = "../simulation/op.rs"]
mod op;
#[allow(dead_code)]
#[path = "../simulation/rng.rs"]
mod rng;
#[allow(dead_code)]
#[path = "../simulation/shapes.rs"]
mod shapes;
#[path = "../support/mod.rs"]
mod support;

mod awaits;
mod canaries;
mod compare;
mod ends;
mod run;
mod wire;

use std::time::{Duration, Instant};

use ends::End;
use model::Fault;
use run::Run;
use support::PATIENCE;

const ENDS: [End; 2] = [End::Killed, End::Promoted];

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    match from_env("DQ_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + count,
    }
}

/// Plays so many lives of a server, each ended in this way.
fn lives(end: End, seed: u64, lives: u64) {
    let mut run = Run::start(seed, Fault::None);
    let all = (0..lives).try_for_each(|_| {
        run.steps(120)?;
        run.end_life(end)
    });
    let all = all
        .and_then(|()| run.steps(120))
        .and_then(|()| run.all_copies());
    if let Err(fault) = all {
        panic!("{end:?} | DQ_SEED={seed} {fault}");
    }
}

#[test]
fn random_operations() {
    for seed in seeds(2) {
        let mut run = Run::start(seed, Fault::None);
        if let Err(fault) = run.steps(1500).and_then(|()| run.all_copies()) {
            panic!("DQ_SEED={seed} {fault}");
        }
    }
}

#[test]
fn servers_that_are_killed() {
    seeds(2).for_each(|seed| lives(End::Killed, seed, 6));
}

#[test]
fn replicas_that_are_promoted() {
    seeds(2).for_each(|seed| lives(End::Promoted, seed, 5));
}

#[test]
fn soak() {
    let Some(seconds) = from_env("DQ_SOAK_SECONDS") else {
        return;
    };
    let time = Duration::from_secs(seconds).max(PATIENCE / 60);
    let (start, first) = (Instant::now(), std::process::id());
    let mut rounds = 0;
    while start.elapsed() < time {
        let seed = u64::from(first) * 1_000_000 + rounds;
        ENDS.iter().for_each(|&end| lives(end, seed, 20));
        rounds += 1;
    }
    println!("soak: {rounds} rounds");
}
