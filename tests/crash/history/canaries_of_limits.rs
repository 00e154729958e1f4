//! As canaries.rs: histories in which more jobs were out than MAXRESERVED or GROUPMAX allows.

use super::check::Rule;
use super::pen::Pen;
use super::{Bounds, Kept, Kind, Which};

/// Jobs of a group, and of none, under these limits.
fn pen(max_reserved: u64, group_max: u64) -> Pen {
    let mut pen = Pen::new();
    let bounds = Bounds {
        max_reserved,
        group_max,
        ..Bounds::default()
    };
    pen.history.bounds.insert("q".to_owned(), bounds);
    for serial in 1..=4 {
        pen.add(serial, 0).group = (serial <= 3).then(|| "g".to_owned());
    }
    pen
}

/// Out until the clock is moved on; the token.
fn out(pen: &mut Pen, serial: u64) -> u64 {
    pen.pop(&[(serial, 1)])
}

fn is_noticed(pen: &Pen) -> bool {
    pen.found().contains(&Rule::WithinMax)
}

#[test]
fn more_than_are_allowed() {
    for (max_reserved, group_max, noticed_at) in [
        (2, 0, 3),
        (0, 1, 2),
        (0, 2, 3),
        (0, 3, 5),
        (4, 0, 5),
        (3, 3, 4),
    ] {
        let mut pen = pen(max_reserved, group_max);
        for serial in 1..=4 {
            out(&mut pen, serial);
            assert_eq!(
                is_noticed(&pen),
                serial >= noticed_at,
                "{serial} beside others, {max_reserved} and {group_max}"
            );
        }
        // Of a queue without limits nothing is told.
        pen.history.bounds.clear();
        assert!(!is_noticed(&pen));
    }
    // All at a time.
    let mut at_once = pen(2, 0);
    at_once.pop(&[(1, 1), (2, 1), (3, 1)]);
    assert!(is_noticed(&at_once));
}

/// A lease that was prolonged goes on.
#[test]
fn more_than_are_allowed_by_a_touch() {
    for (ttr_ms, noticed) in [(500, true), (50, false)] {
        let mut pen = pen(1, 0);
        let token = out(&mut pen, 1);
        pen.touch(1, token, ttr_ms);
        pen.later(60);
        out(&mut pen, 2);
        assert_eq!(is_noticed(&pen), noticed, "{ttr_ms} ms");
    }
}

/// What may have ended by then is beside nothing.
#[test]
fn more_than_are_allowed_only_where_it_is_certain() {
    type Step = fn(&mut Pen, u64);
    let steps: [(&str, Step); 8] = [
        ("nothing", |_, _| {}),
        ("its lease's end", |pen, _| pen.later(100)),
        ("an ACK", |pen, token| pen.ack(1, token, Some(1))),
        ("an ACK unanswered", |pen, token| pen.ack(1, token, None)),
        ("a NACK", |pen, token| pen.nack(1, token, Kind::Fail, 500)),
        ("a RESCHEDULE", |pen, _| pen.reschedule(1, 0)),
        ("a purge", |pen, _| pen.purge(Which::Reserved, None)),
        ("a crash", |pen, _| pen.crash(Kept::All)),
    ];
    for (name, step) in steps {
        let mut pen = pen(1, 0);
        let token = out(&mut pen, 1);
        step(&mut pen, token);
        out(&mut pen, 2);
        assert_eq!(is_noticed(&pen), name == "nothing", "{name}");
    }
}
