//! PURGE removes all jobs in the state that it names, and no others.
//!
//! A job's state at a purge is known only if everything that may have happened to it before allows just one. If so, the
//! job is gone if the purge names that state, and untouched if not. Otherwise the purge may have removed it.

use super::check::{Rule, Verdict};
use super::leases::lease_end;
use super::presence::{may_be_there, may_have_ended};
use super::story::{Handed, Stories, Story};
use super::{due, Due, Entry, Kind, Nack, Purge, What, Which};

/// Purges after which the job is certainly gone, removed by the purge or before it.
pub fn sure<'a>(stories: &Stories<'a>, story: &Story<'a>) -> Vec<&'a Entry> {
    let answered = story.purges().filter(|(_, purge)| purge.answer.is_some());
    let sure = answered.filter(|(entry, purge)| match purge.which {
        Which::All => story.entry.is_before(entry),
        which => state_at(stories, story, entry) == Some(which),
    });
    sure.map(|(entry, _)| entry).collect()
}

/// Whether the purge may have removed that job.
pub fn may_hit(stories: &Stories<'_>, story: &Story<'_>, entry: &Entry, purge: &Purge) -> bool {
    let came_after = story.deliveries().any(|handed| {
        handed.comes_after(entry) && stories.history.is_certain(entry, handed.entry.life)
    });
    let nothing = purge.answer == Some(0) || entry.is_before(story.entry);
    if nothing || came_after || !story.add.may_be_added() {
        return false;
    }
    let state = state_at(stories, story, entry);
    let fits = state.is_none_or(|state| state == purge.which);
    purge.which == Which::All || (fits && may_be_in(stories, story, entry, purge.which))
}

/// The only state in which the job can be at a purge of its queue, if it exists; None: unknown.
fn state_at(stories: &Stories<'_>, story: &Story<'_>, purge: &Entry) -> Option<Which> {
    let is_certain =
        |entry: &Entry| entry.is_before(purge) && stories.history.is_certain(entry, purge.life);
    let may_precede = |handed: &&Handed<'_>| !handed.comes_after(purge);
    if !story.add.is_added()
        || !is_certain(story.entry)
        || story.taken.iter().any(|it| may_precede(&it))
    {
        return None;
    }
    match story.leases.iter().rfind(may_precede) {
        None => state_of_new(stories, story, purge),
        Some(last) if is_certain(last.entry) => state_of_delivered(stories, story, last, purge),
        Some(_) => None,
    }
}

/// The state of a job of which no delivery is known.
fn state_of_new(stories: &Stories<'_>, story: &Story<'_>, purge: &Entry) -> Option<Which> {
    let moved = story.others.iter().any(|entry| {
        let moves = match &entry.what {
            What::Reschedule(all) => all.answer != Some(0),
            What::Nack(nack) => nack.answer != Some(false),
            What::Kick(kick) => kick.answer != Some(0) && story.may_die(),
            _ => false,
        };
        moves && !purge.is_before(entry)
    });
    let due = story.add.due;
    let (earliest, latest) = (due::lower(story.entry, due), due::upper(story.entry, due));
    if moved {
        None
    } else if earliest > purge.ended.wall_ms() {
        Some(Which::Delayed)
    } else if latest <= purge.sent.wall_ms() {
        let heard = !stories.may_be_in_unanswered_pop(story, purge);
        heard.then_some(Which::Ready)
    } else {
        None
    }
}

fn state_of_delivered(
    stories: &Stories<'_>,
    story: &Story<'_>,
    last: &Handed<'_>,
    purge: &Entry,
) -> Option<Which> {
    let history = stories.history;
    let mut nacks = story
        .nacks()
        .filter(|(entry, nack)| story.is_meant(&nack.claim, last) && !purge.is_before(entry));
    let Some((entry, nack)) = nacks.next() else {
        let ends = lease_end(history, story, last, purge);
        return (ends > purge.ended.wall_ms()).then_some(Which::Reserved);
    };
    let is_fatal = nack.kind == Kind::Fatal && nack.claim.token.is_some();
    let told = nack.answer == Some(true) && history.is_certain(entry, purge.life);
    let kicked = story
        .kicks()
        .any(|(kick, _)| !kick.is_before(entry) && !purge.is_before(kick));
    let died = is_fatal && told && entry.is_before(purge) && !kicked && nacks.next().is_none();
    died.then_some(Which::Dead)
}

