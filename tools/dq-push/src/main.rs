//! Calls the jobs of delay queues by HTTP. See docs/push.md.

mod answer;
mod call;
mod config;
mod connect;
mod hand;
mod link;
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

use std::env;
use std::process::ExitCode;

use call::Caller;
use config::Config;
use dq_watch::place::Wish;
use dq_watch::text::escape;
use options::Options;

fn main() -> ExitCode {
    let variable = |name: &str| env::var(name).ok();
    let done = match options::parse(env::args_os().skip(1), variable) {
        Err(error) => Err(format!("{error}\n(dq-push --help lists the options)")),
        Ok(Wish::Help) => {
            print!("{}", options::HELP);
            Ok(())
        }
        Ok(Wish::Version) => {
            println!("dq-push {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Ok(Wish::Run(options)) => {
            Config::read(&options.config, variable).and_then(|config| match options.check {
                true => check(&config),
                false => run(options, config),
            })
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dq-push: {error}");
            ExitCode::FAILURE
        }
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

fn run(options: Box<Options>, config: Config) -> Result<(), String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let done = runtime.block_on(service::serve(*options, config));
    // Resolving a name may take long, and is not waited for.
    runtime.shutdown_background();
    done
}
