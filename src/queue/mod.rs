//! The queue: what can happen to a job, and nothing of the server it happens in.
//!
//! No clock, no randomness, no I/O: `now` is an argument of everything that depends on time. What a
//! command asks is *decided* from (state, now, arguments) into [effects](effect::Effect), and effects alone change
//! the state (`state/apply.rs`). A replica, a replayed AOF and a loaded snapshot apply the same effects,
//! so that a queue is the fold of its effects everywhere.
//!
//! The path of a job: [`add`] → `state/schedule.rs` → ([`expire`], called by the server's timer) →
//! [`deliver`] → [`claim`] → gone.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(missing_docs))]

pub mod add;
pub mod add_many;
pub mod after;
pub mod attr;
mod blocked;
pub mod budget;
mod bytes;
pub mod claim;
pub mod clock;
pub mod codec;
pub mod configure;
pub mod deliver;
mod done;
pub mod effect;
pub mod effects;
mod end;
pub mod error;
pub mod event;
pub mod expire;
pub mod explain;
pub mod glob;
pub mod history;
pub mod instant;
pub mod job;
pub mod many;
pub mod note;
pub mod outcome;
pub mod overdue;
pub mod purge;
pub mod recurring;
pub mod reschedule;
pub mod settings;
pub mod state;
pub mod stats;
pub mod steps;
mod tagged;
pub mod view;

pub use state::{HashSeed, Queue};
