//! A web board for dq. See docs/board.md.

mod alerts;
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
mod web;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::{mpsc, watch};

use crate::core::alerts::Alert;
use alerts::Webhook;
use audit::Audit;
use board::Board;
use config::{Alerts, Shown};
use dq_watch::model::clock;
use dq_watch::place::Wish;
use http::api::{self, Site};
use http::guard::Guard;
use http::serve;
use http::servers::Servers;
use http::sessions::Sessions;
use options::Options;
use servers::history::History;
use servers::look::Looker;
use servers::prometheus::Prometheus;
use servers::reader::Reader;
use tasks::Tasks;
use web::Web;

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
    let named = named(&options.servers);
    let may_act = options.access.may_anybody_act();
    let (reads_files, alerting) = (options.reads_files, options.alerts.clone());
    let (end, ending) = watch::channel(false);
    let web = Web::new()?;
    let servers = servers(options, &format!("{named} {address}"), &ending, &web)?;
    println!(
        "dq-board: http://{address}{}/ shows the queues of {named}{}",
        servers.prefix,
        match may_act {
            true => "",
            false => ", to look at only (--allow-actions)",
        }
    );
    let (alerts, news) = mpsc::unbounded_channel();
    let (hook, hooked) = watch::channel(None);
    tokio::spawn(alerts::send(web, news, hooked));
    let again = Again {
        servers: Arc::clone(&servers),
        hook,
    };
    again.set_alerts(alerting);
    tokio::spawn(ticks(Arc::clone(&servers), alerts));
    tokio::spawn(obey(signals, end, again, reads_files));
    serve::serve(listener, api::routes(Arc::clone(&servers)), ending).await;
    for site in &servers.sites {
        site.tasks.all_ended().await;
    }
    let closed = servers.sites.iter().map(|site| site.board.reader.close());
    closed.collect()
}

/// `named` tells this board apart from others of the same host.
fn servers(
    options: Options,
    named: &str,
    ending: &watch::Receiver<bool>,
    web: &Web,
) -> Result<Arc<Servers>, String> {
    let audit = Arc::new(Audit::open(options.audit_log.as_deref())?);
    let prefix = options.prefix;
    let sessions = Sessions::new(&prefix, &format!("{named} {prefix}"));
    let names = options.servers.iter().filter_map(|it| it.name.clone());
    let names = names.collect();
    let guard = Guard::new(
        options.access,
        sessions,
        audit,
        options.hosts,
        &prefix,
        names,
    );
    let guard = Arc::new(guard);
    let under = Under {
        prefix: &prefix,
        store: options.store.as_deref(),
        guard: &guard,
        ending,
        web,
    };
    let sites = options.servers.into_iter().map(|shown| under.site(shown));
    let sites = sites.collect::<Result<Vec<_>, String>>()?;
    Ok(Arc::new(Servers {
        sites,
        guard,
        prefix,
    }))
}

fn named(servers: &[Shown]) -> String {
    let names = servers.iter().map(|it| match &it.name {
        Some(name) => format!("{name} ({})", it.target.name()),
        None => it.target.name(),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// What all servers' boards have in common.
struct Under<'a> {
    prefix: &'a str,
    store: Option<&'a Path>,
    guard: &'a Arc<Guard>,
    ending: &'a watch::Receiver<bool>,
    web: &'a Web,
}

impl Under<'_> {
    fn site(&self, shown: Shown) -> Result<Arc<Site>, String> {
        // One of several has a file and addresses of its own.
        let own = |path: &Path, name: &str| PathBuf::from(format!("{}.{name}", path.display()));
        let store = self.store.map(|path| match &shown.name {
            Some(name) => own(path, name),
            None => path.to_owned(),
        });
        let history = History::open(store.as_deref(), clock::now_ms())?;
        let reader = Reader::start(&shown, history);
        let looker = Looker::new(shown.target, Arc::clone(&reader));
        let web = self.web;
        let prometheus = shown.prometheus.map(|source| Prometheus {
            web: web.clone(),
            source,
        });
        let board = Board::new(reader, Arc::new(looker), shown.scope, prometheus);
        let board = Arc::new(board);
        Ok(Arc::new(Site {
            tasks: Arc::new(Tasks::new(Arc::clone(&board), self.ending.clone())),
            board,
            guard: Arc::clone(self.guard),
            prefix: match &shown.name {
                Some(name) => format!("{}/{name}", self.prefix),
                None => self.prefix.to_owned(),
            },
            name: shown.name,
            ending: self.ending.clone(),
        }))
    }
}

async fn ticks(servers: Arc<Servers>, alerts: mpsc::UnboundedSender<Vec<Alert>>) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        let worth = servers.sites.iter();
        let worth: Vec<Alert> = worth.flat_map(|site| site.board.reader.tick()).collect();
        if !worth.is_empty() {
            // The one who takes them lives as long as the program.
            let _ = alerts.send(worth);
        }
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
async fn obey(mut signals: Signals, end: watch::Sender<bool>, again: Again, reads_files: bool) {
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => break,
            _ = signals.interrupt.recv() => break,
            _ = signals.hang_up.recv() => match reads_files {
                true => again.read(),
                false => break,
            },
        }
    }
    end.send_replace(true);
}

/// What the files say.
struct Again {
    servers: Arc<Servers>,
    hook: watch::Sender<Option<Webhook>>,
}

impl Again {
    /// What cannot be read leaves all as it was.
    fn read(&self) {
        let read = wish().and_then(|wish| match wish {
            Wish::Run(options) => self.same_servers(&options).map(|()| options),
            _ => Err("no options".to_owned()),
        });
        let read = read.and_then(|options| {
            self.servers.guard.audit.open_again()?;
            Ok(options)
        });
        match read {
            Err(error) => eprintln!("dq-board: nothing changes: {error}"),
            Ok(options) => {
                self.servers.guard.set(options.access);
                for (site, shown) in self.servers.sites.iter().zip(options.servers) {
                    site.board.set_target(shown.target);
                }
                self.set_alerts(options.alerts);
                println!("dq-board: read again");
            }
        }
    }

    fn same_servers(&self, options: &Options) -> Result<(), String> {
        let now = self.servers.sites.iter().map(|site| &site.name);
        match now.eq(options.servers.iter().map(|it| &it.name)) {
            true => Ok(()),
            false => Err("other servers need a restart".to_owned()),
        }
    }

    fn set_alerts(&self, alerts: Option<Alerts>) {
        let (rules, to) = alerts.map(|it| (it.rules, it.hook)).unzip();
        self.hook.send_replace(to);
        for site in &self.servers.sites {
            site.board.reader.watch_for(rules.clone());
        }
    }
}
