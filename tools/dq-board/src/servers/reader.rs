//! One reader for all tabs: the threads of dq-watch read the servers, and what changed since the last tick is written
//! once for all tabs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use dq_connect::scope::Scope;
use dq_connect::target::Target;
use dq_watch::fleet::{Fleet, Out};
use dq_watch::model::overall::Overall;
use dq_watch::model::row::{Measured, Row};
use dq_watch::model::stats::{Stats, READY};
use dq_watch::model::{clock, QueueKey};
use dq_watch::read::{Heard, News, Report, Request, Watch};
use dq_watch::servers::{NodeState, Servers};
use serde_json::{json, Value};
use tokio::sync::broadcast;

use super::history::History;
use crate::config::Shown;
use crate::core::alerts::{self, Alert, Rules, Seen, Watcher};
use crate::core::attention::{Day, Signs};
use crate::core::course::{self, Course, Told};
use crate::core::history::Parts;
use crate::core::packed::Part;
use crate::core::shifts::{Shift, Shifts};
use crate::core::wire;
use dq_serve::locked::locked;

/// The time between two readings while no tab is open: history is still recorded.
const UNSEEN: Duration = Duration::from_secs(10);

/// Changes that a tab may lag behind before it is sent everything anew.
const LAG: usize = 16;

/// Queues of which it is asked at a time whose their leases are.
const UNOWNED: usize = 10;

/// Queues that one tab may say are on its screen.
const SEEN_BY_ONE: usize = 100;

pub struct Reader {
    state: Mutex<State>,
    interval: Duration,
    /// The server's name, where there are several.
    name: Option<String>,
}

struct State {
    servers: Servers,
    scope: Scope,
    fleet: Fleet,
    history: History,
    /// What all queues did together.
    course: Course,
    /// When workers came and went.
    shifts: Shifts,
    /// Queues reported since the last change was sent.
    heard: BTreeSet<QueueKey>,
    /// What the tabs already have.
    head: Value,
    rows: BTreeMap<QueueKey, Arc<str>>,
    changes: broadcast::Sender<Arc<Part>>,
    /// The queues on the screen of each tab.
    tabs: HashMap<u64, Vec<QueueKey>>,
    next_tab: u64,
    watches: HashMap<String, Watch>,
    watcher: Option<Watcher>,
    /// Whose queues these are, as the store has it, and whether it says that all of them have been seen.
    shown: (String, bool),
    /// Alerts that the webhook had not accepted when the board ended.
    untold: Vec<Alert>,
    /// How often the servers are read.
    pace: Duration,
}

/// A tab's subscription to the reader, until it is dropped.
pub struct Tab {
    reader: Arc<Reader>,
    pub number: u64,
    pub changes: broadcast::Receiver<Arc<Part>>,
    pub all: Arc<Part>,
}

