//! At most one live lease of a job, no use of a token after its end, and why a job was delivered again.

use std::collections::HashMap;

use super::check::{Cause, Rule, Verdict};
use super::story::{Handed, Stories, Story};
use super::{Claim, End, Entry, History, What};

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    let history = stories.history;
    for story in stories.jobs.values() {
        for handed in story.deliveries() {
            if let Some(former) = story.leases_before(handed).last() {
                check_again(history, story, former, handed, verdict);
            }
            if let Some(why) = finished_before(history, story, handed) {
                let text = format!("came at {} after {why}", handed.now_ms());
                verdict.fault_of(story, Rule::Finished, &text);
            }
        }
        check_stale(history, story, verdict);
    }
}

fn check_again(
    history: &History,
    story: &Story<'_>,
    former: &Handed<'_>,
    handed: &Handed<'_>,
    verdict: &mut Verdict,
) {
    let life = handed.entry.life;
    let nacks: Vec<_> = story
        .nacks()
        .filter(|(entry, nack)| {
            story.is_meant(&nack.claim, former) && !handed.entry.is_before(entry)
        })
        .collect();
    let given_back = nacks
        .iter()
        .any(|(entry, nack)| nack.answer == Some(true) && history.is_certain(entry, life));
    let cause = if given_back {
        Cause::GivenBack
    } else if !history.is_certain(former.entry, life) && !counts_on(former, handed) {
        lost_tail(history, former.entry)
    } else if !nacks.is_empty() {
        Cause::NackUnknown
    } else if handed.now_ms() >= lease_end(history, story, former, handed.entry) {
        after_lease(history, story, former, life)
    } else if !history.is_certain(former.entry, life) {
        lost_tail(history, former.entry)
    } else {
        let end = lease_end(history, story, former, handed.entry);
        let (now, tokens) = (handed.now_ms(), (former.token(), handed.token()));
        let text = format!("came at {now}, its lease ended at {end}, tokens {tokens:?}");
        return verdict.fault_of(story, Rule::TwoLeases, &text);
    };
    verdict.again(cause);
}

/// A crash may have undone the former delivery, but the number of attempts shows that it did not.
fn counts_on(former: &Handed<'_>, handed: &Handed<'_>) -> bool {
    handed.delivery.attempts > former.delivery.attempts
}

fn lost_tail(history: &History, entry: &Entry) -> Cause {
    match history.lives.get(entry.life).map(|life| life.end) {
        Some(End::Failover) => Cause::Failover,
        _ => Cause::LostTail,
    }
}

fn after_lease(history: &History, story: &Story<'_>, former: &Handed<'_>, life: usize) -> Cause {
    let of_former = |claim: &Claim| story.is_meant(claim, former);
    for (entry, ack) in story.acks() {
        if !ack.claims.iter().any(of_former) {
            continue;
        }
        match ack.answer {
            None => return Cause::AckUnknown,
            Some(1..) if !history.is_certain(entry, life) => return lost_tail(history, entry),
            // An ACK that must have removed the job is another rule's matter.
            _ => {}
        }
    }
    Cause::LeaseEnded
}

/// When the former delivery's lease ended, or the earliest that it can have, as known at the next delivery (or another
/// entry `at`). After a crash a client that knows nothing of the next delivery may have touched the former token again.
pub fn lease_end(history: &History, story: &Story<'_>, former: &Handed<'_>, at: &Entry) -> u64 {
    let mut end = former.delivery.lease.map_or(0, |lease| lease.deadline);
    let touches = story
        .touches()
        .filter(|(entry, touch)| story.is_meant(&touch.claim, former) && !at.is_before(entry));
    for (entry, touch) in touches {
        let sure = touch.claim.token.is_some() && history.is_certain(entry, at.life);
        match (touch.answer.flatten(), touch.ttr_ms) {
            (Some(deadline), _) if sure => end = deadline,
            (Some(deadline), _) => end = end.min(deadline),
            (None, Some(ttr_ms)) => end = end.min(entry.sent.wall_ms_up() + ttr_ms),
            (None, None) => {} // it can only be longer
        }
    }
    end
}

