//! All code that calls the server: the only part with unsafe code and global state.
//!
//! Rules that hold throughout: all of it runs on the server's main thread, `datatype::free` excepted; no
//! borrow of a thread-local is held over a call into the server; no panic crosses the border.

pub mod agenda;
pub mod allocator;
pub mod api;
pub mod arrival;
pub mod async_load;
pub mod awaits;
pub mod blocked;
pub mod client_eviction;
pub mod clock;
pub mod config;
pub mod datatype;
mod defrag;
pub mod events;
mod figures;
mod idle;
pub mod imports;
pub mod info;
pub mod key;
pub mod load;
mod notify;
mod order;
mod purged;
pub mod queue_value;
pub mod reclaim;
pub mod renamed;
pub mod replicate;
pub mod serve;
mod sleep;
pub mod test_clock;
pub mod timer;
pub mod trimmed;
pub mod unowned_slots;
pub mod unreadable;
pub mod waits;
pub mod worker;
pub mod zones;