impl Reader {
    pub fn start(shown: &Shown, history: History) -> Arc<Reader> {
        let (target, scope) = (&shown.target, shown.scope.clone());
        let (sender, reports) = channel();
        let interval = scope.interval;
        let mut fleet = Fleet::start(target.clone(), scope.clone(), move |report| {
            drop(sender.send(report))
        });
        fleet.pace(UNSEEN);
        let state = State {
            servers: Servers::new(&target.name(), interval),
            scope,
            fleet,
            history,
            course: Course::default(),
            shifts: Shifts::default(),
            heard: BTreeSet::new(),
            head: Value::Null,
            rows: BTreeMap::new(),
            changes: broadcast::channel(LAG).0,
            tabs: HashMap::new(),
            next_tab: 1,
            watches: HashMap::new(),
            watcher: None,
            shown: (shown_as(shown), false),
            untold: Vec::new(),
            pace: UNSEEN,
        };
        let reader = Arc::new(Reader {
            state: Mutex::new(state),
            interval,
            name: shown.name.clone(),
        });
        let hearing = Arc::clone(&reader);
        thread::spawn(move || hearing.hear(&reports));
        reader
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub fn set_target(&self, target: Target) {
        self.state().fleet.set_target(target);
    }

    fn hear(&self, reports: &Receiver<Report>) {
        while let Ok(report) = reports.recv() {
            self.state().hear(report);
        }
    }

    /// Sets the rules of alerts from now on.
    pub fn watch_for(&self, rules: Option<Rules>) {
        let mut state = self.state();
        state.watcher = match (state.watcher.take(), rules) {
            // Alerts that begin one day do not tell of what has died until then.
            (_, None) => {
                state.shown.1 = false;
                complain(state.history.forget_totals());
                None
            }
            (None, Some(rules)) => Some(state.watcher(self.name.clone(), rules)),
            (Some(mut watcher), Some(rules)) => {
                watcher.set(rules);
                Some(watcher)
            }
        };
        state.pace(self.interval);
    }

    /// Records history, and sends the tabs what has changed. Returns the alerts.
    pub fn tick(&self) -> Vec<Alert> {
        let mut state = self.state();
        let State {
            history, servers, ..
        } = &mut *state;
        complain(history.tick(servers.board.rows(), clock::now_ms()));
        state.go_on();
        state.look_after_workers();
        if !state.tabs.is_empty() {
            state.tell();
        }
        state.alerts()
    }

    /// Records that the webhook accepted these alerts, so that a restart does not send them again.
    pub fn taken(&self, alerts: &[Alert]) {
        complain(self.state().history.alerts_taken(alerts));
    }

    /// Records what is left, before the program ends.
    pub fn close(&self) -> Result<(), String> {
        let mut state = self.state();
        let State {
            history, servers, ..
        } = &mut *state;
        history.write_down(servers.board.rows(), clock::now_ms())
    }

    pub fn open_tab(self: &Arc<Reader>) -> Tab {
        let mut state = self.state();
        state.tell();
        let number = state.next_tab;
        state.next_tab += 1;
        state.tabs.insert(number, Vec::new());
        state.pace(self.interval);
        Tab {
            reader: Arc::clone(self),
            number,
            changes: state.changes.subscribe(),
            all: state.all(),
        }
    }

    /// Stops reading. Returns the history, for another reader.
    pub fn stop(&self) -> Result<History, String> {
        let mut state = self.state();
        let State {
            history, servers, ..
        } = &mut *state;
        complain(history.write_down(servers.board.rows(), clock::now_ms()));
        state.fleet.stop();
        let mut empty = History::open(None, clock::now_ms())?;
        std::mem::swap(&mut state.history, &mut empty);
        state.watcher = None;
        complain(empty.forget_servers());
        Ok(empty)
    }

    /// The sums over all its queues.
    pub fn head(&self) -> Value {
        self.state().head()
    }

    /// Sets what a tab has on its screen: that is read first.
    pub fn see(&self, tab: u64, mut keys: Vec<QueueKey>) {
        keys.truncate(SEEN_BY_ONE);
        let mut state = self.state();
        if let Some(seen) = state.tabs.get_mut(&tab) {
            *seen = keys;
            state.watch();
        }
    }

    /// The node that has a queue, as far as known.
    pub fn node_of(&self, key: &QueueKey) -> Option<String> {
        let state = self.state();
        let row = state.servers.board.row(key);
        row.map(|row| row.node.clone())
    }

    pub fn node_at(&self, address: &str) -> Option<String> {
        self.state().servers.node_at(address)
    }

    /// What all queues did together in the last hour.
    pub fn hour(&self) -> Vec<Option<course::Part>> {
        self.state().course.hour(clock::now_ms())
    }

    /// The queues that may need a look: so many, the most urgent first, how many there are, and whether several
    /// databases have queues.
    pub fn signs(&self, most: usize) -> (Vec<(QueueKey, Signs)>, usize, bool) {
        let state = self.state();
        let (servers, now) = (&state.servers, state.servers.now().here);
        let rows = servers.board.rows().filter(|row| !row.gone);
        let signs = rows.map(|row| (&row.key, Signs::of(row, servers.is_down(&row.node), now)));
        let ranked = signs.map(|(key, signs)| (signs.rank(Day::default()), key, signs));
        let mut all: Vec<_> = ranked.filter(|(rank, ..)| rank.0 > 0).collect();
        let count = all.len();
        all.sort_by(|(one, a, _), (other, b, _)| other.cmp(one).then_with(|| a.cmp(b)));
        let first = all.into_iter().take(most);
        let first = first.map(|(_, key, signs)| (key.clone(), signs));
        (first.collect(), count, servers.board.several_dbs())
    }

    /// The queues of which this holds, by their last figures, in order.
    pub fn queues(&self, holds: impl Fn(Option<&Stats>) -> bool) -> Vec<QueueKey> {
        let state = self.state();
        let rows = state.servers.board.rows();
        let rows = rows.filter(|row| !row.gone && holds(row.stats.as_ref()));
        let mut keys: Vec<QueueKey> = rows.map(|row| row.key.clone()).collect();
        keys.sort();
        keys
    }

    pub fn server_ms(&self) -> i64 {
        self.state().servers.now().server_ms
    }

    /// What its row says of a queue. None: it has not been read yet.
    pub fn of_row<T>(&self, key: &QueueKey, of: impl FnOnce(&Row) -> T) -> Option<T> {
        let state = self.state();
        let row = state.servers.board.row(key)?;
        row.stats.as_ref().map(|_| of(row))
    }

    /// Whether a client that is connected has one of the queue's reserved jobs: the server was asked.
    pub fn owned(&self, key: &QueueKey, is_owned: bool) {
        let mut state = self.state();
        if let Some(row) = state.servers.board.row_mut(key) {
            row.owned = Some(is_owned);
            state.heard.insert(key.clone());
        }
    }

    /// Some queues of which it was not asked yet, and must be, as their place in the list depends on it. Until the server
    /// says it, and where it refuses to, they count as attended.
    pub fn unowned(&self) -> Vec<QueueKey> {
        let mut state = self.state();
        let now = state.servers.now().here;
        let rows = state.servers.board.rows();
        let rows = rows.filter(|row| row.owned.is_none() && row.leases_tell() && !row.gone);
        let unowned = rows.filter(|row| Signs::of(row, false, now).asks());
        let keys: Vec<QueueKey> = unowned.take(UNOWNED).map(|row| row.key.clone()).collect();
        for key in &keys {
            if let Some(row) = state.servers.board.row_mut(key) {
                row.owned = Some(true);
            }
        }
        keys
    }

    pub fn measured(&self, key: &QueueKey) -> Option<Measured> {
        self.of_row(key, Row::measured)?
    }

    /// Deliveries and failures of the last minute, for each second.
    pub fn seconds(&self, key: &QueueKey, count: usize) -> [Vec<f64>; 2] {
        let state = self.state();
        let row = state.servers.board.row(key);
        let last = |seconds: Vec<f64>| {
            let last = &seconds[seconds.len().saturating_sub(count)..];
            [&vec![0.0; count - last.len()], last].concat()
        };
        let none = (Vec::new(), Vec::new());
        let (delivered, failed) = row.map_or(none, |row| {
            (row.history.delivered.values(), row.history.failed.values())
        });
        [last(delivered), last(failed)]
    }

    /// When workers came and went, of this queue, or perhaps of another one (true).
    pub fn shifts(&self, key: &QueueKey) -> Vec<(Shift, bool)> {
        self.state().shifts.of(key)
    }

    /// When workers of any queue came and went.
    pub fn all_shifts(&self) -> Vec<Shift> {
        self.state().shifts.of_connections().copied().collect()
    }

    /// A queue's history from so long ago on, in so many parts; by this machine's clock, which recorded it.
    pub fn past(
        &self,
        key: &QueueKey,
        ago_ms: i64,
        each_ms: i64,
        count: usize,
    ) -> Result<Parts, String> {
        let state = self.state();
        let row = state.servers.board.row(key);
        let now_ms = clock::now_ms();
        let parts = Parts::new(now_ms - ago_ms, each_ms, count);
        state.history.parts(row, key, now_ms, parts)
    }
}

fn shown_as(shown: &Shown) -> String {
    let (name, scope) = (shown.target.name(), &shown.scope);
    format!("{name} {:?} {:?}", scope.dbs, scope.queues)
}

fn complain(written: Result<(), String>) {
    if let Err(error) = written {
        eprintln!("dq board: --store: the history is not written down: {error}");
    }
}

impl Tab {
    /// The whole table, for a tab that fell behind.
    pub fn again(&mut self) -> Arc<Part> {
        let state = self.reader.state();
        self.changes = state.changes.subscribe();
        state.all()
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        let mut state = self.reader.state();
        state.tabs.remove(&self.number);
        state.pace(self.reader.interval);
        state.watch();
    }
}

impl State {
    /// The servers are read as often as configured while a tab is open or alerts are wanted.
    fn pace(&mut self, interval: Duration) {
        let wanted = !self.tabs.is_empty() || self.watcher.is_some();
        let pace = if wanted { interval } else { UNSEEN };
        if pace != self.pace {
            self.pace = pace;
            self.fleet.pace(pace);
        }
    }

