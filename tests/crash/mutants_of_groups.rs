//! As mutants.rs, of the turns of groups.

use crate::cycles::{self, Setting};
use crate::history::{check, serial_of, History, Rule, Turns, What};
use crate::mutants::{at_the_end, is_noticed, jobs, Mutant};
use crate::rng::Rng;

const MUTANTS: [Mutant; 2] = [
    ("a group that was passed over", pass_over, Rule::Unfair, 5),
    ("an older job of a group", age, Rule::GroupOrder, 5),
];

/// Falsified for all entries: another rule than the real one.
const RULES: [(&str, &str, Turns, Rule); 2] = [
    ("turns under GROUPFIFO", "fifo", Turns::Fair, Rule::Unfair),
    (
        "order without GROUPFIFO",
        "fair",
        Turns::Fifo,
        Rule::GroupOrder,
    ),
];

/// Gives another group to a job of that queue whose first delivery was in the drain; returns its real group.
fn regroup(
    history: &mut History,
    rng: &mut Rng,
    queue: &str,
    group: &str,
) -> Option<Option<String>> {
    let (at, job) = at_the_end(history, rng)?;
    let handed = &jobs(&history.entries[at])[job];
    let serial = serial_of(&handed.payload).filter(|_| handed.queue == queue)?;
    let adds = history
        .entries
        .iter_mut()
        .filter_map(|it| match &mut it.what {
            What::Add(add) => Some(add),
            _ => None,
        });
    let add = adds.into_iter().find(|add| add.serial == serial)?;
    add.group.replace(group.to_owned()).into()
}

/// Whether the drain got enough jobs of that queue.
fn are_enough(history: &History, queue: &str) -> bool {
    let last = history.entries.last().map(|entry| entry.client);
    let drains = history.entries.iter().filter(|it| Some(it.client) == last);
    let handed = drains.flat_map(jobs).filter(|job| job.queue == queue);
    handed.filter(|job| job.attempts == 1).count() > 20
}

fn pass_over(history: &mut History, rng: &mut Rng) -> bool {
    regroup(history, rng, "fair", "alone").is_some()
}

fn age(history: &mut History, rng: &mut Rng) -> bool {
    let before = regroup(history, rng, "fifo", "g1");
    before.is_some_and(|group| group.as_deref() != Some("g1"))
}

/// Not every case occurs in each run, and few on a busy machine: so each run is longer than the one before.
#[test]
fn canary_what_is_falsified_of_groups_is_noticed() {
    let (mut mutants, mut rules) = (MUTANTS.to_vec(), RULES.to_vec());
    for seed in 1..=10 {
        let (server, workload, _) =
            cycles::kill(Setting::Rewrite { preamble: true }, seed, 4 * seed);
        let history = workload.drained(&server);
        let verdict = check(&history);
        verdict.assert_clean(&history);
        println!("{}", verdict.tally);
        if are_enough(&history, "fair") && are_enough(&history, "fifo") {
            mutants.retain(|mutant| !is_noticed(&history, mutant));
        }
        rules.retain(|(name, queue, turns, rule)| {
            let mut falsified = history.clone();
            let bounds = falsified.bounds.get_mut(*queue);
            bounds.expect("bounds").turns = *turns;
            let faults = check(&falsified).faults;
            let noticed = faults.iter().filter(|fault| fault.rule == *rule).count();
            println!("{name}: {noticed} times noticed");
            noticed == 0
        });
        if mutants.is_empty() && rules.is_empty() {
            return;
        }
    }
    panic!("never seen: {mutants:?}, {rules:?}");
}
