//! Reading many jobs with all they have: some at a time, and not too much for one question, as the server sends the
//! payload and the result with each.

use std::collections::HashSet;
use std::sync::Arc;

use dq_watch::model::QueueKey;
use dq_watch::read::detail::{Job, IN_LIST};
use dq_watch::read::reply;

use super::{about, refusal};
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;

/// One question looks at so many jobs, or until so much was read.
const JOBS: usize = 2000;
const BYTES: usize = 8 << 20;
/// Of that, at a time.
const BYTES_AT_ONCE: usize = 1 << 20;
const FIRST: usize = 4;
const AT_ONCE: usize = 500;
/// Ids that the first step looks at, and that one step does at most where few are found.
const FIRST_STEP: usize = 16;
const STEP_MAX: usize = 1000;

/// How much one question has read so far.
#[derive(Default)]
pub struct Reading {
    jobs: usize,
    pub bytes: usize,
}

impl Reading {
    /// Jobs to read at a time, by what one weighed so far.
    fn step(&self) -> usize {
        match self.bytes.checked_div(self.jobs) {
            None => FIRST,
            Some(mean) => (BYTES_AT_ONCE / mean.max(1)).clamp(1, AT_ONCE),
        }
    }

    /// Those of these jobs that are there, until it is too much, if that is a reason; and how many were asked for.
    pub async fn jobs(
        &mut self,
        board: &Arc<Board>,
        key: &QueueKey,
        ids: &[Vec<u8>],
        all: bool,
    ) -> Result<(Vec<Job>, usize), Failure> {
        let mut jobs = Vec::with_capacity(ids.len());
        let mut left = ids;
        while !left.is_empty() && (all || self.bytes < BYTES) {
            let (part, rest) = left.split_at(self.step().min(left.len()));
            let gets = part.iter().map(|id| about(key, "DQ.GET", id));
            let values = board.looker.ask(key.clone(), gets.collect()).await?;
            if let Some(refused) = values.first().and_then(refusal) {
                return Err(refused);
            }
            let read = values.iter().filter_map(|value| reply::job(value, IN_LIST));
            let first = jobs.len();
            jobs.extend(read);
            self.jobs += part.len();
            self.bytes += jobs[first..].iter().map(Job::weight).sum::<usize>();
            left = rest;
        }
        Ok((jobs, ids.len() - left.len()))
    }
}

/// When a question has enough.
#[derive(Clone, Copy)]
pub struct Enough {
    pub found: usize,
    /// Ids looked at.
    pub looked: usize,
}

pub const ALL_THAT_ONE_MAY: Enough = Enough {
    found: JOBS,
    looked: usize::MAX,
};

/// How far a question came.
pub struct Walked {
    pub found: usize,
    /// Ids that the server looked at, about.
    pub looked: usize,
    /// Where the next one goes on.
    pub more: Option<String>,
}

/// The jobs that a filter means, each once, from a cursor on. None of a step is left out, since no cursor leads into
/// it: where its jobs are too heavy to read all of them, the next question takes it again, smaller.
pub async fn walk(
    board: &Arc<Board>,
    key: &QueueKey,
    filter: &Filter,
    cursor: String,
    enough: Enough,
    mut each: impl FnMut(Job) + Send,
) -> Result<Walked, Failure> {
    let mut seen = HashSet::new();
    let mut reading = Reading::default();
    let (mut cursor, mut step) = parted(&cursor);
    let mut looked = 0;
    loop {
        let (next, ids) = scan(board, key, &cursor, filter, step).await?;
        let (jobs, asked) = reading.jobs(board, key, &ids, step == 1).await?;
        let now = board.reader.server_ms();
        for job in jobs {
            if filter.fits(&job, now) && seen.insert(job.id.clone()) {
                each(job);
            }
        }
        let more = match asked < ids.len() {
            true => Some(format!("{cursor}~{}", asked.clamp(1, step / 2))),
            false => (next != "0").then(|| next.clone()),
        };
        looked += step;
        let is_enough = seen.len() >= enough.found || looked >= enough.looked;
        if more.is_none() || is_enough || reading.bytes >= BYTES {
            return Ok(Walked {
                found: seen.len(),
                looked,
                more,
            });
        }
        cursor = next;
        step = next_step(step, ids.len(), reading.step());
    }
}

/// Where a question goes on: behind a cursor of the server, with steps of what size.
fn parted(cursor: &str) -> (String, usize) {
    let (cursor, step) = cursor.split_once('~').unwrap_or((cursor, ""));
    let step = step.parse().unwrap_or(FIRST_STEP);
    (cursor.to_owned(), step.clamp(1, STEP_MAX))
}

/// Jobs that a filter means, for what is done to them: they are read only where the filter needs it.
pub struct Step {
    pub ids: Vec<Vec<u8>>,
    pub looked: usize,
    pub more: Option<String>,
}

/// Few enough that what is done to them in one command holds nobody up.
const ACTED: Enough = Enough {
    found: 100,
    looked: 1000,
};

pub async fn step(
    board: &Arc<Board>,
    key: &QueueKey,
    filter: &Filter,
    cursor: String,
) -> Result<Step, Failure> {
    if !filter.needs_jobs() {
        let (next, ids) = scan(board, key, &cursor, filter, AT_ONCE).await?;
        return Ok(Step {
            ids,
            looked: AT_ONCE,
            more: (next != "0").then_some(next),
        });
    }
    let mut ids = Vec::new();
    let walked = walk(board, key, filter, cursor, ACTED, |job| ids.push(job.id)).await?;
    Ok(Step {
        ids,
        looked: walked.looked,
        more: walked.more,
    })
}

/// So many that about `wanted` of them will be found, at first not many more than before.
fn next_step(step: usize, found: usize, wanted: usize) -> usize {
    (wanted * step / found.max(1)).clamp(1, (2 * step).min(STEP_MAX))
}

/// One step of DQ.SCAN.
pub async fn scan(
    board: &Arc<Board>,
    key: &QueueKey,
    cursor: &str,
    filter: &Filter,
    step: usize,
) -> Result<(String, Vec<Vec<u8>>), Failure> {
    let mut scan = about(key, "DQ.SCAN", cursor.as_bytes());
    scan.arg("COUNT").arg(step);
    filter.scan(&mut scan);
    let values = board.looker.ask(key.clone(), vec![scan]).await?;
    if let Some(refused) = refusal(&values[0]) {
        return Err(refused);
    }
    let parts = reply::array(&values[0]).unwrap_or_default();
    let [cursor, ids] = parts else {
        return Ok(("0".to_owned(), Vec::new()));
    };
    let ids = reply::array(ids).unwrap_or_default();
    let ids = ids.iter().filter_map(reply::bytes).collect();
    Ok((reply::text(cursor).unwrap_or_default(), ids))
}

#[cfg(test)]
mod tests {
    use super::next_step;

    #[test]
    fn steps_grow_where_little_is_found() {
        assert_eq!(next_step(16, 0, 4), 32);
        assert_eq!(next_step(1000, 3, 500), 1000);
        assert_eq!(next_step(500, 500, 500), 500);
        assert_eq!(next_step(500, 500, 1), 1);
    }
}
