//! Groups, those with most waiting jobs first.

use std::sync::Arc;

use dq_watch::read::detail::Group;
use dq_watch::read::reply;
use serde_json::{json, Value as Json};

use super::asked::{about, refusal, settings, strange};
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::quoted;
use crate::core::question::Question;
use crate::core::wire;

/// Groups that one step looks at (their names are short), and how many steps one question may take.
const STEP: usize = 1000;
const STEPS: usize = 20;
const SHOWN: usize = 50;

/// Of the groups that some steps look at, those with most waiting jobs.
pub async fn groups(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
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
    let seen = all.len();
    all.sort_by(|a, b| {
        let size = |group: &Group| (group.waiting, group.reserved);
        size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
    });
    // A group that was listed twice while the server's table grew.
    all.dedup_by(|a, b| a.name == b.name);
    all.truncate(SHOWN);
    let groups: Vec<Json> = all.iter().map(wire::group).collect();
    let more = (cursor != "0").then_some(cursor);
    let settings = settings(board, &question).await?;
    Ok(json!({ "groups": groups, "seen": seen, "more": more, "settings": settings }))
}
