//! Steps, signals and children of a job: what a handler keeps, so that its next attempt goes on from there.

use crate::attempt::{read_results, write_results, OnDead, WaitFor};
use crate::bounds;
use crate::core::{step, CancelReason, Event, JobKey, Suspension};
use crate::error::Suspended;
use crate::error::{BoxError, Error};
use crate::guard::guarded;
use crate::job::{Desk, Job};
use crate::queue::said::{corrected, Said};
use crate::queue::NewJob;
use crate::refused::Refused;
use crate::result::{decode, JobResult};
use crate::source::Source;
use crate::values::{self, ms};
use crate::verdict::named;
use redis::{cmd, Cmd, Value};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

impl<T> Job<T> {
    /// The values that are kept with the job, by name.
    pub fn steps(&self) -> BTreeMap<String, Vec<u8>> {
        self.inner.attempt().kept.clone()
    }

    /// Runs `work` once in the life of the job, and keeps what it returns: later attempts return the kept value. If
    /// the process dies after `work` and before its value is kept, `work` runs again.
    ///
    /// ```no_run
    /// # use dq_redis::{BoxError, Job};
    /// # async fn charge() -> Result<String, BoxError> { Ok("ch_1".into()) }
    /// # async fn handler(job: Job) -> Result<(), BoxError> {
    /// let receipt: String = job.step("charge", charge).await?;
    /// # Ok(()) }
    /// ```
    pub async fn step<R, E, F, Fut>(&self, name: &str, work: F) -> Result<R, BoxError>
    where
        R: Serialize + DeserializeOwned,
        E: Into<BoxError>,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<R, E>>,
    {
        self.still_ours()?;
        let kept = self.inner.attempt().enter(name)?;
        if let Some(value) = kept {
            return Ok(decode(or_null(&value))?);
        }
        let made = guarded(work).await?.map_err(named)?;
        let value = crate::json::to_vec(&made).map_err(|error| Error::Encode(error.to_string()))?;
        self.keep(name, value).await?;
        Ok(made)
    }

    /// Suspends the job for a duration. The attempt ends, uncounted, with the error that this returns. A later
    /// attempt, by any worker, goes on here: this then returns `Ok`.
    pub async fn sleep(&self, name: &str, duration: Duration) -> Result<(), Error> {
        self.still_ours()?;
        if self.inner.attempt().enter(name)?.is_some() {
            return Ok(());
        }
        bounds::lengths([("duration", Some(duration), 0)])?;
        let mut nack = self.nack();
        nack.arg("DELAY").arg(ms(duration));
        self.suspend(vec![self.step_command(name, b""), nack])
    }

    /// Suspends the job until [`Queue::signal`](crate::Queue::signal) sends it a signal. The attempt ends, uncounted,
    /// with the error that this returns. Once the signal is there, this returns its value; `None` if it has none.
    pub async fn wait<R: DeserializeOwned>(&self, name: &str) -> Result<Option<R>, Error> {
        self.still_ours()?;
        if let Some(value) = self.inner.attempt().enter(name)? {
            return signalled(&value);
        }
        let mut nack = self.nack();
        nack.arg("AWAIT").arg(name);
        self.suspend(vec![nack])
    }

    /// As [`Job::wait`], for at most `timeout`: after that the error is [`Error::TimedOut`], in all later attempts
    /// too.
    pub async fn wait_within<R: DeserializeOwned>(
        &self,
        name: &str,
        timeout: Duration,
    ) -> Result<Option<R>, Error> {
        self.still_ours()?;
        bounds::lengths([("timeout", Some(timeout), 0)])?;
        let marker = format!("dq:wait:{name}");
        let (value, state) = {
            let mut attempt = self.inner.attempt();
            (attempt.enter(name)?, attempt.kept.get(&marker).cloned())
        };
        let too_late = || Error::TimedOut {
            id: self.id().into_owned(),
            timeout,
            signal: Some(name.to_owned()),
        };
        match (state.as_deref(), value) {
            (Some(b"over"), _) => Err(too_late()),
            (_, Some(value)) => signalled(&value),
            (Some(_), None) => {
                self.keep(&marker, b"over".to_vec()).await?;
                Err(too_late())
            }
            (None, None) => {
                let mut nack = self.nack();
                nack.arg("AWAIT").arg(name).arg("DELAY").arg(ms(timeout));
                self.suspend(vec![self.step_command(&marker, b"waiting"), nack])
            }
        }
    }

    /// Suspends the job until these jobs of the same queue have ended. The attempt ends, uncounted, with the error
    /// that this returns. The next one goes on here: this then returns how the jobs ended.
    pub async fn wait_for<I: AsRef<[u8]>>(
        &self,
        ids: &[I],
        options: WaitFor,
    ) -> Result<Vec<JobResult>, Error> {
        let name = self.next_wait(&options)?;
        let ids: Vec<Vec<u8>> = ids.iter().map(|id| id.as_ref().to_vec()).collect();
        match self.ended(&name, &ids).await? {
            Some(results) => Ok(results),
            None => self.suspend_for(vec![self.nack_after(&ids, options.on_dead)], ids),
        }
    }

