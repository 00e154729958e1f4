//! The pure queue against an oracle written from the command contract alone: random histories from a seed, all small
//! histories, and followers that receive nothing but effects. No server, no clock.
//!
//! `DQ_SEED=n` replays one seed, `DQ_SIM_STEPS=n` sets the operations of each run, `DQ_SIM_SEEDS=n` how many seeds of
//! each shape run, `DQ_SIM_DEPTH=n` the length of the small histories. Without any of these it is a gate: only the
//! first eighth of each history, as `make mutants` finds what it finds within 3,000 operations, small histories of three
//! operations, and a quarter of the damaged inputs. `make test-simulation` runs all of it, with more seeds.

mod all_groups;
mod audit;
mod bounds;
mod canaries;
mod compare;
mod corners;
mod corpus;
mod ends;
mod exhaustive;
mod explain;
// What is below the server is built without tests: this file's are run here.
#[allow(dead_code)]
#[path = "../../src/server/blocked/filling.rs"]
mod filling;
mod follow;
mod generate;
mod hostile;
mod master;
mod model;
mod moved;
mod op;
mod proofs;
mod rng;
mod run;
mod shapes;
mod standstill;

use generate::Shape;
use run::{Run, Sabotage};

pub fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Whether more than the gate's share is asked for.
pub fn is_whole() -> bool {
    from_env("DQ_SIM_SEEDS").is_some()
}

/// Runs a shape with its seeds. A mismatch fails the test, naming the seed that reproduces it.
fn simulate(shape: Shape, seeds: u64, steps: u64) {
    let (one, many) = (from_env("DQ_SEED"), from_env("DQ_SIM_SEEDS"));
    let steps = from_env("DQ_SIM_STEPS").unwrap_or(match one.or(many) {
        Some(_) => steps,
        None => steps / 8,
    });
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None => 1..1 + many.unwrap_or(seeds),
    };
    for seed in seeds {
        if let Err(mismatch) = Run::new(seed, shape, Sabotage::Nothing).steps(steps) {
            panic!("{mismatch}");
        }
    }
}

#[test]
fn few_ids() {
    simulate(shapes::FEW_IDS, 4, 100_000);
}

#[test]
fn two_ids() {
    simulate(shapes::TWO_IDS, 2, 100_000);
}

#[test]
fn settings_and_limits() {
    simulate(shapes::LIMITS, 3, 80_000);
}

#[test]
fn done_jobs() {
    simulate(shapes::DONE, 2, 60_000);
}

#[test]
fn priorities() {
    simulate(shapes::PRIORITIES, 2, 60_000);
    simulate(shapes::ANY_PRIORITY, 2, 30_000);
}

#[test]
fn clock_that_steps_back() {
    simulate(shapes::STEPS_BACK, 1, 80_000);
    simulate(shapes::WILD_CLOCK, 1, 80_000);
}

#[test]
fn at_the_first_and_last_instants() {
    simulate(shapes::FIRST_INSTANTS, 10, 2_000);
    simulate(shapes::LAST_INSTANTS, 40, 1_000);
}

#[test]
fn recurring_jobs() {
    simulate(shapes::RECURRING, 2, 60_000);
    simulate(shapes::RECURRING_WILD, 2, 40_000);
}

#[test]
fn steps_and_signals() {
    simulate(shapes::STEPS, 2, 60_000);
    simulate(shapes::RECURRING_STEPS, 2, 40_000);
    simulate(shapes::STEPS_WILD, 1, 60_000);
}

#[test]
fn groups() {
    simulate(shapes::GROUPS, 2, 60_000);
    simulate(shapes::RECURRING_GROUPS, 2, 40_000);
}

#[test]
fn large_groups_and_many() {
    simulate(shapes::LARGE_GROUPS, 1, 40_000);
    simulate(shapes::MANY_GROUPS, 1, 30_000);
    simulate(shapes::GROUPS_WILD, 1, 40_000);
}

#[test]
fn costs() {
    simulate(shapes::COSTS, 2, 60_000);
    simulate(shapes::COSTS_OF_RECURRING, 1, 40_000);
    simulate(shapes::COSTS_WILD, 1, 40_000);
}

#[test]
fn flows() {
    simulate(shapes::FLOWS, 2, 60_000);
    simulate(shapes::FLOWS_OF_GROUPS, 2, 60_000);
    simulate(shapes::LARGE_FLOWS, 1, 40_000);
    simulate(shapes::FLOWS_WILD, 1, 60_000);
}

#[test]
fn many_jobs() {
    simulate(shapes::MANY_JOBS, 1, 60_000);
    simulate(shapes::BACKLOG, 1, 20_000);
}
