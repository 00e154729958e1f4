//! As mutants.rs, of MAXLEN, DEDUPE and PURGE, with a history in which these matter often.

use crate::cycles::{self, Setting};
use crate::history::{
    check, Bounds, Entry, History, Own, Purge, Rule, Stories, Turns, What, Which,
};
use crate::mutants::{is_noticed, Mutant};
use crate::rng::Rng;

/// Falsified: random purges.
const PURGES: [Mutant; 3] = [
    ("a purge that told more", tell_more, Rule::Purged, 4),
    ("a purge that told nothing", tell_nothing, Rule::Purged, 5),
    ("jobs that a purge left", leave, Rule::Finished, 10),
];

/// Falsified for all entries: another bound than the real one.
const BOUNDS: [(&str, &str, Bounds, Rule); 11] = [
    ("a smaller MAXLEN", "bounded", bounds(2, 100), Rule::Length),
    ("a larger MAXLEN", "bounded", bounds(24, 100), Rule::Length),
    ("a shorter DEDUPE", "bounded", bounds(6, 0), Rule::Condition),
    (
        "a longer DEDUPE",
        "bounded",
        bounds(6, 60_000),
        Rule::Condition,
    ),
    (
        "a smaller MAXRESERVED",
        "purged",
        limits(1, 0),
        Rule::WithinMax,
    ),
    (
        "a smaller GROUPMAX",
        "purged",
        limits(0, 1),
        Rule::WithinMax,
    ),
    ("a smaller RATE", "metered", rate(16, 15), Rule::Window),
    ("a longer window", "metered", rate(20, 18), Rule::Window),
    (
        "a smaller RATE of a group",
        "metered",
        own(0, 2, 0),
        Rule::Window,
    ),
    (
        "a smaller MAXLEN of a group",
        "bounded",
        own(1, 0, 0),
        Rule::Length,
    ),
    ("a smaller WEIGHT", "fair", own(0, 0, 1), Rule::Unfair),
];

const fn own(max_len: u64, most: u64, weight: u64) -> Bounds {
    Bounds {
        own: Own {
            max_len,
            rate: (most, 25),
            weight,
            max: 0,
        },
        turns: Turns::Fair,
        ..limits(0, 0)
    }
}

const fn bounds(max_len: u64, dedupe_ms: u64) -> Bounds {
    Bounds {
        max_len,
        dedupe_ms,
        ..limits(0, 0)
    }
}

const fn limits(max_reserved: u64, group_max: u64) -> Bounds {
    Bounds {
        max_len: 0,
        dedupe_ms: 0,
        max_reserved,
        group_max,
        rate: (0, 0),
        turns: Turns::Unknown,
        own: Own {
            max_len: 0,
            rate: (0, 0),
            weight: 0,
            max: 0,
        },
    }
}

const fn rate(most: u64, window_ms: u64) -> Bounds {
    Bounds {
        rate: (most, window_ms),
        ..limits(0, 0)
    }
}

/// A random purge whose answer fits.
fn any(history: &mut History, rng: &mut Rng, fits: fn(u64) -> bool) -> usize {
    let answer = |entry: &Entry| match &entry.what {
        What::Purge(purge) => purge.answer,
        _ => None,
    };
    let entries = &history.entries;
    let fits = |at: &usize| answer(&entries[*at]).is_some_and(fits);
    let all: Vec<usize> = (0..entries.len()).filter(fits).collect();
    *rng.pick(&all)
}

fn purge(history: &mut History, at: usize) -> &mut Purge {
    match &mut history.entries[at].what {
        What::Purge(purge) => purge,
        other => panic!("no PURGE: {other:?}"),
    }
}

fn tell_more(history: &mut History, rng: &mut Rng) -> bool {
    let at = any(history, rng, |_| true);
    let purge = purge(history, at);
    purge.answer = purge.answer.map(|told| told + 4);
    purge.which != Which::All
}

fn tell_nothing(history: &mut History, rng: &mut Rng) -> bool {
    let at = any(history, rng, |told| told > 1);
    purge(history, at).answer = Some(0);
    true
}

/// Makes the purge one of all jobs; false unless a job that existed before it was delivered after
/// it.
fn leave(history: &mut History, rng: &mut Rng) -> bool {
    let at = any(history, rng, |_| true);
    purge(history, at).which = Which::All;
    let entry = &history.entries[at];
    let stories = Stories::of(history);
    let mut jobs = stories.jobs.values();
    jobs.any(|story| {
        let later = |life: usize| history.is_certain(entry, life);
        let before = story.entry.queue == entry.queue && story.entry.is_before(entry);
        let mut deliveries = story.deliveries();
        before && deliveries.any(|it| entry.is_before(it.entry) && later(it.entry.life))
    })
}

fn are_enough(history: &History) -> bool {
    let purges = history
        .entries
        .iter()
        .filter_map(|entry| match &entry.what {
            What::Purge(purge) => purge.answer,
            _ => None,
        });
    purges.filter(|&told| told > 1).count() > 2
}

/// Not every case occurs in each run.
#[test]
fn canary_what_is_falsified_of_bounds_is_noticed() {
    let (mut purges, mut unseen) = (PURGES.to_vec(), BOUNDS.to_vec());
    for seed in 1..=40 {
        let (server, workload, _) = cycles::kill(Setting::Rewrite { preamble: true }, seed, 4);
        let history = workload.drained(&server);
        check(&history).assert_clean(&history);
        if are_enough(&history) {
            purges.retain(|mutant| !is_noticed(&history, mutant));
        }
        unseen.retain(|(name, queue, bounds, rule)| {
            let mut falsified = history.clone();
            falsified.bounds.insert((*queue).to_owned(), *bounds);
            let faults = check(&falsified).faults;
            let noticed = faults.iter().filter(|fault| fault.rule == *rule).count();
            println!("{name}: {noticed} times noticed");
            noticed == 0
        });
        if purges.is_empty() && unseen.is_empty() {
            return;
        }
    }
    panic!("never seen: {unseen:?}, {purges:?}");
}
