//! What the servers are asked.

pub mod look;
pub mod reader;
