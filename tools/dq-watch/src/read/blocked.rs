//! What blocked jobs wait for. There may be a million of them, so they are read in steps.

use std::collections::HashSet;

use dq_connect::link::Link;
use redis::Cmd;

use super::deaths::{Deaths, Told};
use super::detail::{get, Job, State};
use super::records::After;
use super::reply;
use crate::model::QueueKey;

/// Ids of one step of DQ.SCAN, and jobs that are read at a time: each may wait for a thousand others.
const STEP: usize = 500;
const AT_ONCE: usize = 100;

/// What is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doomed {
    Job(Vec<u8>),
    AllOf(State),
}

/// What a link did, or the server's refusal; None: nobody wants it any more.
type Walked<T> = Result<Result<Option<T>, String>, String>;

/// Which blocked jobs die if these are removed.
pub fn dying(
    link: &mut Link,
    key: &QueueKey,
    doomed: &Doomed,
    is_wanted: impl Fn() -> bool,
) -> Walked<Told> {
    let mut deaths = Deaths::default();
    let removed = match doomed {
        Doomed::Job(id) => {
            deaths.delete(id);
            Ok(Some(()))
        }
        Doomed::AllOf(state) => scan(link, key, *state, &is_wanted, |_, ids| {
            for id in &ids {
                deaths.delete(id);
            }
            Ok(Ok(()))
        })?,
    };
    if !matches!(removed, Ok(Some(()))) {
        return Ok(removed.map(|_| None));
    }
    let walked = each(link, key, &is_wanted, |job| deaths.see(&job))?;
    deaths.follow();
    Ok(walked.map(|all| all.map(|()| deaths.dying())))
}

/// The groups of these jobs that blocked jobs wait for.
pub fn awaited_groups(
    link: &mut Link,
    key: &QueueKey,
    ids: &[&[u8]],
) -> Result<Result<Vec<Vec<u8>>, String>, String> {
    let mut groups = HashSet::new();
    let mut awaited = HashSet::new();
    for ids in ids.chunks(AT_ONCE) {
        let read = jobs(link, key, ids, |job| groups.extend(job.group))?;
        if let Err(refused) = read {
            return Ok(Err(refused));
        }
    }
    if groups.is_empty() {
        return Ok(Ok(Vec::new()));
    }
    let walked = each(
        link,
        key,
        || true,
        |job| {
            if let Some(After::Group(name)) = job.after {
                awaited.extend(groups.take(&name));
            }
        },
    )?;
    Ok(walked.map(|_| awaited.into_iter().collect()))
}

/// Reads every job that is blocked the whole time.
fn each(
    link: &mut Link,
    key: &QueueKey,
    is_wanted: impl Fn() -> bool,
    mut seen: impl FnMut(Job),
) -> Walked<()> {
    scan(link, key, State::Blocked, is_wanted, |link, ids| {
        for ids in ids.chunks(AT_ONCE) {
            let ids: Vec<&[u8]> = ids.iter().map(Vec::as_slice).collect();
            if let Err(refused) = jobs(link, key, &ids, &mut seen)? {
                return Ok(Err(refused));
            }
        }
        Ok(Ok(()))
    })
}

fn scan(
    link: &mut Link,
    key: &QueueKey,
    state: State,
    is_wanted: impl Fn() -> bool,
    mut step: impl FnMut(&mut Link, Vec<Vec<u8>>) -> Result<Result<(), String>, String>,
) -> Walked<()> {
    let mut cursor = b"0".to_vec();
    while is_wanted() {
        let mut scan = redis::cmd("DQ.SCAN");
        scan.arg(&key.name)
            .arg(&cursor)
            .arg("STATE")
            .arg(state.word());
        scan.arg("COUNT").arg(STEP);
        let values = ask(link, key, vec![scan])?;
        if let Some(refused) = reply::error(&values[0]) {
            return Ok(Err(refused));
        }
        let parts = reply::array(&values[0]).unwrap_or_default();
        let [next, ids] = parts else {
            return Ok(Ok(Some(())));
        };
        cursor = reply::bytes(next).unwrap_or_default();
        let ids = reply::array(ids).unwrap_or_default();
        let ids = ids.iter().filter_map(reply::bytes).collect();
        if let Err(refused) = step(link, ids)? {
            return Ok(Err(refused));
        }
        if cursor == b"0" {
            return Ok(Ok(Some(())));
        }
    }
    Ok(Ok(None))
}

/// Reads these jobs, without their payloads.
fn jobs(
    link: &mut Link,
    key: &QueueKey,
    ids: &[&[u8]],
    seen: impl FnMut(Job),
) -> Result<Result<(), String>, String> {
    let gets = ids.iter().map(|id| get(&key.name, id, 0)).collect();
    let values = ask(link, key, gets)?;
    if let Some(refused) = values.first().and_then(reply::error) {
        return Ok(Err(refused));
    }
    values
        .iter()
        .filter_map(|it| reply::job(it, 0))
        .for_each(seen);
    Ok(Ok(()))
}

fn ask(link: &mut Link, key: &QueueKey, commands: Vec<Cmd>) -> Result<Vec<redis::Value>, String> {
    link.look(commands.into_iter().map(|it| (key.db, it)).collect())
}
