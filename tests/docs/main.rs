//! docs/commands.md says what is true: its examples are run, and what it says about each command is
//! compared with what a server with the module says. So are the README's minute with redis-cli.
//!
//! `DQ_DOCS=write cargo test --test docs` puts the replies that came into the examples.

#[allow(unused_imports)] // the other test binaries use the rest of it
#[path = "../support/mod.rs"]
mod support;

mod examples;
mod pages;
mod readme;
mod told;

use std::path::PathBuf;

/// The command reference.
fn path() -> PathBuf {
    support::root().join("docs/commands.md")
}

fn text() -> String {
    std::fs::read_to_string(path()).expect("docs/commands.md")
}
