//! A whole flow: all jobs that depend on each other, as layers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use dq_watch::model::row::Row;
use dq_watch::model::stats::ACKED;
use dq_watch::read::detail::{After, Job, Settings, State};
use dq_watch::read::reply;
use dq_watch::text::escape;
use serde_json::{json, Value as Json};

use super::flow::Known;
use super::walk::{walk, Reading, ALL_THAT_ONE_MAY};
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::flow::{layers, Id};
use crate::core::question::Question;
use crate::core::wire;

/// Jobs of one flow.
const JOBS: usize = 1000;
/// Ids among which the dead and the done jobs of a group are looked for.
const LOOKED: usize = 10_000;

/// States in which a job says what it is after.
const SAID: [State; 5] = [
    State::Blocked,
    State::Reserved,
    State::Ready,
    State::Delayed,
    State::Dead,
];

/// What was read of the queue.
#[derive(Default)]
struct Seen {
    known: Known,
    read: HashSet<Id>,
    /// Which group a job waits for.
    after_group: HashMap<Id, Vec<u8>>,
    /// Groups with a job that itself says for how long it is kept.
    keeping: HashSet<Vec<u8>>,
}

impl Seen {
    fn add(&mut self, job: &Job) {
        self.known.add(job);
        self.read.insert(job.id.clone());
        if let Some(After::Group(name)) = &job.after {
            self.after_group.insert(job.id.clone(), name.clone());
        }
        if let (Some(group), Some(_)) = (&job.group, job.keep_ms()) {
            self.keeping.insert(group.clone());
        }
    }
}

/// What a job was after is said of it until it is done: of done jobs those are known that others were told to wait for.
pub async fn whole(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let mut seen = Seen::default();
    let mut is_part = false;
    for state in SAID {
        let filter = Filter::of_state(state);
        let (begin, enough) = ("0".to_owned(), ALL_THAT_ONE_MAY);
        let each = |job: Job| seen.add(&job);
        let walked = walk(board, &question.key, &filter, begin, enough, each).await?;
        is_part |= walked.more.is_some();
    }
    let ids = connected(board, &question, &mut seen, &mut is_part).await?;
    let layers = layers(&ids, &seen.known.edges, |id| seen.known.state(id));
    let causes = seen.known.causes(layers.iter().flatten());
    let shown = layers.iter().map(|layer| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let job = |id: &Id| {
            let mut shown = wire::named(id);
            shown["state"] = seen.known.state(id).into();
            if let Some(cause) = causes.get(id) {
                shown["cause"] = wire::named(cause);
            }
            shown
        };
        for id in layer {
            *counts.entry(seen.known.state(id)).or_default() += 1;
        }
        json!({ "jobs": layer.iter().map(job).collect::<Vec<_>>(), "counts": counts })
    });
    let shown: Vec<Json> = shown.collect();
    let (batches, kept) = batches(board, &question, &seen, &ids).await?;
    let count = |state| {
        ids.iter()
            .filter(|id| seen.known.state(id) == state)
            .count()
    };
    let done = count("done");
    // Every job that has ever been acked is one of these, and still there.
    let acked = |row: &Row| row.stats.as_ref().map_or(0, |it| it.totals[ACKED]);
    let acked = board.reader.of_row(&question.key, acked);
    let is_all = kept == Some(done as i64) && acked == Some(done as u64);
    // What has not ended says all that it is after, so without done and dead jobs no other belongs to the flow.
    let known = is_all || done + count("dead") == 0;
    Ok(json!({ "layers": shown, "batches": batches, "known": known, "part": is_part }))
}

/// The job and all that are connected with it.
async fn connected(
    board: &Arc<Board>,
    question: &Question,
    seen: &mut Seen,
    is_part: &mut bool,
) -> Result<Vec<Id>, Failure> {
    let first = question.bytes("id").to_vec();
    let mut ids = vec![first.clone()];
    let mut there = HashSet::from([first.clone()]);
    let mut reading = Reading::default();
    let mut last = vec![first];
    while !last.is_empty() {
        let unread: Vec<Id> = last
            .iter()
            .filter(|id| !seen.read.contains(*id))
            .cloned()
            .collect();
        let (jobs, asked) = reading.jobs(board, &question.key, &unread, false).await?;
        *is_part |= asked < unread.len();
        jobs.iter().for_each(|job| seen.add(job));
        let edges = &seen.known.edges;
        let around = last
            .iter()
            .flat_map(|id| edges.before(id).iter().chain(edges.behind(id)));
        let mut next: Vec<Id> = around
            .filter(|id| there.insert((*id).clone()))
            .cloned()
            .collect();
        *is_part |= ids.len() + next.len() > JOBS;
        next.truncate(JOBS.saturating_sub(ids.len()));
        ids.extend(next.iter().cloned());
        last = next;
    }
    Ok(ids)
}

/// The groups that jobs of the flow wait for, each with the job that comes after it; and how many done jobs the queue
/// has, if it has kept all of them.
async fn batches(
    board: &Arc<Board>,
    question: &Question,
    seen: &Seen,
    ids: &[Id],
) -> Result<(Vec<Json>, Option<i64>), Failure> {
    let waits = ids
        .iter()
        .filter_map(|id| Some((id, seen.after_group.get(id)?)));
    let waits: Vec<_> = waits.collect();
    let key = &question.key;
    let gets = waits.iter().flat_map(|(_, group)| {
        let kept = |state: State| {
            let mut scan = redis::cmd("DQ.SCAN");
            scan.arg(&key.name).arg(0).arg("COUNT").arg(LOOKED);
            scan.arg("STATE").arg(state.word()).arg("GROUP").arg(*group);
            scan
        };
        let mut left = redis::cmd("DQ.LEN");
        left.arg(&key.name).arg("GROUP").arg(*group);
        [left, kept(State::Dead), kept(State::Done)]
    });
    let about = |name: &str| redis::cmd(name).arg(&key.name).to_owned();
    let of_queue = [about("DQ.CFGGET"), about("DQ.LEN").arg("DONE").to_owned()];
    let asked = of_queue.into_iter().chain(gets);
    let values = board.connections.ask(key.clone(), asked.collect()).await?;
    let (of_queue, values) = values.split_at(2);
    let done = reply::int(&of_queue[1]);
    let is_kept = is_all_kept(reply::settings(&of_queue[0]), done);
    let batch = |((id, group), values): (&(&Id, &Vec<u8>), &[redis::Value])| {
        let parts = |value| reply::array(value).unwrap_or_default();
        let count = |value| {
            parts(value)
                .get(1)
                .and_then(reply::array)
                .map_or(0, <[redis::Value]>::len)
        };
        let is_whole = |value| parts(value).first().and_then(reply::text).as_deref() == Some("0");
        let is_known =
            is_kept && !seen.keeping.contains(*group) && values[1..].iter().all(is_whole);
        json!({
            "name": escape::name(group), "id": wire::encoded(group), "then": wire::named(id),
            "left": reply::int(&values[0]),
            "dead": count(&values[1]),
            "done": count(&values[2]),
            "known": is_known,
        })
    };
    let batches = waits.iter().zip(values.chunks(3)).map(batch).collect();
    Ok((batches, done.filter(|_| is_kept)))
}

/// Whether every job that was done is still there: nothing but their number limits them, and that not yet.
fn is_all_kept(settings: Option<Settings>, done: Option<i64>) -> bool {
    let Some((settings, done)) = settings.zip(done) else {
        return false;
    };
    settings.donettl_ms == 0 && settings.donebytes == 0 && done < settings.donelen as i64
}