    /// A watcher that knows the alerts from before the board started.
    fn watcher(&mut self, server: Option<String>, rules: Rules) -> Watcher {
        let mut watcher = Watcher::new(server, rules);
        let kept = self.history.alerts().unwrap_or_else(|error| {
            complain(Err(error));
            Vec::new()
        });
        if let Err(error) = self.remember(&mut watcher) {
            complain(Err(error));
        }
        for (taken, alert) in kept {
            if alert.state == alerts::State::Firing {
                watcher.goes_on(&alert, clock::now_ms());
            }
            if !taken {
                self.untold.push(alert);
            }
        }
        watcher
    }

    /// Gives the watcher the totals that a board before this one had seen.
    fn remember(&mut self, watcher: &mut Watcher) -> Result<(), String> {
        let (shown, _) = &self.shown;
        let seen = self.history.seen()?;
        if seen.as_ref().is_some_and(|seen| seen != shown) {
            return self.history.forget_totals();
        }
        for totals in self.history.totals()? {
            watcher.was_at(totals, clock::now_ms());
        }
        if seen.is_some() {
            watcher.saw_all();
            self.shown.1 = true;
        }
        Ok(())
    }

    /// Whether every queue that there is has been found and read.
    fn sees_all(&self) -> bool {
        let is_searched = |node: &NodeState| {
            let is_cluster = self.scope.cluster.unwrap_or_else(|| {
                let figures = node.figures.as_ref();
                figures.is_some_and(|figures| figures.info.cluster)
            });
            let is_known = node.topology.is_some() || !is_cluster;
            !node.counts() || (node.complete && is_known)
        };
        let is_read = |row: &Row| row.stats.is_some() || row.gone || row.refusal.is_some();
        self.servers.nodes.values().all(is_searched) && self.servers.board.rows().all(is_read)
    }

