//! A terminal monitor for dq. See README.md.

mod app;
mod once;
mod options;
mod screen;
mod terminal;

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use dq_watch::place::Wish;

fn main() -> ExitCode {
    let variable = |name: &str| env::var(name).ok();
    let done = match options::parse(env::args_os().skip(1), variable) {
        Err(error) => Err(format!("{error}\n(dq-top --help lists the options)")),
        Ok(Wish::Help) => print(options::HELP),
        Ok(Wish::Version) => print(concat!("dq-top ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Wish::Run(options)) if options.once => {
            once::table(&options).and_then(|table| print(&table))
        }
        Ok(Wish::Run(_)) if !io::stdout().is_terminal() => {
            Err("the output is not a terminal; --once prints a table".to_owned())
        }
        Ok(Wish::Run(options)) => terminal::run(*options).map_err(|error| error.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dq-top: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A reader that has gone (`| head`) is no error.
fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}
