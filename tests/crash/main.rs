//! No job is lost, early, or delivered twice without a reason: servers killed at any moment, cut files, failing links
//! and masters, misbehaving clients; and a checker of what the clients saw.
//!
//! `DQ_SEED=n` runs only that seed, `DQ_SOAK_SECONDS=n` continues with new seeds for so long (`make soak`).

// Its part for fuzzers is not used.
#[allow(dead_code)]
#[path = "../simulation/rng.rs"]
mod rng;
#[path = "../support/mod.rs"]
mod support;

mod actor;
mod awaits;
mod clock;
mod cut;
mod cycles;
mod failover;
mod flows;
mod handlers;
mod history;
mod link;
mod many;
mod misbehaving;
mod mutants;
mod mutants_of_bounds;
mod mutants_of_groups;
mod recurring;
mod report;
mod results;
mod soak;
mod steps;
mod workload;
