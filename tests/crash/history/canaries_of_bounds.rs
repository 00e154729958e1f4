//! Histories of queues with MAXLEN and DEDUPE, valid and invalid ones.

use super::check::Rule;
use super::pen::Pen;
use super::{Add, Bounds, Del, Kept, Taken, What};

fn pen(max_len: u64, dedupe_ms: u64) -> Pen {
    let mut pen = Pen::new();
    let bounds = Bounds {
        max_len,
        dedupe_ms,
        ..Bounds::default()
    };
    pen.history.bounds.insert("q".to_owned(), bounds);
    pen
}

/// The job is delivered and acknowledged.
fn finish(pen: &mut Pen, serial: u64) {
    let token = pen.pop(&[(serial, 1)]);
    pen.ack(serial, token, Some(1));
}

#[test]
fn as_many_as_maxlen() {
    for (there, full) in [(0, false), (1, false), (2, true)] {
        for answer in [Taken::Full, Taken::Added] {
            let mut pen = pen(2, 0);
            for serial in 1..=there {
                pen.add(serial, 0);
            }
            pen.add(9, 0).answer = Some(answer);
            (1..=there).for_each(|serial| finish(&mut pen, serial));
            if answer == Taken::Added {
                finish(&mut pen, 9);
            }
            let right = full == (answer == Taken::Full);
            let rules = if right { vec![] } else { vec![Rule::Length] };
            assert_eq!(pen.found(), rules, "{answer:?} beside {there} of 2");
        }
    }
}

/// An ADD is accepted while a job that is acknowledged later takes the place.
#[test]
fn a_job_at_work_takes_a_place() {
    for (answer, rules) in [(Some(1), vec![Rule::Length]), (Some(0), vec![])] {
        let mut pen = pen(1, 0);
        // Its TTL may have removed it, unless the ACK shows that it was still there.
        pen.add(1, 0).ttl_ms = Some(2);
        let token = pen.pop(&[(1, 1)]);
        pen.add(2, 0);
        pen.ack(1, token, answer);
        finish(&mut pen, 2);
        let found = pen.found();
        let of_length = found.into_iter().filter(|rule| *rule == Rule::Length);
        assert_eq!(of_length.collect::<Vec<Rule>>(), rules, "{answer:?}");
    }
}

#[test]
fn what_takes_a_place() {
    type Change = fn(&mut Pen);
    let changes: [(&str, Change, bool); 5] = [
        ("acknowledged", |pen| finish(pen, 1), false),
        ("taken", |pen| pen.take(1), false),
        ("reserved", |pen| _ = pen.pop(&[(1, 1)]), true),
        (
            "acknowledged, perhaps",
            |pen| {
                let token = pen.pop(&[(1, 1)]);
                pen.ack(1, token, None);
            },
            true,
        ),
        ("ready", |_| {}, true),
    ];
    for (what, change, takes) in changes {
        let mut pen = pen(1, 0);
        pen.add(1, 0);
        change(&mut pen);
        pen.add(2, 0).answer = Some(Taken::Full);
        if takes {
            pen.later(200);
            let attempts = if what == "ready" { 1 } else { 2 };
            let token = pen.pop(&[(1, attempts)]);
            pen.ack(1, token, Some(1));
        }
        let rules = if takes { vec![] } else { vec![Rule::Length] };
        assert_eq!(pen.found(), rules, "{what}");
    }
}

/// What a crash undoes counts before the crash, and not after it.
#[test]
fn what_a_crash_takes_back_takes_a_place() {
    for (after, rules) in [(false, vec![]), (true, vec![Rule::Length])] {
        let mut pen = pen(1, 0);
        pen.add(1, 0);
        if after {
            pen.crash(Kept::Before(0));
        }
        pen.add(2, 0).answer = Some(Taken::Full);
        if !after {
            pen.crash(Kept::Before(0));
        }
        assert_eq!(pen.found(), rules, "refused after the crash: {after}");
    }
}

