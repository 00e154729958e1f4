//! The servers' boards: how they start, and what happens to them when the configuration changes.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use dq_watch::model::clock;
use tokio::sync::watch;

use crate::board::Board;
use crate::config::Shown;
use crate::http::api;
use crate::http::guard::Guard;
use crate::http::servers::Servers;
use crate::http::site::Site;
use crate::options::Options;
use crate::servers::connections::Connections;
use crate::servers::history::History;
use crate::servers::prometheus::Prometheus;
use crate::servers::reader::Reader;
use crate::tasks::Tasks;
use crate::web::Web;

pub struct Sites {
    pub servers: Arc<Servers>,
    routes: watch::Sender<Router>,
    store: Option<PathBuf>,
    web: Web,
}

/// What happens to a server that the configuration names.
enum Plan {
    Begin(Shown, History),
    /// The queues or the address have changed; its history so far stays.
    Replace(Arc<Site>, Shown),
    Keep(Arc<Site>, Shown),
}

impl Sites {
    pub fn begin(options: Options, guard: Arc<Guard>, web: &Web) -> Result<Sites, String> {
        let mut sites = Sites {
            servers: Arc::new(Servers::new(Vec::new(), guard, options.prefix)),
            routes: watch::channel(Router::new()).0,
            store: options.store,
            web: web.clone(),
        };
        sites.set(options.servers)?;
        Ok(sites)
    }

    pub fn guard(&self) -> &Guard {
        &self.servers.guard
    }

    pub fn routes(&self) -> watch::Receiver<Router> {
        self.routes.subscribe()
    }

    /// Shows these servers and no others from now on. What can fail comes first, and a failure changes nothing.
    pub fn set(&mut self, all: Vec<Shown>) -> Result<(), String> {
        let before = self.servers.sites();
        let plans = all.into_iter().map(|shown| {
            let old = before.iter().find(|site| site.name == shown.name);
            Ok(match old {
                Some(site) if site.board.is_of(&shown) => Plan::Keep(Arc::clone(site), shown),
                Some(site) => Plan::Replace(Arc::clone(site), shown),
                None => Plan::Begin(shown.clone(), self.history(&shown)?),
            })
        });
        let plans = plans.collect::<Result<Vec<Plan>, String>>()?;
        let sites = plans.into_iter().map(|plan| self.carry_out(plan));
        let sites = sites.collect::<Result<Vec<_>, String>>()?;
        for site in before.iter() {
            if sites.iter().all(|it| it.name != site.name) {
                site.end();
                drop(site.board.reader.stop());
            }
        }
        let names = sites.iter().filter_map(|site| site.name.clone());
        self.guard().set_servers(names.collect());
        self.servers.set(sites);
        drop(self.routes.send_replace(api::routes(&self.servers)));
        Ok(())
    }

    fn carry_out(&self, plan: Plan) -> Result<Arc<Site>, String> {
        Ok(match plan {
            Plan::Begin(shown, history) => self.site(shown, history),
            Plan::Replace(old, shown) => {
                let history = old.board.reader.stop()?;
                old.end();
                self.site(shown, history)
            }
            Plan::Keep(site, shown) => {
                let prometheus = self.prometheus(&shown);
                site.board.reach(shown.target, prometheus);
                site
            }
        })
    }

    /// The history of a server; of several servers each has its own file.
    fn history(&self, shown: &Shown) -> Result<History, String> {
        let path = self.store.as_ref().map(|path| match &shown.name {
            Some(name) => PathBuf::from(format!("{}.{name}", path.display())),
            None => path.clone(),
        });
        History::open(path.as_deref(), clock::now_ms())
    }

    fn prometheus(&self, shown: &Shown) -> Option<Prometheus> {
        let (source, web) = (shown.prometheus.clone()?, self.web.clone());
        Some(Prometheus { web, source })
    }

    fn site(&self, shown: Shown, history: History) -> Arc<Site> {
        let reader = Reader::start(&shown, history);
        let connections = Connections::new(shown.target.clone(), Arc::clone(&reader));
        let prometheus = self.prometheus(&shown);
        let board = Board::new(reader, Arc::new(connections), &shown, prometheus);
        let board = Arc::new(board);
        let (ending, ends) = watch::channel(false);
        let prefix = &self.servers.prefix;
        Arc::new(Site {
            tasks: Arc::new(Tasks::new(Arc::clone(&board), ends)),
            board,
            guard: Arc::clone(&self.servers.guard),
            prefix: match &shown.name {
                Some(name) => format!("{prefix}/{name}"),
                None => prefix.clone(),
            },
            name: shown.name,
            ending,
        })
    }
}
