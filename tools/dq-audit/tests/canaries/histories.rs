//! A sound history, and histories that break a rule in one place.

use dq_audit::rule::Rule;
use redis_dq::queue::effect::{
    Change, DeathCause, Effect, How, OccurrenceCause, OfDone, Purge, RemovalCause,
};
use redis_dq::queue::job::Failure;

use crate::effects::*;

/// Jobs of all kinds, and no fault.
pub fn sound() -> Vec<E> {
    let failure = Some(Failure {
        at: T + 160,
        reason: None,
    });
    let cause = DeathCause::Nacked {
        priority: 0,
        failure,
    };
    vec![
        sets(|it| {
            (it.max_reserved, it.dead_len) = (3, 1);
            it.group_limits.is_fifo = true;
            it.group_limits.max_reserved = 1;
        }),
        added("a", T + 50, 2),
        reserved("a", T + 50),
        touched("a", T + 60),
        timed_out("a"),
        reserved("a", T + 160),
        job("a", Change::Died { at: T + 160, cause }),
        kicked("a", T + 170),
        reserved("a", T + 170),
        nacked("a", T + 175, 0),
        reserved("a", T + 175),
        timed_out("a"),
        acked("a"),
        expiring("b", T, 1, T + 400),
        reserved("b", T + 290),
        died("b", T + 390),
        removed("b", RemovalCause::Expired),
        grouped("g1"),
        grouped("g2"),
        reserved("g1", T + 500),
        acked("g1"),
        removed("g2", RemovalCause::Popped),
        recurs("r", 3),
        reserved("r", T + 600),
        recurred("r", OccurrenceCause::Acked, Some(T + 2000)),
        removed("r", RemovalCause::Deleted),
        Effect::Dropped,
        added("a", T, 0),
        reserved("a", T + 700),
        acked("a"),
        Effect::Dropped,
        keeps_done(1),
        added("c", T, 0),
        reserved("c", T + 710),
        done("c", T + 720, T + 740),
        added("d", T, 0),
        reserved("d", T + 721),
        done("d", T + 722, 0),
        done_trimmed(1),
        done_kicked("d", T + 730),
        reserved("d", T + 731),
        done("d", T + 732, T + 750),
        added("e", T, 0),
        reserved("e", T + 760),
        done_gone("d"),
        done("e", T + 761, 0),
        keeps_done(0),
        done_gone("e"),
        Effect::Dropped,
    ]
}

/// What was planted, which rule it breaks, and the history.
pub fn planted() -> Vec<(&'static str, Rule, Vec<E>)> {
    use Rule::*;
    [
        (NeverEarly, never_early()),
        (OneLease, one_lease()),
        (TokensGrow, tokens_grow()),
        (AttemptsCount, attempts_count()),
        (AttemptsEnd, attempts_end()),
        (StaleNeverActs, stale_never_acts()),
        (NothingLost, nothing_lost()),
        (NothingFromNowhere, nothing_from_nowhere()),
        (InTurn, in_turn()),
        (WithinMax, within_max()),
        (OccurrencesGrow, occurrences_grow()),
    ]
    .into_iter()
    .flat_map(|(rule, planted)| {
        planted
            .into_iter()
            .map(move |(what, history)| (what, rule, history))
    })
    .collect()
}

