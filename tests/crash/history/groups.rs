//! The turns of groups. Tokens show the order in which a queue's jobs were delivered.
//!
//! Consider two deliveries of one group in a row. Another group that held a job since before the first, had it ready at
//! the second, and was not served in between, was passed over: it was served longer ago. A group with a WEIGHT may be
//! served so many times in a row: there one more is considered, of which another turn gave at least the last. With GROUPFIFO nothing is
//! delivered while an older job of its group exists and is not dead.

use std::collections::HashMap;

use super::check::{Rule, Verdict};
use super::order::is_unmoved;
use super::presence::is_live;
use super::story::{Handed, Stories, Story};
use super::{due, Entry, Turns};

/// How many deliveries to search forward for groups that were passed over, and how many jobs to search back for older
/// ones.
const AROUND: usize = 200;

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    for (queue, jobs) in stories.by_queue() {
        match stories.bounds_of(queue).turns {
            Turns::Unknown => {}
            Turns::Fair => check_turns(stories, queue, &jobs, verdict),
            Turns::Fifo => check_lines(stories, &jobs, verdict),
        }
    }
}

fn check_turns(stories: &Stories<'_>, queue: &str, jobs: &[&Story<'_>], verdict: &mut Verdict) {
    let unclear = unclear(stories, queue, jobs);
    let all = jobs.iter();
    let mut served: Vec<(&Story<'_>, &Handed<'_>)> = all
        .flat_map(|story| story.leases.iter().map(|handed| (*story, handed)))
        .collect();
    served.sort_by_key(|(_, handed)| handed.token());
    let mut latest: HashMap<Option<&str>, usize> = HashMap::new();
    let mut in_turn: HashMap<Option<&str>, Vec<usize>> = HashMap::new();
    for (at, (story, handed)) in served.iter().enumerate() {
        latest.insert(story.group(), at);
        if handed.pop.by_id {
            continue;
        }
        let turns = in_turn.entry(story.group()).or_default();
        turns.push(at);
        let weight = stories.bounds_of(queue).own_of(story.group()).weight.max(1) as usize;
        let Some(first) = turns.len().checked_sub(weight + 1) else {
            continue;
        };
        let (former, second) = (turns[first], served[turns[first + 1]].1);
        let before = served[former].1;
        let is_between = |it: &&Entry| !it.is_before(before.entry) && !handed.entry.is_before(it);
        if unclear.iter().any(is_between) {
            continue;
        }
        for (passed, other) in served[at + 1..].iter().take(AROUND) {
            let same = passed.group() == story.group();
            if same || !waited(stories, passed, other, before, second) {
                continue;
            }
            verdict.tally.turns += 1;
            if latest.get(&passed.group()).is_none_or(|&it| it < former) {
                let text = format!("came while {} of another group waited", passed.name());
                verdict.fault_of(story, Rule::Unfair, &text);
            }
        }
    }
}

/// POPs whose deliveries have no known place in the order of tokens.
fn unclear<'a>(stories: &Stories<'a>, queue: &str, jobs: &[&Story<'a>]) -> Vec<&'a Entry> {
    let unanswered = stories.unknown_pops.iter();
    let unanswered = unanswered.filter(|(_, pop)| pop.queues.iter().any(|it| it == queue));
    let taken = jobs.iter().flat_map(|story| &story.taken);
    let taken = taken.map(|handed| handed.entry);
    unanswered.map(|(entry, _)| *entry).chain(taken).collect()
}

/// Whether the job existed when `before` was delivered, and was ready when `handed` was; `other` is its own first
/// delivery.
fn waited(
    stories: &Stories<'_>,
    story: &Story<'_>,
    other: &Handed<'_>,
    before: &Handed<'_>,
    handed: &Handed<'_>,
) -> bool {
    let life = before.entry.life;
    let same_life = [handed, other].iter().all(|it| it.entry.life == life);
    let there = before.comes_after(story.entry) && stories.history.is_certain(story.entry, life);
    let is_ready = due::upper(story.entry, story.add.due) <= handed.now_ms();
    same_life && there && is_ready && other.delivery.attempts == 1 && is_unmoved(story)
}

fn check_lines(stories: &Stories<'_>, jobs: &[&Story<'_>], verdict: &mut Verdict) {
    let mut groups: HashMap<&str, Vec<&Story<'_>>> = HashMap::new();
    for story in jobs {
        let group = story.group().map(|name| groups.entry(name).or_default());
        group.into_iter().for_each(|group| group.push(story));
    }
    for group in groups.values_mut() {
        group.sort_by_key(|story| (story.entry.sent.at_us, story.serial));
        for (at, story) in group.iter().enumerate() {
            let older = group[..at].iter().rev().take(AROUND);
            for older in older.filter(|older| older.was_added_before(story)) {
                for handed in story.deliveries() {
                    verdict.tally.group_orders += 1;
                    if was_live(stories, older, handed) {
                        let text = format!("came beside {}, which is older", older.name());
                        verdict.fault_of(story, Rule::GroupOrder, &text);
                    }
                }
            }
        }
    }
}

/// Whether the job certainly existed and was not dead at the delivery of another job.
fn was_live(stories: &Stories<'_>, story: &Story<'_>, handed: &Handed<'_>) -> bool {
    let life = handed.entry.life;
    let comes_later = |it: &Handed<'_>| {
        let in_turn = handed.token() != 0 && it.token() > handed.token();
        in_turn && it.entry.life == life
    };
    let known = story.add.is_added() && stories.history.is_certain(story.entry, life);
    let came_later = known && !story.may_die() && story.deliveries().any(comes_later);
    came_later || is_live(stories, story, handed.entry)
}
