//! The thread of one node: connects, reads once per interval, serves requests, and reconnects when the connection is
//! lost.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use dq_connect::link::{pause, Link};
use dq_connect::scope::{Dbs, Scope};
use dq_connect::target::Target;
use redis::{Cmd, Value};

use super::blocked::{self, Doomed};
use super::cluster::Topology;
use super::detail::Detail;
use super::known::{Known, Search, SCAN_COUNT};
use super::{reply, Heard, News, Report, Request, Watch};
use crate::model::overall::ServerInfo;
use crate::model::QueueKey;
use crate::text::units;

/// Sections that are read. Servers too old to take several are too old for the module as well.
const SECTIONS: [&str; 9] = [
    "server",
    "clients",
    "memory",
    "persistence",
    "stats",
    "replication",
    "cluster",
    "keyspace",
    "dq",
];

/// How often a node is asked which nodes there are.
const TOPOLOGY_EVERY: Duration = Duration::from_secs(5);

/// An INFO looks at up to 5000 queues: where there are many, it is asked for less often.
const MANY_QUEUES: u64 = 1000;
const INFO_EVERY_WITH_MANY: Duration = Duration::from_secs(5);

/// How often it is asked who is connected, and how many may be; a server that refuses is asked again later.
const CLIENTS_EVERY: Duration = Duration::from_secs(5);
const CLIENTS_MOST: u64 = 2000;
const CLIENTS_AGAIN: Duration = Duration::from_secs(600);

/// A reply with more bytes of payload is not asked for again every second.
const HEAVY: usize = 256 * 1024;
const HEAVY_EVERY: Duration = Duration::from_secs(30);

pub struct Node {
    name: String,
    target: Target,
    scope: Scope,
    requests: Receiver<Request>,
    tell: Arc<dyn Fn(Report) + Send + Sync>,
    known: Known,
    search: Search,
    watch: Watch,
    info: Option<(ServerInfo, Instant)>,
    /// What the server refuses, by `OF_INFO`, `OF_SEARCH` and `OF_CLUSTER`.
    troubles: [String; 3],
    topology_at: Option<Instant>,
    /// When the detail was last asked for, and how many bytes of payload the reply had.
    detail_at: Option<(Instant, usize)>,
    /// When it may be asked next who is connected.
    clients_at: Option<Instant>,
    /// In a cluster: this node is a replica, and its master reports the queues.
    silent: bool,
}

/// How long a round may search: most of the time is left to other clients, even where there are many keys and SCAN is
/// slow.
const SEARCH_AT_ONCE: Duration = Duration::from_millis(10);

const LOADING: &str = "The server is loading its data. Totals cover what is loaded so far; queues show their last figures.";
const OF_INFO: usize = 0;
const OF_SEARCH: usize = 1;
const OF_CLUSTER: usize = 2;

/// Why a connection is no longer served.
enum End {
    Stopped,
    /// The node is reached in another way now.
    Again,
    Lost(String),
}

impl From<String> for End {
    fn from(error: String) -> End {
        End::Lost(error)
    }
}

impl Node {
    pub fn new(
        target: Target,
        scope: Scope,
        requests: Receiver<Request>,
        tell: impl Fn(Report) + Send + Sync + 'static,
    ) -> Node {
        let dbs: &[u32] = match &scope.dbs {
            Dbs::These(dbs) if scope.queues.is_empty() => dbs,
            _ => &[],
        };
        Node {
            name: target.name(),
            search: Search::new(dbs.iter().copied()),
            target,
            scope,
            requests,
            tell: Arc::new(tell),
            known: Known::default(),
            watch: Watch::default(),
            info: None,
            troubles: Default::default(),
            topology_at: None,
            detail_at: None,
            clients_at: None,
            silent: false,
        }
    }

