//! As canaries.rs: histories in which more jobs were reserved than MAXRESERVED or GROUPMAX allows, and settings of groups
//! that were lost.

use super::builder::HistoryBuilder;
use super::check::Rule;
use super::{Bounds, Kept, Kind, Set, What, Which, OWNER};

/// Jobs of a group and jobs of none, under these limits.
fn made(max_reserved: u64, group_max: u64) -> HistoryBuilder {
    let mut made = HistoryBuilder::new();
    let bounds = Bounds {
        max_reserved,
        group_max,
        ..Bounds::default()
    };
    made.history.bounds.insert("q".to_owned(), bounds);
    for serial in 1..=4 {
        made.add(serial, 0).group = (serial <= 3).then(|| "g".to_owned());
    }
    made
}

/// Delivers a job, reserved until the clock advances; returns its token.
fn out(made: &mut HistoryBuilder, serial: u64) -> u64 {
    made.pop(&[(serial, 1)])
}

fn is_noticed(made: &HistoryBuilder) -> bool {
    made.found().contains(&Rule::WithinMax)
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
        let mut made = made(max_reserved, group_max);
        for serial in 1..=4 {
            out(&mut made, serial);
            assert_eq!(
                is_noticed(&made),
                serial >= noticed_at,
                "{serial} beside others, {max_reserved} and {group_max}"
            );
        }
        // A queue without bounds is not checked.
        made.history.bounds.clear();
        assert!(!is_noticed(&made));
    }
    // All in one answer.
    let mut at_once = made(2, 0);
    at_once.pop(&[(1, 1), (2, 1), (3, 1)]);
    assert!(is_noticed(&at_once));
}

/// A lease that was prolonged is still live.
#[test]
fn more_than_are_allowed_by_a_touch() {
    for (ttr_ms, noticed) in [(500, true), (50, false)] {
        let mut made = made(1, 0);
        let token = out(&mut made, 1);
        made.touch(1, token, ttr_ms);
        made.later(60);
        out(&mut made, 2);
        assert_eq!(is_noticed(&made), noticed, "{ttr_ms} ms");
    }
}

/// A job that may have ended does not count.
#[test]
fn more_than_are_allowed_only_where_it_is_certain() {
    type Step = fn(&mut HistoryBuilder, u64);
    let steps: [(&str, Step); 8] = [
        ("nothing", |_, _| {}),
        ("its lease's end", |made, _| made.later(100)),
        ("an ACK", |made, token| made.ack(1, token, Some(1))),
        ("an ACK unanswered", |made, token| made.ack(1, token, None)),
        ("a NACK", |made, token| made.nack(1, token, Kind::Fail, 500)),
        ("a RESCHEDULE", |made, _| made.reschedule(1, 0)),
        ("a purge", |made, _| made.purge(Which::Reserved, None)),
        ("a crash", |made, _| made.crash(Kept::All)),
    ];
    for (name, step) in steps {
        let mut made = made(1, 0);
        let token = out(&mut made, 1);
        step(&mut made, token);
        out(&mut made, 2);
        assert_eq!(is_noticed(&made), name == "nothing", "{name}");
    }
}

/// What a group has of its own holds for it alone, in place of GROUPMAX.
#[test]
fn more_than_a_group_is_allowed() {
    for (own, group_max, noticed_at) in [(1, 0, 2), (1, 2, 2), (3, 1, 5), (0, 1, 2)] {
        for (name, is_owner) in [(OWNER, true), ("other", false)] {
            let mut made = made(0, group_max);
            let bounds = made.history.bounds.get_mut("q").expect("bounds");
            bounds.own.max = own;
            for entry in &mut made.history.entries {
                if let What::Add(add) = &mut entry.what {
                    add.group = add.group.as_ref().map(|_| name.to_owned());
                }
            }
            for serial in 1..=4 {
                out(&mut made, serial);
                let noticed_at = match (is_owner, group_max) {
                    (true, _) => noticed_at,
                    (false, 0) => 5,
                    (false, most) => most + 1,
                };
                assert_eq!(is_noticed(&made), serial >= noticed_at, "{own} {group_max}");
            }
        }
    }
}