    /// Adds jobs to the same queue, and waits for them as [`Job::wait_for`] does, in one command. Ids that are not
    /// given are made of this job's id, so a second attempt adds no second children.
    pub async fn spawn(
        &self,
        jobs: Vec<NewJob>,
        options: WaitFor,
    ) -> Result<Vec<JobResult>, Error> {
        let name = self.next_wait(&options)?;
        let source = self.inner.source(WAITING)?;
        let jobs_and_numbers = jobs.iter().enumerate();
        let ids = jobs_and_numbers.map(|(n, job)| self.id_of_child(source, &name, n, job));
        let ids: Vec<Vec<u8>> = ids.collect::<Result<_, _>>()?;
        if let Some(results) = self.ended(&name, &ids).await? {
            return Ok(results);
        }
        let key = &self.inner.delivered.job.key;
        let mut commands = Vec::with_capacity(jobs.len() + 1);
        let named = jobs.iter().flat_map(NewJob::given_after);
        let after = named.filter(|id| !ids.contains(id)).cloned().collect();
        for (mut job, id) in jobs.into_iter().zip(&ids) {
            (source.adding)(job.headers_mut());
            commands.push(job.command(key, id)?);
        }
        commands.push(self.nack_after(&ids, options.on_dead));
        self.suspend_for(commands, after)
    }

    /// Runs a Lua script on the queue's server exactly once in the life of the job: its writes and its step take
    /// effect together. The script's `KEYS` and `ARGV` are those given here; in a cluster the keys must be in the
    /// queue's slot.
    ///
    /// Returns what the script returned; `None` if it ran in an earlier attempt. If the script fails, that is an
    /// error, and it runs again in the next attempt; what it wrote before it failed is not undone.
    pub async fn once(
        &self,
        name: &str,
        script: &str,
        keys: &[&str],
        args: &[&str],
    ) -> Result<Option<Value>, Error> {
        self.still_ours()?;
        if self.inner.attempt().enter(name)?.as_deref() == Some(ENDED) {
            return Ok(None);
        }
        let source = self.inner.source("once")?;
        let delivered = &self.inner.delivered;
        let mut eval = cmd("EVAL");
        eval.arg(format!("{ONCE_FIRST}{script}{ONCE_LAST}"))
            .arg(keys.len() + 1)
            .arg(&*delivered.job.key);
        eval.arg(keys)
            .arg(&*delivered.job.id)
            .arg(&delivered.token)
            .arg(name)
            .arg(args);
        let mut reply =
            values::list(source.server.ask(&delivered.job.key, &eval).await?).into_iter();
        match reply.next() {
            Some(Value::Int(1)) => {
                self.inner
                    .attempt()
                    .kept
                    .insert(name.to_owned(), ENDED.to_vec());
                Ok(Some(reply.next().unwrap_or(Value::Nil)))
            }
            Some(Value::BulkString(why)) => {
                let mut refused = Refused::of(Some(&eval), &values::lossy(why));
                refused.id = Some(self.id().into_owned());
                Err(Error::Refused(Box::new(refused)))
            }
            Some(_) => Ok(None),
            None => Err(self.gone()),
        }
    }

    // --- Inside

    corrected!(job);

    async fn correct(&self, said: Said) -> Result<(), Error> {
        said.check()?;
        self.still_ours()?;
        let Desk::Worker { source, .. } = &self.inner.desk else {
            return Ok(()); // without a server there are no rates
        };
        let of = &self.inner.delivered;
        let mut touch = cmd("DQ.TOUCH");
        touch.arg(&*of.job.key).arg(&*of.job.id);
        touch.arg("TOKEN").arg(&of.token);
        said.words(&mut touch);
        match source.server.ask(&of.job.key, &touch).await? {
            Value::Nil => Err(self.gone()),
            _ => Ok(()),
        }
    }

    /// An error if the job is no longer its handler's.
    fn still_ours(&self) -> Result<(), Error> {
        if self.inner.attempt().has_ended {
            return Err(Suspended.into());
        }
        match self.inner.told() {
            Some(CancelReason::Lost | CancelReason::Timeout) => Err(Error::NotOurs),
            _ => Ok(()),
        }
    }

    fn gone(&self) -> Error {
        self.inner.send(Event::Gone);
        Error::NotOurs
    }

    fn step_command(&self, name: &str, value: &[u8]) -> Cmd {
        step(&self.inner.delivered, name.as_bytes(), value)
    }

    fn nack(&self) -> Cmd {
        let delivered = &self.inner.delivered;
        let mut nack = cmd("DQ.NACK");
        nack.arg(&*delivered.job.key)
            .arg(&*delivered.job.id)
            .arg("TOKEN")
            .arg(&delivered.token)
            .arg("SILENT");
        nack
    }

