//! Faults that must be noticed: a model with a wrong rule, and jobs that were removed, doubled or changed without the
//! clients' knowledge while no server was running.

use crate::compare::difference;
use crate::ends::End;
use crate::model::{Fault, Model, Phase};
use crate::run::Run;
use crate::support::{Raw, Reply};

/// The most steps that it may take.
const STEPS: u64 = 3000;

#[test]
fn wrong_rules_are_noticed() {
    for fault in [
        Fault::MissedRunsRepeat,
        Fault::GridFromEnd,
        Fault::GraceForgotten,
        Fault::RenewalBeginsAfresh,
        Fault::SuccessorDiesToo,
        Fault::NextRefused,
        Fault::ReasonStays,
        Fault::LeaseEndSilent,
        Fault::TurnSkipped,
        Fault::GroupMaxOneMore,
        Fault::FifoOvertaken,
    ] {
        let noticed = (1..=12).any(|seed| Run::start(seed, fault).steps(STEPS).is_err());
        assert!(noticed, "{fault:?} was not noticed");
    }
}

/// A field that DQ.GET shows and the list of [`crate::compare`] lacks, a field that it no longer shows, a wrong value.
#[test]
fn a_field_too_many_or_missing_is_noticed() {
    let job = |fields: &[(&str, &str)]| {
        let fields = fields.iter();
        let owned = fields.map(|&(name, value)| (name.to_owned(), value.to_owned()));
        vec![owned.collect::<std::collections::BTreeMap<_, _>>()]
    };
    let expected = job(&[("id", "a"), ("cost", "1")]);
    assert_eq!(difference(&expected, &expected), None);
    for seen in [
        job(&[("id", "a"), ("cost", "1"), ("label", "x")]),
        job(&[("id", "a")]),
        job(&[("id", "a"), ("cost", "2")]),
    ] {
        assert!(difference(&seen, &expected).is_some(), "{seen:?}");
    }
}

type Tamper = fn(&mut Raw, &Model) -> bool;

/// Whether the tampering is noticed, once there is something to tamper with.
fn tampered(tamper: Tamper) -> bool {
    for seed in 1..=20 {
        let mut run = Run::start(seed, Fault::None);
        let done = std::cell::Cell::new(false);
        for _ in 0..10 {
            run.steps(60).expect("nothing wrong yet");
            run.begin_next(End::Killed).expect("nothing wrong yet");
            let judged = run.judge(&|client, model| done.set(tamper(client, model)));
            if done.get() {
                return judged.is_err();
            }
            judged.expect("nothing wrong yet");
        }
    }
    panic!("never anything to tamper with");
}

/// Whether the server accepted the command: a limit may refuse an ADD, and a lease may have ended meanwhile.
fn on(client: &mut Raw, words: &[&[u8]]) -> bool {
    match client.call(words) {
        Reply::Bulk(_) => true,
        Reply::Integer(count) => count > 0,
        _ => false,
    }
}

#[test]
fn an_occurrence_lost_is_noticed() {
    assert!(tampered(|client, model| {
        let waits = |job: &&crate::model::Job| job.recur.is_some();
        let job = model.jobs.iter().find(waits);
        job.is_some_and(|job| on(client, &[b"DQ.DEL", b"q", &job.id]))
    }));
}

/// An occurrence that was finished is there once more.
#[test]
fn an_occurrence_doubled_is_noticed() {
    assert!(tampered(|client, model| {
        let mut jobs = model.jobs.iter();
        let ran = jobs.find_map(|job| {
            let recur = job.recur.as_ref().filter(|it| it.rule.text.is_none())?;
            let waits = recur.runs > 0 && job.phase == Phase::Waiting;
            waits.then_some((job, recur))
        });
        ran.is_some_and(|(job, recur)| {
            let before = (recur.occurrence - recur.rule.ms).to_string();
            let at = before.as_bytes();
            on(client, &[b"DQ.RESCHEDULE", b"q", b"AT", at, &job.id])
        })
    }));
}

#[test]
fn a_successor_lost_is_noticed() {
    assert!(tampered(|client, model| {
        let job = model.jobs.iter().find(|job| job.next.is_some());
        job.is_some_and(|job| {
            let id = &job.id[..];
            on(client, &[b"DQ.ADD", b"q", id, b"another one", b"NEXT"])
        })
    }));
}
