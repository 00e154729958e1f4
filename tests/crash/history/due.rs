//! No job is delivered before its due time, or after its TTL.
//!
//! A job's due time is set by its ADD, and again by RESCHEDULE, NACK and KICK. If it is unknown
//! which of them was the last before a delivery, the earliest of the possible due times counts.

use super::check::{Rule, Verdict};
use super::story::{Handed, Stories, Story};
use super::{Due, Entry, Kind, Nack, What};

/// An entry that set the due time, or may have.
struct Setter<'a> {
    entry: &'a Entry,
    /// The earliest that the due time can be.
    due: u64,
    /// The token of the delivery that the entry ended.
    token: u64,
    /// Whether the entry's answer shows that it changed this job.
    sure: bool,
}

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    for story in stories.jobs.values() {
        let setters = setters(story);
        for handed in story.deliveries() {
            let due = earliest(stories, &setters, handed);
            if handed.now_ms() < due {
                let text = format!("came at {}, due {due}", handed.now_ms());
                verdict.fault_of(story, Rule::Early, &text);
            }
            check_ttl(story, handed, verdict);
        }
    }
}

/// The earliest that `due` of this entry can be.
pub fn lower(entry: &Entry, due: Due) -> u64 {
    match due {
        Due::At(ms) => ms,
        Due::In(0) => entry.sent.wall_ms(),
        Due::In(ms) => entry.sent.wall_ms_up() + ms,
    }
}

/// The latest that `due` of this entry can be.
pub fn upper(entry: &Entry, due: Due) -> u64 {
    match due {
        Due::At(ms) => ms,
        Due::In(ms) => entry.ended.wall_ms_up() + ms,
    }
}

fn setters<'a>(story: &Story<'a>) -> Vec<Setter<'a>> {
    let add = Setter {
        entry: story.entry,
        due: lower(story.entry, story.add.due),
        token: 0,
        sure: true,
    };
    let later = story.others.iter().filter_map(|entry| setter(story, entry));
    std::iter::once(add).chain(later).collect()
}

fn setter<'a>(story: &Story<'a>, entry: &'a Entry) -> Option<Setter<'a>> {
    let (due, token, sure) = match &entry.what {
        What::Reschedule(all) if all.answer != Some(0) => {
            let sure = all.answer == Some(all.ids.len() as u64) && story.is_alone();
            (lower(entry, all.due), 0, sure)
        }
        What::Nack(nack) if nack.answer != Some(false) => {
            let sure = nack.answer == Some(true) && nack.claim.token.is_some();
            let due = due_after(story, entry, nack)?;
            (due, nack.claim.token.unwrap_or(0), sure)
        }
        What::Kick(kick) if kick.answer != Some(0) && story.may_die() => {
            let named = kick.ids.as_ref().map(|ids| ids.len() as u64);
            let sure = named.is_some() && kick.answer == named && story.is_alone();
            (entry.sent.wall_ms(), 0, sure)
        }
        _ => return None,
    };
    Some(Setter {
        entry,
        due,
        token,
        sure,
    })
}

/// The due time after a NACK; None if it stays the same.
fn due_after(story: &Story<'_>, entry: &Entry, nack: &Nack) -> Option<u64> {
    let delivery = nack.claim.token.and_then(|token| {
        let mut leases = story.leases.iter();
        leases.find(|lease| lease.token() == token)
    });
    if nack.claim.token.is_some() && delivery.is_none() {
        return None; // a NACK of another job with this id
    }
    let ladder = story.add.ladder();
    let wait = match (nack.kind, nack.delay_ms) {
        (Kind::Fatal, _) | (Kind::Silent, None) => return None,
        (_, Some(ms)) => ms,
        (Kind::Fail, None) => match delivery {
            Some(lease) => {
                let step = (lease.delivery.attempts as usize).clamp(1, ladder.len().max(1)) - 1;
                ladder.get(step).copied().unwrap_or(0)
            }
            None => ladder.iter().copied().min().unwrap_or(0),
        },
    };
    Some(lower(entry, Due::In(wait)))
}

fn earliest(stories: &Stories<'_>, setters: &[Setter<'_>], handed: &Handed<'_>) -> u64 {
    let life = handed.entry.life;
    let precedes = |setter: &Setter<'_>| {
        let tokens = setter.token != 0 && setter.token < handed.token();
        handed.comes_after(setter.entry) || (tokens && setter.entry.life <= life)
    };
    let is_certain =
        |setter: &Setter<'_>| setter.sure && stories.history.is_certain(setter.entry, life);
    let overwritten = |setter: &Setter<'_>| {
        let mut later = setters.iter().filter(|it| setter.entry.is_before(it.entry));
        later.any(|it| is_certain(it) && precedes(it))
    };
    let possible = setters.iter().filter(|setter| {
        let own = setter.token != 0 && handed.token() != 0 && setter.token >= handed.token();
        !handed.entry.is_before(setter.entry) && !own && !overwritten(setter)
    });
    possible.map(|setter| setter.due).min().unwrap_or(0)
}

fn check_ttl(story: &Story<'_>, handed: &Handed<'_>, verdict: &mut Verdict) {
    let Some(ttl_ms) = story.add.ttl_ms else {
        return;
    };
    let expires = upper(story.entry, Due::In(ttl_ms));
    let at_least = match handed.token() {
        0 => handed.entry.sent.wall_ms(),
        _ => handed.now_ms(),
    };
    if at_least >= expires {
        let text = format!("came at {at_least}, its TTL was over at {expires}");
        verdict.fault_of(story, Rule::Expired, &text);
    }
}
