//! A server with the module: `dq dev` and `dq server`. See docs/server.md.

mod child;
mod dev;
mod find;
mod folder;
mod packed;
mod production;
mod settings;

pub use dev::{run as dev, Args as DevArgs};
pub use production::{run as server, Args as ServerArgs};
