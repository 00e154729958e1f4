//! `make bench`: the figures that the project has set itself, against what people use today.
//!
//! ```text
//! make bench                     all of it, and the opponents (benches/opponents)
//! make bench-core                all of it but what is large
//! make bench-scale               ten million jobs, a million queues, a million groups
//! make bench-quick               less of it, in under two minutes
//! make bench ONLY="wake idle"    some of it
//! make bench-count               instructions instead of times, held against benches/counts.txt
//! make release-pgo               a module built for its traffic (train.rs), target/pgo/release/libdq.so
//! ```
//!
//! It starts its own servers (`DQ_SERVER`, or the system's) with the module (`DQ_MODULE`, or
//! target/release/libdq.so), runs what is compared in turn, and prints a table; the same as JSON in
//! target/bench. Linux only: it reads other processes' CPU clocks.

#[cfg(target_os = "linux")]
mod suite;

#[cfg(target_os = "linux")]
#[allow(unused_imports)] // the tests use the rest of it
#[path = "../tests/support/mod.rs"]
mod support;

fn main() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    return suite::run();
    #[cfg(not(target_os = "linux"))]
    panic!("the benchmarks need Linux");
}
