//! What looks, and changes nothing.

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

/// What [`Queue::peek`] shows: the first one, unless more is said.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Peek {
    count: Option<usize>,
    from: Option<SystemTime>,
    to: Option<SystemTime>,
}

impl Peek {
    /// The first one.
    pub fn new() -> Self {
        Peek::default()
    }

    /// At most so many (of each shard).
    pub fn count(mut self, count: usize) -> Self {
        self.count = Some(count);
        self
    }

    /// None before.
    pub fn from(mut self, from: SystemTime) -> Self {
        self.from = Some(from);
        self
    }

    /// None after.
    pub fn to(mut self, to: SystemTime) -> Self {
        self.to = Some(to);
        self
    }
}

/// What [`Queue::scan`] and [`Queue::groups`] show.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Scan {
    shard: usize,
    state: Option<State>,
    matching: Option<String>,
    count: Option<usize>,
}

impl Scan {
    /// All, of the first shard.
    pub fn new() -> Self {
        Scan::default()
    }

    /// Of that shard.
    pub fn shard(mut self, shard: usize) -> Self {
        self.shard = shard;
        self
    }

    /// In that state; not for groups.
    pub fn state(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// By a pattern as of `KEYS`.
    pub fn matching(mut self, pattern: &str) -> Self {
        self.matching = Some(pattern.to_owned());
        self
    }

    /// About so many in each step.
    pub fn count(mut self, count: usize) -> Self {
        self.count = Some(count);
        self
    }

    fn words(&self, to: &mut Cmd) {
        if let Some(state) = self.state {
            to.arg("STATE").arg(state.word());
        }
        if let Some(pattern) = &self.matching {
            to.arg("MATCH").arg(pattern);
        }
        if let Some(count) = self.count {
            to.arg("COUNT").arg(count);
        }
    }
}

impl Queue {
    /// All about one job.
    pub async fn get(&self, id: impl AsRef<[u8]>) -> Result<Option<JobInfo>, Error> {
        let id = id.as_ref();
        let mut get = cmd("DQ.GET");
        get.arg(&**self.key(id)).arg(id);
        match self.ask(id, &get).await? {
            Value::Nil => Ok(None),
            fields => Ok(Some(JobInfo::of(fields))),
        }
    }

    /// The result of a done job that is kept; nothing if it has none, or has not ended. A dead one is
    /// [`Error::JobFailed`].
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

    /// The first jobs in a state, in that state's order (of each shard).
    pub async fn peek(&self, state: State, options: Peek) -> Result<Vec<Peeked>, Error> {
        let replies = self.each("DQ.PEEK", |words| {
            words.arg(state.word());
            instant(words, "FROM", options.from);
            instant(words, "TO", options.to);
            words.arg("COUNT").arg(options.count.unwrap_or(1).max(1));
        });
        Ok(replies
            .await?
            .into_iter()
            .flat_map(values::list)
            .filter_map(Peeked::of)
            .collect())
    }

    /// One step through the ids: the next cursor ("0" at the end), and some ids. Begin with "0".
    pub async fn scan(
        &self,
        cursor: &str,
        options: &Scan,
    ) -> Result<(String, Vec<Vec<u8>>), Error> {
        let (next, rows) = self.step_through("DQ.SCAN", cursor, options).await?;
        Ok((next, rows.into_iter().filter_map(values::bytes).collect()))
    }

    /// All ids of all shards, as far as they are text.
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

    /// How many jobs will be due in each of so many equal parts of that time.
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

    /// How many jobs it has: blocked, delayed, ready and reserved.
    pub async fn len(&self) -> Result<u64, Error> {
        self.sum("DQ.LEN", |_| {}).await
    }

    /// Whether it has none: blocked, delayed, ready or reserved.
    pub async fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len().await? == 0)
    }

    /// How many are in a state.
    pub async fn len_of(&self, state: State) -> Result<u64, Error> {
        self.sum("DQ.LEN", |words| _ = words.arg(state.word()))
            .await
    }

    /// How many a group has.
    pub async fn len_of_group(&self, group: &str) -> Result<u64, Error> {
        self.sum("DQ.LEN", |words| _ = words.arg("GROUP").arg(group))
            .await
    }

    /// The queue's figures, added up over its shards; `None` where there is no queue.
    pub async fn stats(&self) -> Result<Option<Stats>, Error> {
        let replies = self.each("DQ.STATS", |_| {}).await?;
        let shards: Vec<_> = replies
            .into_iter()
            .filter(|reply| *reply != Value::Nil)
            .map(values::map)
            .collect();
        Ok((!shards.is_empty()).then(|| Stats::of(shards)))
    }

    /// When a recurring job will be due the next times: empty for another job, `None` where there is none.
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

    /// One step through the groups that hold jobs: the next cursor ("0" at the end), and some groups.
    pub async fn groups(
        &self,
        cursor: &str,
        options: &Scan,
    ) -> Result<(String, Vec<Group>), Error> {
        let (next, rows) = self.step_through("DQ.GROUPS", cursor, options).await?;
        Ok((next, rows.into_iter().filter_map(Group::of).collect()))
    }
}
