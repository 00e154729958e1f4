//! What a server says of itself, and the sums over all servers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::row::Row;
use super::stats::{rates, Jobs, Rates, Totals, STATES, TOTALS};

/// What one INFO says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerInfo {
    /// `Redis 7.0.15`.
    pub version: String,
    pub role: String,
    /// The master of a replica that has lost it, and for how long in seconds, if it ever had it.
    pub lost_master: Option<(String, Option<u64>)>,
    pub uptime_s: u64,
    pub memory: u64,
    pub max_memory: u64,
    pub clients: u64,
    pub ops_per_s: u64,
    pub clock_ms: Option<i64>,
    pub cluster: bool,
    pub loading: bool,
    /// (db, keys).
    pub dbs: Vec<(u32, u64)>,
    /// None where the module is not loaded.
    pub dq: Option<DqInfo>,
}

/// The section of dq in INFO.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DqInfo {
    pub queues: u64,
    pub jobs: Jobs,
    pub done_bytes: u64,
    pub waiting_clients: u64,
    pub totals: Totals,
    pub lateness_count: u64,
    pub lateness_sum_us: u64,
    pub lateness_max_us: u64,
    pub timer_fires: u64,
    pub timer_late_us_max: u64,
}

impl ServerInfo {
    /// Whether it is a replica that has not reached its master since it started: what it lacks may be there. In a cluster
    /// the masters report the queues.
    pub fn is_unsynced(&self) -> bool {
        !self.cluster && matches!(self.lost_master, Some((_, None)))
    }

    pub fn parse(text: &str) -> ServerInfo {
        let fields: HashMap<&str, &str> = text
            .lines()
            .filter_map(|line| line.trim_end().split_once(':'))
            .collect();
        let word = |name: &str| fields.get(name).copied().unwrap_or_default();
        let number = |name: &str| word(name).parse::<u64>().unwrap_or_default();
        let (family, version) = match word("valkey_version") {
            "" => ("Redis", word("redis_version")),
            version => ("Valkey", version),
        };
        ServerInfo {
            version: format!("{family} {version}"),
            role: word("role").to_owned(),
            lost_master: (word("master_link_status") == "down").then(|| {
                let master = format!("{}:{}", word("master_host"), word("master_port"));
                (master, word("master_link_down_since_seconds").parse().ok())
            }),
            uptime_s: number("uptime_in_seconds"),
            memory: number("used_memory"),
            max_memory: number("maxmemory"),
            clients: number("connected_clients"),
            ops_per_s: number("instantaneous_ops_per_sec"),
            clock_ms: word("server_time_usec")
                .parse::<i64>()
                .ok()
                .map(|us| us / 1000),
            cluster: number("cluster_enabled") == 1,
            loading: number("loading") == 1,
            dbs: fields
                .iter()
                .filter_map(|(name, value)| keys_of(name, value))
                .collect(),
            dq: fields
                .contains_key("dq_queues")
                .then(|| DqInfo::parse(&number)),
        }
    }
}

/// `db3:keys=12,expires=0,...`
fn keys_of(name: &str, value: &str) -> Option<(u32, u64)> {
    let db = name.strip_prefix("db")?.parse().ok()?;
    let keys = value.strip_prefix("keys=")?.split(',').next()?;
    Some((db, keys.parse().ok()?))
}

impl DqInfo {
    fn parse(number: &dyn Fn(&str) -> u64) -> DqInfo {
        let total = |name: &str| number(&format!("dq_{}_total", name.replace('-', "_")));
        DqInfo {
            queues: number("dq_queues"),
            jobs: STATES.map(|state| number(&format!("dq_jobs_{state}"))),
            done_bytes: number("dq_done_bytes"),
            waiting_clients: number("dq_waiting_clients"),
            totals: TOTALS.map(total),
            lateness_count: number("dq_lateness_us_count"),
            lateness_sum_us: number("dq_lateness_us_sum"),
            lateness_max_us: number("dq_lateness_us_max"),
            timer_fires: number("dq_timer_fires_total"),
            timer_late_us_max: number("dq_timer_late_us_max"),
        }
    }

