//! MAXRESERVED, GROUPMAX, and MAX of a group: at a delivery only jobs whose leases are certainly live count.

use super::check::{Rule, Verdict};
use super::story::{Handed, Stories, Story};
use super::{Entry, What};

/// How many deliveries to search back: more than can be reserved at a time.
const BACK: usize = 200;

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    for (queue, jobs) in stories.by_queue() {
        let bounds = stories.bounds_of(queue);
        if bounds.max_reserved + bounds.group_max + bounds.own.max == 0 {
            continue;
        }
        let all = jobs.iter();
        let mut served: Vec<(&Story<'_>, &Handed<'_>)> = all
            .flat_map(|story| story.leases.iter().map(|handed| (*story, handed)))
            .collect();
        served.sort_by_key(|(_, handed)| handed.token());
        for (at, (story, handed)) in served.iter().enumerate() {
            let before = served[at.saturating_sub(BACK)..at].iter();
            let held = before.filter(|(other, lease)| is_held(other, lease, story, handed));
            let held: Vec<&Story<'_>> = held.map(|(other, _)| *other).collect();
            let same = held.iter().filter(|it| it.group() == story.group());
            let in_group = story.group().map_or(0, |_| same.count() as u64);
            verdict.tally.beside += held.len() as u64;
            let group_max = match bounds.own_of(story.group()).max {
                0 => bounds.group_max,
                own => own,
            };
            for (count, max, name) in [
                (held.len() as u64, bounds.max_reserved, "MAXRESERVED"),
                (in_group, group_max, "GROUPMAX"),
            ] {
                if max != 0 && count >= max {
                    let text = format!("came beside {count} others, {name} {max}");
                    verdict.fault_of(story, Rule::WithinMax, &text);
                }
            }
        }
    }
}

/// Whether the other job was still reserved by that lease when this one was delivered.
fn is_held(other: &Story<'_>, lease: &Handed<'_>, story: &Story<'_>, handed: &Handed<'_>) -> bool {
    let goes_on = |deadline: u64| deadline > handed.now_ms();
    let deadline = lease.delivery.lease.map_or(0, |lease| lease.deadline);
    let latest = other.leases_before(handed).last();
    other.serial != story.serial
        && lease.entry.life == handed.entry.life
        && latest.is_some_and(|latest| latest.token() == lease.token())
        && goes_on(deadline)
        && !other.others.iter().any(|entry| {
            let is_between = !entry.is_before(lease.entry) && !handed.entry.is_before(entry);
            is_between && !lets_be(entry, goes_on)
        })
}

/// Whether a job certainly stays reserved after that entry. A lease that was shortened ends sooner.
fn lets_be(entry: &Entry, goes_on: impl Fn(u64) -> bool) -> bool {
    match &entry.what {
        What::Touch(touch) => {
            matches!(touch.answer, Some(deadline) if deadline.is_none_or(goes_on))
        }
        _ => false,
    }
}
