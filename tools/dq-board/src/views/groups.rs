//! Groups, those with most waiting jobs first, each with what it may have of its own.

use std::collections::HashMap;
use std::sync::Arc;

use dq_watch::model::QueueKey;
use dq_watch::read::detail::{Found, Group, Job, Page, Part, PeekedJob, State, AT_WORK};
use dq_watch::read::reply;
use dq_watch::read::shares::{self, Share};
use serde_json::{json, Value as Json};

use super::asked::{about, detail, refusal, settings, strange};
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::quoted;
use crate::core::question::Question;
use crate::core::wire;

/// Groups that one step looks at (their names are short), and how many steps one question may take.
const STEP: usize = 1000;
const STEPS: usize = 20;
const SHOWN: usize = 50;
/// No group has an index of its dead jobs, or of its oldest: so many of the queue's are read.
const SAMPLE: usize = AT_WORK;

/// Groups with settings of which it is asked whether they are paused.
const SET: usize = 100;

/// The groups of a queue that are paused, with their jobs, if there are any; a user who may not ask is told of none.
pub async fn paused(board: &Arc<Board>, key: &QueueKey) -> Option<Json> {
    let has = board.reader.of_row(key, |row| {
        row.stats.as_ref().is_some_and(|it| it.groups > 0)
    });
    if has != Some(true) {
        return None;
    }
    let ask = |commands| board.connections.ask(key.clone(), commands);
    let mut set = about(key, "DQ.GROUPS", b"0");
    set.arg("COUNT").arg(SET).arg("SET");
    let values = ask(vec![set]).await.ok()?;
    let (cursor, mut groups) = reply::groups(values.first()?)?;
    groups.retain(|group| group.waiting > 0);
    let gets = groups
        .iter()
        .map(|group| shares::get(&key.name, &group.name));
    let shares = ask(gets.collect()).await.ok()?;
    let is_paused = |value| shares::read(value).is_some_and(|share| share.paused != 0);
    let all = groups.iter().zip(&shares);
    let jobs = all.filter_map(|(group, own)| is_paused(own).then_some(group.waiting));
    let jobs: Vec<u64> = jobs.collect();
    let sum = jobs.iter().sum::<u64>();
    (sum > 0).then(|| json!({ "groups": jobs.len(), "jobs": sum, "more": cursor != "0" }))
}

/// Of the groups that some steps look at, those with most waiting jobs.
pub async fn groups(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let (mut all, cursor) = listed(board, &question).await?;
    let seen = all.len();
    all.sort_by(|a, b| {
        let size = |group: &Group| (group.waiting, group.reserved);
        size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
    });
    // A group that was listed twice while the server's table grew.
    all.dedup_by(|a, b| a.name == b.name);
    let is_whole = cursor == "0" && all.len() <= SHOWN && question.bytes("part").is_empty();
    all.truncate(SHOWN);
    let gets = all
        .iter()
        .map(|group| shares::get(&question.key.name, &group.name));
    let ask = board.connections.ask(question.key.clone(), gets.collect());
    let own: Vec<Share> = match all.is_empty() {
        true => Vec::new(),
        false => ask
            .await?
            .iter()
            .map(|it| shares::read(it).unwrap_or_default())
            .collect(),
    };
    let turns = |group: &Group, own: &Share| match group.waiting + group.reserved {
        0 => None,
        _ => (own.paused == 0).then(|| own.weight.unwrap_or(1)),
    };
    let all_turns = all
        .iter()
        .zip(&own)
        .filter_map(|(group, own)| turns(group, own));
    let weights: u64 = all_turns.sum();
    let sample = sample(board, &question).await?;
    let shown = all.iter().zip(&own).map(|(group, own)| {
        let mut shown = wire::group(group, own);
        let (oldest, dead) = sample.of.get(&group.name).copied().unwrap_or_default();
        (shown["oldest"], shown["dead"]) = (oldest.into(), dead.into());
        let share = turns(group, own).filter(|_| is_whole && question.bytes("set").is_empty());
        if let Some(weight) = share {
            shown["share"] = (weight as f64 / weights.max(1) as f64).into();
        }
        shown
    });
    let groups: Vec<Json> = shown.collect();
    let more = (cursor != "0").then_some(cursor);
    let settings = settings(board, &question.key).await?;
    Ok(json!({
        "groups": groups, "seen": seen, "more": more, "settings": settings,
        "sample": sample.is_part.then_some(SAMPLE), "weight": sample.weight,
    }))
}

/// The groups that some steps list, and the cursor of the next step.
async fn listed(board: &Arc<Board>, question: &Question) -> Result<(Vec<Group>, String), Failure> {
    let mut cursor = question.cursor();
    let part = question.bytes("part");
    let pattern = [b"*".as_slice(), &quoted(part), b"*"].concat();
    let mut all: Vec<Group> = Vec::new();
    for _ in 0..STEPS {
        let mut command = about(&question.key, "DQ.GROUPS", cursor.as_bytes());
        command.arg("COUNT").arg(STEP);
        if !part.is_empty() {
            command.arg("MATCH").arg(&pattern);
        }
        if !question.bytes("set").is_empty() {
            command.arg("SET");
        }
        let values = board
            .connections
            .ask(question.key.clone(), vec![command])
            .await?;
        if let Some(refused) = refusal(&values[0]) {
            return Err(refused);
        }
        let (next, groups) = reply::groups(&values[0]).ok_or_else(strange)?;
        cursor = next;
        all.extend(groups);
        if cursor == "0" {
            break;
        }
    }
    Ok((all, cursor))
}

#[derive(Default)]
struct Sample {
    /// Of each group since when its oldest ready job is due, and how many are dead.
    of: HashMap<Vec<u8>, (Option<i64>, usize)>,
    /// Whether there are more than were read.
    is_part: bool,
    weight: usize,
}

async fn sample(board: &Arc<Board>, question: &Question) -> Result<Sample, Failure> {
    let mut sample = Sample::default();
    for state in [State::Ready, State::Dead] {
        let part = Part::Jobs {
            state,
            page: Page::default(),
            count: SAMPLE,
            read: true,
        };
        let Found::Read(jobs, read) = detail(board, &question.key, part).await? else {
            continue;
        };
        sample.is_part |= jobs.len() == SAMPLE;
        sample.weight += 1000 * jobs.len();
        jobs.iter()
            .for_each(|job| sample.count(state, job, read.get(&job.id)));
    }
    Ok(sample)
}

impl Sample {
    fn count(&mut self, state: State, job: &PeekedJob, read: Option<&Job>) {
        let Some(group) = read.and_then(|job| job.group.clone()) else {
            return;
        };
        let (oldest, dead) = self.of.entry(group).or_default();
        match state {
            State::Dead => *dead += 1,
            _ => *oldest = [*oldest, job.at_ms].into_iter().flatten().min(),
        }
    }
}
