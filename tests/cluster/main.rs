//! Queues on clusters and under Sentinel: slots that move and masters that die, under traffic.
//!
//! `cargo test --test cluster -- --ignored --nocapture` measures how long a big queue's move holds up
//! both nodes.

#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code)] // the integration tests' own; only a part is needed here
#[path = "../integration/probe.rs"]
mod probe;
#[allow(dead_code)]
#[path = "../integration/scene.rs"]
mod scene;

mod history;
mod router;
mod traffic;

mod atomic;
mod awaits;
mod durability;
mod failover;
mod measure;
mod newer;
mod resharding;
mod returned;
mod routing;
mod sentinel;
mod sharded;
mod trimmed;
mod unowned;