    fn alerts(&mut self) -> Vec<Alert> {
        let sees_all = self.watcher.is_some() && self.sees_all();
        let (servers, now_ms) = (&self.servers, clock::now_ms());
        let Some(watcher) = &mut self.watcher else {
            return Vec::new();
        };
        let rows = servers.board.rows();
        let rows = rows.filter(|row| !servers.is_down(&row.node));
        let nodes = servers.nodes.iter();
        let nodes = nodes.map(|(name, node)| {
            let seen = match (&node.down, &node.figures) {
                (Some(_), _) => Seen::Down,
                (None, None) if node.trouble.is_empty() => Seen::NotYet,
                _ => Seen::Up,
            };
            (name, seen)
        });
        let mut alerts = watcher.check(rows, nodes, sees_all, servers.now(), now_ms);
        alerts.extend(watcher.forget(|key| servers.board.row(key).is_some(), now_ms));
        let changed = watcher.changed();
        let (shown, is_kept) = &mut self.shown;
        let seen = (sees_all && !*is_kept).then_some(shown.as_str());
        if !changed.is_empty() || seen.is_some() {
            match self.history.keep_totals(&changed, seen) {
                Ok(()) => *is_kept |= seen.is_some(),
                Err(error) => {
                    watcher.not_kept(changed);
                    complain(Err(error));
                }
            }
        }
        if !alerts.is_empty() {
            complain(self.history.keep_alerts(&alerts));
        }
        alerts.splice(..0, self.untold.drain(..));
        alerts
    }

    fn hear(&mut self, report: Report) {
        if let News::Queues { read, .. } = &report.news {
            self.heard.extend(read.iter().map(|(key, _)| key.clone()));
        }
        if let News::Scanned { found, .. } = &report.news {
            self.heard.extend(found.iter().cloned());
        }
        let now_ms = clock::now_ms();
        match &report.news {
            News::Queues { read, .. } => {
                for (key, heard) in read {
                    if let Heard::Figures(stats) = heard {
                        self.shifts.read(key, stats, now_ms);
                    }
                }
            }
            News::Clients(Some(clients)) => self.shifts.connected(&report.node, clients, now_ms),
            News::Clients(None) | News::Down(_) => self.shifts.lost(&report.node),
            _ => {}
        }
        // These threads are never asked for details or actions.
        let _ = self.servers.hear(report);
        for out in std::mem::take(&mut self.servers.outbox) {
            self.fleet.carry_out(out);
        }
    }

    /// Records what all queues do, if a server says it.
    fn go_on(&mut self) {
        let speaks = |node: &NodeState| node.down.is_none() && node.figures.is_some();
        if self.servers.nodes.values().any(speaks) {
            let overall = self.overall();
            let told = match overall.servers {
                0 => Told::Rates(&overall.rates),
                servers => Told::Totals(servers, &overall.dq.totals),
            };
            self.course
                .add(clock::now_ms(), told, overall.dq.jobs[READY]);
        }
    }

    /// Has new nodes say who is connected, and forgets queues that are gone.
    fn look_after_workers(&mut self) {
        if self.watches.len() != self.servers.nodes.len() {
            self.watch();
        }
        let board = &self.servers.board;
        if self.shifts.len() > board.len() {
            self.shifts.retain(|key| board.row(key).is_some());
        }
    }

