//! Commands that add many jobs of one key.

use super::new_job::{IfExists, Options};
use super::NewJob;
use crate::error::Error;
use crate::server::answer;
use crate::values;
use redis::{Cmd, Pipeline, Value};
use std::sync::Arc;

/// At most, in one `DQ.MADD`, and in one write of `DQ.ADD`.
const MOST_JOBS: usize = 1000;
const MOST_BYTES: usize = 1 << 20;

/// At most, of `DQ.MADD` in one write: the server executes one while the next is on its way.
const MOST_COMMANDS: usize = 8;

/// Room for what a `DQ.MADD` has besides jobs, such as options.
const SPARE_WORDS: usize = 16;
const SPARE_BYTES: usize = 128;

/// A job to be added, ready to be sent.
pub(super) struct Placed {
    pub at: usize,
    pub id: Vec<u8>,
    /// Whether the id is the program's.
    pub is_given: bool,
    payload: Vec<u8>,
    /// Shared with the job before, if equal: most are.
    pub options: Arc<Options>,
}

impl Placed {
    /// Whether the library has made the id. Such a job cannot be refused: a nil reply means that an earlier sending
    /// added it.
    pub fn is_own(&self) -> bool {
        !self.is_given && self.options.if_exists != IfExists::OnlyReplace
    }

    fn size(&self) -> usize {
        self.id.len() + self.payload.len()
    }

    /// Whether a command can add both jobs. Kinds and headers are part of the payload.
    fn is_like(&self, other: &Placed) -> bool {
        Arc::ptr_eq(&self.options, &other.options) || self.options == other.options
    }
}

#[derive(Default)]
pub(super) struct Making {
    made: usize,
    last: Arc<Options>,
}

impl Making {
    pub fn placed(
        &mut self,
        (id, is_given, job): (Vec<u8>, bool, NewJob),
    ) -> Result<Placed, Error> {
        let (payload, options) = job.parts()?;
        if options != *self.last {
            self.last = Arc::new(options);
        }
        self.made += 1;
        Ok(Placed {
            at: self.made - 1,
            id,
            is_given,
            payload,
            options: self.last.clone(),
        })
    }
}

/// Commands, each with how many jobs it adds. Jobs with the same options share a `DQ.MADD`; their order is kept.
pub(super) struct Batch(Vec<(Cmd, usize)>);

impl Batch {
    pub fn of(key: &[u8], group: &[Placed]) -> Result<Self, Error> {
        let mut made = Vec::new();
        let mut rest = group;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(together(rest));
            made.push((command(key, chunk)?, chunk.len()));
            rest = after;
        }
        Ok(Batch(made))
    }

    /// The commands, and what they add, by writes.
    pub fn writes(self) -> Vec<(Pipeline, Vec<usize>)> {
        let mut writes: Vec<(Pipeline, Vec<usize>)> = Vec::new();
        let mut room = 0;
        for (command, count) in self.0 {
            if room == 0 {
                writes.push(Default::default());
                room = MOST_JOBS;
            }
            let share = if count > 1 {
                MOST_JOBS / MOST_COMMANDS
            } else {
                1
            };
            room = room.saturating_sub(share);
            if let Some((pipe, counts)) = writes.last_mut() {
                pipe.add_command(command);
                counts.push(count);
            }
        }
        writes
    }

    pub fn transaction(&self) -> Pipeline {
        let mut pipe = Pipeline::with_capacity(self.0.len() + 2);
        pipe.cmd("MULTI");
        for (command, _) in &self.0 {
            pipe.add_command(command.clone());
        }
        pipe.cmd("EXEC");
        pipe
    }

    /// A reply for each job of a transaction, by what the server said to its commands; if one was refused, an error that
    /// says how many jobs the others have added, as not even `EXEC` takes those back.
    pub fn executed(&self, mut said: Vec<Value>) -> Result<Vec<Value>, Error> {
        let replies = said.pop().map(values::list).unwrap_or_default();
        let commands = self.0.iter().map(|(command, count)| (command, *count));
        let (found, refused) = told(commands, replies);
        let added = found.iter().filter(|id| **id != Value::Nil).count();
        let all = self.0.iter().map(|(_, count)| count).sum();
        refused.map_or(Ok(found), |why| Err(why.after(added, all)))
    }
}

/// The replies for each job that these commands have added, and the first error.
pub(super) fn told<'a>(
    commands: impl Iterator<Item = (&'a Cmd, usize)>,
    replies: Vec<Value>,
) -> (Vec<Value>, Option<Error>) {
    let mut found = Vec::new();
    let mut refused = None;
    for ((command, count), reply) in commands.zip(replies) {
        match (answer(command, reply), count) {
            (Ok(reply), 1) => found.push(reply),
            (Ok(reply), _) => found.extend(values::list(reply)),
            (Err(error), _) => {
                found.extend(std::iter::repeat_n(Value::Nil, count));
                refused = refused.or(Some(error));
            }
        }
    }
    (found, refused)
}

/// How many of these jobs one command adds, from the first.
fn together(rest: &[Placed]) -> usize {
    let first = &rest[0];
    if !first.options.is_plain() {
        return 1;
    }
    let mut bytes = 0;
    let fits = |each: &&Placed| {
        bytes += each.size();
        bytes <= MOST_BYTES && each.is_like(first)
    };
    rest.iter().take(MOST_JOBS).take_while(fits).count().max(1)
}

fn command(key: &[u8], chunk: &[Placed]) -> Result<Cmd, Error> {
    let bytes: usize = chunk.iter().map(Placed::size).sum();
    let mut add = Cmd::with_capacity(
        2 * chunk.len() + SPARE_WORDS,
        bytes + key.len() + SPARE_BYTES,
    );
    match chunk.len() {
        1 => add.arg("DQ.ADD").arg(key),
        count => add.arg("DQ.MADD").arg(key).arg(count),
    };
    for each in chunk {
        add.arg(&each.id).arg(&each.payload);
    }
    chunk[0].options.words(&mut add)?;
    Ok(add)
}
