//! Real servers for the tests: start, connect, kill, restart, replicate, compare.
//!
//! ```text
//! let server = Server::start();                         // with the module, on a free port
//! let mut client = server.connect();
//! let id = cmd!(client, "DQ.ADD", "q", "*", b"\0\xff"); // panics on an error reply
//! let error = try_cmd!(client, "DQ.ADD", "q").unwrap_err();
//! ```
//!
//! Nothing here sleeps for a fixed time: every wait names what it waits for, and polls (`wait_until`).
//!
//! | environment | meaning | default |
//! |---|---|---|
//! | `DQ_SERVER` | the server's binary | `redis-server`, then `valkey-server` in PATH, then `target/servers/system` |
//! | `DQ_MODULE` | the module | `target/release/libdq.so` |
//! | `DQ_SETTINGS` | settings of all servers with the module: `io-threads`, `aof`, `dual-channel`, `swapdb` | none |
//! | `DQ_KEEP` | keep the servers' folders (those of failed tests stay anyway) | unset |
//! | `DQ_TRACES` | a folder for histories of queues, which docs/model follows | unset |
//! | `DQ_PROGRAM` | the program dq, which judges what servers write | unset: nothing is judged |
#![allow(dead_code)] // every test binary uses its own part of this

pub mod audit;
mod builder;
pub mod client;
pub mod cluster;
pub mod locate;
pub mod place;
pub mod raw;
pub mod server;
pub mod setting;
pub mod socket;

use std::fmt::Display;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use builder::Builder;
pub use client::Client;
pub use locate::{root, Version};
pub use raw::{Raw, Reply};
pub use server::Server;
pub use setting::Setting;
pub use socket::Socket;

/// The longest wait for something that must happen: long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Polls until `condition` holds; panics with `what` when `deadline` has passed.
#[track_caller]
pub fn wait_until(what: impl Display, deadline: Duration, mut condition: impl FnMut() -> bool) {
    wait_for(what, deadline, || condition().then_some(()));
}

/// Polls until `attempt` gives something; panics with `what` when `deadline` has passed.
#[track_caller]
pub fn wait_for<T>(
    what: impl Display,
    deadline: Duration,
    attempt: impl FnMut() -> Option<T>,
) -> T {
    match poll(deadline, attempt) {
        Some(found) => found,
        None => panic!("waited {deadline:?} in vain: {what}"),
    }
}

/// Polls until `attempt` returns something, or `deadline` has passed. The only sleep of all tests.
pub fn poll<T>(deadline: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(found) = attempt() {
            return Some(found);
        }
        if start.elapsed() >= deadline {
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Held while a process is started or ended. The thread that starts a process blocks all signals meanwhile. A SIGCHLD
/// that arrives then is kept instead of ignored, and interrupts reads of other threads (EINTR).
pub fn one_process_at_a_time() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports that the running test skips something that this server lacks. Shown even without `--nocapture`.
pub fn skipped(reason: impl Display) {
    let name = thread::current().name().unwrap_or("?").to_owned();
    // Written to the stream itself: the test harness captures only the print macros.
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {reason}");
}
