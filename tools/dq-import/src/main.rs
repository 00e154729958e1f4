//! dq-import: brings the delayed jobs of other queues into dq.
//!
//! source (read only) -> batches -> one script each on the server with dq, which adds jobs and notes them
//! in a ledger -> a second pass over the source that compares -> only then, if told, deletion.

mod entry;
mod import;
mod options;
mod progress;
mod source;
mod tally;
mod target;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use clap::Parser;

use options::{Options, SourceOptions};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("dq-import: {}", told(&error));
            ExitCode::from(2)
        }
    }
}

/// The error with its causes, without those that it names itself.
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

/// Whether all is in order.
fn run(options: &Options) -> Result<bool> {
    if options.queue.is_empty() {
        bail!("which queue? --queue NAME");
    }
    let to = options.to.as_ref().unwrap_or(&options.from);
    let mut target = target::Target::open(to, &options.queue, &options.source.name())?;
    if options.mode.forget {
        let had = target.forget()?;
        let ledger = target.ledger();
        println!("{ledger}: {}", if had { "removed" } else { "not there" });
        return Ok(true);
    }
    let writes_no_source = matches!(options.source, SourceOptions::Crontab { .. });
    if writes_no_source && options.mode.delete_source {
        bail!("dq-import does not write crontabs: take the lines out by hand (crontab -e)");
    }
    let mut source = source::open(options)?;
    // One that went with its last job may still have lines in the ledger.
    if !source.exists()? && !target.has_ledger()? {
        bail!(
            "{} does not exist, and nothing of it is noted as imported: is the name right?",
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

pub fn connect(url: &str) -> Result<redis::Connection> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let connection = redis::Client::open(url)
        .and_then(|client| client.get_connection_with_timeout(PATIENCE))
        .with_context(|| without_password(url).to_owned())?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    Ok(connection)
}

/// Messages go to logs.
pub fn without_password(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, place)| place)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::{told, without_password};

    #[test]
    fn no_cause_is_told_twice() {
        let refused = || anyhow!("refused").context("connect: refused");
        assert_eq!(told(&refused().context("host")), "host: connect: refused");
        assert_eq!(told(&anyhow!("a").context("b")), "b: a");
    }

    #[test]
    fn messages_hold_no_password() {
        assert_eq!(
            without_password("redis://user:p@ss@host:6379/0"),
            "host:6379/0"
        );
        assert_eq!(without_password("redis://host"), "redis://host");
    }
}
