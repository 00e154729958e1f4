//! `dq explain`: why a queue delivers nothing, or not one of its jobs.

use dq_connect::arguments::{password_of_environment, ServerArgs};
use dq_connect::output::print;
use dq_watch::read::reply;
use dq_watch::read::why::{self, Of};
use dq_watch::text::escape;

#[derive(clap::Args)]
pub struct Args {
    queue: String,
    /// Why this job is not delivered
    id: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Whether there is such a queue, or such a job.
pub fn run(args: &Args) -> Result<bool, String> {
    let target = args.server.target(password_of_environment())?;
    let mut link = target.connect()?;
    let of = match &args.id {
        Some(id) => Of::Job(id.as_bytes()),
        None => Of::QueueAndGroups,
    };
    let mut commands = why::commands(args.queue.as_bytes(), of);
    commands.push(redis::cmd("DQ.CFGGET").arg(&args.queue).to_owned());
    commands.push(redis::cmd("TIME"));
    let commands = commands.into_iter().map(|it| (target.db(), it)).collect();
    let mut values = link.look(commands)?;
    let now = values
        .pop()
        .and_then(|time| now_ms(&time))
        .ok_or("no TIME")?;
    let settings = values.pop().and_then(|value| reply::settings(&value));
    match why::read(&values, of, settings.as_ref())
        .map_err(|error| escape::line(error.as_bytes()))?
    {
        Some(why) => print(&format!("{}\n", why.line(now))).map(|()| true),
        None => Ok(false),
    }
}

/// The server's clock.
fn now_ms(time: &redis::Value) -> Option<i64> {
    let [seconds, micros] = reply::array(time)? else {
        return None;
    };
    Some(reply::int(seconds)? * 1000 + reply::int(micros)? / 1000)
}