    fn add(&mut self, other: &DqInfo) {
        self.queues += other.queues;
        self.done_bytes += other.done_bytes;
        self.waiting_clients += other.waiting_clients;
        for (mine, theirs) in self.jobs.iter_mut().zip(other.jobs) {
            *mine += theirs;
        }
        for (mine, theirs) in self.totals.iter_mut().zip(other.totals) {
            *mine += theirs;
        }
        self.lateness_count += other.lateness_count;
        self.lateness_sum_us += other.lateness_sum_us;
        self.lateness_max_us = self.lateness_max_us.max(other.lateness_max_us);
        self.timer_fires += other.timer_fires;
        self.timer_late_us_max = self.timer_late_us_max.max(other.timer_late_us_max);
    }
}

/// What is known from the readings of one server.
#[derive(Clone, Debug)]
pub struct Figures {
    pub info: ServerInfo,
    pub rates: Rates,
    pub timer_fires_per_s: f64,
    /// Mean of the deliveries between the last two readings with deliveries.
    pub lateness_mean_us: Option<f64>,
    read_at: Instant,
    clock_read_at: Option<(i64, Instant)>,
}

impl Figures {
    pub fn first(info: ServerInfo, at: Instant) -> Figures {
        Figures {
            clock_read_at: info.clock_ms.map(|clock| (clock, at)),
            info,
            rates: Rates::default(),
            timer_fires_per_s: 0.0,
            lateness_mean_us: None,
            read_at: at,
        }
    }

    pub fn next(&mut self, info: ServerInfo, at: Instant) {
        let seconds = at.saturating_duration_since(self.read_at).as_secs_f64();
        if let (Some(old), Some(new)) = (&self.info.dq, &info.dq) {
            self.rates = rates(&old.totals, &new.totals, seconds);
            let fires = new.timer_fires.saturating_sub(old.timer_fires);
            self.timer_fires_per_s = if seconds > 0.0 {
                fires as f64 / seconds
            } else {
                0.0
            };
            let count = new.lateness_count.saturating_sub(old.lateness_count);
            if count > 0 {
                let sum = new.lateness_sum_us.saturating_sub(old.lateness_sum_us);
                self.lateness_mean_us = Some(sum as f64 / count as f64);
            }
        }
        if let Some(clock) = info.clock_ms {
            self.clock_read_at = Some((clock, at));
        }
        self.info = info;
        self.read_at = at;
    }

    /// The server's clock at this moment, if it reports one.
    pub fn clock_ms(&self, now: Instant) -> Option<i64> {
        let (clock, at) = self.clock_read_at?;
        Some(clock + now.saturating_duration_since(at).as_millis() as i64)
    }
}

/// Sums over several servers.
#[derive(Clone, Debug, Default)]
pub struct Overall {
    pub servers: usize,
    pub dq: DqInfo,
    pub rates: Rates,
    pub timer_fires_per_s: f64,
    pub lateness_mean_us: Option<f64>,
    pub memory: u64,
    pub max_memory: u64,
    pub clients: u64,
    pub ops_per_s: u64,
    /// Of the server that started last.
    pub uptime: Duration,
}

