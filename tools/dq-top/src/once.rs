//! `--once`: a table for scripts. Two readings of all queues, an interval apart; plain numbers with their units in the
//! titles, a minus where there is no value, columns separated by spaces.

use std::thread;
use std::time::Instant;

use dq_connect::link::Link;
use dq_connect::scope::Dbs;
use dq_connect::target::Target;

use crate::options::Options;
use dq_watch::model::board::Board;
use dq_watch::model::column::{Column, Now, ALL};
use dq_watch::model::lateness::Late;
use dq_watch::model::overall::ServerInfo;
use dq_watch::model::row::Row;
use dq_watch::model::stats::{ACKED, ADDED, DELIVERED};
use dq_watch::model::QueueKey;
use dq_watch::read::cluster::Topology;
use dq_watch::read::known::{Known, Search, AT_ONCE, SCAN_COUNT};
use dq_watch::read::reply;
use dq_watch::text::escape;

/// A server, and its queues.
struct Source {
    name: String,
    link: Link,
    queues: Vec<QueueKey>,
    info: ServerInfo,
}

pub fn table(options: &Options) -> Result<String, String> {
    let mut sources = Vec::new();
    for target in targets(options)? {
        let name = target.name();
        let source = Source::open(target, options);
        sources.push(source.map_err(|error| format!("{name}: {error}"))?);
    }
    let mut board = Board::default();
    for again in [false, true] {
        if again {
            thread::sleep(options.scope.interval);
        }
        for source in &mut sources {
            source.read(&mut board, options)?;
        }
    }
    let clocks = sources.iter().filter_map(|source| source.info.clock_ms);
    let now = Now {
        here: Instant::now(),
        server_ms: clocks.max().unwrap_or(0) + options.scope.interval.as_millis() as i64,
    };
    Ok(printed(
        &board.ordered(&options.order, now),
        board.several_dbs(),
        now,
    ))
}

/// All masters of a cluster, else the one server.
fn targets(options: &Options) -> Result<Vec<Target>, String> {
    let first = &options.target;
    let name = first.name();
    let mut link = first
        .connect()
        .map_err(|error| format!("{name}: {error}"))?;
    let cluster = match options.scope.cluster {
        Some(cluster) => cluster,
        None => {
            let info = info(&mut link);
            info.map_err(|error| format!("{name}: {error}"))?.cluster
        }
    };
    if !cluster {
        return Ok(vec![first.clone()]);
    }
    let said = link.call(0, redis::cmd("CLUSTER").arg("NODES").to_owned())?;
    let text = reply::text(&said).ok_or_else(|| reply::error(&said).unwrap_or_default())?;
    let masters = Topology::parse(&text, &first.host()).masters;
    masters
        .iter()
        .map(|address| first.at(address).ok_or(format!("no address: {address}")))
        .collect()
}

fn info(link: &mut Link) -> Result<ServerInfo, String> {
    let said = link.call(0, dq_watch::read::node::info_command())?;
    // A user who may not call INFO may still read queues.
    Ok(reply::text(&said)
        .map(|text| ServerInfo::parse(&text))
        .unwrap_or_default())
}

impl Source {
    fn open(target: Target, options: &Options) -> Result<Source, String> {
        let mut link = target.connect()?;
        let info = info(&mut link)?;
        if info.dq.is_none() && !info.version.is_empty() {
            return Err(format!("{} without the module dq", info.version));
        }
        let dbs: Vec<u32> = match &options.scope.dbs {
            Dbs::These(dbs) => dbs.clone(),
            Dbs::All => info.dbs.iter().map(|&(db, _)| db).collect(),
        };
        let queues = match options.scope.queues.as_slice() {
            [] => search(&mut link, dbs)?,
            names => {
                let keys = |&db: &u32| {
                    names
                        .iter()
                        .map(move |name| QueueKey::new(db, name.clone()))
                };
                dbs.iter().flat_map(keys).collect()
            }
        };
        Ok(Source {
            name: target.name(),
            link,
            queues,
            info,
        })
    }

    fn read(&mut self, board: &mut Board, options: &Options) -> Result<(), String> {
        for keys in self.queues.chunks(AT_ONCE) {
            let commands = keys
                .iter()
                .map(|key| (key.db, dq_watch::read::node::stats_of(key)));
            let said = self.link.look(commands.collect())?;
            let at = Instant::now();
            for (key, value) in keys.iter().zip(&said) {
                match (reply::stats(value), reply::error(value)) {
                    (Some(stats), _) => {
                        board.read(key, &self.name, stats, at, options.scope.interval)
                    }
                    // In a cluster a named queue is on one of the nodes only. Any other error is shown.
                    (None, Some(error)) if reply::moved_to(&error).is_none() => {
                        return Err(format!("{}: {error}", escape::name(&key.name)));
                    }
                    _ => board.forget(key, &self.name),
                }
            }
        }
        Ok(())
    }
}

