//! What a job is after and what is after it, as a graph.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dq_watch::read::detail::{After, Found, Job, Part, State};
use serde_json::{json, Value as Json};

use super::asked;
use super::walk::{walk_on, Reading};
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::flow::{columns, layers, Column, Edges, Id, LEVELS};
use crate::core::question::Question;
use crate::core::wire;

/// Jobs of one graph that are read to find which jobs they are after.
const READ_MAX: usize = 1000;

/// What is known of the jobs of a graph.
#[derive(Default)]
pub struct Known {
    pub edges: Edges,
    states: HashMap<Id, String>,
    /// Those that a death holds back.
    outlasting: HashSet<Id>,
    /// There were too many jobs to read these.
    unread: HashSet<Id>,
}

impl Known {
    pub fn add(&mut self, job: &Job) {
        self.states.insert(job.id.clone(), job.state.clone());
        if let Some(After::Jobs { ids, on_dead }) = &job.after {
            if on_dead == "wait" {
                self.outlasting.insert(job.id.clone());
            }
            for id in ids {
                self.edges.add(id, &job.id);
            }
        }
        for ended in &job.results {
            self.edges.add(&ended.id, &job.id);
            // It is all that is known of jobs that are no longer kept.
            if let Some(outcome) = &ended.outcome {
                let state = self.states.entry(ended.id.clone());
                state.or_insert_with(|| outcome.clone());
            }
        }
    }

    /// Which of these blocked jobs, in an order in which each comes after all it is after, are held back by which dead job.
    pub fn causes<'a>(&'a self, ids: impl Iterator<Item = &'a Id>) -> HashMap<&'a Id, &'a Id> {
        let mut causes: HashMap<&Id, &Id> = HashMap::new();
        for id in ids.filter(|id| self.state(id) == "blocked") {
            let is_held = self.outlasting.contains(id);
            let of = |it: &'a Id| match causes.get(it) {
                Some(cause) => Some(*cause),
                None => (is_held && self.state(it) == "dead").then_some(it),
            };
            if let Some(cause) = self.edges.before(id).iter().find_map(of) {
                causes.insert(id, cause);
            }
        }
        causes
    }

    pub fn state(&self, id: &Id) -> String {
        let state = self.states.get(id).map(String::as_str);
        let without = match self.unread.contains(id) {
            true => "unknown",
            false => "gone",
        };
        state.unwrap_or(without).to_owned()
    }
}

pub async fn flow(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let id = question.bytes("id").to_vec();
    let Found::Job(job) = asked::detail(board, &question.key, Part::Job(id)).await? else {
        return Ok(json!({ "columns": [], "edges": [] }));
    };
    let mut known = Known::default();
    known.add(&job);
    look_back(board, &question, &job.id, &mut known).await?;
    let filter = Filter::of_state(State::Blocked);
    let each = |blocked: Job| known.add(&blocked);
    let walked = walk_on(board, &question, &filter, each).await?;
    let columns = columns(&job.id, &known.edges, |id| known.state(id));
    let edges = shown_edges(&columns, &known.edges);
    let before = columns.iter().filter(|column| column.level <= 0);
    let before: Vec<Id> = before.flat_map(|column| column.shown.clone()).collect();
    let ordered = layers(&before, &known.edges, |id| known.state(id)).concat();
    let cause = known.causes(ordered.iter());
    let cause = cause.get(&job.id).map(|id| wire::named(id));
    let columns = columns.iter().map(|column| shown(column, &known));
    let columns: Vec<Json> = columns.collect();
    let part = walked.more.is_some();
    Ok(json!({ "columns": columns, "edges": edges, "cause": cause, "part": part }))
}

/// Follows what the job is after, from job to job.
async fn look_back(
    board: &Arc<Board>,
    question: &Question,
    from: &Id,
    known: &mut Known,
) -> Result<(), Failure> {
    let mut reading = Reading::default();
    let mut seen: HashSet<Id> = HashSet::from([from.clone()]);
    let mut last = vec![from.clone()];
    for _ in 0..LEVELS {
        let before = last.iter().flat_map(|id| known.edges.before(id));
        let mut ids: Vec<Id> = before
            .filter(|id| seen.insert((*id).clone()))
            .cloned()
            .collect();
        let most = READ_MAX.saturating_sub(seen.len() - ids.len());
        let mut unread = ids.split_off(most.min(ids.len()));
        let (jobs, asked) = reading.jobs(board, &question.key, &ids, false).await?;
        unread.extend(ids.split_off(asked));
        known.unread.extend(unread);
        jobs.iter().for_each(|job| known.add(job));
        if ids.is_empty() {
            break;
        }
        last = ids;
    }
    Ok(())
}

fn shown(column: &Column, known: &Known) -> Json {
    let node = |id: &Id| {
        let mut node = wire::named(id);
        node["state"] = known.state(id).into();
        node
    };
    json!({
        "level": column.level,
        "jobs": column.shown.iter().map(node).collect::<Vec<_>>(),
        "more": column.more,
    })
}

/// The edges between jobs that are shown, by ids.
fn shown_edges(columns: &[Column], edges: &Edges) -> Vec<[String; 2]> {
    let shown: HashSet<&Id> = columns.iter().flat_map(|column| &column.shown).collect();
    let mut pairs = Vec::new();
    for behind in &shown {
        for before in edges.before(behind).iter().filter(|it| shown.contains(it)) {
            pairs.push([wire::encoded(before), wire::encoded(behind)]);
        }
    }
    pairs.sort();
    pairs
}
