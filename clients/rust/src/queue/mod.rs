//! Adds jobs, and has every command of dq as a method.

mod by_hand;
mod flows;
mod job_info;
mod look;
mod new_job;
mod options;
mod reading;
mod records;
mod rule;
mod settings;
mod stats;
mod waits;

pub use job_info::JobInfo;
pub use look::{Peek, Scan};
pub use new_job::{Adding, IfExists, NewJob};
pub use options::{Nack, NackMode, Pop, Reschedule};
pub use records::{Group, Peeked, Reserved, State};
pub use rule::RecurrenceRule;
pub use settings::{QueueSettings, Rate};
pub use stats::{LatenessBucket, Stats, Totals};

use crate::codec::Codec;
use crate::error::Error;
use crate::hooks::Hooks;
use crate::keys::crc_32;
use crate::server::{answer, Server};
use crate::values;
use new_job::Rule;
use redis::{cmd, Cmd, Value};
use serde::Serialize;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// A queue. Clones are the same queue; it may be used by many tasks at a time.
#[derive(Clone)]
pub struct Queue(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    name: String,
    shards: usize,
    keys: Vec<Arc<[u8]>>,
    server: Server,
    hooks: Vec<Hooks>,
    waits: Arc<Mutex<waits::Waits>>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({:?} on {:?})", self.0.name, self.0.server)
    }
}

impl Queue {
    /// By the URL of its server: see [`Server::open`]. It connects when it is first needed.
    pub fn open(url: &str, name: &str) -> Result<Self, Error> {
        Ok(Queue::on(&Server::open(url)?, name))
    }

    /// On a server, which other queues may share.
    pub fn on(server: &Server, name: &str) -> Self {
        Queue(Arc::new(Inner {
            name: name.to_owned(),
            shards: 0,
            keys: vec![name.as_bytes().into()],
            server: server.clone(),
            hooks: Vec::new(),
            waits: Arc::default(),
        }))
    }

    fn changed(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        change(&mut inner);
        Queue(Arc::new(inner))
    }

    /// Spread over so many keys, `name:{0}` to `name:{n-1}`, by the CRC-32 of the id.
    pub fn shards(self, count: usize) -> Self {
        self.changed(|inner| {
            inner.shards = count;
            let key = |shard| format!("{}:{{{shard}}}", inner.name).into_bytes().into();
            inner.keys = match count {
                0 => vec![inner.name.as_bytes().into()],
                count => (0..count).map(key).collect(),
            };
        })
    }

    /// Whose `adding` is called before each job is added.
    pub fn hooks(self, hooks: Hooks) -> Self {
        self.changed(|inner| inner.hooks.push(hooks))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Closes its connections; the next command opens them again.
    pub fn close(&self) {
        self.0.server.close();
        waits::close(&self.0.waits);
    }

    pub(crate) fn server(&self) -> &Server {
        &self.0.server
    }

    pub(crate) fn keys(&self) -> &[Arc<[u8]>] {
        &self.0.keys
    }

    pub(crate) fn is_sharded(&self) -> bool {
        self.0.shards > 0
    }

    fn key(&self, id: &[u8]) -> &Arc<[u8]> {
        match self.0.shards {
            0 => &self.0.keys[0],
            shards => &self.0.keys[crc_32(id) as usize % shards],
        }
    }

    // --- Adding

    /// Adds a job with data that serde can serialize, due now or when the options say.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn add(queue: dq_redis::Queue) -> Result<(), dq_redis::Error> {
    /// queue.add(&"order 17").id("close:17").delay(Duration::from_secs(1800)).await?;
    /// # Ok(()) }
    /// ```
    pub fn add<T: Serialize + ?Sized>(&self, data: &T) -> Adding<'_> {
        Adding {
            queue: self,
            job: NewJob::new(data),
        }
    }

