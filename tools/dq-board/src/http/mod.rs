//! Requests of browsers and programs, and who may send them.

mod act;
mod answer;
pub mod api;
mod assets;
pub mod guard;
mod live;
mod next;
mod scale;
pub mod servers;
pub mod sessions;
mod sign;
pub mod site;
mod tasks;