    /// Runs until the node is stopped.
    pub fn run(mut self) {
        let mut troubles = 0;
        self.know_named_queues();
        loop {
            let lost = match self.target.connect() {
                Err(error) => error,
                Ok(mut link) => {
                    troubles = 0;
                    match self.serve(&mut link) {
                        End::Stopped => return,
                        End::Again => continue,
                        End::Lost(error) => error,
                    }
                }
            };
            (self.info, self.topology_at, self.clients_at) = (None, None, None);
            troubles += 1;
            self.report(News::Down(lost));
            if let End::Stopped = self.wait_without_link(Instant::now() + pause(troubles)) {
                return;
            }
        }
    }

    fn report(&self, news: News) {
        (self.tell)(Report {
            node: self.name.clone(),
            news,
        });
    }

    fn know_named_queues(&mut self) {
        let Dbs::These(dbs) = &self.scope.dbs else {
            return;
        };
        let named = dbs.iter().flat_map(|&db| {
            let key = move |name: &Vec<u8>| QueueKey::new(db, name.clone());
            self.scope.queues.iter().map(key)
        });
        let found: Vec<QueueKey> = named.collect();
        for key in &found {
            self.known.add(key.clone());
        }
        if !found.is_empty() {
            self.report(News::Scanned {
                found,
                complete: true,
            });
        }
    }

    fn serve(&mut self, link: &mut Link) -> End {
        loop {
            let began = Instant::now();
            let round = self.round(link);
            let again_at_once = match round {
                Err(error) => return End::Lost(error),
                Ok(found_new) => found_new && self.known.len() <= super::known::AT_ONCE,
            };
            let next = if again_at_once {
                began
            } else {
                began + self.scope.interval
            };
            match self.wait(link, next) {
                Ok(()) => {}
                Err(end) => return end,
            }
        }
    }

