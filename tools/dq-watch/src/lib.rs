//! What the monitors of dq share, dq-top in a terminal and dq-board in a browser: reading the servers, and
//! what follows from two readings.

pub mod fleet;
pub mod model;
pub mod place;
pub mod read;
pub mod servers;
pub mod text;
