//! Many jobs at a time, and flows.

use super::batch::{told, Batch, Making, Placed};
use super::{added, NewJob, Queue};
use crate::bounds;
use crate::error::Error;
use crate::keys::{new_id, Ids};
use crate::values;
use redis::Value;
use std::sync::Arc;

/// How many ids have their random bytes drawn together.
const BLOCK: usize = 64;

/// The jobs of one key.
type Group = (Arc<[u8]>, Vec<Placed>);

impl Queue {
    pub(super) async fn add_all(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
    ) -> Result<Vec<Option<String>>, Error> {
        let shards = self.placed(jobs)?;
        let all = shards.iter().map(|(_, group)| group.len()).sum();
        let mut ids = vec![None; all];
        // All batches are made first, so that an invalid job is reported before anything is sent.
        let batches = shards.iter().map(|(key, group)| Batch::of(key, group));
        let batches: Vec<Batch> = batches.collect::<Result<_, _>>()?;
        for (batch, (key, group)) in batches.into_iter().zip(shards) {
            let mut replies = Vec::new();
            let sent = match group.iter().any(|each| each.options.is_of_flow()) {
                true => self.together(&key, &group).await.map(|all| replies = all),
                false => self.send(&key, batch, &mut replies).await,
            };
            for (each, reply) in group.into_iter().zip(replies) {
                ids[each.at] = added(sent.is_ok() && each.is_own(), each.id, reply);
            }
            sent.map_err(|error| error.after(ids.iter().flatten().count(), all))?;
        }
        Ok(ids)
    }

    /// Encodes the jobs, and groups them by key.
    fn placed(&self, jobs: impl IntoIterator<Item = NewJob>) -> Result<Vec<Group>, Error> {
        let mut shards: Vec<Group> = Vec::new();
        let mut ids = Ids::new(BLOCK);
        let mut making = Making::default();
        for mut job in jobs {
            self.adding(&mut job);
            let is_given = job.options.id.is_some();
            let id = self.id_for(&mut job, || ids.next())?;
            let key = self.key(&id);
            let at = shards.iter().position(|(known, _)| known == key);
            let at = at.unwrap_or_else(|| {
                shards.push((key.clone(), Vec::new()));
                shards.len() - 1
            });
            shards[at].1.push(making.placed((id, is_given, job))?);
        }
        Ok(shards)
    }

    /// Takes the job's id, or makes one. The job is in the shard of the jobs that it is after.
    pub(super) fn id_for(
        &self,
        job: &mut NewJob,
        mut make: impl FnMut() -> Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        if job.options.is_after_group() && self.keys().len() > 1 {
            let why =
                "after_group does not work in a sharded queue: each shard has a group of that name";
            return Err(Error::usage(why));
        }
        let after = &job.options.after;
        let is_beside = |id: &Vec<u8>| after.iter().all(|other| self.key(other) == self.key(id));
        if let Some(id) = &job.options.id {
            bounds::id(id)?;
        }
        match job.options.id.take() {
            Some(id) if is_beside(&id) => Ok(id),
            Some(id) => Err(Error::Usage(format!(
                "job {} must be in the shard of the jobs that it is after: leave its id out",
                values::lossy(id)
            ))),
            None if after
                .iter()
                .any(|other| self.key(other) != self.key(&after[0])) =>
            {
                let why = "a job cannot be after jobs of different shards";
                Err(Error::usage(why))
            }
            None => loop {
                let id = make();
                if is_beside(&id) {
                    return Ok(id);
                }
            },
        }
    }

    /// Adds each job after the one before, in one transaction, and returns their ids as [`Queue::add`] does. In a
    /// sharded queue all go to the shard of the first one; ids given for the others must belong there.
    pub async fn chain(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
    ) -> Result<Vec<Option<String>>, Error> {
        let mut group: Vec<Placed> = Vec::new();
        let mut making = Making::default();
        for mut job in jobs {
            self.adding(&mut job);
            if let Some(before) = group.last() {
                job.options.after = vec![before.id.clone()];
            }
            let is_given = job.options.id.is_some();
            let id = self.id_for(&mut job, new_id)?;
            group.push(making.placed((id, is_given, job))?);
        }
        let Some(first) = group.first() else {
            return Ok(Vec::new());
        };
        let key = self.key(&first.id).clone();
        let replies = self.together(&key, &group).await?;
        let ids = group.into_iter().zip(replies);
        Ok(ids
            .map(|(each, reply)| added(each.is_own(), each.id, reply))
            .collect())
    }

    /// Adds the replies for each job up to the write in which one was refused.
    async fn send(&self, key: &[u8], batch: Batch, to: &mut Vec<Value>) -> Result<(), Error> {
        for (pipe, counts) in batch.writes() {
            let said = self.server().ask_all(key, &pipe).await?;
            let (replies, refused) = told(pipe.cmd_iter().zip(counts), said);
            to.extend(replies);
            refused.map_or(Ok(()), Err)?;
        }
        Ok(())
    }
}
