//! Read-only commands.

use super::explanation::Explanation;
use super::job_info::JobInfo;
use super::records::{Group, Peeked, State};
use super::stats::Stats;
use super::{instant, Queue};
use crate::error::{Error, Outcome};
use crate::result::decode;
use crate::values;
use redis::{cmd, Cmd, Value};
use serde::de::DeserializeOwned;
use std::time::SystemTime;

/// What [`Queue::peek`] shows: the first job, unless `count` says otherwise.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Peek {
    count: Option<usize>,
    from: Option<SystemTime>,
    to: Option<SystemTime>,
    prefix: Option<usize>,
}

impl Peek {
    /// Shows the first job.
    pub fn new() -> Self {
        Peek::default()
    }

    /// At most this many jobs (of each shard).
    pub fn count(mut self, count: usize) -> Self {
        self.count = Some(count);
        self
    }

    /// No job before this instant.
    pub fn from(mut self, from: SystemTime) -> Self {
        self.from = Some(from);
        self
    }

    /// No job after this instant.
    pub fn to(mut self, to: SystemTime) -> Self {
        self.to = Some(to);
        self
    }

    /// Only so many bytes of each payload.
    pub fn prefix(mut self, bytes: usize) -> Self {
        self.prefix = Some(bytes);
        self
    }
}

/// What [`Queue::scan`] and [`Queue::groups`] show.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Scan {
    shard: usize,
    state: Option<State>,
    /// Words of its command, and what follows them.
    filters: Vec<(&'static str, Vec<u8>)>,
    recurring: bool,
    has_settings: bool,
    count: Option<usize>,
}

impl Scan {
    /// Everything in the first shard.
    pub fn new() -> Self {
        Scan::default()
    }

    /// In this shard.
    pub fn shard(mut self, shard: usize) -> Self {
        self.shard = shard;
        self
    }

    /// In this state; not for groups.
    pub fn state(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// That match a pattern, as of `KEYS`.
    pub fn matching(self, pattern: impl AsRef<[u8]>) -> Self {
        self.filter("MATCH", pattern.as_ref())
    }

    /// Of this group; not for groups.
    pub fn group(self, name: impl AsRef<[u8]>) -> Self {
        self.filter("GROUP", name.as_ref())
    }

    /// Whose payload matches a pattern; not for groups.
    pub fn payload(self, pattern: impl AsRef<[u8]>) -> Self {
        self.filter("PAYLOAD", pattern.as_ref())
    }

    /// Whose label matches a pattern; not for groups.
    pub fn label(self, pattern: impl AsRef<[u8]>) -> Self {
        self.filter("LABEL", pattern.as_ref())
    }

    /// That wait for a signal whose name matches a pattern; not for groups.
    pub fn awaits(self, pattern: impl AsRef<[u8]>) -> Self {
        self.filter("AWAITS", pattern.as_ref())
    }

    /// Whose last failure has a reason that matches a pattern; not for groups.
    pub fn reason(self, pattern: impl AsRef<[u8]>) -> Self {
        self.filter("REASON", pattern.as_ref())
    }

    /// That have a rule; not for groups.
    pub fn recurring(mut self) -> Self {
        self.recurring = true;
        self
    }

    fn filter(mut self, word: &'static str, value: &[u8]) -> Self {
        self.filters.retain(|(known, _)| *known != word);
        self.filters.push((word, value.to_vec()));
        self
    }

    /// Of [`Queue::groups`]: those with settings of their own instead, whether they hold jobs or not.
    pub fn has_settings(mut self) -> Self {
        self.has_settings = true;
        self
    }

    /// About this many in each step.
    pub fn count(mut self, count: usize) -> Self {
        self.count = Some(count);
        self
    }

    fn words(&self, to: &mut Cmd) {
        if let Some(state) = self.state {
            to.arg("STATE").arg(state.word());
        }
        for (word, value) in &self.filters {
            to.arg(*word).arg(value);
        }
        if self.recurring {
            to.arg("RECURRING");
        }
        if self.has_settings {
            to.arg("SET");
        }
        if let Some(count) = self.count {
            to.arg("COUNT").arg(count);
        }
    }
}

impl Queue {
    /// Everything about a job; `None` if it does not exist.
    pub async fn get(&self, id: impl AsRef<[u8]>) -> Result<Option<JobInfo>, Error> {
        self.get_of(id.as_ref(), None).await
    }

