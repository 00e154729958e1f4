//! What is delivered is what was added: the job, its bytes, its queue, and the number of its deliveries. A dead job has
//! a reason to be dead.

use super::check::{Rule, Verdict};
use super::story::{Handed, Stories, Story};
use super::{serial_of, Corpse, Entry, Kind, Taken, What};

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    for stranger in &stories.strangers {
        let delivery = stranger.delivery;
        let payload = delivery.payload.escape_ascii();
        let text = format!("{} of {} brings {payload}", delivery.id, delivery.queue);
        verdict.fault(Rule::Unexpected, text);
    }
    for story in stories.jobs.values() {
        if story.add.only && story.add.answer == Some(Taken::Refused) {
            verdict.fault_of(story, Rule::Unexpected, "refused without a reason");
        }
        for handed in story.deliveries() {
            check_identity(story, handed, verdict);
            check_attempts(stories, story, handed, verdict);
        }
    }
    check_dead(stories, verdict);
}

fn check_identity(story: &Story<'_>, handed: &Handed<'_>, verdict: &mut Verdict) {
    let delivery = handed.delivery;
    let other_id = story.add.id.as_ref().is_some_and(|id| *id != delivery.id);
    let other_queue = story.entry.queue != delivery.queue;
    let not_asked = !handed.pop.queues.contains(&delivery.queue);
    let refused = !story.add.may_be_added();
    if other_id || other_queue || not_asked || refused || handed.entry.is_before(story.entry) {
        let text = format!("came as {} of {}", delivery.id, delivery.queue);
        verdict.fault_of(story, Rule::Unexpected, &text);
    }
}

/// A delivery counts one more attempt than the one before. Exceptions: that one was given back with SILENT, the job was
/// kicked, a crash undid the one before, or unanswered POPs delivered it in between.
fn check_attempts(
    stories: &Stories<'_>,
    story: &Story<'_>,
    handed: &Handed<'_>,
    verdict: &mut Verdict,
) {
    let before = story.leases_before(handed).last();
    let since_us = before.map_or(story.entry.sent.at_us, |it| it.entry.sent.at_us);
    let unanswered = stories.unknown_pops.iter().filter(|(entry, pop)| {
        let in_between = entry.ended.at_us > since_us && !handed.entry.is_before(entry);
        in_between && pop.queues.contains(&story.entry.queue)
    });
    let (least, most) = match before {
        None => (1, 1),
        Some(before) if stories.history.is_certain(before.entry, handed.entry.life) => {
            next_attempts(stories, story, before, handed)
        }
        // The number before the crash, or any number that it had at the last save.
        Some(_) => {
            let earlier = story.leases_before(handed);
            let attempts = earlier.iter().map(|lease| lease.delivery.attempts);
            (1, 1 + attempts.max().unwrap_or(0))
        }
    };
    let limit = match story.add.max_attempts {
        0 => u32::MAX,
        limit => limit,
    };
    let most = limit.min(most + unanswered.count() as u32);
    let attempts = handed.delivery.attempts;
    if !(least..=most).contains(&attempts) {
        let text = format!("delivery {attempts}, which may be {least} to {most}");
        verdict.fault_of(story, Rule::Attempts, &text);
    }
}

/// The least and the most attempts after a delivery that was not undone.
fn next_attempts(
    stories: &Stories<'_>,
    story: &Story<'_>,
    before: &Handed<'_>,
    handed: &Handed<'_>,
) -> (u32, u32) {
    let mut most = 1 + before.delivery.attempts;
    let mut least = most;
    let since_us = before.entry.sent.at_us;
    let in_between = |kick: &Entry| kick.ended.at_us > since_us && !handed.entry.is_before(kick);
    if story.may_die() && story.kicks().any(|(kick, _)| in_between(kick)) {
        least = 1;
    }
    // A token may be given back in a later life that knows only the delivery before.
    let silent = story.nacks().filter(|(entry, nack)| {
        let meant = nack.kind == Kind::Silent && story.is_meant(&nack.claim, before);
        meant && !handed.entry.is_before(entry)
    });
    for (entry, nack) in silent {
        least = least.saturating_sub(1).max(1);
        let told = nack.answer == Some(true) && nack.claim.token.is_some();
        if told && stories.history.is_certain(entry, handed.entry.life) {
            most -= 1;
        }
    }
    (least, most)
}

fn check_dead(stories: &Stories<'_>, verdict: &mut Verdict) {
    let corpses = stories.history.entries.iter().flat_map(|entry| {
        let corpses: &[Corpse] = match &entry.what {
            What::Dead(corpses) => corpses,
            _ => &[],
        };
        corpses.iter().map(move |corpse| (entry, corpse))
    });
    for (entry, corpse) in corpses {
        let serial = serial_of(&corpse.payload);
        let Some(story) = serial.and_then(|serial| stories.jobs.get(&serial)) else {
            let text = format!("the dead {}", corpse.payload.escape_ascii());
            verdict.fault(Rule::Unexpected, text);
            continue;
        };
        let purged = story
            .purged_by
            .iter()
            .any(|purge| purge.is_before(entry) && stories.history.is_certain(purge, entry.life));
        if purged {
            verdict.fault_of(story, Rule::Finished, "is there, dead, after a PURGE");
        }
        let fatal = story.nacks().any(|(_, nack)| nack.kind == Kind::Fatal);
        let limit = story.add.max_attempts;
        if !fatal && (limit == 0 || corpse.attempts < limit) {
            let text = format!("dead after {} of {limit} attempts", corpse.attempts);
            verdict.fault_of(story, Rule::Dead, &text);
        }
    }
}