/// Whether it may have been in that state, judged only by its due times and deliveries.
fn may_be_in(stories: &Stories<'_>, story: &Story<'_>, purge: &Entry, which: Which) -> bool {
    let (from, until) = (purge.sent.wall_ms(), purge.ended.wall_ms());
    let dues = || dues(story, |entry| !purge.is_before(entry));
    match which {
        Which::Delayed => dues().iter().any(|due| due.1 > from),
        Which::Ready => dues().iter().any(|due| due.0 <= until),
        Which::Reserved => {
            let mut leases = story.leases.iter();
            leases.any(|lease| !purge.is_before(lease.entry))
                || stories.may_be_in_unanswered_pop(story, purge)
        }
        Which::Dead => story.may_die(),
        Which::All => true,
    }
}

/// The earliest that it can have been ready.
pub fn earliest_due(story: &Story<'_>) -> u64 {
    let dues = dues(story, |_| true);
    dues.iter().map(|due| due.0).min().unwrap_or(0)
}

/// All due times that it may have had by entries that count, each as (earliest, latest).
fn dues(story: &Story<'_>, counts: impl Fn(&Entry) -> bool) -> Vec<(u64, u64)> {
    let since = |entry: &Entry, due: Due| (due::lower(entry, due), due::upper(entry, due));
    let mut dues = vec![since(story.entry, story.add.due)];
    for entry in story.others.iter().filter(|it| counts(it)) {
        match &entry.what {
            What::Reschedule(all) if all.answer != Some(0) => dues.push(since(entry, all.due)),
            What::Nack(nack) if nack.answer != Some(false) => {
                let (least, most) = waits(story, nack);
                let earliest = due::lower(entry, Due::In(least));
                dues.push((earliest, due::upper(entry, Due::In(most))));
            }
            What::Kick(kick) if kick.answer != Some(0) && story.may_die() => {
                dues.push(since(entry, Due::In(0)));
            }
            _ => {}
        }
    }
    dues
}

fn waits(story: &Story<'_>, nack: &Nack) -> (u64, u64) {
    let longest = story.add.ladder().iter().max().copied().unwrap_or(0);
    match nack.delay_ms {
        Some(ms) => (ms, ms),
        None => (0, longest + longest / 10),
    }
}

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    let queues = stories.by_queue();
    for entry in &stories.history.entries {
        let What::Purge(purge) = &entry.what else {
            continue;
        };
        if let Some(told) = purge.answer {
            let of_queue = queues.get(entry.queue.as_str());
            verdict.tally.purged += told;
            check_count(
                stories,
                of_queue.map_or(&[], Vec::as_slice),
                (entry, purge, told),
                verdict,
            );
        }
    }
}

fn check_count(
    stories: &Stories<'_>,
    jobs: &[&Story<'_>],
    (entry, purge, told): (&Entry, &Purge, u64),
    verdict: &mut Verdict,
) {
    let most = jobs.iter().filter(|story| {
        may_hit(stories, story, entry, purge) && may_be_there(stories, story, entry)
    });
    let most = most.count() as u64;
    let least = jobs.iter().filter(|story| {
        let known = story.add.is_added()
            && story.entry.is_before(entry)
            && stories.history.is_certain(story.entry, entry.life);
        let fits = match purge.which {
            Which::All => known,
            which => state_at(stories, story, entry) == Some(which),
        };
        fits && !may_have_ended(stories, story, entry)
    });
    let least = least.count() as u64;
    if told > most || told < least {
        let text = format!("{told} jobs, which may be {least} to {most}: {entry:?}");
        verdict.fault(Rule::Purged, text);
    }
}
