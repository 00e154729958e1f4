//! Ready order: priority, due, order of adding.
//!
//! Decided within one answer, and between two: a job that was ready before a delivery, and was delivered
//! for the first time after it, must not have stood before the one that was delivered.

use std::collections::HashMap;

use super::check::{Rule, Verdict};
use super::story::{Handed, Stories, Story};
use super::{due, Entry, What};

/// How many deliveries to look ahead for jobs that were passed over.
const AHEAD: usize = 200;

struct Rank<'a> {
    priority: i32,
    due: (u64, u64),
    serial: u64,
    added: &'a Entry,
}

/// Where it stands in line, if nothing but its ADD has a say in that.
fn rank<'a>(story: &Story<'a>) -> Option<Rank<'a>> {
    let moved = story.others.iter().any(|entry| match &entry.what {
        What::Nack(_) | What::Reschedule(_) => true,
        What::Kick(_) => story.may_die(),
        _ => false,
    });
    (!moved && story.add.is_added()).then(|| Rank {
        priority: story.add.priority,
        due: (
            due::lower(story.entry, story.add.due),
            due::upper(story.entry, story.add.due),
        ),
        serial: story.serial,
        added: story.entry,
    })
}

impl Rank<'_> {
    /// Whether it stands before the other for certain.
    fn is_before(&self, other: &Rank<'_>) -> bool {
        let same_due = self.due == other.due && self.due.0 == self.due.1;
        let same_unit = self.added.unit.is_some() && self.added.unit == other.added.unit;
        let added_first =
            self.added.is_before(other.added) || (same_unit && self.serial < other.serial);
        let by_due = self.due.1 < other.due.0 || (same_due && added_first);
        self.priority < other.priority || (self.priority == other.priority && by_due)
    }
}

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    let mut queues: HashMap<&str, Vec<(&Story<'_>, Handed<'_>, Rank<'_>)>> = HashMap::new();
    for story in stories.jobs.values() {
        for handed in story.deliveries().filter(|handed| !handed.pop.by_id) {
            if let Some(rank) = rank(story) {
                let queue = queues.entry(&story.entry.queue).or_default();
                queue.push((story, *handed, rank));
            }
        }
    }
    for handed in queues.values_mut() {
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

/// Was it ready when `one` was delivered, itself delivered for the first time as `other`?
fn was_in_line(
    stories: &Stories<'_>,
    story: &Story<'_>,
    one: &Handed<'_>,
    other: &Handed<'_>,
    rank: &Rank<'_>,
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