#[test]
fn what_was_refused_does_not_come() {
    let mut pen = pen(1, 0);
    pen.add(1, 0);
    pen.add(2, 0).answer = Some(Taken::Full);
    finish(&mut pen, 1);
    assert_eq!(pen.found(), []);
    finish(&mut pen, 2);
    assert_eq!(pen.found(), [Rule::Unexpected]);
}

/// An ADD with NX that uses the id of job 1.
fn same(pen: &mut Pen, serial: u64, answer: Option<Taken>) {
    let add: &mut Add = pen.add(serial, 0);
    add.id = Some("j1".to_owned());
    add.only = false;
    add.answer = answer;
}

/// Job 1 is finished; later another ADD has its id, and is job 2 if it is accepted.
fn again(pen: &mut Pen, wait_ms: u64, answer: Taken) {
    pen.later(wait_ms);
    same(pen, 2, Some(answer));
    if answer == Taken::Added {
        let token = pen.pop(&[(2, 1)]);
        let What::Pop(pop) = &mut pen.history.entries.last_mut().expect("a POP").what else {
            unreachable!("just written");
        };
        pop.answer.as_mut().expect("an answer")[0].id = "j1".to_owned();
        pen.ack(1, token, Some(1));
    }
}

#[test]
fn as_long_as_dedupe() {
    type End = fn(&mut Pen);
    let ends: [(&str, End); 2] = [("ACK", |pen| finish(pen, 1)), ("NOACK", |pen| pen.take(1))];
    for (what, end) in ends {
        for (wait_ms, answer, rules) in [
            (10, Taken::Refused, vec![]),
            (10, Taken::Added, vec![Rule::Condition]),
            (110, Taken::Refused, vec![Rule::Condition]),
            (110, Taken::Added, vec![]),
        ] {
            let mut pen = pen(0, 100);
            pen.add(1, 0);
            end(&mut pen);
            again(&mut pen, wait_ms, answer);
            assert_eq!(pen.found(), rules, "{what}, {answer:?} after {wait_ms} ms");
        }
    }
    // The dedupe window is checked before the length.
    let mut pen = pen(1, 100);
    pen.add(1, 0);
    finish(&mut pen, 1);
    pen.add(3, 0);
    again(&mut pen, 0, Taken::Full);
    finish(&mut pen, 3);
    assert_eq!(pen.found(), [Rule::Condition]);
}

#[test]
fn what_may_be_remembered() {
    // The ACK was not answered, or a crash may have undone it: both answers are possible.
    for answer in [Taken::Refused, Taken::Added] {
        let mut pen1 = pen(0, 100);
        pen1.add(1, 0);
        let token = pen1.pop(&[(1, 1)]);
        pen1.ack(1, token, None);
        again(&mut pen1, 10, answer);
        assert_eq!(pen1.found(), [], "{answer:?}, the ACK unanswered");

        let mut pen2 = pen(0, 100);
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
        let mut pen = pen(0, 100);
        pen.add(1, 0);
        finish(&mut pen, 1);
        pen.write(What::Del(Del {
            ids: vec!["j1".to_owned()],
            spares,
            answer: Some(0),
        }));
        again(&mut pen, 10, answer);
        assert_eq!(pen.found(), rules, "{answer:?}, UNRESERVED {spares}");
    }
}

#[test]
fn one_job_of_an_id() {
    // Without DEDUPE, too: job 1 is delivered after the other ADD, so it existed then.
    for (answer, rules) in [
        (Some(Taken::Refused), vec![]),
        (Some(Taken::Added), vec![Rule::Lost, Rule::Condition]),
    ] {
        let mut pen = Pen::new();
        pen.add(1, 0);
        same(&mut pen, 2, answer);
        pen.take(1);
        assert_eq!(pen.found(), rules, "{answer:?} beside it");
    }
    let mut pen = Pen::new();
    pen.add(1, 0);
    pen.take(1);
    same(&mut pen, 2, Some(Taken::Refused));
    assert_eq!(pen.found(), [Rule::Condition], "after it");
}
