//! Compares what DQ.EXPLAIN says with the model, and with what then happens.

use crate::compare::equal;
use crate::model::explain::Hold;
use crate::model::{Fault, Model};
use crate::op::{AddOp, Op, PopOp, Reply};
use crate::rng::Rng;
use dq::queue::clock::Now;
use dq::queue::explain::Reason;
use dq::queue::settings::{Rate, SettingsChange};
use dq::queue::Queue;

fn shown(reasons: Vec<Reason>) -> Vec<Hold> {
    let all = reasons.into_iter();
    all.map(|it| (it.code.name(), it.number, it.until))
        .collect()
}

/// Of the queue, and of some of its jobs. Nothing may be overdue.
pub fn compare(queue: &mut Queue, model: &mut Model, now: Now) -> Result<(), String> {
    // Its own, so that what follows in a history does not depend on what is asked here.
    let rng = &mut Rng::new(now.us());
    // As before a delivery.
    model.follow_clock_back(now.us());
    let told = model.explain(now.us());
    equal("EXPLAIN", shown(queue.explain(now.into())), told.clone())?;
    let is_idle = told.last().is_some_and(|it| it.0 == "idle");
    equal("idle", is_idle, model.would_deliver(now.us(), false))?;
    if rng.one_in(8) {
        nothing_before(&told, model, now)?;
        changes(&told, model, now, |then, us| Some(then.explain(us)))?;
    }
    let all = model.jobs.iter().chain(&model.done);
    let ids: Vec<_> = all.map(|job| job.id.clone()).collect();
    for _ in 0..ids.len().min(3) {
        let id = rng.pick(&ids);
        let seen = queue.explain_job(id, now.into()).map(shown);
        let told = model.explain_job(id, now.us());
        equal(&format!("EXPLAIN of {id:?}"), seen, told.clone())?;
        if rng.one_in(8) {
            let told = told.unwrap_or_default();
            changes(&told, model, now, |then, us| then.explain_job(id, us))?;
        }
    }
    Ok(())
}

/// If no command comes, "nothing is delivered before the latest `until`": jobs apart that become ready before, and, by RATE,
/// what a group gives that may go again before, as it may cost less than the one whose turn it is now.
fn nothing_before(told: &[Hold], model: &Model, now: Now) -> Result<(), String> {
    let opens = model.windows_open(now.us()).unwrap_or(u64::MAX);
    let latest = told.iter().filter_map(|it| match it.0 {
        "paused" | "groups" => it.2,
        "rate" => it.2.map(|until| until.min(opens)),
        _ => None,
    });
    let latest = latest.max();
    let others = [model.next_event(), model.next_due(now.us())];
    let Some(latest) = latest.filter(|at| others.into_iter().flatten().all(|it| it >= *at)) else {
        return Ok(());
    };
    // A rate window may open during the millisecond before.
    let before = (latest * 1000 - 1000).max(now.us());
    let would = model.would_deliver(before, false);
    equal(&format!("a delivery before {told:?}"), would, false)
}

/// "at each `until` the answer changes"
fn changes(
    told: &[Hold],
    model: &Model,
    now: Now,
    explain: impl Fn(&Model, u64) -> Option<Vec<Hold>>,
) -> Result<(), String> {
    if model.deliveries.iter().any(|it| it.at > now.us()) {
        return Ok(());
    }
    for at in told.iter().filter_map(|it| it.2) {
        let mut then = model.clone();
        then.advance(at * 1000);
        let is_same = explain(&then, at * 1000).as_deref() == Some(told);
        equal(&format!("the same at {at} as {told:?}"), is_same, false)?;
    }
    Ok(())
}

#[test]
fn a_delivery_before_what_is_told_is_noticed() {
    let (mut model, now) = (Model::new(Fault::None), Now::from_ms(1_000_000));
    let (count, window_ms) = (1, 50);
    let limited = SettingsChange {
        rate: Some(Some(Rate { count, window_ms })),
        ..SettingsChange::default()
    };
    let add = |id: &[u8]| Op::Add(AddOp::like(id));
    let pop = PopOp {
        noack: true,
        ..PopOp::FIRST
    };
    for op in [Op::Configure(limited), add(b"a"), add(b"b"), Op::Pop(pop)] {
        model.execute(&op, now.us(), &Reply::Count(0));
    }
    let mut told = model.explain(now.us());
    assert_eq!(told, [("rate", Some(1), Some(1_000_050))]);
    assert_eq!(nothing_before(&told, &model, now), Ok(()));
    told[0].2 = Some(1_000_052);
    assert!(nothing_before(&told, &model, now).is_err());
}
