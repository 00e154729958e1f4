//! Many jobs at a time, and flows.

use super::new_job::Options;
use super::{added, IfExists, NewJob, Queue};
use crate::bounds;
use crate::error::Error;
use crate::keys::{new_id, Ids};
use crate::server::{answer, answers};
use crate::values;
use redis::{cmd, Cmd, Pipeline, Value};
use std::sync::Arc;

/// At most, in one `DQ.MADD`, and in one write of `DQ.ADD`.
const MOST_JOBS: usize = 1000;
const MOST_BYTES: usize = 1 << 20;

/// At most, of `DQ.MADD` in one write: the server executes one while the next is on its way.
const MOST_COMMANDS: usize = 8;

/// Room for what a `DQ.MADD` has besides jobs, such as options.
const SPARE_WORDS: usize = 16;
const SPARE_BYTES: usize = 128;

/// How many ids have their random bytes drawn together.
const BLOCK: usize = 64;

/// A job to be added, ready to be sent.
struct Placed {
    at: usize,
    id: Vec<u8>,
    is_own: bool,
    payload: Vec<u8>,
    /// Shared with the job before, if equal: most are.
    options: Arc<Options>,
}

/// The jobs of one key.
type Group = (Arc<[u8]>, Vec<Placed>);

#[derive(Default)]
struct Making {
    made: usize,
    last: Arc<Options>,
}

impl Making {
    fn placed(&mut self, id: Vec<u8>, is_own: bool, job: NewJob) -> Result<Placed, Error> {
        let (payload, options) = job.parts()?;
        if options != *self.last {
            self.last = Arc::new(options);
        }
        self.made += 1;
        Ok(Placed {
            at: self.made - 1,
            id,
            is_own,
            payload,
            options: self.last.clone(),
        })
    }
}

