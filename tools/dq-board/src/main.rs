//! A web board for dq. See docs/board.md.

mod audit;
mod board;
mod config;
mod core;
mod http;
mod locked;
mod options;
mod servers;
mod tasks;
mod views;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::watch;

use audit::Audit;
use board::Board;
use dq_watch::model::clock;
use dq_watch::place::Wish;
use http::api::{self, Site};
use http::guard::Guard;
use http::serve;
use http::sessions::Sessions;
use options::Options;
use servers::history::History;
use servers::look::Looker;
use servers::reader::Reader;
use tasks::Tasks;

/// Between two words to the tabs.
const TICK: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let done = match wish() {
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

/// The command line, and the files that it names, as they are now.
fn wish() -> Result<Wish<Options>, String> {
    options::parse(env::args_os().skip(1), |name| env::var(name).ok())
}

#[tokio::main(worker_threads = 2)]
async fn run(options: Options) -> Result<(), String> {
    // Before anybody can send one.
    let signals = Signals::new().map_err(|error| error.to_string())?;
    let listener = TcpListener::bind(options.listen).await;
    let listener = listener.map_err(|error| format!("{}: {error}", options.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let audit = Arc::new(Audit::open(options.audit_log.as_deref())?);
    let history = History::open(options.store.as_deref(), clock::now_ms())?;
    let reader = Reader::start(options.target.clone(), options.scope.clone(), history);
    let looker = Looker::new(options.target.clone(), Arc::clone(&reader));
    let board = Board::new(Arc::clone(&reader), Arc::new(looker), options.scope);
    let named = format!("{} {} {address}", options.target.name(), options.prefix);
    let sessions = Sessions::new(&options.prefix, &named);
    println!(
        "dq-board: http://{address}{}/ shows the queues of {}{}",
        options.prefix,
        options.target.name(),
        match options.access.may_anybody_act() {
            true => "",
            false => ", to look at only (--allow-actions)",
        }
    );
    let hosts = options.hosts;
    let guard = Guard::new(options.access, sessions, audit, hosts, &options.prefix);
    let (end, ending) = watch::channel(false);
    let board = Arc::new(board);
    let tasks = Arc::new(Tasks::new(Arc::clone(&board), ending.clone()));
    let site = Arc::new(Site {
        board,
        tasks: Arc::clone(&tasks),
        guard: Arc::new(guard),
        prefix: options.prefix,
        ending: ending.clone(),
    });
    tokio::spawn(ticks(Arc::clone(&reader)));
    tokio::spawn(obey(signals, end, Arc::clone(&site), options.reads_files));
    serve::serve(listener, api::routes(site), ending).await;
    tasks.all_ended().await;
    reader.close()
}

async fn ticks(reader: Arc<Reader>) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        reader.tick();
    }
}

struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }
}

/// Until a signal ends the program. SIGHUP reads the files again, if there are any.
async fn obey(mut signals: Signals, end: watch::Sender<bool>, site: Arc<Site>, reads_files: bool) {
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => break,
            _ = signals.interrupt.recv() => break,
            _ = signals.hang_up.recv() => match reads_files {
                true => read_again(&site),
                false => break,
            },
        }
    }
    end.send_replace(true);
}

/// What cannot be read leaves all as it was.
fn read_again(site: &Site) {
    let read = wish().and_then(|wish| match wish {
        Wish::Run(options) => site.guard.audit.open_again().map(|()| options),
        _ => Err("no options".to_owned()),
    });
    match read {
        Err(error) => eprintln!("dq-board: nothing changes: {error}"),
        Ok(options) => {
            site.guard.set(options.access);
            site.board.set_target(options.target);
            println!("dq-board: read again");
        }
    }
}
