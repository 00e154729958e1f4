//! Histories of queues with MAXLEN and DEDUPE, valid and invalid ones.

use super::builder::HistoryBuilder;
use super::check::Rule;
use super::{Add, Bounds, Del, Kept, Taken, What};

fn made(max_len: u64, dedupe_ms: u64) -> HistoryBuilder {
    let mut made = HistoryBuilder::new();
    let bounds = Bounds {
        max_len,
        dedupe_ms,
        ..Bounds::default()
    };
    made.history.bounds.insert("q".to_owned(), bounds);
    made
}

/// The job is delivered and acknowledged.
fn finish(made: &mut HistoryBuilder, serial: u64) {
    let token = made.pop(&[(serial, 1)]);
    made.ack(serial, token, Some(1));
}

#[test]
fn as_many_as_maxlen() {
    for (there, full) in [(0, false), (1, false), (2, true)] {
        for answer in [Taken::Full, Taken::Added] {
            let mut made = made(2, 0);
            for serial in 1..=there {
                made.add(serial, 0);
            }
            made.add(9, 0).answer = Some(answer);
            (1..=there).for_each(|serial| finish(&mut made, serial));
            if answer == Taken::Added {
                finish(&mut made, 9);
            }
            let right = full == (answer == Taken::Full);
            let rules = if right { vec![] } else { vec![Rule::Length] };
            assert_eq!(made.found(), rules, "{answer:?} beside {there} of 2");
        }
    }
}

/// An ADD is accepted while a job that is acknowledged later takes the place.
#[test]
fn a_job_at_work_takes_a_place() {
    for (answer, rules) in [(Some(1), vec![Rule::Length]), (Some(0), vec![])] {
        let mut made = made(1, 0);
        // Its TTL may have removed it, unless the ACK shows that it was still there.
        made.add(1, 0).ttl_ms = Some(2);
        let token = made.pop(&[(1, 1)]);
        made.add(2, 0);
        made.ack(1, token, answer);
        finish(&mut made, 2);
        let found = made.found();
        let of_length = found.into_iter().filter(|rule| *rule == Rule::Length);
        assert_eq!(of_length.collect::<Vec<Rule>>(), rules, "{answer:?}");
    }
}

#[test]
fn what_takes_a_place() {
    type Change = fn(&mut HistoryBuilder);
    let changes: [(&str, Change, bool); 5] = [
        ("acknowledged", |made| finish(made, 1), false),
        ("taken", |made| made.take(1), false),
        ("reserved", |made| _ = made.pop(&[(1, 1)]), true),
        (
            "acknowledged, perhaps",
            |made| {
                let token = made.pop(&[(1, 1)]);
                made.ack(1, token, None);
            },
            true,
        ),
        ("ready", |_| {}, true),
    ];
    for (what, change, takes) in changes {
        let mut made = made(1, 0);
        made.add(1, 0);
        change(&mut made);
        made.add(2, 0).answer = Some(Taken::Full);
        if takes {
            made.later(200);
            let attempts = if what == "ready" { 1 } else { 2 };
            let token = made.pop(&[(1, attempts)]);
            made.ack(1, token, Some(1));
        }
        let rules = if takes { vec![] } else { vec![Rule::Length] };
        assert_eq!(made.found(), rules, "{what}");
    }
}

/// What a crash undoes counts before the crash, and not after it.
#[test]
fn what_a_crash_takes_back_takes_a_place() {
    for (after, rules) in [(false, vec![]), (true, vec![Rule::Length])] {
        let mut made = made(1, 0);
        made.add(1, 0);
        if after {
            made.crash(Kept::Before(0));
        }
        made.add(2, 0).answer = Some(Taken::Full);
        if !after {
            made.crash(Kept::Before(0));
        }
        assert_eq!(made.found(), rules, "refused after the crash: {after}");
    }
}

#[test]
fn what_was_refused_does_not_come() {
    let mut made = made(1, 0);
    made.add(1, 0);
    made.add(2, 0).answer = Some(Taken::Full);
    finish(&mut made, 1);
    assert_eq!(made.found(), []);
    finish(&mut made, 2);
    assert_eq!(made.found(), [Rule::Unexpected]);
}

