//! A terminal monitor for dq. See README.md.

mod app;
mod once;
mod options;
mod screen;
mod terminal;

use std::io::{self, IsTerminal};

pub use options::Args;

pub fn run(args: &Args) -> Result<(), String> {
    let options = args.options()?;
    if options.once {
        return once::table(&options).and_then(|table| dq_connect::output::print(&table));
    }
    if !io::stdout().is_terminal() {
        return Err("the output is not a terminal; --once prints a table".to_owned());
    }
    terminal::run(options).map_err(|error| error.to_string())
}
