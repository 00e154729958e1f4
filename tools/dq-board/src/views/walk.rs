//! Reads many jobs: some at a time, and not too much for one question, as the server sends the beginnings of payload,
//! results and steps with each.

use std::collections::HashSet;
use std::sync::Arc;

use dq_watch::model::QueueKey;
use dq_watch::read::detail::{get, Job, IN_LIST};
use dq_watch::read::reply;

use super::asked::{about, refusal};
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::question::Question;

/// One question reads so many jobs, or until it has read so many bytes.
const JOBS: usize = 2000;
const BYTES: usize = 8 << 20;
/// Bytes and jobs that are read at a time.
const BYTES_AT_ONCE: usize = 1 << 20;
const FIRST: usize = 4;
const AT_ONCE: usize = 500;
/// Ids that the first step looks at, and the most for one step where few are found.
const FIRST_STEP: usize = 16;
const STEP_MAX: usize = 1000;

/// How much one question has read so far.
#[derive(Default)]
pub struct Reading {
    jobs: usize,
    pub bytes: usize,
}

impl Reading {
    /// Jobs to read at a time, by the mean weight of those read so far.
    fn step(&self) -> usize {
        match self.bytes.checked_div(self.jobs) {
            None => FIRST,
            Some(mean) => (BYTES_AT_ONCE / mean.max(1)).clamp(1, AT_ONCE),
        }
    }

    /// Reads those of these jobs that exist, up to the limit of bytes unless `all`. Also returns how many were asked
    /// for.
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
            let gets = part.iter().map(|id| get(&key.name, id, IN_LIST));
            let values = board.connections.ask(key.clone(), gets.collect()).await?;
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
    /// Ids that were looked at.
    pub looked: usize,
}

pub const ALL_THAT_ONE_MAY: Enough = Enough {
    found: JOBS,
    looked: usize::MAX,
};

/// How far a question got.
pub struct Walked {
    pub found: usize,
    /// About how many ids the server looked at.
    pub looked: usize,
    /// Where the next question continues.
    pub more: Option<String>,
}

/// [`walk`] from where the question is, as far as one question may.
pub async fn walk_on(
    board: &Arc<Board>,
    question: &Question,
    filter: &Filter,
    each: impl FnMut(Job) + Send,
) -> Result<Walked, Failure> {
    let (key, cursor) = (&question.key, question.cursor());
    walk(board, key, filter, cursor, ALL_THAT_ONE_MAY, each).await
}

/// The jobs that a filter selects, each once, from a cursor on. No cursor points into a step, so none of its jobs may
/// be left out: if they are too heavy to read at once, the next question repeats the step with a smaller size.
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

/// Where a question continues: the server's cursor, and the size of the next step.
fn parted(cursor: &str) -> (String, usize) {
    let (cursor, step) = cursor.split_once('~').unwrap_or((cursor, ""));
    let step = step.parse().unwrap_or(FIRST_STEP);
    (cursor.to_owned(), step.clamp(1, STEP_MAX))
}

/// Jobs that a filter selects, to act on them: they are read only if the filter needs it.
pub struct Step {
    pub ids: Vec<Vec<u8>>,
    pub looked: usize,
    pub more: Option<String>,
}

/// Few enough that one command on all of them does not hold up other clients.
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

/// A step in which about `wanted` jobs will be found, at most twice as large as the last one.
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
    let values = board.connections.ask(key.clone(), vec![scan]).await?;
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
