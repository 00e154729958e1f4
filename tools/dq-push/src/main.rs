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
mod places;
mod queue;
mod serve;
mod sign;
mod stop;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{signal, Signal, SignalKind};
use tokio::task::JoinSet;

use call::Caller;
use config::Config;
use dq_watch::place::Wish;
use dq_watch::text::escape;
use options::Options;
use places::Host;
use queue::Queue;
use stop::Stop;

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
                false => run(*options, config),
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
    Caller::new(&config.allowed, config.ca_file.as_deref())?;
    for queue in &config.queues {
        println!(
            "{}: {} at a time to {}",
            escape::name(queue.name.as_bytes()),
            queue.concurrency,
            queue.url
        );
    }
    Ok(())
}

fn run(options: Options, config: Config) -> Result<(), String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let done = runtime.block_on(serve_all(options, config));
    // A lookup of a name may go on for long.
    runtime.shutdown_background();
    done
}

/// The first signal stops; the second one does not wait for calls.
async fn obey(mut terminate: Signal, mut interrupt: Signal, stop: Arc<Stop>) {
    let mut stops = 0;
    loop {
        tokio::select! {
            _ = terminate.recv() => stops += 1,
            _ = interrupt.recv() => stops += 1,
        }
        match stops {
            1 => stop.now(),
            _ => return stop.hurry(),
        }
    }
}

fn counted(queues: usize) -> String {
    match queues {
        1 => "1 queue".to_owned(),
        many => format!("{many} queues"),
    }
}

async fn serve_all(options: Options, config: Config) -> Result<(), String> {
    // Before anything is fetched.
    let told = |error: std::io::Error| error.to_string();
    let terminate = signal(SignalKind::terminate()).map_err(told)?;
    let interrupt = signal(SignalKind::interrupt()).map_err(told)?;
    let caller = Arc::new(Caller::new(&config.allowed, config.ca_file.as_deref())?);
    let hosts = Host::all(&config);
    let stop = Arc::new(Stop::new());
    let queues = config.queues.into_iter().filter_map(|queue| {
        let host = hosts.get(&queue.host)?.clone();
        let at = (options.target.clone(), options.db);
        Some(Arc::new(Queue::new(
            queue,
            Arc::clone(&caller),
            at,
            host,
            Arc::clone(&stop),
        )))
    });
    let queues: Vec<Arc<Queue>> = queues.collect();
    let metrics = match options.metrics {
        Some(address) => format!(
            "; http://{}/metrics",
            serve::serve(address, queues.clone()).await?
        ),
        None => String::new(),
    };
    println!(
        "dq-push: calls the jobs of {} of {}{metrics}",
        counted(queues.len()),
        options.target.name()
    );
    let mut running: JoinSet<()> = queues.into_iter().map(Queue::run).collect();
    tokio::spawn(obey(terminate, interrupt, Arc::clone(&stop)));
    stop.wait().await;
    while running.join_next().await.is_some() {}
    match stop.why() {
        Some(why) => Err(why),
        None => Ok(()),
    }
}
