//! `dq explain`: why a queue delivers nothing, or not one of its jobs.

use dq_connect::arguments::{password_of_environment, ServerArgs};
use dq_connect::output::print;
use dq_connect::scope::Scope;
use dq_watch::model::QueueKey;
use dq_watch::read::reach::Reach;
use dq_watch::read::why::Of;

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
    let key = QueueKey::new(target.db(), args.queue.as_bytes());
    let of = match &args.id {
        Some(id) => Of::Job(id.as_bytes()),
        None => Of::Queue,
    };
    match Reach::new(target, Scope::default()).explain(&key, of)? {
        (Some(why), now) => print(&format!("{}\n", why.line(now))).map(|()| true),
        (None, _) => Ok(false),
    }
}
