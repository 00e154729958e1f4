//! Nothing is lost, early, or delivered twice for no reason: servers killed at any moment, cut files,
//! links and masters that go, clients that behave badly; and a checker over what the clients saw.
//!
//! `DQ_SEED=n` runs that seed alone, `DQ_SOAK_SECONDS=n` goes on with new seeds for so long (`make soak`).

// Without the numbers that fuzzers give it.
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
mod troupe;
