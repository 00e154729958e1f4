//! Wrappers over the server's raw module API.
//!
//! What must hold everywhere: pointers that the server passes live as long as the callback they
//! came with, and all callbacks run on the server's main thread. [`Ctx`] and what is made from it
//! are neither `Send` nor kept beyond the callback.

pub mod acl;
mod cluster;
pub mod command_info;
mod ctx;
mod entry;
pub mod function;
pub mod timerfd;

pub use cluster::{imports, trims, valkey};
pub use ctx::{caught, guarded, log, log_bug, log_panics, shown, Ctx, Flags, WRONG_TYPE};
pub(crate) use entry::entry;
pub use entry::{enter, Elements, Entry, Refusal};
pub(crate) use function::api;
pub use function::{bytes_of, Args, KeyName, OwnString, RawString, ERR, OK};
