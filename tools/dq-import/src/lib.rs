//! Brings the delayed jobs of other queues into dq.
//!
//! source (read only) -> batches -> one script each on the server with dq, which adds jobs and records them in a ledger
//! -> a second pass over the source that compares -> deletion, only if requested.

mod entry;
mod import;
mod options;
mod output;
mod progress;
mod source;
mod tally;
mod target;
mod whole;

use anyhow::{bail, Result};

pub use options::Options as Args;
use options::SourceOptions;

/// Whether all is in order.
pub fn run(options: &Args) -> Result<bool, String> {
    imported(options).map_err(|error| told(&error))
}

/// The error with its causes, without those that its text already contains.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

fn imported(options: &Args) -> Result<bool> {
    if options.queue.is_empty() {
        bail!("which queue? --queue NAME");
    }
    if options.source.due() && options.jobs.due_after.is_some() {
        bail!("--due and --due-after cannot be combined: --due-after leaves those jobs to the old workers");
    }
    let (place, server) = options.to()?;
    let mut target = target::Target::open(server, &place, &options.queue, &options.source.name())?;
    if options.mode.forget {
        let had = target.forget()?;
        let ledger = target.ledger();
        let became = if had { "removed" } else { "not there" };
        output::line(format_args!("{ledger}: {became}"))?;
        return Ok(true);
    }
    if let SourceOptions::Dq { key, by_commands } = &options.source {
        // What was begun job by job goes on so.
        if !by_commands && !target.has_ledger()? {
            match whole::run(options, key)? {
                whole::Outcome::Settled(in_order) => return Ok(in_order),
                whole::Outcome::ByCommands(why) => output::line(why)?,
            }
        }
        output::line(whole::NOT_BROUGHT)?;
    }
    let writes_no_source = matches!(options.source, SourceOptions::Crontab { .. });
    if writes_no_source && options.mode.delete_source {
        bail!("dq import does not change crontabs: remove the lines by hand (crontab -e)");
    }
    let mut source = source::open(options)?;
    // A source that disappeared with its last job may still have lines in the ledger.
    if !source.exists()? && !target.has_ledger()? {
        bail!(
            "{} does not exist, and the ledger has no jobs imported from it: check the name",
            source.title()
        );
    }
    let mut import = import::Import::new(options, source, target);
    if options.mode.dry_run {
        import.look()?;
        return Ok(true);
    }
    if !options.mode.check {
        import.copy()?;
    }
    let in_order = import.check()?;
    if in_order && options.mode.delete_source {
        return import.delete();
    }
    Ok(in_order)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::told;

    #[test]
    fn no_cause_is_told_twice() {
        let refused = || anyhow!("refused").context("connect: refused");
        assert_eq!(told(&refused().context("host")), "host: connect: refused");
        assert_eq!(told(&anyhow!("a").context("b")), "b: a");
    }
}
