//! Many jobs at a time, and flows.

use super::{added, NewJob, Queue};
use crate::error::Error;
use crate::server::answer;
use crate::values;
use redis::{cmd, Cmd, Pipeline, Value};
use std::sync::Arc;

/// Of one `DQ.MADD`, and of one write of `DQ.ADD`.
const MOST_JOBS: usize = 1000;
const MOST_BYTES: usize = 1 << 20;

/// `DQ.MADD` in one write: the server executes one while the next one is on its way.
const MOST_COMMANDS: usize = 8;

type Placed = (usize, Vec<u8>, NewJob);

impl Queue {
    pub(super) async fn add_all(&self, jobs: Vec<NewJob>) -> Result<Vec<Option<String>>, Error> {
        let mut ids = vec![None; jobs.len()];
        let mut shards: Vec<(Arc<[u8]>, Vec<Placed>)> = Vec::new();
        for (at, mut job) in jobs.into_iter().enumerate() {
            self.adding(&mut job);
            let id = job.options.id_or_new();
            let key = self.key(&id).clone();
            match shards.iter_mut().find(|(known, _)| *known == key) {
                Some((_, group)) => group.push((at, id, job)),
                None => shards.push((key, vec![(at, id, job)])),
            }
        }
        // All of them, so that a mistake in any is told before anything is sent.
        let batches = shards.iter().map(|(key, group)| Batch::of(key, group));
        let batches: Vec<Batch> = batches.collect::<Result<_, _>>()?;
        for (batch, (key, group)) in batches.into_iter().zip(&shards) {
            let replies = self.send(key, batch).await?;
            for ((at, id, job), reply) in group.iter().zip(replies) {
                ids[*at] = added(job, id, reply);
            }
        }
        Ok(ids)
    }

    /// Adds each job after the one before, in one transaction, and returns their ids. Of a sharded queue all go to the
    /// shard of the first one.
    pub async fn chain(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
    ) -> Result<Vec<String>, Error> {
        let mut group: Vec<Placed> = Vec::new();
        for (at, mut job) in jobs.into_iter().enumerate() {
            self.adding(&mut job);
            if let Some((_, before, _)) = group.last() {
                job.options.after = vec![before.clone()];
            }
            group.push((at, job.options.id_or_new(), job));
        }
        let Some((_, first, _)) = group.first() else {
            return Ok(Vec::new());
        };
        let key = self.key(first).clone();
        if let Some((_, other, _)) = group
            .iter()
            .find(|(_, id, job)| job.options.id.is_some() && *self.key(id) != key)
        {
            let id = values::lossy(other.clone());
            return Err(Error::Usage(format!(
                "a chain is in one shard, and {id} is not in that of the first job"
            )));
        }
        let replies = self.send(&key, Batch::transaction(&key, &group)?).await?;
        let ids = group
            .iter()
            .zip(replies)
            .map(|((_, id, job), reply)| added(job, id, reply));
        ids.collect::<Option<_>>()
            .ok_or_else(|| Error::Refused("a job of the chain is there already".into()))
    }

    async fn send(&self, key: &[u8], batch: Batch) -> Result<Vec<Value>, Error> {
        let (pipes, are_lists) = match batch {
            Batch::Transaction(pipe) => return self.send_in_one(key, &pipe).await,
            Batch::Alike(pipes) => (pipes, true),
            Batch::Each(pipes) => (pipes, false),
        };
        let mut replies = Vec::new();
        for pipe in pipes {
            for reply in self.server().ask_all(key, &pipe).await? {
                match answer(reply)? {
                    ids if are_lists => replies.extend(values::list(ids)),
                    id => replies.push(id),
                }
            }
        }
        Ok(replies)
    }

    /// In one transaction: no worker finishes one of them before the next one names it.
    async fn send_in_one(&self, key: &[u8], pipe: &Pipeline) -> Result<Vec<Value>, Error> {
        let mut replies = self.server().ask_all(key, pipe).await?;
        let refused = replies
            .iter()
            .position(|reply| matches!(reply, Value::ServerError(_)));
        let last = refused
            .map(|at| replies.swap_remove(at))
            .or_else(|| replies.pop())
            .unwrap_or(Value::Nil);
        values::list(answer(last)?)
            .into_iter()
            .map(answer)
            .collect()
    }
}

/// What adds jobs of one key.
enum Batch {
    Transaction(Pipeline),
    /// By `DQ.MADD`: each answers a list.
    Alike(Vec<Pipeline>),
    Each(Vec<Pipeline>),
}

impl Batch {
    fn of(key: &[u8], group: &[Placed]) -> Result<Self, Error> {
        if is_flow(group) {
            return Batch::transaction(key, group);
        }
        if are_alike(group) {
            let commands = alike(key, group)?;
            return Ok(Batch::Alike(piped(commands, MOST_COMMANDS)));
        }
        let commands = group.iter().map(|(_, id, job)| job.command(key, id));
        Ok(Batch::Each(piped(
            commands.collect::<Result<_, _>>()?,
            MOST_JOBS,
        )))
    }

    fn transaction(key: &[u8], group: &[Placed]) -> Result<Self, Error> {
        let mut pipe = Pipeline::with_capacity(group.len() + 2);
        pipe.cmd("MULTI");
        for (_, id, job) in group {
            pipe.add_command(job.command(key, id)?);
        }
        pipe.cmd("EXEC");
        Ok(Batch::Transaction(pipe))
    }
}

fn piped(commands: Vec<Cmd>, most: usize) -> Vec<Pipeline> {
    let mut pipes: Vec<Pipeline> = Vec::new();
    for (at, command) in commands.into_iter().enumerate() {
        if at % most == 0 {
            pipes.push(Pipeline::new());
        }
        if let Some(pipe) = pipes.last_mut() {
            pipe.add_command(command);
        }
    }
    pipes
}

/// `DQ.MADD` of chunks.
fn alike(key: &[u8], group: &[Placed]) -> Result<Vec<Cmd>, Error> {
    let mut commands = Vec::new();
    let mut rest = group;
    while !rest.is_empty() {
        let (mut pairs, mut bytes) = (Vec::new(), 0);
        for (_, id, job) in rest.iter().take(MOST_JOBS) {
            let payload = job.payload()?;
            if bytes > 0 && bytes + payload.len() > MOST_BYTES {
                break;
            }
            bytes += id.len() + payload.len() + 1;
            pairs.push((id, payload));
        }
        let mut add = cmd("DQ.MADD");
        add.arg(key).arg(pairs.len());
        pairs
            .iter()
            .for_each(|(id, payload)| _ = add.arg(id).arg(payload));
        rest[0].2.options.words(&mut add)?;
        rest = &rest[pairs.len()..];
        commands.push(add);
    }
    Ok(commands)
}

fn is_flow(group: &[Placed]) -> bool {
    group
        .iter()
        .any(|(_, _, job)| !job.options.after.is_empty())
}

/// `DQ.MADD` has the same options for all, kinds and headers are of the payload.
fn are_alike(group: &[Placed]) -> bool {
    let options = |(_, _, job): &Placed| {
        let mut words = cmd("");
        job.options
            .words(&mut words)
            .map(|()| words.get_packed_command())
    };
    let Some(Ok(first)) = group.first().map(options) else {
        return false;
    };
    let is_plain = |(_, _, job): &Placed| {
        job.options.if_exists != super::IfExists::RunAgain && job.options.rule.is_none()
    };
    group.len() > 1
        && group
            .iter()
            .all(|each| is_plain(each) && options(each).is_ok_and(|words| words == first))
}