    fn wait_without_link(&mut self, until: Instant) -> End {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.requests.recv_timeout(left) {
                Ok(Request::Watch(watch)) => self.watch = watch,
                Ok(Request::Adopt(key)) => drop(self.known.add(key)),
                Ok(Request::Dying { wanted, .. }) => {
                    let dying = Err("not connected".to_owned());
                    self.report(News::Dying { wanted, dying });
                }
                Ok(Request::Pace(interval)) => self.scope.interval = interval,
                Ok(Request::Target(target)) => {
                    self.target = *target;
                    return End::Again;
                }
                Ok(Request::Act { key, act }) => {
                    let said = Err("not connected; nothing was done".to_owned());
                    self.report(News::Acted {
                        key,
                        act,
                        said,
                        moved: None,
                    });
                }
                Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => return End::Stopped,
                Err(RecvTimeoutError::Timeout) => return End::Lost(String::new()),
            }
        }
    }

    /// Serves requests of the screen until the next round is due.
    fn wait(&mut self, link: &mut Link, until: Instant) -> Result<(), End> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.requests.recv_timeout(left) {
                Ok(Request::Watch(watch)) => {
                    let other = watch.detail != self.watch.detail;
                    self.watch = watch;
                    if other {
                        self.look_closer(link)?;
                    }
                }
                Ok(Request::Adopt(key)) => drop(self.known.add(key)),
                Ok(Request::Dying {
                    key,
                    doomed,
                    wanted,
                }) => self.ask_who_dies(key, doomed, wanted),
                Ok(Request::Target(target)) => {
                    self.target = *target;
                    return Err(End::Again);
                }
                Ok(Request::Pace(interval)) => {
                    // A shorter interval counts at once, a longer one after the round that is due.
                    let sooner = interval < self.scope.interval;
                    self.scope.interval = interval;
                    if sooner {
                        return Ok(());
                    }
                }
                Ok(Request::Act { key, act }) => {
                    let said = act.carry_out(link, &key)?.map(|done| done.said);
                    let moved = said.as_ref().err().and_then(|error| reply::moved_to(error));
                    let moved = moved.map(str::to_owned);
                    self.report(News::Acted {
                        key,
                        act,
                        said,
                        moved,
                    });
                    self.look_closer(link)?;
                }
                Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(End::Stopped)
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
            }
        }
    }

    /// Has another thread look who dies, as that may take long.
    fn ask_who_dies(&self, key: QueueKey, doomed: Doomed, wanted: Weak<()>) {
        let (target, tell, node) = (
            self.target.clone(),
            Arc::clone(&self.tell),
            self.name.clone(),
        );
        std::thread::spawn(move || {
            let mut link = target.connect();
            let is_wanted = || wanted.strong_count() > 0;
            let walked = match &mut link {
                Ok(link) => blocked::dying(link, &key, &doomed, is_wanted).and_then(|it| it),
                Err(error) => Err(std::mem::take(error)),
            };
            if let Some(dying) = walked.transpose() {
                let news = News::Dying { wanted, dying };
                tell(Report { node, news });
            }
        });
    }

    /// Asks for the detail alone, at once.
    fn look_closer(&mut self, link: &mut Link) -> Result<(), String> {
        self.detail_at = None;
        let Some(detail) = &self.watch.detail else {
            return Ok(());
        };
        let key = detail.key.clone();
        let mut commands = vec![(key.db, stats_of(&key))];
        commands.extend(detail.commands().into_iter().map(|it| (key.db, it)));
        let values = link.look(commands)?;
        self.hear_detail(link, &values[1..])?;
        self.hear_queues(vec![key], &values[..1]);
        Ok(())
    }

    /// One round in one packet: figures of the server and of the queues whose turn it is, the detail on the screen, and
    /// a step of the search. Returns whether new queues were found.
    fn round(&mut self, link: &mut Link) -> Result<bool, String> {
        if self.wants_topology() {
            self.ask_topology(link)?;
        }
        let info = self.wants_info().then(info_command);
        let detail = self.watch.detail.as_ref().filter(|_| self.wants_detail());
        let of = |detail: &Detail| {
            detail
                .commands()
                .into_iter()
                .map(|it| (detail.key.db, it))
                .collect::<Vec<_>>()
        };
        let detail = detail.map(of).unwrap_or_default();
        let queues = match self.silent {
            true => Vec::new(),
            false => self.known.round(&self.watch.visible),
        };
        let step = self.search.step().filter(|_| !self.silent);
        if self.wants_clients() {
            self.ask_clients(link)?;
        }

        let mut commands = Vec::new();
        commands.extend(info.iter().map(|info| (0, info.clone())));
        commands.extend(detail.clone());
        commands.extend(queues.iter().map(|key| (key.db, stats_of(key))));
        commands.extend(step.iter().map(|step| scan(step, SCAN_COUNT)));
        if commands.is_empty() {
            commands.push((0, redis::cmd("PING")));
        }
        let values = link.look(commands)?;
        let refused = values.first().and_then(reply::error);
        if let Some(error) = refused.filter(|error| error.starts_with("NOAUTH")) {
            return Err(format!("the server refuses: {error}"));
        }

        let (of_info, values) = values.split_at(usize::from(info.is_some()));
        let (of_detail, values) = values.split_at(detail.len());
        let (of_queues, of_scan) = values.split_at(queues.len());
        of_info.iter().for_each(|value| self.hear_info(value));
        if !of_detail.is_empty() {
            self.hear_detail(link, of_detail)?;
        }
        self.hear_queues(queues, of_queues);
        let Some((db, _)) = step else {
            return Ok(false);
        };
        let mut found = self.hear_scan(db, &of_scan[0]);
        found.extend(self.search_on(link)?);
        let new = !found.is_empty();
        let complete = self.search.complete();
        self.report(News::Scanned { found, complete });
        Ok(new)
    }

    /// Takes the other steps of the search that this round may take.
    fn search_on(&mut self, link: &mut Link) -> Result<Vec<QueueKey>, String> {
        let mut found = Vec::new();
        let told = self.info.as_ref().and_then(|(info, _)| info.dq.as_ref());
        let missing = told.is_some_and(|dq| dq.queues > self.known.there() as u64);
        let began = Instant::now();
        for _ in 1..self.search.steps(missing) {
            if !self.troubles[OF_SEARCH].is_empty() || began.elapsed() > SEARCH_AT_ONCE {
                break;
            }
            let Some(step) = self.search.step() else {
                break;
            };
            let value = link.look(vec![scan(&step, SCAN_COUNT)])?.remove(0);
            found.extend(self.hear_scan(step.0, &value));
        }
        Ok(found)
    }

    fn wants_info(&self) -> bool {
        let Some((info, at)) = &self.info else {
            return true;
        };
        let many = info.dq.as_ref().is_some_and(|dq| dq.queues > MANY_QUEUES);
        !many || at.elapsed() >= INFO_EVERY_WITH_MANY
    }

    fn wants_detail(&self) -> bool {
        let heavy = |&(at, weight): &(Instant, usize)| weight > HEAVY && at.elapsed() < HEAVY_EVERY;
        !self.detail_at.as_ref().is_some_and(heavy)
    }

    fn wants_topology(&self) -> bool {
        let cluster = self.info.as_ref().is_some_and(|(info, _)| info.cluster);
        let cluster = self.scope.cluster.unwrap_or(cluster);
        cluster
            && self
                .topology_at
                .is_none_or(|at| at.elapsed() >= TOPOLOGY_EVERY)
    }

    /// With `--queue` it is not known whose clients they are.
    fn wants_clients(&self) -> bool {
        let few = |(info, _): &(ServerInfo, Instant)| (1..=CLIENTS_MOST).contains(&info.clients);
        self.watch.clients
            && self.scope.queues.is_empty()
            && self.info.as_ref().is_some_and(few)
            && self.clients_at.is_none_or(|at| at <= Instant::now())
    }

    fn ask_clients(&mut self, link: &mut Link) -> Result<(), String> {
        let list = redis::cmd("CLIENT")
            .arg(&["LIST", "TYPE", "normal"])
            .to_owned();
        let value = link.look(vec![(0, list)])?.remove(0);
        let clients = reply::clients(&value, |db| self.scope.has(db, &Vec::new()));
        let pause = clients.as_ref().map_or(CLIENTS_AGAIN, |_| CLIENTS_EVERY);
        self.clients_at = Some(Instant::now() + pause);
        self.report(News::Clients(clients));
        Ok(())
    }

    fn ask_topology(&mut self, link: &mut Link) -> Result<(), String> {
        let value = link
            .look(vec![(0, redis::cmd("CLUSTER").arg("NODES").to_owned())])?
            .remove(0);
        self.topology_at = Some(Instant::now());
        self.in_trouble(OF_CLUSTER, reply::error(&value).unwrap_or_default());
        if let Some(text) = reply::text(&value) {
            let topology = Topology::parse(&text, &self.target.host());
            self.silent = !topology.i_am_master;
            self.report(News::Topology(topology));
        }
        Ok(())
    }
}

