//! The harnesses of tests/simulation, for libFuzzer. `DQ_FUZZ_CANARY=1` has them get something wrong,
//! which the fuzzer must find.
#![allow(dead_code)] // the test program uses all of it

#[path = "../../tests/simulation/audit.rs"]
mod audit;
#[path = "../../tests/simulation/compare.rs"]
mod compare;
#[path = "../../tests/simulation/ends.rs"]
mod ends;
#[path = "../../tests/simulation/explain.rs"]
mod explain;
#[path = "../../tests/simulation/follow.rs"]
mod follow;
#[path = "../../tests/simulation/generate.rs"]
mod generate;
#[path = "../../tests/simulation/hostile.rs"]
pub mod hostile;
#[path = "../../tests/simulation/master.rs"]
mod master;
#[path = "../../tests/simulation/model/mod.rs"]
mod model;
#[path = "../../tests/simulation/moved.rs"]
mod moved;
#[path = "../../tests/simulation/op.rs"]
mod op;
#[path = "../../tests/simulation/rng.rs"]
mod rng;
#[path = "../../tests/simulation/run.rs"]
pub mod run;
#[path = "../../tests/simulation/shapes.rs"]
mod shapes;

use hostile::Broken;
use run::Sabotage;
use std::sync::LazyLock;

static IS_CANARY: LazyLock<bool> = LazyLock::new(|| std::env::var_os("DQ_FUZZ_CANARY").is_some());

pub fn broken() -> Broken {
    if *IS_CANARY {
        Broken::FollowerDeaf
    } else {
        Broken::Nothing
    }
}

pub fn sabotage() -> Sabotage {
    if *IS_CANARY {
        Sabotage::Model(model::Fault::TouchByJobsTtr)
    } else {
        Sabotage::Nothing
    }
}

/// What libFuzzer takes for a find.
pub fn must_hold(outcome: Result<(), String>) {
    if let Err(what) = outcome {
        panic!("{what}");
    }
}
