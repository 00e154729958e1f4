//! The arguments.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use dq_connect::arguments::{password_of_environment, ServerArgs};
use dq_connect::target::Target;
use redis::Connection;

/// How long a server may take to connect, or to answer.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Args, Clone)]
#[command(after_help = "Exit status: 0 all in order, 1 the check failed, 2 an error.")]
pub struct Options {
    /// The server that holds the old structure: redis[s]://[user[:password]@]host[:port][/db] [default: the one with dq]
    #[arg(long, value_name = "URL", global = true)]
    from: Option<String>,
    /// Its password: as --pass
    #[arg(
        long,
        value_name = "PASSWORD",
        global = true,
        allow_hyphen_values = true
    )]
    from_pass: Option<String>,
    /// Trust certificates of that server that are signed by this CA [default: that of --cacert]
    #[arg(long, value_name = "FILE", global = true)]
    from_cacert: Option<PathBuf>,
    /// The key of the dq queue. Required
    #[arg(long, global = true, default_value = "", hide_default_value = true)]
    pub queue: String,
    #[command(flatten)]
    pub mode: Mode,
    #[command(flatten)]
    pub pace: Pace,
    #[command(flatten)]
    pub jobs: Jobs,
    #[command(flatten)]
    to: ServerArgs,
    #[command(subcommand)]
    pub source: SourceOptions,
}

impl Options {
    /// The server with dq: how it is called, and a connection.
    pub fn to(&self) -> Result<(String, Connection)> {
        opened(self.to.target(password_of_environment()))
    }

    pub fn from(&self) -> Result<Connection> {
        let Some(url) = &self.from else {
            return Ok(self.to()?.1);
        };
        let (password, cacert) = (self.from_pass.clone(), self.from_cacert.clone());
        let from = self.to.of_url(url, password, cacert);
        let opened = opened(from.target(None)).context("--from")?;
        Ok(opened.1)
    }
}

fn opened(target: Result<Target, String>) -> Result<(String, Connection)> {
    let target = target.map_err(anyhow::Error::msg)?;
    let server = target.open(target.db(), PATIENCE);
    Ok((target.name(), server.map_err(anyhow::Error::msg)?))
}

#[derive(Args, Clone)]
pub struct Mode {
    /// Reads and counts; writes nothing anywhere
    #[arg(long, global = true, group = "mode")]
    pub dry_run: bool,
    /// Only compares the source with what is in the queue
    #[arg(long, global = true, group = "mode")]
    pub check: bool,
    /// After the check, deletes the imported jobs from the source, unless they have changed there since
    #[arg(long, global = true, group = "mode")]
    pub delete_source: bool,
    /// With --delete-source: cancels imported jobs in the queue that have gone from the source since (an old
    /// worker took them, or they were cancelled there). Without it, they are only counted
    #[arg(long, global = true, requires = "delete_source")]
    pub cancel_gone: bool,
    /// Removes the ledger of this queue and source, when everything is done
    #[arg(long, global = true, group = "mode")]
    pub forget: bool,
    /// Accept imported jobs that are no longer in the queue: workers have finished them
    #[arg(long, global = true)]
    pub finished_ok: bool,
}

#[derive(Args, Clone)]
pub struct Pace {
    /// Jobs at a time; each batch is one script on the server with dq
    #[arg(long, global = true, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub batch: u32,
    /// At most this many jobs per second; 0: no limit
    #[arg(long, global = true, default_value_t = 20_000)]
    pub rate: u32,
}

#[derive(Args, Clone)]
pub struct Jobs {
    /// Put before each id, if two sources go into one queue
    #[arg(long, global = true, default_value = "")]
    pub id_prefix: String,
    /// The lease of the jobs in ms, instead of what the source says or the queue's own
    #[arg(long, global = true)]
    pub ttr: Option<u64>,
    /// Deliveries allowed, instead of what the source says or the queue's own; 0: without limit
    #[arg(long, global = true)]
    pub attempts: Option<u64>,
    /// Only jobs due later than this many ms from now; the others stay with the old workers
    #[arg(long, global = true)]
    pub due_after: Option<u64>,
}

/// Where the job's id comes from. Without either it is a hash: of the member, or of Redisson's own id.
#[derive(Args, Clone)]
pub struct IdOptions {
    /// In this field of the payload, which is a JSON object
    #[arg(long, value_name = "FIELD")]
    pub id_json: Option<String>,
    /// In the payload, which is plain text or a JSON string: {id} stands for it, as in order:{id}. {id} alone: all of it
    #[arg(long, value_name = "PATTERN", conflicts_with = "id_json")]
    pub id_text: Option<String>,
}

