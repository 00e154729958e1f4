//! The jobs of one state in its order, one job in full, and the jobs that a filter selects.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dq_watch::model::stats::Stats;
use dq_watch::model::QueueKey;
use dq_watch::read::detail::{get, After, Found, Job, Page, Part, State, IN_LINE_MAX, IN_LIST};
use dq_watch::read::reply;
use dq_watch::text::escape;
use serde_json::{json, Value as Json};

use super::asked::{about, detail, refusal, told};
use super::walk::{walk, Enough, Reading};
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::question::{Question, Words};
use crate::core::wire;

/// Jobs on a page.
const PAGE: usize = 50;
/// The most that one question of a search does: then it returns what it found, and where to continue.
const SEARCHED: Enough = Enough {
    found: PAGE,
    looked: 20_000,
};

pub async fn jobs(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let state = State::named(question.text("state"))
        .ok_or_else(|| Failure::asked("There is no such state."))?;
    let newest = state == State::Dead && question.text("newest") == "1";
    let page = match newest {
        true => newest_dead(board, &question.key).await?,
        false => Page {
            from_ms: question.number("from").unwrap_or(0),
            skip: question.number("skip").unwrap_or(0).min(IN_LINE_MAX * 2),
        },
    };
    let part = Part::Jobs {
        state,
        page,
        count: PAGE,
        read: false,
    };
    let found = detail(board, &question.key, part).await?;
    let mut weight = found.weight();
    let Found::Jobs(mut found) = found else {
        return Ok(json!({ "jobs": [], "more": null, "weight": 0 }));
    };
    let more = page.next(state, &found, PAGE).filter(|_| !newest);
    if newest {
        found.reverse();
    }
    let mut read = HashMap::new();
    if matches!(state, State::Dead | State::Blocked | State::Done) {
        let ids: Vec<Vec<u8>> = found.iter().map(|job| job.id.clone()).collect();
        let mut reading = Reading::default();
        let (jobs, _) = reading.jobs(board, &question.key, &ids, false).await?;
        weight += reading.bytes;
        read.extend(jobs.into_iter().map(|job| (job.id.clone(), job)));
    }
    let shown = found.iter().map(|job| match read.get(&job.id) {
        Some(all) => wire::listed(job, all),
        None => wire::peeked(job),
    });
    let more = more.map(|page| json!({ "from": page.from_ms, "skip": page.skip }));
    let now = board.reader.server_ms();
    Ok(json!({ "jobs": shown.collect::<Vec<_>>(), "more": more, "now": now, "weight": weight }))
}

/// The server lists the dead from the first on: where the last page begins is found by halving the time in which they
/// died.
async fn newest_dead(board: &Arc<Board>, key: &QueueKey) -> Result<Page, Failure> {
    let died = |from_ms: i64| async move {
        let mut peek = about(key, "DQ.PEEK", b"DEAD");
        peek.arg("FROM").arg(from_ms).arg("COUNT").arg(PAGE + 1);
        peek.arg("PREFIX").arg(0);
        let values = board.connections.ask(key.clone(), vec![peek]).await?;
        match refusal(&values[0]) {
            Some(refused) => Err(refused),
            None => Ok(reply::peeked(&values[0], 0).unwrap_or_default()),
        }
    };
    let first = died(0).await?;
    // One page has all of them.
    if first.len() <= PAGE {
        return Ok(Page::default());
    }
    let (mut from, mut to) = (first[0].at_ms.unwrap_or(0), board.reader.server_ms() + 1);
    while to - from > 1 {
        let middle = from + (to - from) / 2;
        match died(middle).await?.len() > PAGE {
            true => from = middle,
            false => to = middle,
        }
    }
    // More than a page died in one instant: the first of them.
    let from_ms = if died(to).await?.is_empty() { from } else { to };
    Ok(Page { from_ms, skip: 0 })
}

pub async fn job(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let id = question.bytes("id").to_vec();
    let found = detail(board, &question.key, Part::Job(id)).await?;
    Ok(match found {
        Found::Job(mut job) => {
            tell_deaths(board, &question.key, &mut job).await?;
            let now = board.reader.server_ms();
            let why = job.why.as_ref();
            let why = why.map(|why| told(board, &question.key, why));
            json!({ "job": wire::job(&job), "why": why, "now": now, "weight": job.weight() })
        }
        _ => json!({ "job": null }),
    })
}

