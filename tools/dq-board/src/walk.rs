//! Reading many jobs with all they have: some at a time, and not too much for one question, as the server sends the
//! payload and the result with each.

use std::collections::HashSet;
use std::sync::Arc;

use dq_watch::read::detail::{Job, State, IN_LIST};
use dq_watch::read::reply;
use dq_watch::text::escape;

use crate::api::{Board, Question};
use crate::views;

/// One question looks at so many jobs, or until so much was read.
const JOBS: usize = 2000;
const BYTES: usize = 8 << 20;
/// Of that, at a time.
const BYTES_AT_ONCE: usize = 1 << 20;
const FIRST: usize = 4;
const AT_ONCE: usize = 500;

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

    /// Those of these jobs that are there, until it is too much.
    pub async fn jobs(
        &mut self,
        board: &Arc<Board>,
        question: &Question,
        mut ids: &[Vec<u8>],
    ) -> Result<Vec<Job>, String> {
        let mut jobs = Vec::with_capacity(ids.len());
        while !ids.is_empty() && self.bytes < BYTES {
            let (part, rest) = ids.split_at(self.step().min(ids.len()));
            let gets = part.iter().map(|id| views::about(question, "DQ.GET", id));
            let values = board
                .looker
                .ask(question.key.clone(), gets.collect())
                .await?;
            if let Some(error) = values.first().and_then(reply::error) {
                return Err(escape::line(error.as_bytes()));
            }
            let read = values.iter().filter_map(|value| reply::job(value, IN_LIST));
            let first = jobs.len();
            jobs.extend(read);
            self.jobs += part.len();
            self.bytes += jobs[first..].iter().map(Job::weight).sum::<usize>();
            ids = rest;
        }
        Ok(jobs)
    }
}

/// How far a question came.
pub struct Walked {
    pub seen: usize,
    /// Where the next one goes on.
    pub more: Option<String>,
}

/// The jobs of one state, each once, from the question's cursor on.
pub async fn walk(
    board: &Arc<Board>,
    question: &Question,
    state: State,
    mut each: impl FnMut(Job) + Send,
) -> Result<Walked, String> {
    let mut cursor = views::cursor(question);
    let mut seen = HashSet::new();
    let mut reading = Reading::default();
    loop {
        let wanted = ("STATE", state.word().as_bytes());
        let (next, ids) = views::scan(board, question, &cursor, wanted, reading.step()).await?;
        cursor = next;
        for job in reading.jobs(board, question, &ids).await? {
            if job.state == state.word() && seen.insert(job.id.clone()) {
                each(job);
            }
        }
        if cursor == "0" || seen.len() >= JOBS || reading.bytes >= BYTES {
            break;
        }
    }
    Ok(Walked {
        seen: seen.len(),
        more: (cursor != "0").then_some(cursor),
    })
}
