//! dq from other languages: the examples under examples/, and what docs/clients.md says of their libraries.
//!
//! `make test-clients` prepares `target/clients/LIBRARY/{example,probe}` (prepare.sh) and runs this. A library
//! that is not prepared is skipped, except in CI. `example` is the file a developer copies; it is watched
//! from outside (scenes.rs). `probe` asks the library itself (probe.rs). The canaries run both against a
//! server that is wrong (liar.rs), and must see them fail.

#[allow(unused_imports)] // the other test binaries use the rest of it
#[path = "../support/mod.rs"]
mod support;

mod canaries;
mod liar;
mod library;
mod page;
mod probe;
mod scenes;

/// For each library: its example works, its probe's checks hold, and its probe's checks can fail.
macro_rules! libraries {
    ($($name:ident)+) => {
        pub const LIBRARIES: &[&str] = &[$(stringify!($name)),+];
        $(mod $name {
            #[test]
            #[ignore = "make test-clients"]
            fn example() {
                crate::scenes::all_hold(stringify!($name));
            }

            #[test]
            #[ignore = "make test-clients"]
            fn probe() {
                crate::probe::all_checks_hold(stringify!($name));
            }

            #[test]
            #[ignore = "make test-clients"]
            fn probe_of_a_liar() {
                crate::canaries::every_check_fails(stringify!($name));
            }
        })+
    };
}

libraries! {
    redis_py redis_py_asyncio
    node_redis ioredis
    go_redis
    jedis lettuce redisson
    redis_rs
}
