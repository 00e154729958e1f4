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
    let first = late(sabotage).map(|shape| (60_000, 1, shape));
    let mut runs = first.into_iter().chain(of_all_kinds);
    runs.find_map(|(steps, seed, shape)| Run::new(seed, shape, sabotage).steps(steps).err())
}

/// The kind of run for a fault that short runs seldom notice: otherwise all other kinds of long runs would be tried
/// first.
fn late(sabotage: Sabotage) -> Option<Shape> {
    match sabotage {
        Sabotage::Model(Fault::CostlyArePassed) => Some(shapes::COSTS),
        Sabotage::Model(Fault::DeathAnswersSuccessor) => Some(shapes::FLOWS),
        Sabotage::Model(Fault::DedupeShortens) => Some(shapes::STEPS_BACK),
        Sabotage::Model(Fault::KeepOutlivesRenewal) => Some(shapes::RECURRING_STEPS),
        Sabotage::Model(Fault::RateOneUsShort) => Some(shapes::RECURRING),
        _ => None,
    }
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