/// An ADD with NX that uses the id of job 1.
fn same(made: &mut HistoryBuilder, serial: u64, answer: Option<Taken>) {
    let add: &mut Add = made.add(serial, 0);
    add.id = Some("j1".to_owned());
    add.only = false;
    add.answer = answer;
}

/// Job 1 is finished; later another ADD has its id, and is job 2 if it is accepted.
fn again(made: &mut HistoryBuilder, wait_ms: u64, answer: Taken) {
    made.later(wait_ms);
    same(made, 2, Some(answer));
    if answer == Taken::Added {
        let token = made.pop(&[(2, 1)]);
        let What::Pop(pop) = &mut made.history.entries.last_mut().expect("a POP").what else {
            unreachable!("just written");
        };
        pop.answer.as_mut().expect("an answer")[0].id = "j1".to_owned();
        made.ack(1, token, Some(1));
    }
}

#[test]
fn as_long_as_dedupe() {
    type End = fn(&mut HistoryBuilder);
    let ends: [(&str, End); 2] = [
        ("ACK", |made| finish(made, 1)),
        ("NOACK", |made| made.take(1)),
    ];
    for (what, end) in ends {
        for (wait_ms, answer, rules) in [
            (10, Taken::Refused, vec![]),
            (10, Taken::Added, vec![Rule::Condition]),
            (110, Taken::Refused, vec![Rule::Condition]),
            (110, Taken::Added, vec![]),
        ] {
            let mut made = made(0, 100);
            made.add(1, 0);
            end(&mut made);
            again(&mut made, wait_ms, answer);
            assert_eq!(made.found(), rules, "{what}, {answer:?} after {wait_ms} ms");
        }
    }
    // The dedupe window is checked before the length.
    let mut made = made(1, 100);
    made.add(1, 0);
    finish(&mut made, 1);
    made.add(3, 0);
    again(&mut made, 0, Taken::Full);
    finish(&mut made, 3);
    assert_eq!(made.found(), [Rule::Condition]);
}

#[test]
fn what_may_be_remembered() {
    // The ACK was not answered, or a crash may have undone it: both answers are possible.
    for answer in [Taken::Refused, Taken::Added] {
        let mut pen1 = made(0, 100);
        pen1.add(1, 0);
        let token = pen1.pop(&[(1, 1)]);
        pen1.ack(1, token, None);
        again(&mut pen1, 10, answer);
        assert_eq!(pen1.found(), [], "{answer:?}, the ACK unanswered");

        let mut pen2 = made(0, 100);
        pen2.add(1, 0);
        finish(&mut pen2, 1);
        pen2.crash(Kept::Before(0));
        again(&mut pen2, 10, answer);
        assert_eq!(pen2.found(), [], "{answer:?} after a crash");
    }
}

#[test]
fn del_forgets() {
    for (spares, answer, rules) in [
        (false, Taken::Added, vec![]),
        (false, Taken::Refused, vec![Rule::Condition]),
        // For a reserved job DEL would have removed it from the dedupe window, too.
        (true, Taken::Refused, vec![]),
    ] {
        let mut made = made(0, 100);
        made.add(1, 0);
        finish(&mut made, 1);
        made.write(What::Del(Del {
            ids: vec!["j1".to_owned()],
            spares,
            answer: Some(0),
        }));
        again(&mut made, 10, answer);
        assert_eq!(made.found(), rules, "{answer:?}, UNRESERVED {spares}");
    }
}

#[test]
fn one_job_of_an_id() {
    // Without DEDUPE, too: job 1 is delivered after the other ADD, so it existed then.
    for (answer, rules) in [
        (Some(Taken::Refused), vec![]),
        (Some(Taken::Added), vec![Rule::Lost, Rule::Condition]),
    ] {
        let mut made = HistoryBuilder::new();
        made.add(1, 0);
        same(&mut made, 2, answer);
        made.take(1);
        assert_eq!(made.found(), rules, "{answer:?} beside it");
    }
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    made.take(1);
    same(&mut made, 2, Some(Taken::Refused));
    assert_eq!(made.found(), [Rule::Condition], "after it");
}