fn search(link: &mut Link, dbs: Vec<u32>) -> Result<Vec<QueueKey>, String> {
    let mut found = Known::default();
    let mut list = Vec::new();
    let mut search = Search::new(dbs);
    while !search.complete() {
        let Some(step) = search.step() else {
            break;
        };
        let said = link.call(step.0, dq_watch::read::node::scan(&step, SCAN_COUNT).1)?;
        let Some([cursor, names]) = reply::array(&said) else {
            return Err(reply::error(&said).unwrap_or_default());
        };
        search.went_on(step.0, reply::bytes(cursor).unwrap_or_default());
        for name in reply::array(names)
            .unwrap_or_default()
            .iter()
            .filter_map(reply::bytes)
        {
            let key = QueueKey::new(step.0, name);
            if found.add(key.clone()) {
                list.push(key);
            }
        }
    }
    Ok(list)
}

fn printed(rows: &[&Row], several_dbs: bool, now: Now) -> String {
    // Columns that were added later come last, as scripts count columns.
    let later = [Column::Blocked, Column::Done];
    let first = ALL.into_iter().filter(|it| !later.contains(it));
    let columns = first.filter(|it| *it != Column::Trend).chain(later);
    let mut table: Vec<Vec<String>> =
        vec![columns.clone().map(|it| title(it).to_owned()).collect()];
    for row in rows {
        table.push(
            columns
                .clone()
                .map(|column| cell(column, row, several_dbs, now))
                .collect(),
        );
    }
    // A longer name shifts its own line; the others are not filled up to it.
    const WIDEST: usize = 64;
    let width_of = |column: usize| {
        use unicode_width::UnicodeWidthStr;
        let widths = table.iter().map(|line| line[column].width());
        widths.filter(|&width| width <= WIDEST).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table[0].len()).map(width_of).collect();
    let mut text = String::new();
    for line in &table {
        text.push_str(&escape::pad(&line[0], widths[0]));
        for (value, width) in line.iter().zip(&widths).skip(1) {
            text.push_str(&format!("  {value:>width$}"));
        }
        text.push('\n');
    }
    text
}

fn title(column: Column) -> &'static str {
    match column {
        Column::Added => "added/s",
        Column::Delivered => "delivered/s",
        Column::Acked => "acked/s",
        Column::LateP50 => "late-p50-us",
        Column::LateP99 => "late-p99-us",
        Column::Oldest => "oldest-ms",
        Column::NextDue => "next-ms",
        other => other.name(),
    }
}

fn cell(column: Column, row: &Row, several_dbs: bool, now: Now) -> String {
    let or_minus = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let rate = |of: usize| format!("{:.1}", row.rates[of]);
    let late = |late: Option<Late>| {
        or_minus(late.map(|late| match late {
            Late::AtMost(us) => us.to_string(),
            Late::Over(us) => format!(">{us}"),
        }))
    };
    let stats = row.stats.as_ref();
    let number = |value: Option<u64>| or_minus(value.map(|value| value.to_string()));
    match column {
        Column::Queue if several_dbs => format!("{}:{}", row.key.db, escape::word(&row.key.name)),
        Column::Queue => escape::word(&row.key.name),
        Column::Delayed => row.jobs(0).to_string(),
        Column::Ready => row.jobs(1).to_string(),
        Column::Reserved => row.jobs(2).to_string(),
        Column::Dead => row.jobs(3).to_string(),
        Column::Blocked => row.jobs(4).to_string(),
        Column::Done => row.jobs(5).to_string(),
        Column::Added => rate(ADDED),
        Column::Delivered => rate(DELIVERED),
        Column::Acked => rate(ACKED),
        Column::LateP50 => late(row.percentile(0.50, now.here)),
        Column::LateP99 => late(row.percentile(0.99, now.here)),
        Column::Oldest => number(stats.and_then(|stats| stats.oldest_ready_ms)),
        Column::NextDue => {
            let due = stats.and_then(|stats| stats.next_due);
            or_minus(due.map(|due| (due - now.server_ms).max(0).to_string()))
        }
        Column::Waiting => number(stats.map(|stats| stats.waiting_clients)),
        Column::Paused => if row.is_paused() { "yes" } else { "no" }.to_owned(),
        Column::Trend => String::new(),
    }
}
