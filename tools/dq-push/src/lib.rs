//! Jobs by HTTP: those of queues are called, and new ones are taken. See docs/http.md.

mod answer;
mod call;
mod config;
mod connect;
mod hand;
mod inbound;
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

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine;
use call::Caller;
use config::Config;
use dq_connect::output::print;
use dq_watch::text::escape;
pub use options::Args;
use sha2::{Digest, Sha256};

pub fn run(args: &Args) -> Result<(), String> {
    if args.new_token {
        return new_token();
    }
    let config = args.configuration()?;
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
    for token in &config.tokens {
        println!("{}: {}", token.name, token.queues.join(", "));
    }
    Ok(())
}

/// The token goes to whoever is to have it, and its hash into the configuration.
fn new_token() -> Result<(), String> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| format!("no randomness: {error}"))?;
    let token = format!("dq_{}", URL_SAFE_NO_PAD.encode(random));
    let hash: String = Sha256::digest(&token)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    print(&format!("{token}\nhash = \"sha256:{hash}\"\n"))
}

fn serve(args: &Args, config: Config) -> Result<(), String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let done = runtime.block_on(service::serve(args, config));
    // Resolving a name may take long, and is not waited for.
    runtime.shutdown_background();
    done
}
