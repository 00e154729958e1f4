//! Calls the jobs of delay queues by HTTP. See docs/push.md.

mod answer;
mod call;
mod config;
mod connect;
mod hand;
mod metrics;
mod names;
mod networks;
mod options;
mod pace;
mod places;
mod proxy;
mod queue;
mod serve;
mod service;
mod stop;

use call::Caller;
use config::Config;
use dq_watch::text::escape;
pub use options::Args;

pub fn run(args: &Args) -> Result<(), String> {
    let config = Config::read(&args.config)?;
    match args.check {
        true => check(&config),
        false => serve(args, config),
    }
}

fn check(config: &Config) -> Result<(), String> {
    Caller::new(config)?;
    for queue in &config.queues {
        println!(
            "{}: {} at a time to {}",
            escape::name(queue.name.as_bytes()),
            queue.concurrency,
            queue.receiver.url
        );
    }
    Ok(())
}

fn serve(args: &Args, config: Config) -> Result<(), String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let done = runtime.block_on(service::serve(args, config));
    // Resolving a name may take long, and is not waited for.
    runtime.shutdown_background();
    done
}
