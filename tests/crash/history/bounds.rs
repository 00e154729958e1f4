//! MAXLEN, DEDUPE and NX. An ADD is refused by MAXLEN only if the queue, or its group, may have been full, and never accepted if it
//! was. One with NX is refused only if the id may have been in use or in the dedupe window, and never accepted if it
//! was.

use super::check::{Rule, Verdict};
use super::presence::{is_live, may_be_there};
use super::story::{Stories, Story};
use super::{Bounds, Entry, Taken, What};

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    for (queue, jobs) in stories.by_queue() {
        let bounds = stories.bounds_of(queue);
        for story in jobs.iter().filter(|story| story.add.nx) {
            if !story.add.only {
                check_condition(stories, story, bounds, verdict);
            }
            let all = jobs.iter().copied();
            let (max_len, full) = (bounds.max_len, Taken::Full);
            check_length(stories, story, all.clone(), (max_len, full), verdict);
            let group = all.filter(|job| job.group() == story.group());
            let (max_len, full) = (bounds.own_of(story.group()).max_len, Taken::GroupFull);
            check_length(stories, story, group, (max_len, full), verdict);
        }
    }
}

/// The length of the queue, or of its group, at an ADD that would make it longer. With NX a live job of its id excludes
/// that.
fn check_length<'a: 's, 's>(
    stories: &Stories<'_>,
    story: &Story<'_>,
    jobs: impl Iterator<Item = &'s Story<'a>> + Clone,
    (max_len, full): (u64, Taken),
    verdict: &mut Verdict,
) {
    let at = story.entry;
    let count = |test: &dyn Fn(&Story<'_>) -> bool| {
        let there = jobs.clone().filter(|job| test(job));
        there.count() as u64
    };
    if story.add.answer == Some(full) {
        verdict.tally.full += 1;
        let most = count(&|job| may_be_there(stories, job, at));
        if most < max_len || max_len == 0 {
            let text = format!("was refused as {full:?}, beside {most} jobs at most");
            verdict.fault_of(story, Rule::Length, &text);
        }
    } else if story.add.is_added() && max_len > 0 {
        let least = count(&|job| is_live(stories, job, at));
        if least >= max_len {
            let text = format!("was taken beside {least} jobs");
            verdict.fault_of(story, Rule::Length, &text);
        }
    }
}

fn check_condition(
    stories: &Stories<'_>,
    story: &Story<'_>,
    bounds: Bounds,
    verdict: &mut Verdict,
) {
    let at = story.entry;
    let same_id = || {
        let serials = story.others.iter().filter_map(|entry| match &entry.what {
            What::Add(add) => Some(add.serial),
            _ => None,
        });
        serials.filter_map(|serial| stories.jobs.get(&serial))
    };
    match story.add.answer {
        None => {}
        Some(Taken::Refused) => {
            let in_use = same_id().any(|other| may_be_there(stories, other, at));
            if !in_use && !may_be_remembered(stories, story, bounds) {
                verdict.fault_of(story, Rule::Condition, "was refused without a reason");
            }
            let remembered = is_remembered(stories, story, bounds);
            verdict.tally.remembered += u64::from(remembered);
        }
        Some(Taken::Added | Taken::Full | Taken::GroupFull) => {
            if same_id().any(|other| is_live(stories, other, at)) {
                verdict.fault_of(story, Rule::Condition, "was taken beside a job of its id");
            }
            if is_remembered(stories, story, bounds) {
                verdict.fault_of(story, Rule::Condition, "was taken though it was remembered");
            }
        }
    }
}

/// Entries that have certainly finished a job with its id, or may have (`for_certain`: false).
fn finishers<'s, 'a>(
    stories: &'s Stories<'a>,
    story: &'s Story<'a>,
    for_certain: bool,
) -> impl Iterator<Item = &'a Entry> + 's {
    let acks = story.acks().filter(move |(_, ack)| match ack.answer {
        Some(count) if for_certain => count == ack.claims.len() as u64,
        other => !for_certain && other != Some(0),
    });
    let taken = story.others.iter().filter_map(|entry| match &entry.what {
        What::Add(add) => stories.jobs.get(&add.serial),
        _ => None,
    });
    let taken = taken.flat_map(|other| other.taken.iter().map(|taken| taken.entry));
    let unanswered = stories.unknown_pops.iter().filter(move |(_, pop)| {
        !for_certain && pop.noack && pop.queues.contains(&story.entry.queue)
    });
    let acks = acks.map(|(entry, _)| entry).chain(taken);
    acks.chain(unanswered.map(|(entry, _)| *entry))
}

/// Whether one of them is so recent that the id must be in the dedupe window. DEL removes an id from it, whether there
/// is a job or not.
fn is_remembered(stories: &Stories<'_>, story: &Story<'_>, bounds: Bounds) -> bool {
    let at = story.entry;
    finishers(stories, story, true).any(|finisher| {
        let until = finisher.sent.wall_ms_up() + bounds.dedupe_ms;
        let forgotten = story.others.iter().any(|entry| {
            matches!(entry.what, What::Del(_)) && !entry.is_before(finisher) && !at.is_before(entry)
        });
        bounds.dedupe_ms > 0
            && finisher.is_before(at)
            && stories.history.is_certain(finisher, at.life)
            && at.ended.wall_ms() < until
            && !forgotten
    })
}

fn may_be_remembered(stories: &Stories<'_>, story: &Story<'_>, bounds: Bounds) -> bool {
    let at = story.entry;
    finishers(stories, story, false).any(|finisher| {
        let until = finisher.ended.wall_ms_up() + bounds.dedupe_ms;
        let forgotten = story.others.iter().any(|entry| match &entry.what {
            What::Del(del) => {
                let all = del.answer == Some(del.ids.len() as u64);
                let forgets = del.answer.is_some() && (all || !del.spares);
                let certain = stories.history.is_certain(entry, at.life);
                forgets && certain && finisher.is_before(entry) && entry.is_before(at)
            }
            _ => false,
        });
        !forgotten && bounds.dedupe_ms > 0 && !at.is_before(finisher) && until > at.sent.wall_ms()
    })
}