    /// As [`Queue::get`], with only so many bytes of the payload, the next one, the result, and values of results and
    /// steps.
    pub async fn get_prefix(
        &self,
        id: impl AsRef<[u8]>,
        bytes: usize,
    ) -> Result<Option<JobInfo>, Error> {
        self.get_of(id.as_ref(), Some(bytes)).await
    }

    async fn get_of(&self, id: &[u8], prefix: Option<usize>) -> Result<Option<JobInfo>, Error> {
        let mut get = cmd("DQ.GET");
        get.arg(&**self.key(id)).arg(id);
        if let Some(bytes) = prefix {
            get.arg("PREFIX").arg(bytes);
        }
        Ok(JobInfo::read(self.ask(id, &get).await?))
    }

    /// The result of a job that is done and kept; `None` if it has no result, has not ended or does not exist. A dead
    /// job is [`Error::JobFailed`].
    pub async fn result<R: DeserializeOwned>(
        &self,
        id: impl AsRef<[u8]>,
    ) -> Result<Option<R>, Error> {
        let Some(job) = self.get(id).await? else {
            return Ok(None);
        };
        match job.state {
            State::Done => job.result.as_deref().map(decode).transpose(),
            State::Dead => Err(Error::JobFailed {
                id: job.id,
                outcome: Outcome::Dead,
                reason: job.reason,
            }),
            _ => Ok(None),
        }
    }

    /// The first jobs of each shard that are in a state, in that state's order. Changes nothing. A shard ends its answer
    /// after 16 MB of payloads: fewer than `count` are not always all, unless [`Peek::prefix`] is 0.
    pub async fn peek(&self, state: State, options: Peek) -> Result<Vec<Peeked>, Error> {
        let replies = self.each("DQ.PEEK", |words| {
            words.arg(state.word());
            instant(words, "FROM", options.from);
            instant(words, "TO", options.to);
            words.arg("COUNT").arg(options.count.unwrap_or(1).max(1));
            if let Some(bytes) = options.prefix {
                words.arg("PREFIX").arg(bytes);
            }
        });
        Ok(replies
            .await?
            .into_iter()
            .flat_map(values::list)
            .filter_map(Peeked::of)
            .collect())
    }

    /// Makes one step through the ids: returns the next cursor ("0" at the end) and some ids. Begin with "0".
    pub async fn scan(
        &self,
        cursor: &str,
        options: &Scan,
    ) -> Result<(String, Vec<Vec<u8>>), Error> {
        let (next, rows) = self.step_through("DQ.SCAN", cursor, options).await?;
        Ok((next, rows.into_iter().filter_map(values::bytes).collect()))
    }

    /// All ids of all shards; bytes that are not UTF-8 are replaced.
    pub async fn ids(&self, options: &Scan) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        for shard in 0..self.keys().len() {
            let options = Scan {
                shard,
                count: options.count.or(Some(1000)),
                ..options.clone()
            };
            let mut cursor = "0".to_owned();
            loop {
                let (next, ids) = self.scan(&cursor, &options).await?;
                found.extend(ids.into_iter().map(values::lossy));
                if next == "0" {
                    break;
                }
                cursor = next;
            }
        }
        Ok(found)
    }

    async fn step_through(
        &self,
        command: &str,
        cursor: &str,
        options: &Scan,
    ) -> Result<(String, Vec<Value>), Error> {
        let Some(key) = self.keys().get(options.shard) else {
            return Err(Error::Usage(format!(
                "the queue has no shard {}",
                options.shard
            )));
        };
        let mut words = cmd(command);
        words.arg(&**key).arg(cursor);
        options.words(&mut words);
        let mut pair = values::list(self.server().ask(key, &words).await?).into_iter();
        let next = pair
            .next()
            .and_then(values::text)
            .unwrap_or_else(|| "0".into());
        Ok((next, pair.next().map(values::list).unwrap_or_default()))
    }

