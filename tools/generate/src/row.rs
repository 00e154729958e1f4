//! The table itself.

#[path = "../../../src/queue/attr/row.rs"]
mod table;

pub use table::*;
