//! The ready order of a queue, or of each group in it: priority, due time, order of adding.
//!
//! Checked within one answer, and between two. A job that was ready before a delivery, and was first delivered after
//! it, must not come before the delivered job in that order.

use std::collections::HashMap;

use super::check::{Rule, Verdict};
use super::story::{Handed, Stories, Story};
use super::{due, Turns, What};

/// How many deliveries to search forward for jobs that were passed over.
const AHEAD: usize = 200;

struct Rank<'s, 'a> {
    story: &'s Story<'a>,
    due: (u64, u64),
}

/// Whether only its ADD can have set its due time and priority.
pub fn is_unmoved(story: &Story<'_>) -> bool {
    let moved = story.others.iter().any(|entry| match &entry.what {
        What::Nack(_) | What::Reschedule(_) => true,
        What::Kick(_) => story.may_die(),
        _ => false,
    });
    !moved && story.add.is_added()
}

/// The job's place in the order, if it is known.
fn rank<'s, 'a>(story: &'s Story<'a>) -> Option<Rank<'s, 'a>> {
    is_unmoved(story).then(|| Rank {
        story,
        due: (
            due::lower(story.entry, story.add.due),
            due::upper(story.entry, story.add.due),
        ),
    })
}

impl Rank<'_, '_> {
    /// Whether it certainly comes before the other one.
    fn is_before(&self, other: &Rank<'_, '_>) -> bool {
        let same_due = self.due == other.due && self.due.0 == self.due.1;
        let added_first = self.story.was_added_before(other.story);
        let by_due = self.due.1 < other.due.0 || (same_due && added_first);
        let (priority, others) = (self.story.add.priority, other.story.add.priority);
        priority < others || (priority == others && by_due)
    }
}

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    type Line<'s, 'a> = Vec<(&'s Story<'a>, Handed<'a>, Rank<'s, 'a>)>;
    let mut lines: HashMap<(&str, Option<&str>), Line<'_, '_>> = HashMap::new();
    for story in stories.jobs.values() {
        let (queue, group) = (story.entry.queue.as_str(), story.group());
        if group.is_some() && stories.bounds_of(queue).turns == Turns::Fifo {
            continue;
        }
        for handed in story.deliveries().filter(|handed| !handed.pop.by_id) {
            if let Some(rank) = rank(story) {
                let line = lines.entry((queue, group)).or_default();
                line.push((story, *handed, rank));
            }
        }
    }
    for handed in lines.values_mut() {
        handed.sort_by_key(|(_, handed, _)| (handed.entry.sent.at_us, handed.place));
        for pair in handed.windows(2) {
            let [(first, one, rank), (second, other, next)] = pair else {
                continue;
            };
            if std::ptr::eq(one.pop, other.pop) {
                verdict.tally.orders += 1;
                complain(next.is_before(rank), first, second, verdict);
            }
        }
        handed.retain(|(_, handed, _)| handed.token() != 0);
        handed.sort_by_key(|(_, handed, _)| handed.token());
        for (at, (story, one, rank)) in handed.iter().enumerate() {
            for (passed, other, before) in handed[at + 1..].iter().take(AHEAD) {
                if was_in_line(stories, passed, one, other, before) {
                    verdict.tally.orders += 1;
                    complain(before.is_before(rank), story, passed, verdict);
                }
            }
        }
    }
}

/// Whether the job was ready when `one` was delivered; `other` is its own first delivery.
fn was_in_line(
    stories: &Stories<'_>,
    story: &Story<'_>,
    one: &Handed<'_>,
    other: &Handed<'_>,
    rank: &Rank<'_, '_>,
) -> bool {
    let life = one.entry.life;
    let first = other.delivery.attempts == 1 && other.entry.life == life;
    let added = one.comes_after(story.entry) && stories.history.is_certain(story.entry, life);
    first && added && rank.due.1 <= one.now_ms()
}

fn complain(wrong: bool, first: &Story<'_>, second: &Story<'_>, verdict: &mut Verdict) {
    if wrong {
        let text = format!("came before {}", second.name());
        verdict.fault_of(first, Rule::Order, &text);
    }
}
