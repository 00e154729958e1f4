//! Judges what an AOF says about delay queues.

pub mod audit;
mod command;
pub mod judge;
pub mod keyspace;
mod lzf;
mod overwrite;
pub mod parts;
mod queue;
mod rdb;
pub mod report;
mod resp;
pub mod rule;
pub mod trace;

pub use command::{run, Args};
