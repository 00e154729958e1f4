//! Everything that asks the servers.

pub mod connections;
pub mod history;
pub mod prometheus;
pub mod reader;
