//! A web board for dq. See docs/board.md.

mod api;
mod assets;
mod dead;
mod guard;
mod guesses;
mod look;
mod options;
mod reader;
mod serve;
mod views;
mod waiters;
mod walk;
mod wire;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};

use api::Board;
use dq_watch::place::Wish;
use guard::Guard;
use look::Looker;
use options::Options;
use reader::Reader;

/// Between two words to the tabs.
const TICK: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let variable = |name: &str| env::var(name).ok();
    let done = match options::parse(env::args_os().skip(1), variable) {
        Err(error) => Err(format!("{error}\n(dq-board --help lists the options)")),
        Ok(Wish::Help) => {
            print!("{}", options::HELP);
            Ok(())
        }
        Ok(Wish::Version) => {
            println!("dq-board {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Ok(Wish::Run(options)) => run(*options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dq-board: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(worker_threads = 2)]
async fn run(options: Options) -> Result<(), String> {
    let listener = TcpListener::bind(options.listen).await;
    let listener = listener.map_err(|error| format!("{}: {error}", options.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let guard = Arc::new(Guard::new(&options)?);
    let reader = Reader::start(options.target.clone(), options.scope);
    let looker = Looker::new(options.target.clone(), Arc::clone(&reader));
    let board = Arc::new(Board {
        reader: Arc::clone(&reader),
        looker: Arc::new(looker),
        guard,
        prefix: options.prefix.clone(),
        allow_actions: options.allow_actions,
        since_ms: reader.server_ms(),
    });
    println!(
        "dq-board: http://{address}{}/ shows the queues of {}{}",
        options.prefix,
        options.target.name(),
        match options.allow_actions {
            true => "",
            false => ", to look at only (--allow-actions)",
        }
    );
    let ticks = async {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            reader.tick();
        }
    };
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    tokio::select! {
        () = serve::serve(listener, api::routes(board)) => Ok(()),
        () = ticks => Ok(()),
        _ = terminate.recv() => Ok(()),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}