/// What was answered is there at the end, or something later; what was not may be.
#[test]
fn settings_that_are_lost() {
    for (own, keeps, lost) in [
        (0, Kept::All, true),
        (5, Kept::All, true),
        (6, Kept::All, false),
        (7, Kept::All, false),
        (8, Kept::All, true),
        (5, Kept::Before(2000), false),
        (0, Kept::Before(2000), true),
    ] {
        let mut made = HistoryBuilder::new();
        for (value, answer) in [(5, Some(())), (6, Some(())), (7, None)] {
            let group = "own".to_owned();
            made.write(What::Set(Set {
                group,
                value,
                answer,
            }));
        }
        made.crash(keeps);
        made.write(What::Own("own".to_owned(), own));
        let rules = if lost { vec![Rule::Setting] } else { vec![] };
        assert_eq!(made.found(), rules, "{own} with {keeps:?}");
    }
}

/// Deliveries of these costs, at these milliseconds, with RATE of 10 in 20 ms.
#[test]
fn more_than_a_window_holds() {
    type Case = ([(u64, u32); 3], bool);
    let cases: [Case; 7] = [
        ([(0, 4), (4, 5), (8, 1)], false),
        ([(0, 4), (4, 5), (8, 2)], true),
        ([(0, 4), (4, 5), (20, 2)], false),
        ([(0, 1), (4, 8), (20, 3)], true),
        ([(0, 99), (20, 10), (22, 1)], true),
        ([(0, 99), (20, 10), (40, 1)], false),
        ([(0, 1), (2, 99), (30, 1)], true),
    ];
    for (costs, noticed) in cases {
        let made = metered(costs, |_, _, _| {});
        assert_eq!(made.found() == [Rule::Window], noticed, "{costs:?}");
        assert!(noticed || made.found().is_empty(), "{costs:?}");
    }
    // A restart empties the window.
    let crash = |made: &mut HistoryBuilder, _, _| made.crash(Kept::All);
    assert!(metered([(0, 9), (4, 9), (8, 9)], crash).found().is_empty());
}

/// A group's own window counts its jobs alone.
#[test]
fn more_than_a_window_of_a_group_holds() {
    for (group, noticed) in [(Some(OWNER), true), (Some("other"), false), (None, false)] {
        let mut made = metered([(0, 4), (4, 5), (8, 2)], |_, _, _| {});
        let bounds = made.history.bounds.get_mut("q").expect("bounds");
        (bounds.own.rate, bounds.rate) = (bounds.rate, (0, 0));
        for entry in &mut made.history.entries {
            if let What::Add(add) = &mut entry.what {
                add.group = group.map(str::to_owned);
            }
        }
        assert_eq!(made.found() == [Rule::Window], noticed, "{group:?}");
    }
}

/// A TOUCH may change the cost of a delivery later.
#[test]
fn more_than_a_window_holds_but_for_a_touch() {
    for (cost, noticed) in [(Some(1), false), (Some(2), true), (None, true)] {
        let made = metered([(0, 9), (4, 1), (8, 8)], |made, serial, token| {
            if serial == 1 {
                made.touch(serial, token, 100).cost = cost;
            }
        });
        assert_eq!(made.found() == [Rule::Window], noticed, "{cost:?}");
    }
}

/// Jobs of these costs are delivered at these instants; `then` is called after each.
fn metered(costs: [(u64, u32); 3], then: impl Fn(&mut HistoryBuilder, u64, u64)) -> HistoryBuilder {
    let mut made = HistoryBuilder::new();
    let bounds = Bounds {
        rate: (10, 20),
        ..Bounds::default()
    };
    made.history.bounds.insert("q".to_owned(), bounds);
    for (serial, (_, cost)) in (1..).zip(costs) {
        made.add(serial, 0).cost = cost;
    }
    let begun = made.now_ms;
    let mut tokens = Vec::new();
    for (serial, (at, _)) in (1..).zip(costs) {
        made.now_ms = begun + at;
        let token = made.pop(&[(serial, 1)]);
        then(&mut made, serial, token);
        tokens.push((serial, token));
    }
    for (serial, token) in tokens {
        made.ack(serial, token, Some(1));
    }
    made
}
