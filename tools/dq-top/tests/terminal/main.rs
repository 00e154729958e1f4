//! dq top and dq cli in a terminal, against real servers. `DQ_SERVER` and `DQ_MODULE` as in the module's own tests.

mod acts;
mod cli;
mod cluster;
mod ended;
mod looking;
mod monitor;
mod once;
mod trouble;

/// Servers and clients of the module's tests, of which these tests use a part.
#[allow(unused_imports)]
#[path = "../../../../tests/support/mod.rs"]
mod support;

pub const ENTER: &str = "\r";
pub const ESCAPE: &str = "\x1b";
pub const DOWN: &str = "\x1b[B";
pub const PAGE_DOWN: &str = "\x1b[6~";
pub const PAGE_UP: &str = "\x1b[5~";
pub const RIGHT: &str = "\x1b[C";
