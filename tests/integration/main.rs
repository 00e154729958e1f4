//! Tests against real servers, each started by the test that needs it.

#[path = "../support/mod.rs"]
mod support;

mod launcher;
