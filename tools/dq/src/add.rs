//! `dq add`: one job, from a terminal or a script.

use std::time::Duration;

use dq_connect::arguments::{password_of_environment, ServerArgs};
use dq_connect::link::{told, PATIENCE};
use dq_connect::output::print;
use humantime::{parse_duration, parse_rfc3339_weak};

#[derive(clap::Args)]
pub struct Args {
    queue: String,
    payload: String,
    /// Options of DQ.ADD as they are there, such as PRIORITY 5 GROUP acme
    #[arg(value_name = "OPTION", allow_negative_numbers = true)]
    options: Vec<String>,
    /// When it is due: 10s, 5m, 1h 30m, 2days from now
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    delay: Option<Duration>,
    /// When it is due: 2027-01-31T09:00:00Z, in UTC
    #[arg(long, value_name = "INSTANT", conflicts_with = "delay", value_parser = instant)]
    at: Option<u128>,
    /// The job's id; by default the server makes one
    #[arg(long)]
    id: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Whether it was added.
pub fn run(args: &Args) -> Result<bool, String> {
    let target = args.server.target(password_of_environment())?;
    let mut connection = target.open(target.db(), PATIENCE)?;
    let mut add = redis::cmd("DQ.ADD");
    let made = args.id.as_deref().unwrap_or("*");
    add.arg(&args.queue).arg(made).arg(&args.payload);
    if let Some(delay) = args.delay {
        add.arg("DELAY").arg(delay.as_millis().to_string());
    }
    if let Some(at) = args.at {
        add.arg("AT").arg(at.to_string());
    }
    let id: Option<String> = add
        .arg(&args.options)
        .query(&mut connection)
        .map_err(|error| told(&error, PATIENCE))?;
    match id {
        Some(id) => print(&format!("{id}\n")).map(|()| true),
        None => Ok(false),
    }
}

fn instant(text: &str) -> Result<u128, String> {
    let instant = parse_rfc3339_weak(text).map_err(|error| error.to_string())?;
    let since = instant.duration_since(std::time::UNIX_EPOCH);
    let since = since.map_err(|_| "before 1970".to_owned())?;
    Ok(since.as_millis())
}
