//! What the commands of dq share about a server: its arguments, its part of a configuration file, connecting and
//! reconnecting.

pub mod arguments;
pub mod config;
pub mod link;
pub mod output;
pub mod reply;
pub mod scope;
pub mod secret;
pub mod signals;
pub mod source;
pub mod target;
