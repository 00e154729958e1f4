//! What the programs of dq share: reading the servers, rates and lateness between two readings, and the signatures of
//! webhooks.

pub mod audit;
pub mod fleet;
pub mod model;
pub mod read;
pub mod servers;
pub mod sign;
pub mod text;
