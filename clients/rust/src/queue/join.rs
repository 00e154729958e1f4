//! Jobs, and one after all of them, added once even if the server's answer is lost.

use super::batch::{Batch, Making, Placed};
use super::{added, NewJob, Queue};
use crate::core::trouble::{passes, trouble_wait};
use crate::error::Error;
use crate::keys::new_id;
use crate::server::{answers, Failed};
use crate::values;
use redis::{cmd, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many jobs one may be after.
const MOST_AFTER: usize = 1000;
const TRIES: u32 = 5;
const KEEP: Duration = Duration::from_secs(60);

impl Queue {
    /// Adds jobs, and one that begins when all of them have ended: `then`. Returns its id; `None` if the condition
    /// refused it, usually because a job with this id exists.
    ///
    /// All are added in one transaction. [`Job::results`](crate::Job::results) of the last one says how the others
    /// ended, its `on_dead` what it does if one dies. It is kept for a minute, unless it has a `keep`: if the answer of
    /// the server is lost, it is looked up, and all are sent again only if it is not there and none of the others ran.
    /// Where nobody can tell, as its `keep` is over or a job of its id was there and had not ended, the error of the
    /// connection says so.
    ///
    /// More than 1000 jobs are joined by their group: one that they have in common, or a new one. Then there are no
    /// results.
    pub async fn join(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
        then: NewJob,
    ) -> Result<Option<String>, Error> {
        let mut joining = Joining::of(self, jobs.into_iter().collect(), then)?;
        let replies = match joining.send().await {
            Ok(replies) => replies,
            Err(error) => {
                let others = &joining.all[..joining.all.len() - 1];
                let after = others.iter().flat_map(|each| &each.options.after);
                return Err(self.naming_unheld(error, after).await);
            }
        };
        let last = joining.all.pop().map(|last| (last.is_own, last.id));
        let (is_own, id) = last.unwrap_or_default();
        match replies.and_then(|mut replies| replies.pop()) {
            Some(reply) => Ok(added(is_own, id, reply)),
            None => Ok(Some(values::lossy(id))),
        }
    }
}

/// A join on its way.
struct Joining<'a> {
    queue: &'a Queue,
    key: Arc<[u8]>,
    /// The last one is after the others.
    all: Vec<Placed>,
    batch: Batch,
    /// Whether a job with the last one's id may have been there before, and what it was.
    is_given: bool,
    before: Value,
    /// How long the last one is there at least. Later on, that it is not there says nothing.
    kept: Duration,
    sent: Instant,
    /// What befell the sending before, if nobody knows whether it arrived.
    lost: Option<String>,
}

struct Trouble {
    error: Error,
    is_final: bool,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let is_final = match &error {
            Error::Connection(_) => false,
            Error::Refused(refused) => !passes(&refused.code),
            _ => true,
        };
        Trouble { error, is_final }
    }
}

impl<'a> Joining<'a> {
    fn of(queue: &'a Queue, mut jobs: Vec<NewJob>, mut then: NewJob) -> Result<Self, Error> {
        if jobs.is_empty() {
            let why = "a join needs jobs that come before the last one";
            return Err(Error::usage(why));
        }
        if then.options.is_of_flow() {
            let why =
                "the last job of a join has neither after nor after_group: it is after the others";
            return Err(Error::usage(why));
        }
        let keep = *then.options.said.keep.get_or_insert(KEEP);
        let kept = then.options.said.ttl.map_or(keep, |ttl| keep.min(ttl));
        let is_given = then.options.id.is_some();
        let group = match jobs.len() > MOST_AFTER {
            true => Some(group_of(&mut jobs)?),
            false => None,
        };
        let given = jobs.iter().chain([&then]).find_map(NewJob::given_id);
        let key = queue.key(&given.unwrap_or_else(new_id)).clone();
        let mut making = Making::default();
        let mut all = Vec::with_capacity(jobs.len() + 1);
        for job in jobs {
            all.push(making.placed(queue.named(&key, job)?)?);
        }
        let (id, is_own, mut last) = queue.named(&key, then)?;
        match group {
            Some(group) => last.options.after_group = Some(group),
            None => last.options.after = all.iter().map(|each| each.id.clone()).collect(),
        }
        all.push(making.placed((id, is_own, last))?);
        Ok(Joining {
            queue,
            batch: Batch::of(&key, &all)?,
            key,
            all,
            is_given,
            before: Value::Nil,
            kept,
            sent: Instant::now(),
            lost: None,
        })
    }

