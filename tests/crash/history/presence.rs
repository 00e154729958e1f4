//! Whether a job may have been in its queue, or must have been, when something was asked.

use super::leases::{did_something, is_of};
use super::losses::may_end;
use super::purges::may_hit;
use super::story::{Stories, Story};
use super::{due, Due, Entry, What};

/// Whether it may have existed, dead or alive. At the end of a run only dead jobs are left: so a job that existed has
/// something by which it may have been removed.
pub fn may_be_there(stories: &Stories<'_>, story: &Story<'_>, at: &Entry) -> bool {
    story.add.may_be_added()
        && !std::ptr::eq(story.entry, at)
        && !at.is_before(story.entry)
        && !is_gone(stories, story, at)
        && may_go_by(stories, story, at)
}

/// Whether it must have existed, and not been dead, all the time. Either nothing can have removed it by then, or later
/// in the same life it was delivered or its token was accepted.
pub fn is_live(stories: &Stories<'_>, story: &Story<'_>, at: &Entry) -> bool {
    let known = story.add.is_added() && stories.history.is_certain(story.entry, at.life);
    let mut deliveries = story.deliveries();
    let mut others = story.others.iter();
    known
        && story.entry.is_before(at)
        && !story.may_die()
        && (!may_have_ended(stories, story, at)
            || deliveries.any(|handed| handed.entry.life == at.life && handed.comes_after(at))
            || others.any(|entry| {
                let (tokens, _) = did_something(entry);
                let later = entry.life == at.life && at.is_before(entry);
                later && tokens.into_iter().any(|token| is_of(story, token))
            }))
}

/// Whether it was certainly gone before `at`, even if a crash came in between.
fn is_gone(stories: &Stories<'_>, story: &Story<'_>, at: &Entry) -> bool {
    let is_over = |entry: &Entry| entry.is_before(at) && stories.history.is_certain(entry, at.life);
    let by_others = story.others.iter().any(|entry| {
        let removes = match &entry.what {
            What::Ack(ack) => {
                let mut tokens = ack.claims.iter().filter_map(|claim| claim.token);
                let all = ack.answer == Some(ack.claims.len() as u64);
                all && tokens.any(|token| is_of(story, token))
            }
            What::Del(del) => del.answer == Some(del.ids.len() as u64) && story.is_alone(),
            // It was replaced, or no longer existed.
            What::Add(add) => add.is_added() && story.entry.is_before(entry),
            _ => false,
        };
        removes && is_over(entry)
    });
    by_others
        || story.purged_by.iter().any(|purge| is_over(purge))
        || story.taken.iter().any(|taken| is_over(taken.entry))
        || is_expired(stories, story, at)
}

/// Whether its TTL, and every lease that it can have had, had ended.
fn is_expired(stories: &Stories<'_>, story: &Story<'_>, at: &Entry) -> bool {
    let Some(ttl_ms) = story.add.ttl_ms else {
        return false;
    };
    let expires = due::upper(story.entry, Due::In(ttl_ms));
    let leases = story.deliveries().filter_map(|it| it.delivery.lease);
    let mut ends = leases.map(|lease| lease.deadline).chain([expires]);
    let mut touched = story.touches().map(|(_, touch)| touch.answer.flatten());
    ends.all(|end| end <= at.sent.wall_ms())
        && touched.all(|end| end.is_some_and(|end| end <= at.sent.wall_ms()))
        && !stories.may_be_in_unanswered_pop(story, at)
}

/// Whether anything may have removed it at that moment or later.
fn may_go_by(stories: &Stories<'_>, story: &Story<'_>, at: &Entry) -> bool {
    let history = stories.history;
    let is_later = |entry: &Entry| !entry.is_before(at);
    // The crash that ended the life in which it was added may have.
    let is_lost = story.entry.life == at.life && !history.is_certain(story.entry, at.life + 1);
    is_lost
        || story.add.ttl_ms.is_some()
        || story.is_dead
        || story.deliveries().any(|handed| is_later(handed.entry))
        || stories.unanswered_noacks(story).any(|it| is_later(it.0))
        || ends(stories, story).any(is_later)
}

/// Whether it may have ended before `at` was answered.
pub fn may_have_ended(stories: &Stories<'_>, story: &Story<'_>, at: &Entry) -> bool {
    let precedes = |entry: &Entry| !std::ptr::eq(entry, at) && !at.is_before(entry);
    let expires = story.add.ttl_ms.map(|ms| story.entry.sent.wall_ms() + ms);
    expires.is_some_and(|expires| expires <= at.ended.wall_ms())
        || story.taken.iter().any(|taken| precedes(taken.entry))
        || stories.unanswered_noacks(story).any(|it| precedes(it.0))
        || ends(stories, story).any(precedes)
}

/// Entries that may have removed it.
fn ends<'s, 'a>(
    stories: &'s Stories<'a>,
    story: &'s Story<'a>,
) -> impl Iterator<Item = &'a Entry> + 's {
    let others = story.others.iter().copied();
    others.filter(|entry| match &entry.what {
        What::Purge(purge) => may_hit(stories, story, entry, purge),
        _ => may_end(story, entry),
    })
}