    /// Divides the time into equal buckets, and returns how many jobs will be due in each.
    pub async fn forecast(
        &self,
        from: SystemTime,
        to: SystemTime,
        buckets: usize,
    ) -> Result<Vec<u64>, Error> {
        let replies = self.each("DQ.FORECAST", |words| {
            instant(words, "FROM", Some(from));
            instant(words, "TO", Some(to));
            words.arg("BUCKETS").arg(buckets);
        });
        let mut counts = vec![0; buckets];
        for reply in replies.await? {
            for (count, value) in counts.iter_mut().zip(values::list(reply)) {
                *count += values::int(&value).max(0) as u64;
            }
        }
        Ok(counts)
    }

    /// How many jobs the queue has: blocked, delayed, ready and reserved.
    pub async fn len(&self) -> Result<u64, Error> {
        self.sum("DQ.LEN", |_| {}).await
    }

    /// Whether the queue has no blocked, delayed, ready or reserved jobs.
    pub async fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len().await? == 0)
    }

    /// How many jobs are in a state.
    pub async fn len_of(&self, state: State) -> Result<u64, Error> {
        self.sum("DQ.LEN", |words| _ = words.arg(state.word()))
            .await
    }

    /// How many jobs a group has.
    pub async fn len_of_group(&self, group: &str) -> Result<u64, Error> {
        self.sum("DQ.LEN", |words| _ = words.arg("GROUP").arg(group))
            .await
    }

    /// The queue's figures, summed over its shards; `None` if the queue does not exist.
    pub async fn stats(&self) -> Result<Option<Stats>, Error> {
        let replies = self.each("DQ.STATS", |_| {}).await?;
        let shards: Vec<_> = replies
            .into_iter()
            .filter(|reply| *reply != Value::Nil)
            .map(values::map)
            .collect();
        Ok((!shards.is_empty()).then(|| Stats::of(shards)))
    }

    /// Why the queue delivers nothing: all that holds, in the server's order; of a sharded queue, the numbers of its
    /// shards added up. `None` if the queue does not exist.
    pub async fn explain(&self) -> Result<Option<Vec<Explanation>>, Error> {
        Ok(Explanation::of_shards(
            self.each("DQ.EXPLAIN", |_| {}).await?,
        ))
    }

    /// Why the queue does not deliver a job; `None` if the job does not exist.
    pub async fn explain_job(
        &self,
        id: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<Explanation>>, Error> {
        let id = id.as_ref();
        let mut explain = cmd("DQ.EXPLAIN");
        explain.arg(&**self.key(id)).arg(id);
        Ok(Explanation::of_shards(vec![self.ask(id, &explain).await?]))
    }

    /// The next due times of a recurring job: none for a job that does not recur; `None` if the job does not exist.
    pub async fn next(
        &self,
        id: impl AsRef<[u8]>,
        count: usize,
    ) -> Result<Option<Vec<SystemTime>>, Error> {
        let id = id.as_ref();
        let mut next = cmd("DQ.NEXT");
        next.arg(&**self.key(id))
            .arg(id)
            .arg("COUNT")
            .arg(count.max(1));
        match self.ask(id, &next).await? {
            Value::Nil => Ok(None),
            reply => Ok(Some(
                values::list(reply)
                    .iter()
                    .filter_map(values::instant)
                    .collect(),
            )),
        }
    }

    /// Makes one step through the groups that hold jobs: returns the next cursor ("0" at the end) and some groups.
    pub async fn groups(
        &self,
        cursor: &str,
        options: &Scan,
    ) -> Result<(String, Vec<Group>), Error> {
        let (next, rows) = self.step_through("DQ.GROUPS", cursor, options).await?;
        Ok((next, rows.into_iter().filter_map(Group::of).collect()))
    }
}