    /// Returns the replies; `None` if the jobs were added and the answer was lost.
    async fn send(&mut self) -> Result<Option<Vec<Value>>, Error> {
        let mut tries = 1;
        loop {
            let Trouble { error, is_final } = match self.attempt().await {
                Ok(replies) => return Ok(replies),
                Err(trouble) => trouble,
            };
            if is_final || tries == TRIES {
                return Err(self.lost.take().map_or(error, |lost| {
                    Error::Connection(format!(
                        "{lost}: it is not known whether the jobs were added"
                    ))
                }));
            }
            tokio::time::sleep(trouble_wait(tries, 0.0)).await;
            tries += 1;
        }
    }

    async fn attempt(&mut self) -> Result<Option<Vec<Value>>, Trouble> {
        if !self.is_due().await? {
            return Ok(None);
        }
        let pipe = self.batch.transaction();
        let said = match self.queue.server().try_all(&self.key, &pipe).await {
            Ok(said) => said,
            Err(Failed { error, was_sent }) => {
                if was_sent {
                    self.lost = Some(values::error_text(&error));
                }
                return Err(Error::from(error).into());
            }
        };
        self.lost = None; // if it was refused, nothing of it was executed
        let replies = self.batch.executed(answers(&pipe, said)?);
        replies.map(Some).map_err(|error| Trouble {
            error,
            is_final: true,
        })
    }

    /// Whether the transaction must be sent.
    async fn is_due(&mut self) -> Result<bool, Trouble> {
        let last = self.all.len() - 1;
        if self.lost.is_none() {
            if self.is_given {
                self.before = self.look(&self.all[last..]).await?.remove(0);
            }
            self.sent = Instant::now();
            return Ok(true);
        }
        let mut others = self.look(&self.all).await?;
        let found = others.remove(last);
        let is_there = found != Value::Nil;
        // A job that is still to run is not replaced, so what becomes of it tells nothing. One that has ended does not
        // change.
        let is_hidden = self.before != Value::Nil && !has_ended(&self.before);
        if is_there && !is_hidden && found != self.before {
            return Ok(false);
        }
        let is_late = !is_there && self.sent.elapsed() >= self.kept;
        if is_hidden || is_late || others.iter().any(has_begun) {
            return Err(Trouble {
                error: Error::Connection(String::new()),
                is_final: true,
            });
        }
        Ok(true)
    }

    /// What the server knows of these jobs; nil where it does not hold one.
    async fn look(&self, some: &[Placed]) -> Result<Vec<Value>, Error> {
        let get = |job: &Placed| {
            let mut get = cmd("DQ.GET");
            get.arg(&*self.key).arg(&job.id).arg("PREFIX").arg(0);
            (self.key.clone(), get)
        };
        self.queue.all(some.iter().map(get).collect()).await
    }
}

impl Queue {
    /// A job with its id, which is of this key, and whether the library has made that.
    fn named(&self, key: &[u8], mut job: NewJob) -> Result<(Vec<u8>, bool, NewJob), Error> {
        self.adding(&mut job);
        let is_own = job.options.is_own();
        let make = || self.0.keys.id_like(key, &new_id());
        job.options.id.get_or_insert_with(make);
        let id = self.id_for(&mut job, new_id)?;
        match self.0.keys.has(key, &id) {
            true => Ok((id, is_own, job)),
            false => Err(Error::usage(
                "the jobs of a join must be in one shard: leave their ids out",
            )),
        }
    }
}

/// The group that many jobs are joined by.
fn group_of(jobs: &mut [NewJob]) -> Result<String, Error> {
    let made = || format!("join:{}", values::lossy(new_id()));
    let group = jobs[0].options.said.group.clone().unwrap_or_else(made);
    for job in jobs {
        if *job.options.said.group.get_or_insert_with(|| group.clone()) != group {
            return Err(Error::usage(
                "more than 1000 jobs are joined by their group: give them one, or none",
            ));
        }
    }
    Ok(group)
}

fn field(job: &Value, name: &str) -> Option<Value> {
    let fields = values::map(job.clone()).into_iter();
    fields
        .filter_map(|(known, value)| (known == name).then_some(value))
        .next()
}

fn has_ended(job: &Value) -> bool {
    let state = field(job, "state").and_then(values::text);
    matches!(state.as_deref(), Some("done" | "dead"))
}

fn has_begun(job: &Value) -> bool {
    field(job, "attempts").is_some_and(|attempts| values::int(&attempts) > 0) || has_ended(job)
}
