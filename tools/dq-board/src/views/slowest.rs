//! Done jobs by how long they ran.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use dq_watch::read::detail::{Job, State};
use dq_watch::text::escape;
use serde_json::{json, Value as Json};

use super::walk::walk_on;
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::question::Question;
use crate::core::wire;

const SHOWN: usize = 50;
const LABELS: usize = 20;

pub async fn slowest(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let mut ran: Vec<u64> = Vec::new();
    let mut by_label: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    let mut slow: Vec<(u64, Job)> = Vec::new();
    let filter = Filter::of_state(State::Done);
    let each = |job: Job| {
        let Some(ms) = job.ran_ms() else { return };
        ran.push(ms);
        let label = job.label().unwrap_or_default().to_owned();
        by_label.entry(label).or_default().push(ms);
        slow.push((ms, job));
        if slow.len() >= 4 * SHOWN {
            keep_slowest(&mut slow);
        }
    };
    let walked = walk_on(board, &question, &filter, each).await?;
    keep_slowest(&mut slow);
    ran.sort_unstable();
    let mut labels: Vec<_> = by_label.into_iter().map(of_label).collect();
    labels.sort_by_key(|(most, _)| Reverse(*most));
    let (kinds, labels) = (labels.len(), labels.into_iter().take(LABELS));
    let labels: Vec<Json> = labels.map(|(_, label)| label).collect();
    let jobs: Vec<Json> = slow.iter().map(|(_, job)| wire::found(job)).collect();
    Ok(json!({
        "jobs": jobs,
        "labels": labels,
        "kinds": kinds,
        "seen": walked.found,
        "more": walked.more,
        "half": share(&ran, 50),
        "most": share(&ran, 99),
        "now": board.reader.server_ms(),
    }))
}

/// How long the jobs of a label ran; the worst first.
fn of_label((label, mut ran): (Vec<u8>, Vec<u64>)) -> (Option<u64>, Json) {
    ran.sort_unstable();
    let most = share(&ran, 99);
    let name = (!label.is_empty()).then(|| escape::name(&label));
    let half = share(&ran, 50);
    let told = json!({
        "id": wire::encoded(&label), "name": name, "count": ran.len(), "half": half, "most": most,
    });
    (most, told)
}

fn keep_slowest(slow: &mut Vec<(u64, Job)>) {
    slow.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.id.cmp(&b.1.id)));
    slow.truncate(SHOWN);
}

/// Of sorted numbers, the smallest that `percent` of them do not exceed.
fn share(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_of_what_was_there() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!([50, 99].map(|it| share(&hundred, it)), [Some(50), Some(99)]);
        assert_eq!(share(&[7], 50), Some(7));
        assert_eq!(share(&[], 50), None);
    }
}
