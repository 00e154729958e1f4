//! Histories with purges, valid and invalid ones.

use super::builder::HistoryBuilder;
use super::check::Rule;
use super::{Kept, Kind, Which};

const STATES: [Which; 4] = [Which::Delayed, Which::Ready, Which::Reserved, Which::Dead];
const ALL: [Which; 5] = [
    Which::Delayed,
    Which::Ready,
    Which::Reserved,
    Which::Dead,
    Which::All,
];

/// Job 1 in that state, and its token if it was delivered.
fn job_in(state: Which) -> (HistoryBuilder, u64) {
    let mut made = HistoryBuilder::new();
    let delay_ms = if state == Which::Delayed { 50 } else { 0 };
    made.add(1, delay_ms);
    let token = match state {
        Which::Reserved | Which::Dead => made.pop(&[(1, 1)]),
        _ => 0,
    };
    if state == Which::Dead {
        made.nack(1, token, Kind::Fatal, 0);
    }
    (made, token)
}

/// Every state with every purge, and whether that purge removes the job.
fn pairs() -> impl Iterator<Item = (Which, Which, bool)> {
    let of = |state| ALL.map(move |which| (state, which, which == state || which == Which::All));
    STATES.into_iter().flat_map(of)
}

/// The job is delivered again, or found dead.
fn comes(made: &mut HistoryBuilder, state: Which) {
    made.later(200);
    let attempts = if state == Which::Reserved { 2 } else { 1 };
    if state == Which::Dead {
        return made.dead(1, 1);
    }
    let token = made.pop(&[(1, attempts)]);
    made.ack(1, token, Some(1));
}

#[test]
fn a_purge_explains_what_it_can_have_removed() {
    for (state, which, hits) in pairs() {
        for answer in [None, Some(u64::from(hits))] {
            let (mut made, _) = job_in(state);
            made.purge(which, answer);
            let rules = if hits { vec![] } else { vec![Rule::Lost] };
            assert_eq!(made.found(), rules, "{state:?}, {which:?} {answer:?}");
        }
    }
    // If the job becomes due during the purge, or a POP was not answered, both are possible.
    for which in [Which::Delayed, Which::Ready] {
        let mut made = HistoryBuilder::new();
        made.add(1, 3);
        made.purge(which, Some(1));
        assert_eq!(made.found(), [], "{which:?}");
    }
    for which in [Which::Reserved, Which::Ready] {
        let mut made = HistoryBuilder::new();
        made.add(1, 0);
        made.answer_pop(None);
        made.purge(which, Some(1));
        assert_eq!(made.found(), [], "{which:?}, after an unanswered POP");
    }
    // A job that was added later was not removed by it.
    let (mut made, _) = job_in(Which::Ready);
    made.history.entries[0].ended.at_us = 2_500;
    made.purge(Which::Ready, Some(0));
    comes(&mut made, Which::Ready);
    assert_eq!(made.found(), []);
}

#[test]
fn what_comes_after_its_purge() {
    for (state, which, hits) in pairs() {
        let (mut made, _) = job_in(state);
        made.purge(which, Some(u64::from(hits)));
        comes(&mut made, state);
        // Other rules notice it, too: the job cannot have been counted, nor can its token be valid.
        let found = made.found();
        let told = found.contains(&Rule::Finished) == hits && found.is_empty() != hits;
        assert!(told, "{state:?}, {which:?}: {found:?}");
    }
    // A crash may undo the purge.
    let rules = vec![Rule::Finished, Rule::Stale, Rule::Purged];
    for (kept, rules) in [(Kept::All, rules), (Kept::Before(2_500), vec![])] {
        let (mut made, _) = job_in(Which::Ready);
        made.purge(Which::Ready, Some(1));
        made.crash(kept);
        comes(&mut made, Which::Ready);
        assert_eq!(made.found(), rules, "{kept:?}");
    }
    // Without an answer, it may not have been carried out.
    let (mut made, _) = job_in(Which::Ready);
    made.purge(Which::Ready, None);
    comes(&mut made, Which::Ready);
    assert_eq!(made.found(), []);
}

#[test]
fn a_token_after_its_purge() {
    for which in [Which::Reserved, Which::All] {
        for (answer, rules) in [(1, vec![Rule::Stale]), (0, vec![])] {
            let (mut made, token) = job_in(Which::Reserved);
            made.purge(which, Some(1));
            made.ack(1, token, Some(answer));
            assert_eq!(made.found(), rules, "{which:?}, {answer} acknowledged");
        }
    }
}

#[test]
fn what_a_purge_tells() {
    for (state, which, hits) in pairs() {
        // A purge of another state, too, so that only the number is wrong.
        let (mut made, _) = job_in(state);
        made.purge(which, Some(2));
        assert!(
            made.found().contains(&Rule::Purged),
            "{state:?}, {which:?}: one more"
        );
        if hits {
            let (mut made, _) = job_in(state);
            made.purge(which, Some(0));
            assert_eq!(
                made.found(),
                [Rule::Lost, Rule::Purged],
                "{state:?}, {which:?}: one less"
            );
        }
    }
    // A job that was gone before, by its ACK or by an earlier purge, is not counted.
    for told in [0, 1] {
        let (mut made, token) = job_in(Which::Reserved);
        made.ack(1, token, Some(1));
        made.add(2, 0);
        made.purge(Which::All, Some(1));
        made.purge(Which::All, Some(told));
        let rules = if told == 0 {
            vec![]
        } else {
            vec![Rule::Purged]
        };
        assert_eq!(made.found(), rules);
    }
    // A job that may have gone may also have stayed.
    let mut made = HistoryBuilder::new();
    made.add(1, 0).ttl_ms = Some(2);
    made.purge(Which::Ready, Some(0));
    assert_eq!(made.found(), []);
}

/// A purge explains the loss of as many jobs as it reported, and each lost job needs an
/// explanation.
#[test]
fn as_many_as_purges_told() {
    // One purge runs all the while, the other ends before the second job is added.
    for (long, short, rules) in [
        (1, 1, vec![]),
        (2, 0, vec![]),
        (1, 0, vec![Rule::Lost]),
        (0, 1, vec![Rule::Lost]),
    ] {
        let mut made = HistoryBuilder::new();
        made.purge(Which::All, Some(long));
        made.purge(Which::All, Some(short));
        made.add(1, 0);
        let first_added = made.now_ms;
        made.add(2, 0);
        made.history.entries[1].ended.at_us = 1000 * (first_added - 1);
        made.history.entries[0].ended.at_us = 1000 * made.now_ms;
        assert_eq!(made.found(), rules, "{long} and {short}");
    }
}
