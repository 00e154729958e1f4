//! The answers to the questions of the views, from the servers.

use std::collections::HashMap;
use std::sync::Arc;

use dq_watch::read::detail::{Detail, Found, Group, Page, Part, State, IN_LINE_MAX};
use dq_watch::read::reply;
use dq_watch::text::escape;
use redis::{Cmd, Value};
use serde_json::{json, Value as Json};

use crate::api::{Board, Question};
use crate::walk::Reading;
use crate::{dead, waiters, wire};

/// Jobs on a page.
const PAGE: usize = 50;
/// Bars of the hill, for each width of the window.
const ZOOMS: [(&str, i64, usize); 6] = [
    ("minute", 60_000, 60),
    ("hour", 3_600_000, 120),
    ("day", 86_400_000, 96),
    ("week", 604_800_000, 84),
    ("month", 2_592_000_000, 90),
    ("year", 31_536_000_000, 73),
];
/// Ids that one step of a search looks at, and how many steps one question may take.
const STEP: usize = 500;
const STEPS: usize = 20;
const FOUND_MAX: usize = 50;
/// Groups that one step looks at: their names are short.
const GROUPS_STEP: usize = 1000;
/// A page with more payload than this is shown without reasons, results and what is waited for: for these each job
/// is read.
const READ_MAX: usize = 256 * 1024;
const NEXT_RUNS: usize = 3;

pub async fn answer(board: &Arc<Board>, view: &str, question: Question) -> Result<String, String> {
    let answer = match view {
        "queue" => queue(board, question).await,
        "hill" => hill(board, question).await,
        "jobs" => jobs(board, question).await,
        "job" => job(board, question).await,
        "search" => search(board, question).await,
        "recurring" => recurring(board, question).await,
        "groups" => groups(board, question).await,
        "died" => dead::died(board, question).await,
        "waiters" => waiters::waiters(board, question).await,
        _ => Err("There is no such view.".to_owned()),
    };
    answer.map(|answer| answer.to_string())
}

pub async fn detail(board: &Arc<Board>, question: &Question, part: Part) -> Result<Found, String> {
    let key = question.key.clone();
    let detail = Detail { key, part };
    let values = board
        .looker
        .ask(question.key.clone(), detail.commands())
        .await?;
    match detail.found(&values) {
        Found::Refused(error) => Err(escape::line(error.as_bytes())),
        found => Ok(found),
    }
}

async fn queue(board: &Arc<Board>, question: Question) -> Result<Json, String> {
    Ok(json!({ "settings": settings(board, &question).await? }))
}

async fn settings(board: &Arc<Board>, question: &Question) -> Result<Json, String> {
    Ok(match detail(board, question, Part::Settings).await? {
        Found::Settings(settings) => wire::settings(&settings),
        _ => Json::Null,
    })
}

async fn hill(board: &Arc<Board>, question: Question) -> Result<Json, String> {
    let zoom = question.text("zoom");
    let (_, span, parts) = *ZOOMS
        .iter()
        .find(|it| it.0 == zoom)
        .ok_or("There is no such zoom.")?;
    let now = board.reader.server_ms();
    let ask = |from: i64, to: i64, parts: usize| {
        let mut forecast = redis::cmd("DQ.FORECAST");
        forecast.arg(&question.key.name);
        forecast
            .arg("FROM")
            .arg(from)
            .arg("TO")
            .arg(to)
            .arg("BUCKETS")
            .arg(parts)
            .to_owned()
    };
    // What is due already stands before the hill, and what comes later behind it.
    let last = 4_398_046_511_103;
    let commands = vec![
        ask(now, now + span, parts),
        ask(0, now, 1),
        ask(now + span, last, 1),
    ];
    let values = board.looker.ask(question.key.clone(), commands).await?;
    let counts = |value: &Value| match (reply::error(value), reply::instants(value)) {
        (Some(error), _) => Err(escape::line(error.as_bytes())),
        (None, counts) => counts.ok_or("an unknown kind of reply".to_owned()),
    };
    let past = board.reader.past(&question.key, span, parts);
    Ok(json!({
        "now": now,
        "span": span,
        "dues": counts(&values[0])?,
        "due": counts(&values[1])?[0],
        "later": counts(&values[2])?[0],
        "past": past,
        "since": board.since_ms,
    }))
}

