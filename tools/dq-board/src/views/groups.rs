//! Groups, those with most waiting jobs first, each with what it may have of its own.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use dq_watch::model::stats::{Stats, BLOCKED, DELAYED, READY};
use dq_watch::model::QueueKey;
use dq_watch::read::detail::{
    get, Found, Group, Job, Page, Part, PeekedJob, Settings, State, AT_WORK,
};
use dq_watch::read::reply;
use dq_watch::read::shares::{self, Share};
use serde_json::{json, Value as Json};

use super::asked::{about, detail, refusal, settings, strange};
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::quoted;
use crate::core::question::Question;
use crate::core::scale::{ready_of, Tenant, Tenants};
use crate::core::wire;

/// Groups that one step looks at (their names are short), and how many steps one question may take.
const STEP: usize = 1000;
const STEPS: usize = 20;
const SHOWN: usize = 50;
/// No group has an index of its dead jobs, or of its oldest: so many of the queue's are read.
const SAMPLE: usize = AT_WORK;

/// Groups with settings that are asked for these, those with most jobs.
const SET: usize = 100;
/// Jobs of which it is asked whose they are, and among how many they are looked for.
const WHOSE: usize = 100;
const AMONG: usize = 1000;

/// The groups that hold jobs of this queue back, or may: those with settings of their own, and where the queue's limit them
/// the others. A user who may not ask is told of none.
pub async fn tenants(
    board: &Arc<Board>,
    key: &QueueKey,
    settings: &Settings,
    stats: &Stats,
) -> Tenants {
    let known = async {
        if stats.groups == 0 {
            return None;
        }
        let groups = || {
            about(key, "DQ.GROUPS", b"0")
                .arg("COUNT")
                .arg(STEP)
                .to_owned()
        };
        let are_limited = settings.groupmax > 0 || settings.grouprate.0 > 0 || settings.groupfifo;
        let mut lists = vec![groups().arg("SET").to_owned()];
        lists.extend(are_limited.then(groups));
        let ask = |commands| board.connections.ask(key.clone(), commands);
        let lists = ask(lists).await.ok()?;
        let (cursor, mut set) = reply::groups(lists.first()?)?;
        let all = lists.get(1).and_then(reply::groups);
        let all = all.map_or_else(Vec::new, |(_, groups)| groups);
        set.retain(|group| group.waiting + group.reserved > 0);
        set.sort_by_key(|group| Reverse(group.waiting));
        let is_part = cursor != "0" || set.len() > SET;
        set.truncate(SET);
        let gets = set.iter().map(|it| shares::get(&key.name, &it.name));
        let own = match set.is_empty() {
            true => Vec::new(),
            false => ask(gets.collect()).await.ok()?,
        };
        let own = own.iter().map(|it| shares::read(it).unwrap_or_default());
        let mut shares: HashMap<Vec<u8>, (Group, Share)> = HashMap::new();
        for group in all {
            shares.insert(group.name.clone(), (group, Share::default()));
        }
        for (group, own) in set.into_iter().zip(own) {
            shares.insert(group.name.clone(), (group, own));
        }
        Some((shares, are_limited, is_part))
    };
    let Some((shares, are_limited, is_part)) = known.await else {
        return Tenants::default();
    };
    let waiting = [DELAYED, BLOCKED].map(|state| stats.jobs[state]);
    let is_mixed = stats.jobs[READY] > 0 && waiting.iter().sum::<u64>() > 0;
    let some = match is_mixed && !shares.is_empty() {
        true => whose(board, key, stats.jobs[READY]).await,
        false => None,
    };
    let (of, count, is_about) = some.unwrap_or((HashMap::new(), 0, is_mixed));
    let listed = shares.len() as u64;
    let all = shares.into_values().map(|(group, own)| Tenant {
        ready: ready_of(
            group.waiting,
            (of.get(&group.name).copied().unwrap_or_default(), count),
            &stats.jobs,
        ),
        name: group.name,
        waiting: group.waiting,
        reserved: group.reserved,
        own,
    });
    Tenants {
        all: all.collect(),
        unlisted: if are_limited {
            stats.groups.saturating_sub(listed)
        } else {
            0
        },
        is_about,
        is_part,
    }
}

/// Of some ready jobs, how many are of each group; how many they are, and whether there are more. The first ones where they
/// are few, else some of those that a step of DQ.SCAN comes upon, as the first may all wait for the same groups.
async fn whose(
    board: &Arc<Board>,
    key: &QueueKey,
    ready: u64,
) -> Option<(HashMap<Vec<u8>, u64>, u64, bool)> {
    let ask = |commands| board.connections.ask(key.clone(), commands);
    let is_about = ready > WHOSE as u64;
    let mut first = about(key, "DQ.PEEK", b"READY");
    let mut step = about(key, "DQ.SCAN", b"0");
    step.arg("STATE").arg("READY").arg("COUNT").arg(AMONG);
    first.arg("COUNT").arg(WHOSE).arg("PREFIX").arg(0);
    let mut commands = vec![first];
    commands.extend(is_about.then_some(step));
    let values = ask(commands).await.ok()?;
    let first = reply::peeked(values.first()?, 0)?;
    let first: Vec<Vec<u8>> = first.into_iter().map(|job| job.id).collect();
    let scanned = values.get(1).and_then(|it| reply::array(it)?.get(1));
    let scanned = scanned.and_then(reply::array).unwrap_or_default();
    let scanned: Vec<Vec<u8>> = scanned.iter().filter_map(reply::bytes).collect();
    // Ready jobs may be few among others that a step comes upon.
    let every = (scanned.len() / WHOSE).max(1);
    let ids: Vec<Vec<u8>> = match scanned.len() * 2 < WHOSE {
        true => first,
        false => scanned.into_iter().step_by(every).take(WHOSE).collect(),
    };
    let gets = ids.iter().map(|id| get(&key.name, id, 0));
    let jobs = ask(gets.collect()).await.ok()?;
    let jobs = jobs.iter().filter_map(|value| reply::job(value, 0));
    let (mut of, mut count) = (HashMap::new(), 0);
    for job in jobs.filter(|job| job.state == "ready") {
        count += 1;
        if let Some(group) = job.group {
            *of.entry(group).or_default() += 1;
        }
    }
    Some((of, count, is_about))
}

/// What the forecast needs to know of groups.
pub async fn holds(board: &Arc<Board>, key: &QueueKey, settings: &Settings) -> Option<Json> {
    let stats = board
        .reader
        .of_row(key, |row| row.stats.clone())
        .flatten()?;
    let tenants = tenants(board, key, settings, &stats).await;
    let [reserved, rate] = tenants.pace(settings, &stats.jobs);
    let sum = |of: fn(&Tenant) -> u64| tenants.paused().map(of).sum::<u64>();
    let held = tenants.paused().filter(|it| it.waiting > 0).count();
    let held = (held > 0).then(|| {
        json!({
            "groups": held, "ready": sum(|it| it.ready), "later": sum(Tenant::later),
            "about": tenants.is_about, "more": tenants.is_part,
        })
    });
    Some(json!({ "reserved": reserved, "rate": rate, "held": held }))
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
