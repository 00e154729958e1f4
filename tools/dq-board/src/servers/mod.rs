//! Everything that asks the servers.

pub mod history;
pub mod look;
pub mod prometheus;
pub mod reader;