async fn jobs(board: &Arc<Board>, question: Question) -> Result<Json, String> {
    let state = State::named(question.text("state")).ok_or("There is no such state.")?;
    let page = Page {
        from_ms: question.number("from").unwrap_or(0),
        skip: question.number("skip").unwrap_or(0).min(IN_LINE_MAX * 2),
    };
    let part = Part::Jobs {
        state,
        page,
        count: PAGE,
    };
    let found = detail(board, &question, part).await?;
    let mut weight = found.weight();
    let Found::Jobs(found) = found else {
        return Ok(json!({ "jobs": [], "more": null, "weight": 0 }));
    };
    let more = page.next(state, &found, PAGE);
    let mut read = HashMap::new();
    if matches!(state, State::Dead | State::Blocked | State::Done) && weight <= READ_MAX {
        let ids: Vec<Vec<u8>> = found.iter().map(|job| job.id.clone()).collect();
        let mut reading = Reading::default();
        let jobs = reading.jobs(board, &question, &ids).await?;
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

pub fn about(question: &Question, command: &str, id: &[u8]) -> Cmd {
    redis::cmd(command)
        .arg(&question.key.name)
        .arg(id)
        .to_owned()
}

async fn job(board: &Arc<Board>, question: Question) -> Result<Json, String> {
    let id = question.bytes("id").to_vec();
    let found = detail(board, &question, Part::Job(id)).await?;
    Ok(match found {
        Found::Job(job) => {
            let now = board.reader.server_ms();
            json!({ "job": wire::job(&job), "now": now, "weight": job.weight() })
        }
        _ => json!({ "job": null }),
    })
}

/// By the whole id at once, else by a part of it, some thousand jobs at a time.
async fn search(board: &Arc<Board>, question: Question) -> Result<Json, String> {
    let id = question.bytes("id").to_vec();
    let mut cursor = question.text("cursor").to_owned();
    let mut found: Vec<Vec<u8>> = Vec::new();
    if cursor.is_empty() {
        cursor = "0".to_owned();
        let exact = vec![about(&question, "DQ.GET", &id)];
        let values = board.looker.ask(question.key.clone(), exact).await?;
        if reply::job(&values[0], 0).is_some() {
            found.push(id.clone());
        }
    }
    let pattern = [b"*".as_slice(), &quoted(&id), b"*"].concat();
    for _ in 0..STEPS {
        let (next, ids) = scan(board, &question, &cursor, ("MATCH", &pattern), STEP).await?;
        cursor = next;
        found.extend(ids.into_iter().filter(|it| *it != id));
        if cursor == "0" || found.len() >= FOUND_MAX {
            break;
        }
    }
    found.truncate(FOUND_MAX);
    let shown = found.iter().map(|id| wire::named(id));
    let more = (cursor != "0").then_some(cursor);
    Ok(json!({ "found": shown.collect::<Vec<_>>(), "more": more }))
}

/// Bytes that a pattern would read otherwise are taken as they are.
fn quoted(id: &[u8]) -> Vec<u8> {
    let special = |byte: &u8| b"*?[]\\^-".contains(byte);
    let quote = |byte: &u8| {
        if special(byte) {
            vec![b'\\', *byte]
        } else {
            vec![*byte]
        }
    };
    id.iter().flat_map(quote).collect()
}

/// Where a question begins that takes several.
pub fn cursor(question: &Question) -> String {
    match question.text("cursor") {
        "" => "0".to_owned(),
        cursor => cursor.to_owned(),
    }
}

/// One step of DQ.SCAN; the option's value may be any bytes.
pub async fn scan(
    board: &Arc<Board>,
    question: &Question,
    cursor: &str,
    (option, value): (&str, &[u8]),
    step: usize,
) -> Result<(String, Vec<Vec<u8>>), String> {
    let mut scan = about(question, "DQ.SCAN", cursor.as_bytes());
    scan.arg("COUNT").arg(step).arg(option).arg(value);
    let values = board.looker.ask(question.key.clone(), vec![scan]).await?;
    if let Some(error) = reply::error(&values[0]) {
        return Err(escape::line(error.as_bytes()));
    }
    let parts = reply::array(&values[0]).unwrap_or_default();
    let [cursor, ids] = parts else {
        return Ok(("0".to_owned(), Vec::new()));
    };
    let ids = reply::array(ids).unwrap_or_default();
    let ids = ids.iter().filter_map(reply::bytes).collect();
    Ok((reply::text(cursor).unwrap_or_default(), ids))
}

/// Of each job of some steps, whether it comes again, which costs the server no payload.
async fn recurring(board: &Arc<Board>, question: Question) -> Result<Json, String> {
    let mut cursor = cursor(&question);
    let mut shown = Vec::new();
    for _ in 0..STEPS {
        let (next, ids) = scan(board, &question, &cursor, ("MATCH", b"*"), STEP).await?;
        cursor = next;
        let asked = ids.iter().map(|id| {
            about(&question, "DQ.NEXT", id)
                .arg("COUNT")
                .arg(NEXT_RUNS)
                .to_owned()
        });
        let nexts = board
            .looker
            .ask(question.key.clone(), asked.collect())
            .await?;
        if let Some(error) = nexts.first().and_then(reply::error) {
            return Err(escape::line(error.as_bytes()));
        }
        let of_rules: Vec<(&Vec<u8>, Vec<i64>)> = ids
            .iter()
            .zip(&nexts)
            .filter_map(|(id, next)| Some((id, reply::instants(next).filter(|it| !it.is_empty())?)))
            .collect();
        let gets = of_rules
            .iter()
            .map(|(id, _)| about(&question, "DQ.GET", id));
        let jobs = board
            .looker
            .ask(question.key.clone(), gets.collect())
            .await?;
        for ((_, next), job) in of_rules.into_iter().zip(&jobs) {
            let Some(mut job) = reply::job(job, 0) else {
                continue;
            };
            if let Some(rule) = &mut job.rule {
                rule.next_ms = next;
                shown.push(wire::job(&job));
            }
        }
        if cursor == "0" || shown.len() >= FOUND_MAX {
            break;
        }
    }
    let more = (cursor != "0").then_some(cursor);
    Ok(json!({ "jobs": shown, "more": more, "now": board.reader.server_ms() }))
}

/// Of those that some steps look at, the ones with most waiting jobs.
async fn groups(board: &Arc<Board>, question: Question) -> Result<Json, String> {
    let mut cursor = cursor(&question);
    let part = question.bytes("part");
    let pattern = [b"*".as_slice(), &quoted(part), b"*"].concat();
    let mut all: Vec<Group> = Vec::new();
    for _ in 0..STEPS {
        let mut command = about(&question, "DQ.GROUPS", cursor.as_bytes());
        command.arg("COUNT").arg(GROUPS_STEP);
        if !part.is_empty() {
            command.arg("MATCH").arg(&pattern);
        }
        let values = board
            .looker
            .ask(question.key.clone(), vec![command])
            .await?;
        if let Some(error) = reply::error(&values[0]) {
            return Err(escape::line(error.as_bytes()));
        }
        let (next, groups) = reply::groups(&values[0]).ok_or("an unknown kind of reply")?;
        cursor = next;
        all.extend(groups);
        if cursor == "0" {
            break;
        }
    }
    let seen = all.len();
    all.sort_by(|a, b| {
        let size = |group: &Group| (group.waiting, group.reserved);
        size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
    });
    // One that was told twice while the server's table grew.
    all.dedup_by(|a, b| a.name == b.name);
    all.truncate(FOUND_MAX);
    let groups: Vec<Json> = all.iter().map(wire::group).collect();
    let more = (cursor != "0").then_some(cursor);
    let settings = settings(board, &question).await?;
    Ok(json!({ "groups": groups, "seen": seen, "more": more, "settings": settings }))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_search_takes_every_byte_as_it_is() {
        assert_eq!(quoted(b"a*[\\\xff"), b"a\\*\\[\\\\\xff");
    }
}
