//! Each checker must be able to fail: here something is wrong on purpose, and the test fails if no run notices it.

use crate::audit::{Audit, Dues, LongScan};
use crate::exhaustive::{alphabet, play, Step};
use crate::generate::Shape;
use crate::model::Fault;
use crate::op::{Delivered, Op, PopOp, Reply};
use crate::run::{Run, Sabotage};
use crate::shapes;

const SHAPES: [Shape; 11] = [
    shapes::FEW_IDS,
    shapes::LIMITS,
    shapes::PRIORITIES,
    shapes::STEPS_BACK,
    shapes::RECURRING,
    shapes::GROUPS,
    shapes::STEPS,
    shapes::RECURRING_STEPS,
    shapes::DONE,
    shapes::FLOWS,
    shapes::COSTS,
];

/// The mismatch that the sabotage leads to, within a few runs.
fn noticed(sabotage: Sabotage) -> Option<String> {
    // Most faults are noticed soon, in the right kind of run.
    let lengths = [1_500, 20_000].into_iter();
    let seeds = lengths.flat_map(|steps| (1..4).map(move |seed| (steps, seed)));
    let of_all_kinds = seeds.flat_map(|(steps, seed)| SHAPES.map(|shape| (steps, seed, shape)));
    let first = right(sabotage).map(|(shape, seed)| (60_000, seed, shape));
    let mut runs = first.into_iter().chain(of_all_kinds);
    runs.find_map(|(steps, seed, shape)| Run::new(seed, shape, sabotage).steps(steps).err())
}

/// The run for a fault that others seldom notice, or only after some seconds, by its kind and seed.
fn right(sabotage: Sabotage) -> Option<(Shape, u64)> {
    use Fault::*;
    let Sabotage::Model(fault) = sabotage else {
        return Option::None;
    };
    Some(match fault {
        RateToldByOne | TouchCostIgnored => (shapes::COSTS, 2),
        CostlyArePassed | CostsIgnored | OwnRateIgnored => (shapes::COSTS, 4),
        EndsUnheard | OnDeadIgnored | ProgressOutlivesKick | ResultsOutliveReplaced => {
            (shapes::FLOWS, 1)
        }
        GivenBackIsLost | ResultsOfLateWeighAgain => (shapes::FLOWS, 3),
        DeathAnswersSuccessor | FirstEndEnough => (shapes::FLOWS, 4),
        DedupeShortens => (shapes::STEPS_BACK, 2),
        AwaitLooksNotAgain | KeepOutlivesRenewal => (shapes::RECURRING_STEPS, 5),
        RateOneUsShort => (shapes::RECURRING, 2),
        ExpiryUncounted => (shapes::RECURRING, 4),
        WindowOutlivesRate => (shapes::DONE, 1),
        GroupLenIgnored => (shapes::DONE, 2),
        WeightIgnored => (shapes::DONE, 3),
        FifoOvertaken => (shapes::GROUPS, 5),
        _ => return Option::None,
    })
}

#[test]
fn every_wrong_rule_is_noticed() {
    let unnoticed: Vec<_> = Fault::ALL
        .iter()
        .filter(|fault| noticed(Sabotage::Model(**fault)).is_none())
        .collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?}");
}

fn assert_noticed(sabotage: Sabotage, by: &[&str]) {
    let mismatch = noticed(sabotage).unwrap_or_else(|| panic!("{sabotage:?} is not noticed"));
    let right = by.iter().any(|by| mismatch.contains(by));
    assert!(right, "noticed otherwise: {mismatch}");
}

#[test]
fn followers_that_miss_something_are_noticed() {
    assert_noticed(Sabotage::ReplicaMisses, &["replica differs", "is refused"]);
    assert_noticed(Sabotage::LogMisses, &["log differs", "is refused"]);
}

#[test]
fn broken_promises_are_noticed() {
    let early = ["delivered before its due", "a second live lease"];
    assert_noticed(Sabotage::ClockAhead, &early);
    assert_noticed(Sabotage::TokenAgain, &["a token that did not grow"]);
    assert_noticed(Sabotage::IdleEffect, &["effects, but nothing changed"]);
    assert_noticed(Sabotage::HiddenChange, &["changed, but no effects"]);
    assert_noticed(Sabotage::EndMissed, &["the ends"]);
}

fn delivery(token: u64, deadline: u64) -> Reply {
    Reply::Jobs(vec![Delivered {
        id: b"a".to_vec(),
        payload: Vec::new(),
        attempts: 1,
        lease: Some((token, deadline)),
        terms: None,
        steps: None,
        results: Vec::new(),
    }])
}

#[test]
fn the_audit_sees_early_late_double_and_short_leases() {
    let op = Op::Pop(PopOp {
        ttr: Some(5),
        ..PopOp::FIRST
    });
    let dues = Dues::from([(b"a".to_vec(), (1, 40))]);
    let token = 10 << 20;
    let mut audit = Audit::default();
    assert!(audit.see(&op, &delivery(token, 15), &dues, 10_000).is_ok());
    let early = audit.see(&op, &delivery(token + 1, 16), &Dues::new(), 10_500);
    assert!(early.is_err_and(|what| what.contains("before its due")));
    let late = audit.see(&op, &delivery(40 << 20, 45), &dues, 40_000);
    assert!(late.is_err_and(|what| what.contains("past its TTL")));
    let second = audit.see(&op, &delivery(12 << 20, 17), &dues, 12_000);
    assert!(second.is_err_and(|what| what.contains("second live lease")));
    let mut audit = Audit::default();
    let short = audit.see(&op, &delivery(token, 15), &dues, 10_001);
    assert!(short.is_err_and(|what| what.contains("a lease of 5 ms")));
}

#[test]
fn a_scan_that_skips_is_noticed() {
    let mut scan = LongScan::default();
    let all = || vec![b"a".to_vec(), b"b".to_vec()];
    let missing_b = scan.step(
        |_, shown| {
            shown.push(b"a".to_vec());
            0
        },
        all,
    );
    assert!(missing_b.is_err());
}

#[test]
fn small_histories_notice_a_wrong_rule() {
    let alphabet = alphabet();
    let all = alphabet.iter().flat_map(|first| {
        let seconds = alphabet.iter();
        seconds.flat_map(move |second| alphabet_of_three(first, second))
    });
    let noticed = all.filter(|steps| {
        let steps: Vec<&Step> = steps.iter().collect();
        play(&steps, Fault::LeaseRoundedDown).is_err()
    });
    assert!(noticed.count() > 0);
}

fn alphabet_of_three(first: &Step, second: &Step) -> Vec<[Step; 3]> {
    let thirds = alphabet().into_iter();
    thirds
        .map(|third| [first.clone(), second.clone(), third])
        .collect()
}
