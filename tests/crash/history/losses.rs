//! A job whose ADD is kept exists until it has a reason to be gone. After the final drain only dead jobs are left, so
//! each other job must have been finished, or be gone for another reason.

use std::collections::{HashMap, HashSet};

use super::check::{Rule, Verdict};
use super::places::Places;
use super::purges::{earliest_due, may_hit};
use super::story::{Stories, Story};
use super::{Entry, What};

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    let survived = surviving_units(stories);
    let mut missing: HashMap<&str, Vec<(Rule, &Story<'_>)>> = HashMap::new();
    for story in stories.jobs.values() {
        let last = stories.history.lives.len();
        let kept = story.add.is_added() && stories.history.is_certain(story.entry, last);
        let unit = story.entry.unit;
        let half = story.add.answer.is_none() && unit.is_some_and(|unit| survived.contains(&unit));
        let rule = match (kept, half) {
            (true, _) => Rule::Lost,
            (_, true) => Rule::Half,
            _ => continue,
        };
        if !may_be_gone(stories, story) {
            let queue = story.entry.queue.as_str();
            missing.entry(queue).or_default().push((rule, story));
        }
    }
    for jobs in missing.into_values() {
        let mut places = Places::default();
        for (_, story) in &jobs {
            places.want(silent_removers(stories, story));
        }
        for (rule, story) in places.left_over().into_iter().map(|at| jobs[at]) {
            verdict.fault_of(story, rule, "is not there");
        }
    }
}

/// Transactions without an answer of which something was seen after the crash that interrupted them.
fn surviving_units(stories: &Stories<'_>) -> HashSet<u64> {
    let seen_later = |story: &Story<'_>| {
        let life = story.entry.life;
        let after_a_crash = stories.history.lives.len() > life;
        let delivered = story.deliveries().any(|handed| handed.entry.life > life);
        delivered || (story.is_dead && after_a_crash)
    };
    let seen = stories.jobs.values().filter(|story| seen_later(story));
    seen.filter_map(|story| story.entry.unit).collect()
}

/// What may have removed the job unnoticed, and how many jobs that can have been: purges, and POPs with NOACK without
/// an answer, which deliver at most once.
fn silent_removers<'s, 'a>(
    stories: &'s Stories<'a>,
    story: &'s Story<'a>,
) -> impl Iterator<Item = (&'a Entry, u64)> + 's {
    let purges = story
        .purges()
        .filter(|(entry, purge)| may_hit(stories, story, entry, purge));
    let purges = purges.map(|(entry, purge)| (entry, purge.answer.unwrap_or(u64::MAX)));
    let due = earliest_due(story);
    let pops = stories
        .unanswered_noacks(story)
        .filter(move |(entry, _)| due <= entry.ended.wall_ms());
    purges.chain(pops.map(|(entry, pop)| (entry, pop.count)))
}

fn may_be_gone(stories: &Stories<'_>, story: &Story<'_>) -> bool {
    let expired = story
        .add
        .ttl_ms
        .is_some_and(|ttl_ms| story.entry.sent.wall_ms() + ttl_ms <= stories.end_wall_ms);
    let ended = |entry: &&Entry| may_end(story, entry);
    story.is_dead || !story.taken.is_empty() || expired || story.others.iter().any(ended)
}

/// Whether the entry can have removed the job. (The rule for purges is in their own file.)
pub fn may_end(story: &Story<'_>, entry: &Entry) -> bool {
    match &entry.what {
        What::Ack(ack) => {
            let meant = |claim: &super::Claim| {
                story
                    .leases
                    .iter()
                    .any(|lease| story.is_meant(claim, lease))
                    || claim.token.is_none()
            };
            ack.answer != Some(0) && ack.claims.iter().any(meant)
        }
        What::Del(del) => del.answer != Some(0),
        // An ADD may have replaced it; with NX only if it was dead.
        What::Add(add) => {
            let replaces = !add.nx || story.may_die();
            add.may_be_added() && replaces && !entry.is_before(story.entry)
        }
        _ => false,
    }
}
