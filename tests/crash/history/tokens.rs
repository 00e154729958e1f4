//! A queue's tokens only grow, over all crashes, and none is used twice.

use std::collections::HashMap;

use super::check::{Rule, Verdict};
use super::story::{deliveries, Handed, Stories};

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    let mut queues: HashMap<&str, Vec<Handed<'_>>> = HashMap::new();
    let all = stories.history.entries.iter().flat_map(deliveries);
    for handed in all.filter(|handed| handed.token() != 0) {
        let queue = queues.entry(&handed.delivery.queue).or_default();
        queue.push(handed);
    }
    for (queue, mut handed) in queues {
        let mut by_end = handed.clone();
        by_end.sort_by_key(|handed| handed.entry.ended.at_us);
        handed.sort_by_key(|handed| (handed.entry.sent.at_us, handed.place));
        check_growing(queue, &handed, &by_end, verdict);
        handed.sort_by_key(Handed::token);
        for pair in handed.windows(2) {
            if pair[0].token() == pair[1].token() {
                let text = format!("{queue}: {} comes twice", pair[0].token());
                verdict.fault(Rule::Tokens, text);
            }
        }
    }
}

/// Each token is larger than all that had been answered before its POP was sent, or that come
/// before it in the same answer.
fn check_growing(
    queue: &str,
    by_begin: &[Handed<'_>],
    by_end: &[Handed<'_>],
    verdict: &mut Verdict,
) {
    let (mut answered, mut floor) = (by_end.iter().peekable(), 0);
    for (at, handed) in by_begin.iter().enumerate() {
        while let Some(earlier) = answered.next_if(|it| it.entry.is_before(handed.entry)) {
            floor = floor.max(earlier.token());
        }
        let neighbour = at.checked_sub(1).map(|before| &by_begin[before]);
        let beside = neighbour.filter(|before| std::ptr::eq(before.pop, handed.pop));
        let floor = floor.max(beside.map_or(0, Handed::token));
        if handed.token() <= floor {
            let text = format!("{queue}: {} after {floor}", handed.token());
            verdict.fault(Rule::Tokens, text);
        }
    }
}