type Planted = Vec<(&'static str, Vec<E>)>;

fn never_early() -> Planted {
    vec![
        ("early", vec![added("a", T + 50, 0), reserved("a", T + 49)]),
        (
            "taken early",
            vec![
                added("a", T + 50, 0),
                removed("a", RemovalCause::Popped),
                added("b", T, 0),
                reserved("b", T + 10),
            ],
        ),
    ]
}

fn one_lease() -> Planted {
    vec![
        (
            "twice",
            vec![added("a", T, 0), reserved("a", T), reserved("a", T + 5)],
        ),
        (
            "again before its lease's end",
            vec![
                added("a", T, 0),
                reserved("a", T),
                timed_out("a"),
                reserved("a", T + 99),
            ],
        ),
        (
            "a lease cut short",
            vec![
                added("a", T, 0),
                reserved("a", T),
                timed_out("a"),
                added("b", T, 0),
                reserved("b", T + 99),
            ],
        ),
        (
            "a lease that never ends",
            [vec![added("a", T, 0), reserved("a", T)], others(1..=13)].concat(),
        ),
        (
            "a lease that ends when all has gone on without it",
            [
                vec![added("a", T, 0), reserved("a", T)],
                others(1..=13),
                vec![timed_out("a")],
            ]
            .concat(),
        ),
        (
            "dead at another instant",
            vec![added("a", T, 1), reserved("a", T), died("a", T + 99)],
        ),
    ]
}

fn tokens_grow() -> Planted {
    vec![
        (
            "the same token",
            vec![
                added("a", T, 0),
                reserved("a", T),
                added("b", T, 0),
                reserved("b", T),
            ],
        ),
        (
            "a token of a queue that is gone",
            vec![
                added("a", T, 0),
                reserved("a", T + 9),
                acked("a"),
                Effect::Dropped,
                added("a", T, 0),
                reserved("a", T + 8),
            ],
        ),
    ]
}

fn attempts_count() -> Planted {
    vec![(
        "attempts jump",
        vec![added("a", T, 9), reserved("a", T), nacked("a", T, 3)],
    )]
}

fn attempts_end() -> Planted {
    vec![
        (
            "goes on after its last",
            vec![added("a", T, 1), reserved("a", T), timed_out("a")],
        ),
        (
            "given back after its last",
            vec![added("a", T, 1), reserved("a", T), nacked("a", T, 1)],
        ),
    ]
}

fn stale_never_acts() -> Planted {
    vec![
        ("acked by nobody", vec![added("a", T, 0), acked("a")]),
        (
            "acked after it was given back",
            vec![
                added("a", T, 0),
                reserved("a", T),
                nacked("a", T, 1),
                acked("a"),
            ],
        ),
        (
            "touched after its end",
            vec![added("a", T, 0), reserved("a", T), touched("a", T + 101)],
        ),
        (
            "done by nobody",
            vec![keeps_done(9), added("a", T, 0), done("a", T, 0)],
        ),
    ]
}

fn nothing_lost() -> Planted {
    vec![
        (
            "the key goes with a job",
            vec![added("a", T, 0), Effect::Dropped],
        ),
        (
            "expired without a TTL",
            vec![added("a", T, 0), removed("a", RemovalCause::Expired)],
        ),
        (
            "expired before its TTL",
            vec![
                expiring("a", T, 0, T + 50),
                removed("a", RemovalCause::Expired),
                added("b", T, 0),
                reserved("b", T + 49),
            ],
        ),
        (
            "dead with attempts left",
            vec![added("a", T, 2), reserved("a", T), died("a", T + 100)],
        ),
        (
            "dead beyond no DEADLEN",
            vec![
                added("a", T, 1),
                reserved("a", T),
                died("a", T + 100),
                Effect::Purged(Purge::Trim { count: 1 }),
            ],
        ),
        (
            "a rule ends",
            vec![
                recurs("r", 0),
                reserved("r", T),
                recurred("r", OccurrenceCause::Acked, None),
            ],
        ),
        (
            "a done job lost",
            vec![
                keeps_done(9),
                added("a", T, 0),
                reserved("a", T),
                done("a", T + 1, 0),
                done_gone("a"),
            ],
        ),
        (
            "a done job gone before its time",
            vec![
                keeps_done(9),
                added("a", T, 0),
                reserved("a", T),
                done("a", T + 1, T + 50),
                done_gone("a"),
                added("b", T, 0),
                reserved("b", T + 10),
            ],
        ),
        (
            "more done jobs trimmed than are too many",
            vec![
                keeps_done(2),
                added("a", T, 0),
                reserved("a", T),
                done("a", T + 1, 0),
                done_trimmed(1),
            ],
        ),
    ]
}

fn nothing_from_nowhere() -> Planted {
    vec![
        (
            "ended twice",
            vec![added("a", T, 0), reserved("a", T), acked("a"), acked("a")],
        ),
        ("never added", vec![reserved("a", T)]),
        (
            "delivered after its end",
            vec![
                added("a", T, 0),
                reserved("a", T),
                acked("a"),
                reserved("a", T + 5),
            ],
        ),
        (
            "delivered after its TTL",
            vec![expiring("a", T, 0, T + 5), reserved("a", T + 7)],
        ),
        ("kicked alive", vec![added("a", T, 0), kicked("a", T)]),
        (
            "a done job run twice",
            vec![
                keeps_done(9),
                added("a", T, 0),
                reserved("a", T),
                done("a", T + 1, 0),
                done_kicked("a", T + 2),
                done_kicked("a", T + 2),
            ],
        ),
    ]
}

fn two_of_a_group(fifo: bool, max: u64, then: &[E]) -> Vec<E> {
    let two = [fifo_and_max(fifo, max), grouped("a"), grouped("b")];
    [&two, then].concat()
}

fn in_turn() -> Planted {
    vec![
        (
            "before others of its group",
            two_of_a_group(true, 0, &[reserved("b", T)]),
        ),
        (
            "beside another of its group",
            two_of_a_group(true, 0, &[reserved("a", T), reserved("b", T + 1)]),
        ),
        (
            "taken before others of its group",
            two_of_a_group(true, 0, &[removed("b", RemovalCause::Popped)]),
        ),
    ]
}

fn within_max() -> Planted {
    vec![
        (
            "more than MAXRESERVED",
            vec![
                sets(|it| it.max_reserved = 1),
                added("a", T, 0),
                added("b", T, 0),
                reserved("a", T),
                reserved("b", T + 1),
            ],
        ),
        (
            "more than GROUPMAX",
            two_of_a_group(false, 1, &[reserved("a", T), reserved("b", T + 1)]),
        ),
        (
            "more than its group's own MAX",
            two_of_a_group(
                false,
                5,
                &[
                    own(|it| it.max_reserved = Some(1)),
                    reserved("a", T),
                    reserved("b", T + 1),
                ],
            ),
        ),
        (
            "more than RATE",
            [vec![rated(false)], served([0, 5, 8])].concat(),
        ),
        (
            "more than GROUPRATE",
            [vec![rated(true)], served([0, 5, 8])].concat(),
        ),
        (
            "more than its group's own RATE",
            [vec![own(|it| it.rate = Some(RATE))], served([0, 5, 8])].concat(),
        ),
        (
            "a larger cost than RATE",
            [vec![rated(false)], served_costly([0, 8])].concat(),
        ),
        (
            "a larger cost than GROUPRATE",
            [vec![rated(true)], served_costly([0, 8])].concat(),
        ),
    ]
}

fn occurrences_grow() -> Planted {
    vec![
        (
            "the same occurrence",
            vec![
                recurs("r", 0),
                reserved("r", T),
                recurred("r", OccurrenceCause::Acked, Some(T)),
            ],
        ),
        (
            "beside its grid",
            vec![
                recurs("r", 0),
                reserved("r", T),
                recurred("r", OccurrenceCause::Acked, Some(T + 1001)),
            ],
        ),
        (
            "once too often",
            vec![
                recurs("r", 1),
                reserved("r", T),
                recurred("r", OccurrenceCause::Acked, Some(T + 1000)),
            ],
        ),
    ]
}

/// The history, with all its instants a thousand seconds later.
pub fn later(history: Vec<E>) -> Vec<E> {
    const ON: u64 = 1_000_000;
    let mut history = history;
    let move_on = |instant: &mut u64| *instant += if *instant == 0 { 0 } else { ON };
    for effect in &mut history {
        match effect {
            Effect::Came(came) => match &mut came.how {
                How::New { due, expires } => {
                    move_on(due);
                    move_on(expires);
                }
                How::Recurs { first, .. } => {
                    move_on(&mut first.occurrence);
                    move_on(&mut first.due);
                }
                _ => {}
            },
            Effect::Recurred {
                next: Some(next), ..
            } => {
                move_on(&mut next.occurrence);
                move_on(&mut next.due);
            }
            Effect::Done(OfDone::Kept { end, .. }) => {
                move_on(&mut end.finished);
                move_on(&mut end.until);
            }
            Effect::Done(OfDone::Kicked { due, .. }) => move_on(due),
            Effect::Job { change, .. } => match change {
                Change::Reserved {
                    token, deadline, ..
                } => {
                    *token += ON << 20;
                    move_on(deadline);
                }
                Change::Touched { deadline, .. } => move_on(deadline),
                Change::Nacked { due, .. } | Change::Kicked { due } => move_on(due),
                Change::Died { at, .. } => move_on(at),
                _ => {}
            },
            _ => {}
        }
    }
    history
}
