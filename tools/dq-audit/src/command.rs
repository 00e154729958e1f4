//! Judges the files that the arguments name. See docs/audit.md.

use std::path::PathBuf;

use dq_connect::output::print;

use crate::audit::Audit;
use crate::trace::Trace;
use crate::{parts, report};

#[derive(clap::Args, Clone)]
pub struct Args {
    /// A manifest (appendonly.aof.manifest), the folder that has one, or a single AOF
    file: PathBuf,
    /// How many faults to print; all are counted
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Check RATE and GROUPRATE too; only if the server was not promoted meanwhile
    #[arg(long)]
    rates: bool,
    /// Print the history of that queue instead, for docs/model/Trace.tla
    #[arg(long, value_name = "QUEUE", allow_hyphen_values = true)]
    trace: Option<std::ffi::OsString>,
    /// The database of that queue
    #[arg(short = 'n', value_name = "DB", default_value_t = 0)]
    db: u32,
    /// How many steps of its history
    #[arg(long, value_name = "N", default_value_t = 200)]
    steps: usize,
}

/// Whether there are no faults.
pub fn run(args: &Args) -> Result<bool, String> {
    let parts = parts::of(&args.file)?;
    let mut audit = Audit::default();
    audit.judge.judges_rates = args.rates;
    let trace = args.trace.as_ref().map(|queue| queue.as_encoded_bytes());
    audit.keyspace.trace = trace.map(|queue| Trace::new(args.db, queue, args.steps));
    let read = audit.read(&parts);
    if let Some(trace) = &audit.keyspace.trace {
        read?;
        if trace.is_empty() {
            return Err("no history of that queue from its beginning".into());
        }
        return print(&trace.written()).map(|()| true);
    }
    print(&report::text(&audit, &parts, args.limit, read.is_ok()))?;
    read?;
    Ok(audit.judge.total() == 0)
}
