//! Everything that knows the host: the only part with unsafe code and global state.
//!
//! Rules that hold throughout: all of it runs on the server's main thread, `value::free` excepted; no
//! borrow of a thread-local is held over a call into the server; no panic crosses the border.

pub mod acl;
pub mod arrival;
pub mod async_load;
pub mod attention;
pub mod clock;
pub mod command_info;
pub mod config;
pub mod deadlines;
mod defrag;
pub mod events;
pub mod ffi;
pub mod foreign;
pub mod graveyard;
pub mod info;
pub mod keyspace;
mod least;
mod ledger;
pub mod listeners;
pub mod propagate;
pub mod renamed;
mod sums;
pub mod test_clock;
pub mod timer;
pub mod trimmed;
pub mod value;
pub mod waiters;
mod wakeup;
