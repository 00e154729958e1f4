//! Histories with purges, valid and invalid ones.

use super::check::Rule;
use super::pen::Pen;
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
fn job_in(state: Which) -> (Pen, u64) {
    let mut pen = Pen::new();
    let delay_ms = if state == Which::Delayed { 50 } else { 0 };
    pen.add(1, delay_ms);
    let token = match state {
        Which::Reserved | Which::Dead => pen.pop(&[(1, 1)]),
        _ => 0,
    };
    if state == Which::Dead {
        pen.nack(1, token, Kind::Fatal, 0);
    }
    (pen, token)
}

/// Every state with every purge, and whether that purge removes the job.
fn pairs() -> impl Iterator<Item = (Which, Which, bool)> {
    let of = |state| ALL.map(move |which| (state, which, which == state || which == Which::All));
    STATES.into_iter().flat_map(of)
}

/// The job is delivered again, or found dead.
fn comes(pen: &mut Pen, state: Which) {
    pen.later(200);
    let attempts = if state == Which::Reserved { 2 } else { 1 };
    if state == Which::Dead {
        return pen.dead(1, 1);
    }
    let token = pen.pop(&[(1, attempts)]);
    pen.ack(1, token, Some(1));
}

#[test]
fn a_purge_explains_what_it_can_have_removed() {
    for (state, which, hits) in pairs() {
        for answer in [None, Some(u64::from(hits))] {
            let (mut pen, _) = job_in(state);
            pen.purge(which, answer);
            let rules = if hits { vec![] } else { vec![Rule::Lost] };
            assert_eq!(pen.found(), rules, "{state:?}, {which:?} {answer:?}");
        }
    }
    // If the job becomes due during the purge, or a POP was not answered, both are possible.
    for which in [Which::Delayed, Which::Ready] {
        let mut pen = Pen::new();
        pen.add(1, 3);
        pen.purge(which, Some(1));
        assert_eq!(pen.found(), [], "{which:?}");
    }
    for which in [Which::Reserved, Which::Ready] {
        let mut pen = Pen::new();
        pen.add(1, 0);
        pen.answer_pop(None);
        pen.purge(which, Some(1));
        assert_eq!(pen.found(), [], "{which:?}, after an unanswered POP");
    }
    // A job that was added later was not removed by it.
    let (mut pen, _) = job_in(Which::Ready);
    pen.history.entries[0].ended.at_us = 2_500;
    pen.purge(Which::Ready, Some(0));
    comes(&mut pen, Which::Ready);
    assert_eq!(pen.found(), []);
}

#[test]
fn what_comes_after_its_purge() {
    for (state, which, hits) in pairs() {
        let (mut pen, _) = job_in(state);
        pen.purge(which, Some(u64::from(hits)));
        comes(&mut pen, state);
        // Other rules notice it, too: the job cannot have been counted, nor can its token be valid.
        let found = pen.found();
        let told = found.contains(&Rule::Finished) == hits && found.is_empty() != hits;
        assert!(told, "{state:?}, {which:?}: {found:?}");
    }
    // A crash may undo the purge.
    let rules = vec![Rule::Finished, Rule::Stale, Rule::Purged];
    for (kept, rules) in [(Kept::All, rules), (Kept::Before(2_500), vec![])] {
        let (mut pen, _) = job_in(Which::Ready);
        pen.purge(Which::Ready, Some(1));
        pen.crash(kept);
        comes(&mut pen, Which::Ready);
        assert_eq!(pen.found(), rules, "{kept:?}");
    }
    // Without an answer, it may not have been carried out.
    let (mut pen, _) = job_in(Which::Ready);
    pen.purge(Which::Ready, None);
    comes(&mut pen, Which::Ready);
    assert_eq!(pen.found(), []);
}

#[test]
fn a_token_after_its_purge() {
    for which in [Which::Reserved, Which::All] {
        for (answer, rules) in [(1, vec![Rule::Stale]), (0, vec![])] {
            let (mut pen, token) = job_in(Which::Reserved);
            pen.purge(which, Some(1));
            pen.ack(1, token, Some(answer));
            assert_eq!(pen.found(), rules, "{which:?}, {answer} acknowledged");
        }
    }
}

#[test]
fn what_a_purge_tells() {
    for (state, which, hits) in pairs() {
        // A purge of another state, too, so that only the number is wrong.
        let (mut pen, _) = job_in(state);
        pen.purge(which, Some(2));
        assert!(
            pen.found().contains(&Rule::Purged),
            "{state:?}, {which:?}: one more"
        );
        if hits {
            let (mut pen, _) = job_in(state);
            pen.purge(which, Some(0));
            assert_eq!(
                pen.found(),
                [Rule::Lost, Rule::Purged],
                "{state:?}, {which:?}: one less"
            );
        }
    }
    // A job that was gone before, by its ACK or by an earlier purge, is not counted.
    for told in [0, 1] {
        let (mut pen, token) = job_in(Which::Reserved);
        pen.ack(1, token, Some(1));
        pen.add(2, 0);
        pen.purge(Which::All, Some(1));
        pen.purge(Which::All, Some(told));
        let rules = if told == 0 {
            vec![]
        } else {
            vec![Rule::Purged]
        };
        assert_eq!(pen.found(), rules);
    }
    // A job that may have gone may also have stayed.
    let mut pen = Pen::new();
    pen.add(1, 0).ttl_ms = Some(2);
    pen.purge(Which::Ready, Some(0));
    assert_eq!(pen.found(), []);
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
        let mut pen = Pen::new();
        pen.purge(Which::All, Some(long));
        pen.purge(Which::All, Some(short));
        pen.add(1, 0);
        let first_added = pen.now_ms;
        pen.add(2, 0);
        pen.history.entries[1].ended.at_us = 1000 * (first_added - 1);
        pen.history.entries[0].ended.at_us = 1000 * pen.now_ms;
        assert_eq!(pen.found(), rules, "{long} and {short}");
    }
}
