//! Why jobs are dead: their reasons counted, and the jobs of one reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use dq_watch::read::detail::State;
use dq_watch::text::escape;
use serde_json::{json, Value as Json};

use crate::api::{Board, Question};
use crate::{walk, wire};

/// Reasons told, and jobs shown.
const REASONS: usize = 12;
const SHOWN: usize = 50;

const NONE: &str = "(no reason)";

pub async fn died(board: &Arc<Board>, question: Question) -> Result<Json, String> {
    let wanted = question.text("reason").to_owned();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut jobs, mut ids) = (Vec::new(), Vec::new());
    let walked = walk::walk(board, &question, State::Dead, |job| {
        let why = job.reason.as_deref().map(escape::line);
        let why = why.map_or(NONE.to_owned(), |why| pattern(&why));
        if why == wanted {
            ids.push(wire::encoded(&job.id));
            if jobs.len() < SHOWN {
                jobs.push(wire::dead(&job));
            }
        }
        *counts.entry(why).or_default() += 1;
    })
    .await?;
    let kinds = counts.len();
    let mut reasons: Vec<(String, usize)> = counts.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons.truncate(REASONS);
    let now = board.reader.server_ms();
    Ok(
        json!({ "reasons": reasons, "kinds": kinds, "jobs": jobs, "ids": ids, "seen": walked.seen, "more": walked.more, "now": now }),
    )
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