impl Overall {
    /// The sums of these queues alone. Their lateness as a whole is not known.
    pub fn of_queues<'a>(rows: impl Iterator<Item = &'a Row>) -> Overall {
        let mut sum = Overall::default();
        for row in rows.filter(|row| !row.gone) {
            let Some(stats) = &row.stats else { continue };
            sum.dq.add(&DqInfo {
                queues: 1,
                jobs: stats.jobs,
                done_bytes: stats.done_bytes,
                waiting_clients: stats.waiting_clients,
                ..DqInfo::default()
            });
            for (mine, its) in sum.rates.iter_mut().zip(row.rates) {
                *mine += its;
            }
        }
        sum
    }

    pub fn of<'a>(figures: impl Iterator<Item = &'a Figures>) -> Overall {
        let mut sum = Overall::default();
        for one in figures {
            let uptime = Duration::from_secs(one.info.uptime_s);
            sum.uptime = if sum.servers == 0 {
                uptime
            } else {
                sum.uptime.min(uptime)
            };
            sum.servers += 1;
            if let Some(dq) = &one.info.dq {
                sum.dq.add(dq);
            }
            for (mine, theirs) in sum.rates.iter_mut().zip(one.rates) {
                *mine += theirs;
            }
            sum.timer_fires_per_s += one.timer_fires_per_s;
            sum.lateness_mean_us = match (sum.lateness_mean_us, one.lateness_mean_us) {
                (Some(mine), Some(theirs)) => Some(f64::max(mine, theirs)),
                (mine, theirs) => mine.or(theirs),
            };
            sum.memory += one.info.memory;
            sum.max_memory += one.info.max_memory;
            sum.clients += one.info.clients;
            sum.ops_per_s += one.info.ops_per_s;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.0.1\r\n\
        server_time_usec:1795159827556123\r\nuptime_in_seconds:12\r\nrole:master\r\n\
        db0:keys=3,expires=0,avg_ttl=0\r\ndb15:keys=40,expires=1\r\ncluster_enabled:0\r\n\
        # dq\r\ndq_queues:2\r\ndq_jobs_ready:7\r\ndq_jobs_done:3\r\n\
        dq_jobs_blocked:2\r\ndq_done_bytes:900\r\ndq_timed_out_total:5\r\ndq_added_total:100\r\n\
        dq_lateness_us_count:10\r\ndq_lateness_us_sum:5000\r\n";

    #[test]
    fn info_is_read() {
        let mut info = ServerInfo::parse(INFO);
        info.dbs.sort();
        assert_eq!(info.version, "Valkey 8.0.1");
        assert_eq!(info.clock_ms, Some(1_795_159_827_556));
        assert_eq!(info.dbs, [(0, 3), (15, 40)]);
        let dq = info.dq.expect("the module is there");
        assert_eq!(
            (dq.queues, dq.jobs, dq.totals[4]),
            (2, [0, 7, 0, 0, 2, 3], 5)
        );
        assert_eq!(info.lost_master, None);
        let lost = |down: &str| {
            let link =
                "role:slave\r\nmaster_host:a\r\nmaster_port:1\r\nmaster_link_status:down\r\n";
            ServerInfo::parse(&format!("{link}master_link_down_since_seconds:{down}\r\n"))
                .lost_master
        };
        assert_eq!(lost("7"), Some(("a:1".to_owned(), Some(7))));
        assert_eq!(lost("-1"), Some(("a:1".to_owned(), None)), "never had it");
        let of = |lost_master| ServerInfo {
            lost_master,
            ..ServerInfo::default()
        };
        let unsynced = ["7", "-1"].map(|down| of(lost(down)).is_unsynced());
        assert_eq!(unsynced, [false, true]);
        let plain = ServerInfo::parse("redis_version:7.0.15\r\n");
        assert_eq!((plain.version.as_str(), plain.dq), ("Redis 7.0.15", None));
    }

    #[test]
    fn rates_are_summed_over_servers() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let old = ServerInfo::parse(INFO);
        let mut new = old.clone();
        let dq = new.dq.as_mut().unwrap();
        dq.totals[0] += 30;
        dq.lateness_count += 4;
        dq.lateness_sum_us += 1000;
        let mut figures = Figures::first(old, start);
        figures.next(new, start + 2 * second);
        assert_eq!(figures.lateness_mean_us, Some(250.0));
        assert_eq!(
            figures.clock_ms(start + 5 * second),
            Some(1_795_159_830_556)
        );
        let sum = Overall::of([&figures, &figures].into_iter());
        assert_eq!((sum.servers, sum.dq.queues, sum.rates[0]), (2, 4, 30.0));
        assert_eq!((sum.dq.jobs[5], sum.dq.done_bytes), (6, 1800));
    }
}
