//! Judges what an AOF says about delay queues. See docs/audit.md.

mod options;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use dq_audit::audit::Audit;
use dq_audit::trace::Trace;
use dq_audit::{parts, report};
use options::{Options, Wish};

fn main() -> ExitCode {
    let done = match options::parse(env::args_os().skip(1)) {
        Err(error) => Err(format!("{error}\n(dq-audit --help lists the options)")),
        Ok(Wish::Help) => print(options::HELP).map(|()| 0),
        Ok(Wish::Version) => {
            print(concat!("dq-audit ", env!("CARGO_PKG_VERSION"), "\n")).map(|()| 0)
        }
        Ok(Wish::Run(options)) => run(&options),
    };
    match done {
        Ok(status) => status.into(),
        Err(error) => {
            eprintln!("dq-audit: {error}");
            2.into()
        }
    }
}

fn run(options: &Options) -> Result<u8, String> {
    let parts = parts::of(&options.path)?;
    let mut audit = Audit::default();
    audit.judge.judges_rates = options.rates;
    let trace = options.trace.as_deref();
    audit.keyspace.trace = trace.map(|queue| Trace::new(options.db, queue, options.steps));
    let read = audit.read(&parts);
    if let Some(trace) = &audit.keyspace.trace {
        read?;
        if trace.is_empty() {
            return Err("no history of that queue from its beginning".into());
        }
        return print(&trace.written()).map(|()| 0);
    }
    print(&report::text(&audit, &parts, options.limit, read.is_ok()))?;
    read?;
    Ok(u8::from(audit.judge.total() > 0))
}

/// A reader that has gone (`| head`) is no error.
fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}
