//! What the servers are asked.

pub mod history;
pub mod look;
pub mod prometheus;
pub mod reader;