/// What the replies mean.
impl Node {
    fn hear_info(&mut self, value: &Value) {
        let at = Instant::now();
        let Some(text) = reply::text(value) else {
            // Without INFO the queues can still be read.
            let error = reply::error(value).unwrap_or_default();
            self.in_trouble(OF_INFO, error);
            self.info = Some((ServerInfo::default(), at));
            return;
        };
        let info = ServerInfo::parse(&text);
        if self.scope.dbs == Dbs::All && self.scope.queues.is_empty() {
            info.dbs.iter().for_each(|&(db, _)| self.search.add(db));
        }
        let trouble = match (&info.dq, info.loading, &info.lost_master) {
            (_, true, _) => LOADING.to_owned(),
            (None, ..) => format!(
                "{} at {} does not have the dq module (see MODULE LIST; loadmodule /path/to/libdq.so)",
                info.version, self.name
            ),
            // In a cluster the masters report the queues.
            (_, _, Some((master, down_s))) if !info.cluster => {
                orphaned(&self.name, master, *down_s)
            }
            _ => String::new(),
        };
        self.in_trouble(OF_INFO, trouble);
        self.info = Some((info.clone(), at));
        self.report(News::Info {
            info: Box::new(info),
            at,
        });
    }

    /// Reports a trouble once, until it changes.
    fn in_trouble(&mut self, of: usize, trouble: String) {
        if trouble == self.troubles[of] {
            return;
        }
        self.troubles[of] = trouble;
        let first = self.troubles.iter().find(|trouble| !trouble.is_empty());
        self.report(News::Trouble(first.cloned().unwrap_or_default()));
    }