impl Queue {
    pub(super) async fn add_all(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
    ) -> Result<Vec<Option<String>>, Error> {
        let shards = self.placed(jobs)?;
        let mut ids = vec![None; shards.iter().map(|(_, group)| group.len()).sum()];
        // All batches are made first, so that an invalid job is reported before anything is sent.
        let batches = shards.iter().map(|(key, group)| Batch::of(key, group));
        let batches: Vec<Batch> = batches.collect::<Result<_, _>>()?;
        for (batch, (key, group)) in batches.into_iter().zip(shards) {
            let after = || group.iter().flat_map(|each| &each.options.after);
            let replies = match self.send(&key, batch).await {
                Err(error) => return Err(self.naming_unheld(error, after()).await),
                Ok(replies) => replies,
            };
            for (each, reply) in group.into_iter().zip(replies) {
                ids[each.at] = added(each.is_own, each.id, reply);
            }
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
            let is_own = job.options.is_own();
            let id = self.id_for(&mut job, || ids.next())?;
            let key = self.key(&id);
            let at = shards.iter().position(|(known, _)| known == key);
            let at = at.unwrap_or_else(|| {
                shards.push((key.clone(), Vec::new()));
                shards.len() - 1
            });
            shards[at].1.push(making.placed(id, is_own, job)?);
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

    /// Adds each job after the one before, in one transaction, and returns their ids. In a sharded queue all go to
    /// the shard of the first one; ids given for the others must belong there.
    pub async fn chain(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
    ) -> Result<Vec<String>, Error> {
        let mut group: Vec<Placed> = Vec::new();
        let mut making = Making::default();
        for mut job in jobs {
            self.adding(&mut job);
            if let Some(before) = group.last() {
                job.options.after = vec![before.id.clone()];
            }
            let is_own = job.options.is_own();
            let id = self.id_for(&mut job, new_id)?;
            group.push(making.placed(id, is_own, job)?);
        }
        let Some(first) = group.first() else {
            return Ok(Vec::new());
        };
        let key = self.key(&first.id).clone();
        let replies = self.send(&key, Batch::transaction(&key, &group)?).await?;
        let ids = group.into_iter().zip(replies).map(|(each, reply)| {
            let exists = || Error::Exists(values::lossy(each.id.clone()));
            added(each.is_own, each.id.clone(), reply).ok_or_else(exists)
        });
        ids.collect()
    }

    async fn send(&self, key: &[u8], batch: Batch) -> Result<Vec<Value>, Error> {
        let (pipes, are_lists) = match batch {
            Batch::Transaction(pipe) => return self.send_in_one(key, &pipe).await,
            Batch::Alike(pipes) => (pipes, true),
            Batch::Each(pipes) => (pipes, false),
        };
        let mut replies = Vec::new();
        for pipe in pipes {
            let found = self.server().ask_all(key, &pipe).await?;
            for reply in answers(&pipe, found)? {
                match are_lists {
                    true => replies.extend(values::list(reply)),
                    false => replies.push(reply),
                }
            }
        }
        Ok(replies)
    }

    /// In one transaction, so no worker finishes one of the jobs before the next one names it.
    async fn send_in_one(&self, key: &[u8], pipe: &Pipeline) -> Result<Vec<Value>, Error> {
        let queued = self.server().ask_all(key, pipe).await?;
        let executed = answers(pipe, queued)?.pop().map(values::list);
        let commands = pipe.cmd_iter().skip(1).zip(executed.unwrap_or_default());
        commands
            .map(|(command, reply)| answer(command, reply))
            .collect()
    }
}

/// The commands that add jobs of one key.
enum Batch {
    Transaction(Pipeline),
    /// By `DQ.MADD`: each replies a list.
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
        let commands = group.iter().map(|each| each.command(key));
        Ok(Batch::Each(piped(
            commands.collect::<Result<_, _>>()?,
            MOST_JOBS,
        )))
    }

    fn transaction(key: &[u8], group: &[Placed]) -> Result<Self, Error> {
        let mut pipe = Pipeline::with_capacity(group.len() + 2);
        pipe.cmd("MULTI");
        for each in group {
            pipe.add_command(each.command(key)?);
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

impl Placed {
    /// `DQ.ADD`.
    fn command(&self, key: &[u8]) -> Result<Cmd, Error> {
        let mut add = cmd("DQ.ADD");
        add.arg(key).arg(&self.id).arg(&self.payload);
        self.options.words(&mut add)?;
        Ok(add)
    }

    fn size(&self) -> usize {
        self.id.len() + self.payload.len()
    }
}

/// The `DQ.MADD` of each chunk.
fn alike(key: &[u8], group: &[Placed]) -> Result<Vec<Cmd>, Error> {
    let mut commands = Vec::new();
    let mut rest = group;
    while !rest.is_empty() {
        let (mut count, mut bytes) = (0, 0);
        for each in rest.iter().take(MOST_JOBS) {
            if count > 0 && bytes + each.size() > MOST_BYTES {
                break;
            }
            bytes += each.size();
            count += 1;
        }
        let (chunk, after) = rest.split_at(count);
        let mut add = Cmd::with_capacity(2 * count + SPARE_WORDS, bytes + key.len() + SPARE_BYTES);
        add.arg("DQ.MADD").arg(key).arg(count);
        for each in chunk {
            add.arg(&each.id).arg(&each.payload);
        }
        chunk[0].options.words(&mut add)?;
        commands.push(add);
        rest = after;
    }
    Ok(commands)
}

fn is_flow(group: &[Placed]) -> bool {
    group.iter().any(|each| each.options.is_of_flow())
}

/// Whether one `DQ.MADD` can add all: it has one set of options. Kinds and headers are part of the payload.
fn are_alike(group: &[Placed]) -> bool {
    let first = &group[0].options;
    let is_plain = first.if_exists != IfExists::RunAgain && first.rule.is_none();
    let is_same = |each: &Placed| Arc::ptr_eq(&each.options, first) || each.options == *first;
    is_plain && group.len() > 1 && group.iter().all(is_same)
}
