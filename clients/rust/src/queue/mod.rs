//! Adds jobs, and has every command of dq as a method.

mod adding;
mod as_id;
mod batch;
mod bpop;
mod by_hand;
mod explanation;
mod flows;
mod group;
pub(crate) mod job_info;
mod join;
mod new_job;
mod opened;
mod options;
mod queries;
mod reading;
pub(crate) mod records;
mod rule;
mod rules;
pub(crate) mod said;
mod settings;
mod stats;
mod together;
mod waits;

pub use adding::Adding;
pub use as_id::AsId;
pub use explanation::Explanation;
pub use group::{GroupSettings, GroupStats, QueueGroup};
pub use job_info::JobInfo;
pub use new_job::{IfExists, NewJob};
pub use options::{Nack, NackMode, Pop, Reschedule};
pub use queries::{Peek, Scan};
pub use records::{FailedAttempt, Group, Peeked, Reserved, State};
pub use rule::Rule;
pub use rules::{RuleChanges, Rules};
pub use settings::{QueueSettings, Rate};
pub use stats::{LatenessBucket, Stats, Totals};

use crate::codec::Codec;
use crate::core::trouble::{is_unheld, some_of};
use crate::envelope::Headers;
use crate::error::Error;
use crate::hooks::Hooks;
use crate::keys::{new_id, Shards};
use crate::server::{answers, Server};
use crate::source::Source;
use crate::values;
use redis::{cmd, Cmd, Value};
use serde::Serialize;
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// A queue: adds jobs, and has every command of dq as a method. Clones are the same queue; many tasks may use it at a
/// time.
#[derive(Clone)]
pub struct Queue(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    name: String,
    shards: usize,
    keys: Shards,
    server: Server,
    hooks: Vec<Hooks>,
    waits: Arc<Mutex<waits::Waits>>,
    /// What the server denies this user, once that was logged.
    denied: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({:?} on {:?})", self.0.name, self.0.server)
    }
}

impl Queue {
    /// Opens a queue on the server at a URL: see [`Server::open`]. It connects when it is first needed.
    pub fn open(url: &str, name: &str) -> Result<Self, Error> {
        Ok(Queue::on(&Server::open(url)?, name))
    }

    /// Opens a queue on a server, which other queues may share.
    pub fn on(server: &Server, name: &str) -> Self {
        Queue(Arc::new(Inner {
            name: name.to_owned(),
            shards: 0,
            keys: Shards::one(name),
            server: server.clone(),
            hooks: Vec::new(),
            waits: Arc::default(),
            denied: Arc::default(),
        }))
    }

    fn changed(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        change(&mut inner);
        Queue(Arc::new(inner))
    }

    /// Spreads the queue over that many keys, `name:{0}` to `name:{n-1}`, by the CRC-32 of the id.
    pub fn shards(self, count: usize) -> Self {
        self.changed(|inner| {
            inner.shards = count;
            inner.keys = match count {
                0 => Shards::one(&inner.name),
                count => Shards::of(&inner.name, count),
            };
        })
    }

    /// Adds hooks, whose [`Hooks::adding`] is called before each job is added.
    pub fn hooks(self, hooks: Hooks) -> Self {
        self.changed(|inner| inner.hooks.push(hooks))
    }

    /// The queue's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Closes the queue's connections, which its server's other queues share. The next command opens them again.
    pub fn close(&self) {
        self.0.server.close();
        waits::close(&self.0.waits);
    }

    pub(crate) fn server(&self) -> &Server {
        &self.0.server
    }

    pub(crate) fn keys(&self) -> &[Arc<[u8]>] {
        self.0.keys.all()
    }

    pub(crate) fn is_sharded(&self) -> bool {
        self.0.shards > 0
    }

    fn key(&self, id: &[u8]) -> &Arc<[u8]> {
        self.0.keys.key(id)
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
        Adding::of(self, NewJob::new(data))
    }