    fn hear_detail(&mut self, link: &mut Link, values: &[Value]) -> Result<(), String> {
        let Some(detail) = self.watch.detail.clone() else {
            return Ok(());
        };
        let mut values = values.to_vec();
        let more: Vec<_> = detail
            .more(&values)
            .into_iter()
            .map(|it| (detail.key.db, it))
            .collect();
        if !more.is_empty() {
            values.extend(link.look(more)?);
        }
        let found = detail.found(&values);
        self.detail_at = Some((Instant::now(), found.weight()));
        self.report(News::Detail { detail, found });
        Ok(())
    }

    fn hear_queues(&mut self, keys: Vec<QueueKey>, values: &[Value]) {
        let at = Instant::now();
        let heard = |(key, value): (QueueKey, &Value)| {
            let heard = self.hear_queue(&key, value, at);
            (key, heard)
        };
        let read: Vec<_> = keys.into_iter().zip(values).map(heard).collect();
        if !read.is_empty() {
            self.report(News::Queues { read, at });
        }
    }

    fn hear_queue(&mut self, key: &QueueKey, value: &Value, at: Instant) -> Heard {
        if let Some(stats) = reply::stats(value) {
            self.known.is_there(key);
            return Heard::Figures(Box::new(stats));
        }
        let Some(error) = reply::error(value) else {
            let named = !self.scope.queues.is_empty();
            return match !named && self.known.is_gone(key, at) {
                true => Heard::Forgotten,
                false => Heard::Vanished,
            };
        };
        if let Some(node) = reply::moved_to(&error) {
            let node = node.to_owned();
            self.known.remove(key);
            self.topology_at = None;
            return Heard::Moved(node);
        }
        // A key of another type has the name now.
        if error.starts_with("WRONGTYPE") {
            self.known.remove(key);
            return Heard::Forgotten;
        }
        Heard::Refused(error)
    }

    fn hear_scan(&mut self, db: u32, value: &Value) -> Vec<QueueKey> {
        let parts = reply::array(value).unwrap_or_default();
        let [cursor, names] = parts else {
            self.in_trouble(OF_SEARCH, reply::error(value).unwrap_or_default());
            return Vec::new();
        };
        self.in_trouble(OF_SEARCH, String::new());
        self.search
            .went_on(db, reply::bytes(cursor).unwrap_or_default());
        let names = reply::array(names).unwrap_or_default().iter();
        let keys = names
            .filter_map(reply::bytes)
            .map(|name| QueueKey::new(db, name));
        keys.filter(|key| self.known.add(key.clone())).collect()
    }
}

/// What is wrong with a replica that has lost its master: by minutes, so that it is not told each second.
fn orphaned(replica: &str, master: &str, down_s: Option<u64>) -> String {
    let old = match down_s {
        None => format!("has not reached its master {master}: its jobs may be old"),
        Some(s) => {
            let ago = match s / 60 {
                0 => "less than a minute".to_owned(),
                minutes => units::spaced(&units::millis(minutes * 60_000)),
            };
            format!("lost its master {master} {ago} ago: its jobs are those of then")
        }
    };
    format!("{replica} is a replica and {old}. A replica delivers nothing itself.")
}

pub fn info_command() -> Cmd {
    redis::cmd("INFO").arg(&SECTIONS).to_owned()
}

pub fn stats_of(key: &QueueKey) -> Cmd {
    redis::cmd("DQ.STATS").arg(&key.name).to_owned()
}

pub fn scan((db, cursor): &(u32, Vec<u8>), count: usize) -> (u32, Cmd) {
    let mut scan = redis::cmd("SCAN");
    scan.arg(cursor)
        .arg("COUNT")
        .arg(count)
        .arg("TYPE")
        .arg("dq-queue1");
    (*db, scan)
}
