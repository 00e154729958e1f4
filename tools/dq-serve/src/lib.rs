//! What the commands of dq that answer by HTTP share: connections, wrong passwords, the audit log.

pub mod answer;
pub mod audit;
pub mod connections;
pub mod locked;
pub mod sites;
pub mod throttle;