/// What had certainly finished the job before it was delivered.
fn finished_before(
    history: &History,
    story: &Story<'_>,
    handed: &Handed<'_>,
) -> Option<&'static str> {
    let certain = |entry: &Entry| history.is_certain(entry, handed.entry.life);
    let acked = story.acks().any(|(entry, ack)| {
        let all = ack.answer == Some(ack.claims.len() as u64);
        let over = |claim: &Claim| match claim.token {
            Some(token) if handed.token() == 0 => is_of(story, token) && handed.comes_after(entry),
            // A delivery of an earlier life may have been undone before the ACK.
            Some(token) => {
                let in_time = handed.entry.life >= entry.life;
                is_of(story, token) && in_time && token < handed.token()
            }
            None => story.is_alone() && handed.comes_after(entry),
        };
        let mut of_it = ack
            .claims
            .iter()
            .filter(|claim| claim.id == handed.delivery.id);
        all && certain(entry) && of_it.any(over)
    });
    let taken = story.taken.iter().any(|taken| {
        let itself = std::ptr::eq(taken.delivery, handed.delivery);
        !itself && certain(taken.entry) && handed.comes_after(taken.entry)
    });
    let deleted = story.others.iter().any(|entry| match &entry.what {
        What::Del(del) => {
            let all = del.answer == Some(del.ids.len() as u64);
            all && story.is_alone() && certain(entry) && handed.comes_after(entry)
        }
        _ => false,
    });
    let purged = || {
        let mut purges = story.purged_by.iter();
        purges.any(|purge| certain(purge) && handed.comes_after(purge))
    };
    match (acked, taken, deleted) {
        (true, _, _) => Some("its ACK"),
        (_, true, _) => Some("a POP with NOACK"),
        (_, _, true) => Some("its DEL"),
        _ => purged().then_some("a PURGE"),
    }
}

pub fn is_of(story: &Story<'_>, token: u64) -> bool {
    story.leases.iter().any(|lease| lease.token() == token)
}

/// A token is invalid once there is a later one, or once it was used up.
fn check_stale(history: &History, story: &Story<'_>, verdict: &mut Verdict) {
    let mut ends: HashMap<u64, Vec<&Entry>> = HashMap::new();
    for entry in &story.others {
        let (tokens, is_end) = did_something(entry);
        for token in tokens.into_iter().filter(|&token| is_of(story, token)) {
            let outdated = story.leases.iter().any(|later| {
                let known = history.is_certain(later.entry, entry.life);
                later.token() > token && later.entry.is_before(entry) && known
            });
            let purged = story
                .purged_by
                .iter()
                .any(|purge| purge.is_before(entry) && history.is_certain(purge, entry.life));
            if outdated || purged {
                let text = format!("token {token} was accepted again");
                verdict.fault_of(story, Rule::Stale, &text);
            }
            if is_end {
                ends.entry(token).or_default().push(entry);
            }
        }
    }
    for (token, entries) in ends {
        let twice = entries
            .windows(2)
            .any(|pair| history.is_certain(pair[0], pair[1].life));
        if twice {
            let text = format!("token {token} ended twice");
            verdict.fault_of(story, Rule::Stale, &text);
        }
    }
}

/// The tokens with which an entry certainly changed a job, and whether that made them invalid.
pub fn did_something(entry: &Entry) -> (Vec<u64>, bool) {
    match &entry.what {
        What::Ack(ack) if ack.answer == Some(ack.claims.len() as u64) => (
            ack.claims.iter().filter_map(|claim| claim.token).collect(),
            true,
        ),
        What::Nack(nack) if nack.answer == Some(true) => {
            (nack.claim.token.into_iter().collect(), true)
        }
        What::Touch(touch) if matches!(touch.answer, Some(Some(_))) => {
            (touch.claim.token.into_iter().collect(), false)
        }
        _ => (Vec::new(), false),
    }
}
