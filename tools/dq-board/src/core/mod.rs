//! What follows from data and requests alone: no connections, no files, no clock.

pub mod access;
pub mod alerts;
pub mod attention;
pub mod course;
pub mod failure;
pub mod filter;
pub mod flow;
pub mod history;
pub mod packed;
pub mod question;
pub mod reasons;
pub mod removal;
pub mod rules;
pub mod scale;
pub mod shifts;
pub mod wire;
