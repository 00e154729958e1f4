//! A web board for dq. See docs/board.md.

mod alerts;
mod audit;
mod board;
mod config;
mod core;
mod fate;
mod http;
mod options;
mod servers;
mod sites;
mod tasks;
mod views;
mod web;

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::core::alerts::Alert;
use alerts::Webhook;
use config::{Alerts, Shown};
use dq_connect::signals::{Signals, Wanted};
use dq_serve::audit::Audit;
use dq_serve::connections::{self, Limits};
use http::guard::Guard;
use http::servers::Servers;
use http::sessions::Sessions;
pub use options::Args;
use options::Options;
use sites::Sites;
use web::Web;

/// The time between two updates of the tabs.
const TICK: Duration = Duration::from_millis(500);

/// Tabs keep theirs for days.
const LIMITS: Limits = Limits {
    connections: 10_000,
    age: None,
};

#[tokio::main(worker_threads = 2)]
pub async fn run(args: &Args) -> Result<(), String> {
    let mut options = args.options()?;
    // Before anybody can send a signal.
    let signals = Signals::new().map_err(|error| error.to_string())?;
    let listener = TcpListener::bind(options.listen).await;
    let listener = listener.map_err(|error| format!("{}: {error}", options.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let named = named(&options.servers);
    let may_act = options.access.may_anybody_act();
    let (reads_files, alerting) = (options.reads_files, options.alerts.take());
    let (end, ending) = watch::channel(false);
    let web = Web::new()?;
    let guard = guard(&mut options, &format!("{named} {address}"))?;
    let sites = Sites::begin(options, guard, &web)?;
    let (servers, routes) = (Arc::clone(&sites.servers), sites.routes());
    println!(
        "dq board: http://{address}{}/ shows the queues of {named}{}",
        servers.prefix,
        match may_act {
            true => "",
            false => ", to look at only (--allow-actions)",
        }
    );
    let (alerts, news) = mpsc::unbounded_channel();
    let (hook, hooked) = watch::channel(None);
    let telling = Arc::clone(&servers);
    let taken = move |alerts: &[Alert]| telling.taken(alerts);
    tokio::spawn(alerts::send(web, news, hooked, taken));
    let again = Again {
        args: args.clone(),
        sites,
        hook,
    };
    again.set_alerts(alerting);
    tokio::spawn(ticks(Arc::clone(&servers), alerts));
    tokio::spawn(obey(signals, end, again, reads_files));
    connections::serve(listener, routes, ending, LIMITS).await;
    let sites = servers.sites();
    for site in sites.iter() {
        site.tasks.all_ended().await;
    }
    let mut sites = sites.iter();
    sites.try_for_each(|site| site.board.reader.close())
}

/// `named` tells this board apart from others of the same host.
fn guard(options: &mut Options, named: &str) -> Result<Arc<Guard>, String> {
    let audit = Arc::new(Audit::open(
        "sign-in refused",
        options.audit_log.as_deref(),
    )?);
    let prefix = &options.prefix;
    let sessions = Sessions::new(prefix, &format!("{named} {prefix}"));
    let (access, hosts) = (
        mem::take(&mut options.access),
        mem::take(&mut options.hosts),
    );
    Ok(Arc::new(Guard::new(access, sessions, audit, hosts, prefix)))
}

fn named(servers: &[Shown]) -> String {
    let names = servers.iter().map(|it| match &it.name {
        Some(name) => format!("{name} ({})", it.target.name()),
        None => it.target.name(),
    });
    names.collect::<Vec<_>>().join(", ")
}

async fn ticks(servers: Arc<Servers>, alerts: mpsc::UnboundedSender<Vec<Alert>>) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        let sites = servers.sites();
        for site in sites.iter() {
            for key in site.board.reader.unowned() {
                let board = Arc::clone(&site.board);
                tokio::spawn(async move { views::attended(&board, &key).await.is_ok() });
            }
        }
        let worth = sites.iter().flat_map(|site| site.board.reader.tick());
        let worth: Vec<Alert> = worth.collect();
        if !worth.is_empty() {
            // The task that receives them lives as long as the program.
            let _ = alerts.send(worth);
        }
    }
}

/// Runs until a signal ends the program. SIGHUP reads the files again, if there are any.
async fn obey(mut signals: Signals, end: watch::Sender<bool>, mut again: Again, reads_files: bool) {
    while signals.next().await == Wanted::ReadAgain && reads_files {
        again.read();
    }
    again.sites.servers.end();
    end.send_replace(true);
}

/// Applies what the files say.
struct Again {
    args: Args,
    sites: Sites,
    hook: watch::Sender<Option<Webhook>>,
}

impl Again {
    /// A file that cannot be read changes nothing.
    fn read(&mut self) {
        let read = self.args.options().and_then(|mut options| {
            self.sites.guard().audit.open_again()?;
            self.sites.set(mem::take(&mut options.servers))?;
            Ok(options)
        });
        match read {
            Err(error) => eprintln!("dq board: nothing changes: {error}"),
            Ok(options) => {
                self.sites.guard().set(options.access);
                self.set_alerts(options.alerts);
                println!("dq board: read again");
            }
        }
    }

    fn set_alerts(&self, alerts: Option<Alerts>) {
        let (rules, to) = alerts.map(|it| (it.rules, it.hook)).unzip();
        self.hook.send_replace(to);
        for site in self.sites.servers.sites().iter() {
            site.board.reader.watch_for(rules.clone());
        }
    }
}