/// To a job that outlasts the deaths of others, a dead one has not ended: that it is dead only the dead one says.
async fn tell_deaths(board: &Arc<Board>, key: &QueueKey, job: &mut Job) -> Result<(), Failure> {
    if !matches!(&job.after, Some(After::Jobs { on_dead, .. }) if on_dead == "wait") {
        return Ok(());
    }
    let shown = job.results.iter_mut().take(wire::WAITS);
    let mut open: Vec<_> = shown.filter(|it| it.outcome.is_none()).collect();
    let ids: Vec<Vec<u8>> = open.iter().map(|it| it.id.clone()).collect();
    let (read, _) = Reading::default().jobs(board, key, &ids, false).await?;
    let dead: HashSet<&[u8]> = read
        .iter()
        .filter(|it| it.state == "dead")
        .map(|it| it.id.as_slice())
        .collect();
    for it in open.iter_mut().filter(|it| dead.contains(it.id.as_slice())) {
        it.outcome = Some("dead".to_owned());
    }
    Ok(())
}

/// Queues in which one question searches at most.
const QUEUES: usize = 200;

/// Over all queues, in their order: as much as one question of a search does, in as many of them as there are.
pub async fn find_everywhere(board: &Arc<Board>, words: Words) -> Result<Json, Failure> {
    let filter = Filter::of(|name| words.bytes(name))
        .ok_or_else(|| Failure::asked("This is not a filter."))?;
    let holds = |stats: &Stats| match filter.state {
        Some(state) => stats.jobs[state as usize] > 0,
        None => stats.jobs.iter().any(|count| *count > 0),
    };
    let keys = board.reader.queues(|stats| stats.is_none_or(holds));
    let left = words.onwards(&keys);
    let (mut found, mut looked, mut refused, mut done) = (Vec::new(), 0, 0, 0);
    let (mut more, mut why) = (None, None);
    for (key, cursor) in &left {
        if done == QUEUES || found.len() >= PAGE || looked >= SEARCHED.looked {
            more = Some(Words::place(key, cursor));
            break;
        }
        let enough = Enough {
            found: PAGE - found.len(),
            looked: SEARCHED.looked - looked,
        };
        let of = json!({ "key": wire::name_of(key), "name": escape::name(&key.name) });
        let each = |job: Job| {
            let mut shown = wire::found(&job);
            shown["queue"] = of.clone();
            found.push(shown);
        };
        let walked = match walk(board, key, &filter, cursor.clone(), enough, each).await {
            // One that this user may not search does not end the search.
            Err(refusal @ Failure::Refused(_)) => {
                (refused, done) = (refused + 1, done + 1);
                why = Some(refusal);
                continue;
            }
            walked => walked?,
        };
        looked += walked.looked;
        if let Some(cursor) = walked.more {
            more = Some(Words::place(key, &cursor));
            break;
        }
        done += 1;
    }
    // Whoever may search none is told that, not that there is no such job.
    if let Some(why) = why.filter(|_| refused == done && more.is_none()) {
        return Err(why);
    }
    let now = board.reader.server_ms();
    let before = keys.len() - left.len();
    Ok(json!({
        "jobs": found, "looked": looked, "more": more, "now": now,
        "done": before + done, "of": keys.len(), "refused": refused,
    }))
}

/// A job with exactly that id comes first, then all others, at least a page at a time.
pub async fn find(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let filter = Filter::of(|name| question.bytes(name))
        .ok_or_else(|| Failure::asked("This is not a filter."))?;
    let key = &question.key;
    let cursor = question.cursor();
    let mut found: Vec<Json> = Vec::new();
    let exact = filter.exact().filter(|_| cursor == "0");
    if let Some(id) = exact {
        let get = vec![get(&key.name, id, IN_LIST)];
        let values = board.connections.ask(key.clone(), get).await?;
        if let Some(refused) = refusal(&values[0]) {
            return Err(refused);
        }
        let job = reply::job(&values[0], IN_LIST);
        let fits = |job: &Job| filter.fits(job, board.reader.server_ms());
        // If its payload must match, too, the search finds it.
        let job = job.filter(|job| fits(job) && !filter.asks_for_payload());
        found.extend(job.as_ref().map(wire::found));
    }
    let first = found.len();
    let each = |job: Job| {
        if first == 0 || Some(job.id.as_slice()) != exact {
            found.push(wire::found(&job));
        }
    };
    let walked = walk(board, key, &filter, cursor, SEARCHED, each).await?;
    let now = board.reader.server_ms();
    Ok(json!({ "jobs": found, "looked": walked.looked, "more": walked.more, "now": now }))
}