#[derive(Subcommand, Clone)]
pub enum SourceOptions {
    /// A dq queue, whole: by DUMP and RESTORE, also between Redis and Valkey, and to older servers
    Dq {
        key: String,
        /// Job by job, as other sources; also where a dump would be larger than the target's proto-max-bulk-len
        #[arg(long)]
        by_commands: bool,
    },
    /// A polled sorted set: the score is the due time, the member is the payload
    Zset {
        key: String,
        #[arg(long, default_value = "ms")]
        unit: Unit,
        #[command(flatten)]
        id: IdOptions,
    },
    /// A sorted set of ids: the score is the due time, the payloads are stored elsewhere
    Ids {
        key: String,
        #[arg(long, default_value = "ms")]
        unit: Unit,
        /// One hash holds all payloads: its key; the field is the id
        #[arg(
            long,
            required_unless_present = "payload_key",
            conflicts_with = "payload_key"
        )]
        payload_hash: Option<String>,
        /// One key for each job, with {id} in its place, such as job:{id}: a string, or a hash with --payload-field
        #[arg(long)]
        payload_key: Option<String>,
        #[arg(long, requires = "payload_key")]
        payload_field: Option<String>,
    },
    /// Redisson's RDelayedQueue, by the name of its RQueue
    Redisson {
        name: String,
        /// How its members are packed; they differ between versions of Redisson
        #[arg(long, default_value = "auto")]
        packing: Packing,
        /// Also what is already due, in its list: when all of Redisson's producers and consumers are stopped
        #[arg(long)]
        due: bool,
        #[command(flatten)]
        id: IdOptions,
    },
    /// The delayed jobs of a BullMQ queue, by its name
    Bullmq {
        name: String,
        #[arg(long, default_value = "bull")]
        prefix: String,
        /// The payload: the job's data alone, or {"name":...,"data":...}
        #[arg(long, default_value = "named")]
        payload: BullPayload,
        /// Also what is already due: when all of BullMQ's workers are stopped
        #[arg(long)]
        due: bool,
    },
    /// The job schedulers of a BullMQ queue, by its name: they become recurring jobs
    BullmqSchedulers {
        name: String,
        #[arg(long, default_value = "bull")]
        prefix: String,
        /// The payload: the job's data alone, or {"name":...,"data":...}
        #[arg(long, default_value = "named")]
        payload: BullPayload,
        /// The zone of patterns that name none: for BullMQ that is the zone of its own process
        #[arg(long)]
        tz: Option<String>,
    },
    /// The lines of a crontab file (- reads standard input): they become recurring jobs
    Crontab {
        file: String,
        /// The zone of lines without CRON_TZ or TZ before them: for cron that is the machine's own
        #[arg(long)]
        tz: Option<String>,
        /// Each line names a user before the command, as in /etc/crontab
        #[arg(long)]
        system: bool,
    },
    /// A tube of beanstalkd: its delayed and ready jobs
    Beanstalkd {
        tube: String,
        #[arg(long, default_value = "127.0.0.1:11300")]
        address: String,
        /// Where to begin, if there is no job of a smaller id
        #[arg(long, default_value_t = 1)]
        first_id: u64,
    },
}

impl SourceOptions {
    /// Whether what is already due is wanted, too.
    pub fn due(&self) -> bool {
        matches!(
            self,
            SourceOptions::Redisson { due: true, .. } | SourceOptions::Bullmq { due: true, .. }
        )
    }

    /// Names the source among those that go into one queue.
    pub fn name(&self) -> String {
        match self {
            SourceOptions::Dq { key, .. } => format!("dq {key}"),
            SourceOptions::Zset { key, .. } => format!("zset {key}"),
            SourceOptions::Ids { key, .. } => format!("ids {key}"),
            SourceOptions::Redisson { name, .. } => format!("redisson {name}"),
            SourceOptions::Bullmq { name, prefix, .. } => format!("bullmq {prefix}:{name}"),
            SourceOptions::BullmqSchedulers { name, prefix, .. } => {
                format!("bullmq-schedulers {prefix}:{name}")
            }
            SourceOptions::Crontab { file, .. } => format!("crontab {file}"),
            SourceOptions::Beanstalkd { tube, .. } => format!("beanstalkd {tube}"),
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum, PartialEq)]
pub enum Unit {
    S,
    Ms,
}

impl Unit {
    /// How many milliseconds one of a score is.
    pub fn ms_each(self) -> f64 {
        match self {
            Unit::S => 1000.0,
            Unit::Ms => 1.0,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum, PartialEq)]
pub enum Packing {
    Auto,
    /// An id of 8 bytes with its length before it: current versions of Redisson
    Bytes,
    /// The id is a double: older versions
    Double,
}

#[derive(Clone, Copy, Debug, ValueEnum, PartialEq)]
pub enum BullPayload {
    Named,
    Data,
}
