//! Why jobs are dead: their reasons counted, and the jobs of one reason.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use dq_watch::read::detail::Job;
use dq_watch::read::reply;
use dq_watch::text::escape;
use serde_json::{json, Value as Json};

use crate::api::{Board, Question};
use crate::{views, wire};

/// One question looks at so many jobs, or until so much payload was read: the server sends it with each.
const JOBS: usize = 2000;
const BYTES: usize = 8 << 20;
/// Of that, at a time.
const BYTES_AT_ONCE: usize = 1 << 20;
const FIRST: usize = 16;
const AT_ONCE: usize = 500;
/// Reasons told, and jobs shown.
const REASONS: usize = 12;
const SHOWN: usize = 50;
/// Of a payload.
const IN_LIST: usize = 300;

const NONE: &str = "(no reason)";

pub async fn died(board: &Arc<Board>, question: Question) -> Result<Json, String> {
    let wanted = question.text("reason").to_owned();
    let mut cursor = question.text("cursor").to_owned();
    if cursor.is_empty() {
        cursor = "0".to_owned();
    }
    let mut seen = HashSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut jobs, mut ids) = (Vec::new(), Vec::new());
    let (mut bytes, mut step) = (0, FIRST);
    loop {
        let (next, found) =
            views::scan(board, &question, &cursor, ("STATE", b"dead"), step).await?;
        cursor = next;
        for job in read(board, &question, &found, step).await? {
            bytes += job.payload.length;
            if job.state != "dead" || !seen.insert(job.id.clone()) {
                continue;
            }
            let why = job.reason.as_deref().map(escape::line);
            let why = why.map_or(NONE.to_owned(), |why| pattern(&why));
            if why == wanted {
                ids.push(wire::encoded(&job.id));
                if jobs.len() < SHOWN {
                    jobs.push(wire::dead(&job));
                }
            }
            *counts.entry(why).or_default() += 1;
        }
        if cursor == "0" || seen.len() >= JOBS || bytes >= BYTES {
            break;
        }
        let mean = bytes / seen.len().max(1);
        step = (BYTES_AT_ONCE / mean.max(1)).clamp(1, AT_ONCE);
    }
    let kinds = counts.len();
    let mut reasons: Vec<(String, usize)> = counts.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons.truncate(REASONS);
    let more = (cursor != "0").then_some(cursor);
    let now = board.reader.server_ms();
    Ok(
        json!({ "reasons": reasons, "kinds": kinds, "jobs": jobs, "ids": ids, "seen": seen.len(), "more": more, "now": now }),
    )
}

async fn read(
    board: &Arc<Board>,
    question: &Question,
    ids: &[Vec<u8>],
    at_once: usize,
) -> Result<Vec<Job>, String> {
    let mut jobs = Vec::with_capacity(ids.len());
    for part in ids.chunks(at_once) {
        let gets = part.iter().map(|id| views::about(question, "DQ.GET", id));
        let values = board
            .looker
            .ask(question.key.clone(), gets.collect())
            .await?;
        if let Some(error) = values.first().and_then(reply::error) {
            return Err(escape::line(error.as_bytes()));
        }
        jobs.extend(values.iter().filter_map(|value| reply::job(value, IN_LIST)));
    }
    Ok(jobs)
}

/// Reasons that differ in an id, a time or a count only are one. A status such as 404 is no such number.
fn pattern(reason: &str) -> String {
    let mut shown = String::with_capacity(reason.len());
    let mut word = String::new();
    for letter in reason.chars().chain(std::iter::once(' ')) {
        if letter.is_alphanumeric() || letter == '-' {
            word.push(letter);
            continue;
        }
        let digits = word.chars().filter(char::is_ascii_digit).count();
        shown.push_str(if digits >= 4 { "#" } else { &word });
        shown.push(letter);
        word.clear();
    }
    shown.pop();
    shown
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn reasons_that_differ_in_numbers_are_one() {
        for (reason, is) in [
            ("HTTP 404: no order 70123", "HTTP 404: no order #"),
            ("order:70123 (2026-11-22)", "order:# (#)"),
            ("no 550e8400-e29b-41d4-a716-446655440000!", "no #!"),
            ("550 no such user", "550 no such user"),
            ("", ""),
        ] {
            assert_eq!(pattern(reason), is);
        }
    }
}