    fn nack_after(&self, ids: &[Vec<u8>], on_dead: OnDead) -> Cmd {
        let mut nack = self.nack();
        nack.arg("AFTER")
            .arg(ids.len())
            .arg(ids)
            .arg("ONDEAD")
            .arg(on_dead.word());
        nack
    }

    async fn keep(&self, name: &str, value: Vec<u8>) -> Result<(), Error> {
        if let Desk::Worker { source, .. } = &self.inner.desk {
            let key = &self.inner.delivered.job.key;
            let step = self.step_command(name, &value);
            let reply = source.server.ask(key, &step).await?;
            if reply == Value::Nil {
                return Err(self.gone());
            }
        }
        self.inner.attempt().kept.insert(name.to_owned(), value);
        Ok(())
    }

    fn suspend<R>(&self, commands: Vec<Cmd>) -> Result<R, Error> {
        self.suspend_for(commands, Vec::new())
    }

    /// `ids`: the jobs that it waits for, if it adds none.
    fn suspend_for<R>(&self, commands: Vec<Cmd>, ids: Vec<Vec<u8>>) -> Result<R, Error> {
        self.inner.suspend(Suspension(commands, ids));
        Err(Suspended.into())
    }

    fn next_wait(&self, options: &WaitFor) -> Result<String, Error> {
        self.still_ours()?;
        self.inner.source(WAITING)?;
        let mut attempt = self.inner.attempt();
        attempt.waits += 1;
        let name = options.name.clone();
        let name = name.unwrap_or_else(|| attempt.waits.to_string());
        if !attempt.claim(format!("dq:after:{name}")) {
            return Err(Error::Usage(format!(
                "the wait {name:?} was used before in this attempt: give each its own name"
            )));
        }
        Ok(name)
    }

    /// The id of the n-th job that a wait spawns: the given one, or the same one in each attempt. It belongs to this
    /// job's shard.
    fn id_of_child(
        &self,
        source: &Source,
        wait: &str,
        n: usize,
        job: &NewJob,
    ) -> Result<Vec<u8>, Error> {
        let JobKey { key, id: parent } = &self.inner.delivered.job;
        let given = job.given_id();
        if let Some(id) = &given {
            bounds::id(id)?;
        }
        match given {
            Some(id) if source.shards.has(key, &id) => Ok(id),
            Some(id) => Err(Error::Usage(format!(
                "job {} must be in the shard of the job that spawns it: leave its id out",
                values::lossy(id)
            ))),
            None => {
                let like = [parent, format!("/{wait}/{n}").as_bytes()].concat();
                Ok(source.shards.id_like(key, &like))
            }
        }
    }

    /// How the jobs of a wait ended: as a step kept it, else as this delivery says; `None`: they have not ended.
    async fn ended(&self, name: &str, ids: &[Vec<u8>]) -> Result<Option<Vec<JobResult>>, Error> {
        let step = format!("dq:after:{name}");
        let kept = self.inner.attempt().kept.get(&step).cloned();
        if let Some(kept) = kept {
            return Ok(Some(read_results(&kept)?));
        }
        let results = &self.inner.delivered.results;
        if !results.iter().map(|(id, _, _)| id).eq(ids) {
            return Ok(None);
        }
        self.keep(&step, write_results(results)).await?;
        Ok(Some(results.iter().map(JobResult::of).collect()))
    }
}

const WAITING: &str = "to wait for jobs";

/// The value of the step of a script that has ended. Before the script runs, the step is set to "begun", so it has
/// its place.
const ENDED: &[u8] = b"ended";
const ONCE_FIRST: &str = "
local function ended()
  local job = redis.call('DQ.GET', KEYS[1], ARGV[1])
  for n = 1, #job, 2 do
    if job[n] == 'steps' then
      for m = 1, #job[n + 1], 2 do
        if job[n + 1][m] == ARGV[3] then return job[n + 1][m + 1] == 'ended' end
      end
    end
  end
end
if not redis.call('DQ.TOUCH', KEYS[1], ARGV[1], 'TOKEN', ARGV[2]) then return {} end
if redis.call('DQ.SIGNAL', KEYS[1], ARGV[1], ARGV[3], 'begun') == 0 and ended() then return {0} end
local done, said = pcall(function(KEYS, ARGV)
";
const ONCE_LAST: &str = "
end, {unpack(KEYS, 2)}, {unpack(ARGV, 4)})
if not done or type(said) == 'table' and said.err then return {type(said) == 'table' and said.err or tostring(said)} end
redis.call('DQ.STEP', KEYS[1], ARGV[1], ARGV[2], ARGV[3], 'ended')
return {1, said}
";

fn or_null(value: &[u8]) -> &[u8] {
    if value.is_empty() {
        b"null"
    } else {
        value
    }
}

fn signalled<R: DeserializeOwned>(value: &[u8]) -> Result<Option<R>, Error> {
    match value {
        b"" => Ok(None),
        value => decode(value).map(Some),
    }
}