    /// Adds a job whose data that codec writes: [`Job::decode_with`](crate::Job::decode_with) reads them.
    pub fn add_with<T: Serialize + ?Sized>(&self, codec: &impl Codec, data: &T) -> Adding<'_> {
        Adding {
            queue: self,
            job: NewJob::with_codec(codec, data),
        }
    }

    /// Adds a job whose payload is these bytes.
    pub fn add_bytes(&self, data: impl Into<Vec<u8>>) -> Adding<'_> {
        Adding {
            queue: self,
            job: NewJob::bytes(data),
        }
    }

    /// Has a job come each interval, the first one after an interval unless `at` or `delay` say when. It needs an id. Say
    /// it again at each start: the same rule goes on as it was.
    pub fn every<T: Serialize + ?Sized>(&self, interval: Duration, data: &T) -> Adding<'_> {
        self.rule(Rule::Every(interval), data)
    }

    /// Has a job come by a cron expression, in the zone of [`Adding::tz`]. See [`Queue::every`].
    pub fn cron<T: Serialize + ?Sized>(&self, expression: &str, data: &T) -> Adding<'_> {
        self.rule(Rule::Cron(expression.to_owned()), data)
    }

    fn rule<T: Serialize + ?Sized>(&self, rule: Rule, data: &T) -> Adding<'_> {
        let mut job = NewJob::new(data);
        job.options.rule = Some(rule);
        job.options.if_exists = IfExists::Replace;
        Adding { queue: self, job }
    }

    async fn add_now(&self, mut job: NewJob) -> Result<Option<String>, Error> {
        if job.options.rule.is_some() && job.options.id.is_none() {
            return Err(Error::usage(
                "a recurring job needs an id: queue.every(interval, &data).id(\"report\")",
            ));
        }
        self.adding(&mut job);
        let id = job.options.id_or_new();
        let key = self.key(&id).clone();
        let reply = self.0.server.ask(&key, &job.command(&key, &id)?).await?;
        let is_own = job.options.is_own();
        Ok(added(is_own, id, reply))
    }

    /// Adds many jobs in few round trips, and returns their ids as [`Queue::add`] does. Where all of a shard have the
    /// same options, all are added or none.
    pub async fn add_many(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
    ) -> Result<Vec<Option<String>>, Error> {
        self.add_all(jobs).await
    }

    fn adding(&self, job: &mut NewJob) {
        for hooks in &self.0.hooks {
            hooks.adding(&self.0.name, job.headers_mut());
        }
    }

    // --- Asking

    async fn ask(&self, id: &[u8], command: &Cmd) -> Result<Value, Error> {
        self.0.server.ask(self.key(id), command).await
    }

    /// The same to every shard; in each its answer.
    async fn each(&self, command: &str, rest: impl Fn(&mut Cmd)) -> Result<Vec<Value>, Error> {
        let commands = self.keys().iter().map(|key| {
            let mut words = cmd(command);
            words.arg(&**key);
            rest(&mut words);
            (key.clone(), words)
        });
        self.all(commands.collect()).await
    }

    /// Commands of several keys: in a cluster one after the other, else in one write.
    async fn all(&self, commands: Vec<(Arc<[u8]>, Cmd)>) -> Result<Vec<Value>, Error> {
        let server = &self.0.server;
        let mut replies = Vec::with_capacity(commands.len());
        if server.is_cluster() {
            for (key, command) in &commands {
                replies.push(server.ask(key, command).await?);
            }
            return Ok(replies);
        }
        let Some((first, _)) = commands.first() else {
            return Ok(replies);
        };
        let first = first.clone();
        let mut pipe = redis::Pipeline::with_capacity(commands.len());
        commands
            .into_iter()
            .for_each(|(_, command)| _ = pipe.add_command(command));
        server
            .ask_all(&first, &pipe)
            .await?
            .into_iter()
            .map(answer)
            .collect()
    }

    async fn sum(&self, command: &str, rest: impl Fn(&mut Cmd)) -> Result<u64, Error> {
        let replies = self.each(command, rest).await?;
        Ok(replies
            .iter()
            .map(|reply| values::int(reply).max(0) as u64)
            .sum())
    }

    /// Those of each key together, with their places.
    fn by_key<I: AsRef<[u8]>>(&self, ids: impl IntoIterator<Item = I>) -> Vec<Placed> {
        let mut groups: Vec<Placed> = Vec::new();
        for (at, id) in ids.into_iter().enumerate() {
            let id = id.as_ref().to_vec();
            let key = self.key(&id);
            match groups.iter_mut().find(|(known, _)| known == key) {
                Some((_, group)) => group.push((at, id)),
                None => groups.push((key.clone(), vec![(at, id)])),
            }
        }
        groups
    }

    /// For commands that take many ids, and answer how many they found.
    async fn count<I: AsRef<[u8]>>(
        &self,
        command: &str,
        ids: impl IntoIterator<Item = I>,
        before: impl Fn(&mut Cmd, usize),
    ) -> Result<u64, Error> {
        let commands = self.by_key(ids).into_iter().map(|(key, group)| {
            let mut words = cmd(command);
            words.arg(&*key);
            before(&mut words, group.len());
            group.iter().for_each(|(_, id)| _ = words.arg(id));
            (key, words)
        });
        let replies = self.all(commands.collect()).await?;
        Ok(replies
            .iter()
            .map(|reply| values::int(reply).max(0) as u64)
            .sum())
    }
}

/// Ids of one key, each with its place in the list that was given.
type Placed = (Arc<[u8]>, Vec<(usize, Vec<u8>)>);

/// The id of a job that was added.
fn added(is_own: bool, id: Vec<u8>, reply: Value) -> Option<String> {
    match reply {
        Value::Nil if is_own => Some(values::lossy(id)),
        reply => values::text(reply),
    }
}

/// An instant of a command's option.
fn instant(to: &mut Cmd, name: &str, at: Option<SystemTime>) {
    if let Some(at) = at {
        to.arg(name).arg(values::instant_ms(at));
    }
}

fn duration(to: &mut Cmd, name: &str, length: Option<Duration>) {
    if let Some(length) = length {
        to.arg(name).arg(values::ms(length));
    }
}
