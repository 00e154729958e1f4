//! What the programs of dq share: reading the servers, what follows from two readings, and the signatures of webhooks.

pub mod fleet;
pub mod model;
pub mod place;
pub mod read;
pub mod servers;
pub mod sign;
pub mod text;