    /// Adds a job whose data a codec encodes. [`Job::decode_with`](crate::Job::decode_with) decodes it.
    pub fn add_with<T: Serialize + ?Sized>(&self, codec: &impl Codec, data: &T) -> Adding<'_> {
        Adding::of(self, NewJob::with_codec(codec, data))
    }

    /// Adds a job whose payload is these bytes.
    pub fn add_bytes(&self, data: impl Into<Vec<u8>>) -> Adding<'_> {
        Adding::of(self, NewJob::bytes(data))
    }

    /// Adds a job that recurs at an interval; it first comes after one interval. It needs an id, and takes neither
    /// `delay` nor `at`. Call this at each start of the program: with an unchanged rule, the job goes on as it was.
    pub fn every<T: Serialize + ?Sized>(&self, interval: Duration, data: &T) -> Adding<'_> {
        Adding::of(self, NewJob::every(interval, data))
    }

    /// Adds a job that recurs by a cron expression, in the zone of [`Adding::tz`]. See [`Queue::every`].
    pub fn cron<T: Serialize + ?Sized>(&self, expression: &str, data: &T) -> Adding<'_> {
        Adding::of(self, NewJob::cron(expression, data))
    }

    async fn add_now(&self, mut job: NewJob) -> Result<Option<String>, Error> {
        if job.options.rule.is_some() && job.options.id.is_none() {
            return Err(Error::usage(
                "a recurring job needs an id: queue.every(interval, &data).id(\"report\")",
            ));
        }
        self.adding(&mut job);
        let is_own = job.options.is_own();
        let id = self.id_for(&mut job, new_id)?;
        let key = self.key(&id).clone();
        match self.0.server.ask(&key, &job.command(&key, &id)?).await {
            Ok(reply) => Ok(added(is_own, id, reply)),
            Err(error) => Err(self.naming_unheld(error, &job.options.after).await),
        }
    }

    /// Names the jobs of an `AFTER` that the queue does not hold, and what to do, if it can be found out.
    async fn naming_unheld<'a>(
        &self,
        error: Error,
        after: impl IntoIterator<Item = &'a Vec<u8>>,
    ) -> Error {
        let mut refused = match error {
            Error::Refused(refused) if is_unheld(&refused.said) => refused,
            error => return error,
        };
        let mut seen = HashSet::new();
        let ids = after.into_iter().filter(|id| seen.insert(*id));
        let ids: Vec<Vec<u8>> = ids.cloned().collect();
        let look = |id: &Vec<u8>| {
            let mut get = cmd("DQ.GET");
            get.arg(&**self.key(id)).arg(id).arg("PREFIX").arg(0);
            (self.key(id).clone(), get)
        };
        let found = self.all(ids.iter().map(look).collect()).await;
        let found = found.unwrap_or_default().into_iter().zip(ids);
        let missing = found.filter(|(job, _)| *job == Value::Nil);
        let missing: Vec<_> = missing.map(|(_, id)| id).collect();
        if !missing.is_empty() {
            refused.advice = format!(
                ": {} (it may have ended before: keep it for a while with keep, or add it in the same add_many)",
                some_of(&missing)
            );
        }
        Error::Refused(refused)
    }

    /// Adds many jobs in few round trips, and returns their ids as [`Queue::add`] does. If all jobs of a shard have
    /// the same options, up to a thousand are added by one command, which adds all of them or none.
    pub async fn add_many(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
    ) -> Result<Vec<Option<String>>, Error> {
        self.add_all(jobs).await
    }

    /// What its jobs ask of it.
    pub(crate) fn source(&self) -> Source {
        let (name, hooks) = (self.0.name.clone(), self.0.hooks.clone());
        Source {
            name: name.clone(),
            server: self.0.server.clone(),
            shards: self.0.keys.clone(),
            adding: Box::new(move |headers| call_adding(&name, &hooks, headers)),
        }
    }

    fn adding(&self, job: &mut NewJob) {
        call_adding(&self.0.name, &self.0.hooks, job.headers_mut());
    }

    // --- Asking

    async fn ask(&self, id: &[u8], command: &Cmd) -> Result<Value, Error> {
        self.0.server.ask(self.key(id), command).await
    }

    /// Sends a command to every shard, and returns their replies.
    async fn each(&self, command: &str, rest: impl Fn(&mut Cmd)) -> Result<Vec<Value>, Error> {
        let commands = self.keys().iter().map(|key| {
            let mut words = cmd(command);
            words.arg(&**key);
            rest(&mut words);
            (key.clone(), words)
        });
        self.all(commands.collect()).await
    }

    /// Sends commands on several keys: in a cluster one after the other, else in one write.
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
        answers(&pipe, server.ask_all(&first, &pipe).await?)
    }

    async fn sum(&self, command: &str, rest: impl Fn(&mut Cmd)) -> Result<u64, Error> {
        let replies = self.each(command, rest).await?;
        Ok(replies
            .iter()
            .map(|reply| values::int(reply).max(0) as u64)
            .sum())
    }

    /// Groups ids by their key, with their places in the list.
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

    /// Sends a command that takes many ids, and returns how many of them it found.
    async fn count<I: AsRef<[u8]>>(
        &self,
        command: &str,
        ids: impl IntoIterator<Item = I>,
        options: impl Fn(&mut Cmd),
    ) -> Result<u64, Error> {
        let commands = self.by_key(ids).into_iter().map(|(key, group)| {
            let mut words = cmd(command);
            words.arg(&*key);
            options(&mut words);
            words.arg("IDS").arg(group.len());
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

/// The id of a job that was added. If the library made the id, nil means that an earlier sending added the job.
fn added(is_own: bool, id: Vec<u8>, reply: Value) -> Option<String> {
    match reply {
        Value::Nil if is_own => Some(values::lossy(id)),
        reply => values::text(reply),
    }
}

/// Appends an instant as an option, if there is one.
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

fn call_adding(name: &str, hooks: &[Hooks], headers: &mut Headers) {
    for hooks in hooks {
        hooks.call_adding(name, headers);
    }
}
