//! Jobs, and one after all of them.

use super::batch::{Making, Placed};
use super::{added, NewJob, Queue};
use crate::error::Error;
use crate::keys::new_id;
use crate::values;
use std::time::Duration;

/// How many jobs one may be after.
const MOST_AFTER: usize = 1000;
const KEEP: Duration = Duration::from_secs(60);

impl Queue {
    /// Adds jobs, and one that begins when all of them have ended: `then`. Returns its id, as [`Queue::add`] does.
    ///
    /// All are added in one transaction. [`Job::results`](crate::Job::results) of the last one says how the others
    /// ended, its `on_dead` what it does if one dies. It is kept for a minute, unless it has a `keep`: if the answer of
    /// the server is lost, it is looked up, and all are sent again only if it is not there and none of the others ran.
    /// Where nobody can tell, as its `keep` may be over or a job of its id was there and had not ended, the error of the
    /// connection says so.
    ///
    /// More than 1000 jobs are joined by their group: one that they have in common, or a new one. Then there are no
    /// results.
    pub async fn join(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
        mut then: NewJob,
    ) -> Result<Option<String>, Error> {
        let mut jobs: Vec<NewJob> = jobs.into_iter().collect();
        if jobs.is_empty() {
            let why = "a join needs jobs that come before the last one";
            return Err(Error::usage(why));
        }
        if then.options.is_of_flow() {
            let why =
                "the last job of a join has neither after nor after_group: it is after the others";
            return Err(Error::usage(why));
        }
        then.options.said.keep.get_or_insert(KEEP);
        let group = match jobs.len() > MOST_AFTER {
            true => Some(group_of(&mut jobs)?),
            false => None,
        };
        let given = jobs.iter().chain([&then]).find_map(NewJob::given_id);
        let key = self.key(&given.unwrap_or_else(new_id)).clone();
        let mut making = Making::default();
        let mut all: Vec<Placed> = Vec::with_capacity(jobs.len() + 1);
        for job in jobs {
            all.push(making.placed(self.named(&key, job)?)?);
        }
        let (id, is_given, mut last) = self.named(&key, then)?;
        match group {
            Some(group) => last.options.after_group = Some(group),
            None => last.options.after = all.iter().map(|each| each.id.clone()).collect(),
        }
        let last = making.placed((id, is_given, last))?;
        let (is_own, id) = (last.is_own(), last.id.clone());
        all.push(last);
        let reply = self.together(&key, &all).await?.pop();
        Ok(added(is_own, id, reply.unwrap_or_default()))
    }

    /// A job with its id, which is of this key, and whether the program has given that.
    fn named(&self, key: &[u8], mut job: NewJob) -> Result<(Vec<u8>, bool, NewJob), Error> {
        self.adding(&mut job);
        let is_given = job.options.id.is_some();
        let make = || self.0.keys.id_like(key, &new_id());
        job.options.id.get_or_insert_with(make);
        let id = self.id_for(&mut job, new_id)?;
        match self.0.keys.has(key, &id) {
            true => Ok((id, is_given, job)),
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