    /// A server reports sums over all its queues: they must not reveal queues that are not shown.
    fn overall(&self) -> Overall {
        let figures = self
            .servers
            .nodes
            .values()
            .filter_map(|node| node.figures.as_ref());
        let dbs = figures.flat_map(|figures| figures.info.dbs.iter().map(|(db, _)| *db));
        match self.scope.leaves_out(dbs) {
            true => Overall::of_queues(self.servers.board.rows()),
            false => self.servers.overall(),
        }
    }

    fn head(&self) -> Value {
        let overall = self.overall();
        let nodes = self.servers.nodes.iter().map(|(name, node)| {
            let info = node.figures.as_ref().map(|figures| &figures.info);
            json!({
                "name": name,
                "version": info.map(|info| &info.version),
                "role": info.map(|info| &info.role),
                "down": node.down,
                "trouble": node.trouble,
                "unsynced": info.is_some_and(|info| info.is_unsynced()),
                "complete": node.complete,
                "module": info.is_some_and(|info| info.dq.is_some()),
            })
        });
        json!({
            "nodes": nodes.collect::<Vec<_>>(),
            "queues": overall.dq.queues,
            "jobs": overall.dq.jobs,
            "doneBytes": overall.dq.done_bytes,
            "waiting": overall.dq.waiting_clients,
            "rates": overall.rates.map(|rate| (rate * 10.0).round() / 10.0),
            "late": overall.lateness_mean_us.map(f64::round),
            "whole": self.sees_all(),
        })
    }

    /// Brings the rows up to date. Returns the keys of the rows that changed, and of those that were removed.
    fn refresh(&mut self) -> (Vec<QueueKey>, Vec<QueueKey>) {
        let several = self.servers.board.several_dbs();
        let now = self.servers.now().here;
        let mut changed = Vec::new();
        for key in std::mem::take(&mut self.heard) {
            let Some(row) = self.servers.board.row(&key) else {
                continue;
            };
            let text: Arc<str> = wire::row(row, now, several).to_string().into();
            if self.rows.get(&key) != Some(&text) {
                self.rows.insert(key.clone(), text);
                changed.push(key);
            }
        }
        let board = &self.servers.board;
        let gone: Vec<QueueKey> = match self.rows.len() > board.len() {
            false => Vec::new(),
            true => {
                let keys = self.rows.keys();
                keys.filter(|key| board.row(key).is_none())
                    .cloned()
                    .collect()
            }
        };
        gone.iter().for_each(|key| drop(self.rows.remove(key)));
        (changed, gone)
    }

    fn tell(&mut self) {
        if let Some(change) = self.change() {
            // Fails if no tab listens, and then nobody needs it.
            let _ = self.changes.send(change);
        }
    }

    fn change(&mut self) -> Option<Arc<Part>> {
        let (changed, gone) = self.refresh();
        let head = self.head();
        if changed.is_empty() && gone.is_empty() && head == self.head {
            return None;
        }
        self.head = head;
        let rows = changed.iter().filter_map(|key| self.rows.get(key));
        let gone: Vec<String> = gone.iter().map(wire::name_of).collect();
        Some(self.message("some", rows, &gone))
    }

    fn all(&self) -> Arc<Part> {
        self.message("all", self.rows.values(), &[])
    }

    fn message<'a>(
        &self,
        kind: &str,
        rows: impl Iterator<Item = &'a Arc<str>>,
        gone: &[String],
    ) -> Arc<Part> {
        let rows: Vec<&str> = rows.map(|row| &**row).collect();
        let now = self.servers.now().server_ms;
        let head = self.head();
        let gone = json!(gone);
        let rows = rows.join(",");
        let json = format!(
            r#"{{"kind":"{kind}","now":{now},"head":{head},"gone":{gone},"rows":[{rows}]}}"#
        );
        Arc::new(Part::event(&json))
    }

    /// Tells the nodes which queues are on a screen.
    fn watch(&mut self) {
        let seen: BTreeSet<&QueueKey> = self.tabs.values().flatten().collect();
        let mut watches: HashMap<String, Watch> = HashMap::new();
        for key in seen {
            if let Some(row) = self.servers.board.row(key) {
                let watch = watches.entry(row.node.clone()).or_default();
                watch.visible.push(key.clone());
            }
        }
        let nodes = &self.servers.nodes;
        self.watches.retain(|name, _| nodes.contains_key(name));
        for name in nodes.keys() {
            let mut watch = watches.remove(name).unwrap_or_default();
            watch.clients = true;
            if self.watches.get(name) != Some(&watch) {
                self.watches.insert(name.clone(), watch.clone());
                let request = Request::Watch(watch);
                self.fleet.carry_out(Out::To(name.clone(), request));
            }
        }
    }
}
