//! What is accepted from a master or a file, to the last number; and the numbers that a server asks a queue for.

use crate::follow::{digest, new_queue, snapshot, Follower};
use dq::queue::add::Add;
use dq::queue::attr::Attrs;
use dq::queue::clock::{Mint, Now};
use dq::queue::configure::paused_shown;
use dq::queue::effect::{Came, Change, DeathCause, Effect, How, Purge, RemovalCause, FOREVER};
use dq::queue::effects::Effects;
use dq::queue::job::{
    Failure, Life, Place, Terms, INSTANT_MAX, LADDER_MAX, RATE_MAX, REASON_MAX, SEQ_MAX, TOKEN_MAX,
};
use dq::queue::settings::{GroupSettings, Rate, Settings};
use dq::queue::state::{NewJob, Rows};
use dq::queue::Queue;
use std::collections::HashSet;

const TERMS: Terms<'static> = Terms {
    priority: 0,
    ttr_ms: 60_000,
    max_attempts: 0,
    rest: Attrs::NONE,
};

fn added(id: &'static [u8]) -> Effect<'static> {
    Effect::Came(Came {
        id,
        payload: b"p",
        terms: TERMS,
        group: None,
        how: How::New {
            due: 1000,
            expires: 0,
        },
    })
}

fn job(id: &'static [u8], change: Change<'static>) -> Effect<'static> {
    Effect::Job { id, change }
}

const RESERVED: Change<'static> = Change::Reserved {
    token: 7,
    deadline: 2000,
    lease_ms: 1000,
};
const DIED: Change<'static> = Change::Died {
    at: 3000,
    cause: DeathCause::TimedOut,
};

/// A queue with one job in each place; a job's id is the name of its place.
fn furnished() -> Queue {
    let mut queue = new_queue(1);
    let story = [
        added(b"scheduled"),
        added(b"reserved"),
        added(b"dead"),
        job(b"reserved", RESERVED),
        job(b"dead", DIED),
    ];
    story.iter().for_each(|effect| queue.apply(effect).unwrap());
    queue
}

fn takes(effect: &Effect<'_>) -> bool {
    let mut queue = furnished();
    let before = digest(&queue);
    let taken = queue.apply(effect).is_ok();
    assert!(
        taken || digest(&queue) == before,
        "refused, and yet changed: {effect:?}"
    );
    queue.check_invariants().unwrap();
    taken
}

/// The effect is accepted with the number at its bound, and refused with the next number.
fn is_bounded_by(bound: u64, effect: impl Fn(u64) -> Effect<'static>) {
    let at = effect(bound);
    assert!(takes(&at), "refused: {at:?}");
    let past = effect(bound + 1);
    assert!(!takes(&past), "taken: {past:?}");
}

#[test]
fn each_change_is_taken_only_where_the_job_is_in_a_place_for_it() {
    let nacked = Change::Nacked {
        due: 1,
        priority: 0,
        attempts: 1,
        failure: None,
    };
    let touched = Change::Touched {
        deadline: 1,
        lease_ms: 1,
    };
    let removed = Change::Removed {
        cause: RemovalCause::Deleted,
        remember: 0,
    };
    // scheduled, reserved, dead
    let fits = [
        (RESERVED, [true, false, false]),
        (touched, [false, true, false]),
        (Change::TimedOut, [false, true, false]),
        (nacked, [true, true, false]),
        (DIED, [true, true, false]),
        (Change::Rescheduled { due: 1 }, [true, false, false]),
        (Change::Kicked { due: 1 }, [false, false, true]),
        (removed, [true, true, true]),
    ];
    for (change, taken) in fits {
        let ids: [&[u8]; 3] = [b"scheduled", b"reserved", b"dead"];
        for (id, taken) in ids.into_iter().zip(taken) {
            assert_eq!(takes(&job(id, change)), taken, "{id:?} {change:?}");
        }
        assert!(!takes(&job(b"nobody", change)));
    }
}

#[test]
fn changes_end_at_the_last_instant_and_the_last_token() {
    let on =
        |id: &'static [u8], change: fn(u64) -> Change<'static>| move |n: u64| job(id, change(n));
    let reserved = |token, deadline, lease_ms| Change::Reserved {
        token,
        deadline,
        lease_ms,
    };
    is_bounded_by(TOKEN_MAX, |n| job(b"scheduled", reserved(n, 1, 1)));
    assert!(!takes(&job(b"scheduled", reserved(0, 1, 1))));
    is_bounded_by(INSTANT_MAX, |n| job(b"scheduled", reserved(1, n, 1)));
    is_bounded_by(INSTANT_MAX, |n| job(b"scheduled", reserved(1, 1, n)));
    let touched = |deadline, lease_ms| Change::Touched { deadline, lease_ms };
    is_bounded_by(INSTANT_MAX, |n| job(b"reserved", touched(n, 1)));
    is_bounded_by(INSTANT_MAX, |n| job(b"reserved", touched(1, n)));
    let nacked = |due| Change::Nacked {
        due,
        priority: 0,
        attempts: 1,
        failure: None,
    };
    is_bounded_by(INSTANT_MAX, on(b"reserved", nacked));
    let failed = |failure| {
        [
            Change::Nacked {
                due: 1,
                priority: 0,
                attempts: 1,
                failure,
            },
            Change::Died {
                at: 1,
                cause: DeathCause::Nacked {
                    priority: 0,
                    failure,
                },
            },
        ]
    };
    for which in 0..2 {
        let failed = |failure| job(b"reserved", failed(Some(failure))[which]);
        is_bounded_by(INSTANT_MAX, |at| failed(Failure { at, reason: None }));
        is_bounded_by(REASON_MAX as u64, |len| {
            let reason = Some(&*vec![b'r'; len as usize].leak());
            failed(Failure { at: 1, reason })
        });
    }
    let died = |at| Change::Died {
        at,
        cause: DeathCause::TimedOut,
    };
    is_bounded_by(INSTANT_MAX, on(b"reserved", died));
    is_bounded_by(
        INSTANT_MAX,
        on(b"scheduled", |due| Change::Rescheduled { due }),
    );
    is_bounded_by(INSTANT_MAX, on(b"dead", |due| Change::Kicked { due }));
    let removed = |remember| Change::Removed {
        cause: RemovalCause::Acked,
        remember,
    };
    is_bounded_by(INSTANT_MAX, on(b"reserved", removed));
}

/// An added job with these numbers in its fields.
fn added_with(due: u64, expires: u64, ttr_ms: u64) -> Effect<'static> {
    Effect::Came(Came {
        id: b"new",
        payload: b"",
        terms: Terms { ttr_ms, ..TERMS },
        group: None,
        how: How::New { due, expires },
    })
}

#[test]
fn an_added_job_ends_at_the_last_instant() {
    is_bounded_by(INSTANT_MAX, |n| added_with(n, 0, 1));
    is_bounded_by(INSTANT_MAX, |n| added_with(0, n, 1));
    is_bounded_by(INSTANT_MAX, |n| added_with(0, 0, n));
    assert!(!takes(&added_with(0, 0, 0)), "a lease of no length");
    let ladder = |steps: u64, ms: u64| {
        Effect::Came(Came {
            id: b"new",
            payload: b"",
            terms: Terms {
                rest: Attrs::NONE.with_backoff(&vec![ms; steps as usize]),
                ..TERMS
            },
            group: None,
            how: How::New { due: 0, expires: 0 },
        })
    };
    is_bounded_by(LADDER_MAX as u64, |n| ladder(n, 1));
    is_bounded_by(INSTANT_MAX, |n| ladder(1, n));
    assert!(!takes(&ladder(1, 0)), "a step of no length");
}

#[test]
fn a_stored_job_must_not_contradict_itself() {
    let stored = |place, seq, due, life| stored(b"new", place, seq, due, life);
    let none = Life::default();
    let leased = Life {
        token: 1,
        at: 5,
        lease_ms: 9,
        ..none
    };
    let died = Life {
        at: 5,
        death: 9,
        ..none
    };
    // A life as stored: scheduled, reserved, dead.
    let fits = [
        (none, [true, false, true]),
        (leased, [false, true, true]),
        (died, [false, false, true]),
        (Life { at: 0, ..leased }, [true, true, true]),
        (Life { death: 1, ..leased }, [false, false, true]),
        (Life { death: 1, ..none }, [false, false, true]),
    ];
    for (life, taken) in fits {
        let places = [Place::Scheduled, Place::Reserved, Place::Dead];
        for (place, taken) in places.into_iter().zip(taken) {
            let effect = stored(place, 1 << 20, 1, life);
            assert_eq!(takes(&effect), taken, "{effect:?}");
        }
    }
    let (scheduled, reserved, dead) = (Place::Scheduled, Place::Reserved, Place::Dead);
    is_bounded_by(SEQ_MAX, |n| stored(scheduled, n, 1, none));
    is_bounded_by(INSTANT_MAX, |n| stored(scheduled, 1, n, none));
    is_bounded_by(INSTANT_MAX, |n| {
        stored(scheduled, 1, 1, Life { expires: n, ..none })
    });
    is_bounded_by(INSTANT_MAX, |n| {
        stored(reserved, 1, 1, Life { at: n, ..leased })
    });
    is_bounded_by(INSTANT_MAX, |n| {
        stored(
            reserved,
            1,
            1,
            Life {
                lease_ms: n,
                ..leased
            },
        )
    });
    is_bounded_by(TOKEN_MAX, |n| {
        stored(reserved, 1, 1, Life { token: n, ..leased })
    });
    is_bounded_by(SEQ_MAX, |n| stored(dead, 1, 1, Life { death: n, ..died }));
}

/// A stored job with its places in the orders of adding and of dying, which two dumps may give differently.
fn stored(id: &[u8], place: Place, seq: u64, due: u64, life: Life) -> Effect<'static> {
    let mut rows = Rows::default();
    rows.push(&NewJob {
        seq,
        place,
        life,
        ..NewJob::scheduled(id, b"", (due, 0), &TERMS)
    });
    let rows = rows.bytes().to_vec().leak();
    Effect::Rows { rows }
}

fn queue_of(effects: &[Effect<'_>]) -> Queue {
    let mut queue = new_queue(1);
    effects.iter().for_each(|it| queue.apply(it).unwrap());
    queue
}

#[test]
fn jobs_that_share_a_number_are_found() {
    let (none, scheduled) = (Life::default(), Place::Scheduled);
    let added = |a, b, c| {
        let ids: [(&'static [u8], u64); 3] = [(b"a", a), (b"b", b), (b"c", c)];
        let effects = ids.map(|(id, seq)| stored(id, scheduled, seq, 1, none));
        queue_of(&effects).has_distinct_numbers()
    };
    assert!(added(1, 2, 3) && added(3, 1, 2));
    assert!(!added(1, 1, 2) && !added(2, 1, 2) && !added(2, 2, 2));
    let died = |a, b| {
        let life = |death| Life {
            at: 5,
            death,
            ..none
        };
        let effects = [(&b"a"[..], 1, a), (&b"b"[..], 2, b)]
            .map(|(id, seq, death)| stored(id, Place::Dead, seq, 1, life(death)));
        queue_of(&effects).has_distinct_numbers()
    };
    assert!(died(1, 2) && died(2, 1) && !died(2, 2));
}

/// Numbers of the orders are assigned anew when they reach their bound, and a snapshot written then can be read.
#[test]
fn numbers_begin_anew_at_their_end() {
    let order = |last: u64| {
        let dead = |death| Life {
            at: 5,
            death,
            ..Life::default()
        };
        let none = Life::default();
        let mut queue = queue_of(&[
            stored(b"d", Place::Dead, last - 9, 1, dead(last)),
            stored(b"c", Place::Dead, last - 8, 1, dead(last - 3)),
            stored(b"a", Place::Scheduled, last, 1000, none),
            stored(b"b", Place::Scheduled, last - 5, 1000, none),
            Effect::Floors {
                seq: last,
                death: last,
                token: 0,
            },
        ]);
        for effect in [added(b"e"), job(b"a", DIED), job(b"b", DIED), added(b"f")] {
            queue.apply(&effect).unwrap();
            queue.check_invariants().unwrap();
        }
        let read = Follower::of_snapshot(2, Mint::new(), &snapshot(&queue)).unwrap();
        assert_eq!(digest(&read.queue), digest(&queue));
        digest(&queue)
    };
    assert_eq!(order(SEQ_MAX), order(100));
    assert_eq!(order(SEQ_MAX - 1), order(100));
}

/// A job whose lease expires is placed among others of its due time: before those that were added later.
#[test]
fn the_digest_sees_the_order_of_adding_across_lists_and_not_the_numbers() {
    let leased = Life {
        token: 1,
        at: 5,
        lease_ms: 9,
        ..Life::default()
    };
    let ids: [&'static [u8]; 8] = [b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h"];
    let digest_of = |seqs: [u64; 8]| {
        let jobs = ids.into_iter().zip(seqs).enumerate();
        let jobs = jobs.map(|(n, (id, seq))| match n % 2 {
            0 => stored(id, Place::Scheduled, seq, 1, Life::default()),
            _ => stored(id, Place::Reserved, seq, 1, leased),
        });
        digest(&queue_of(&jobs.collect::<Vec<_>>()))
    };
    let order = [1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(digest_of(order), digest_of(order.map(|n| n * n + 5)));
    let swapped = (1..8).map(|n| {
        let mut order = order;
        order.swap(n - 1, n);
        order
    });
    let digests: HashSet<u64> = swapped.chain([order]).map(digest_of).collect();
    assert_eq!(digests.len(), 8);
}

fn own(set: impl FnOnce(&mut GroupSettings)) -> Effect<'static> {
    let mut own = GroupSettings::default();
    set(&mut own);
    Effect::Group { name: b"g", own }
}

#[test]
fn floors_pauses_and_memories_end_where_there_is_room_to_go_on() {
    let floors = |seq, death, token| Effect::Floors { seq, death, token };
    is_bounded_by(SEQ_MAX, |n| floors(n, 0, 0));
    is_bounded_by(SEQ_MAX, |n| floors(0, n, 0));
    is_bounded_by(TOKEN_MAX, |n| floors(0, 0, n));
    is_bounded_by(INSTANT_MAX, |until| Effect::Paused { until });
    assert!(takes(&Effect::Paused { until: FOREVER }));
    is_bounded_by(i64::MAX as u64, |n| own(|own| own.max_reserved = Some(n)));
    is_bounded_by(i64::MAX as u64, |n| own(|own| own.max_len = Some(n)));
    is_bounded_by(INSTANT_MAX, |window_ms| {
        own(|own| {
            own.rate = Some(Some(Rate {
                count: 1,
                window_ms,
            }))
        })
    });
    for (count, window_ms) in [(0, 5), (5, 0)] {
        let rate = Some(Some(Rate { count, window_ms }));
        assert!(!takes(&own(|own| own.rate = rate)));
    }
    is_bounded_by(1000, |n| own(|own| own.weight = Some(n as u32)));
    assert!(!takes(&own(|own| own.weight = Some(0))));
    is_bounded_by(INSTANT_MAX, |n| own(|own| own.paused_until = n));
    assert!(takes(&own(|own| own.paused_until = FOREVER)));
    for name in [&b""[..], &[b'g'; 257]] {
        let own = GroupSettings::default();
        assert!(!takes(&Effect::Group { name, own }));
    }
    is_bounded_by(INSTANT_MAX, |until| Effect::Remembered { id: b"i", until });
    is_bounded_by(INSTANT_MAX, |cut| {
        Effect::Purged(Purge::State { state: None, cut })
    });
}

#[test]
fn settings_end_where_the_contract_says() {
    let with = |change: fn(&mut Settings, u64)| {
        move |n: u64| {
            let mut settings = Settings::default();
            change(&mut settings, n);
            Effect::Configured(settings)
        }
    };
    let rate = |count, window_ms| Some(Rate { count, window_ms });
    is_bounded_by(INSTANT_MAX, with(|it, n| it.ttr_ms = Some(n)));
    is_bounded_by(INSTANT_MAX, with(|it, n| it.dedupe_ms = n));
    is_bounded_by(
        INSTANT_MAX,
        with(|it, n| it.rest = Attrs::NONE.with_backoff(&[n])),
    );
    let ladder = |it: &mut Settings, steps| {
        it.rest = Attrs::NONE.with_backoff(&vec![1; steps as usize]);
    };
    is_bounded_by(LADDER_MAX as u64, with(ladder));
    let count = |it: &mut Settings, n| {
        let (count, window_ms) = (n as u32, 1);
        it.rate = Some(Rate { count, window_ms });
    };
    is_bounded_by(RATE_MAX, with(count));
    let window = |it: &mut Settings, window_ms| {
        it.rate = Some(Rate {
            count: 1,
            window_ms,
        });
    };
    is_bounded_by(INSTANT_MAX, with(window));
    for refused in [rate(0, 1), rate(1, 0)] {
        let settings = Settings {
            rate: refused,
            ..Settings::default()
        };
        assert!(!takes(&Effect::Configured(settings)), "{refused:?}");
    }
    let nothing = with(|it, n| it.ttr_ms = Some(n))(0);
    assert!(!takes(&nothing), "a lease of no length");
}

#[test]
fn a_queue_tells_the_largest_numbers_it_has_seen() {
    let mut queue = furnished();
    assert_eq!(
        (queue.jobs().token_floor(), queue.jobs().order_floor()),
        (7, 3)
    );
    let floors = |seq, death, token| Effect::Floors { seq, death, token };
    queue.apply(&floors(50, 40, 30)).unwrap();
    assert_eq!(
        (queue.jobs().token_floor(), queue.jobs().order_floor()),
        (30, 50)
    );
    queue.apply(&floors(5, 60, 3)).unwrap();
    assert_eq!(
        (queue.jobs().token_floor(), queue.jobs().order_floor()),
        (30, 60)
    );
}

#[test]
fn what_was_drawn_elsewhere_raises_what_is_drawn() {
    let (mut mint, now) = (Mint::new(), Now::from_ms(5000));
    mint.raise_id((9000, 3));
    assert_eq!(mint.next_id(now), b"9000-4");
    mint.raise_id((8000, 9));
    assert_eq!(mint.id(), (9000, 4), "a smaller one raises nothing");
    let drawn_from_no_clock = [
        (INSTANT_MAX + 1, 0),
        (9001, u64::MAX / 2),
        (INSTANT_MAX + 1, u64::MAX),
    ];
    for id in drawn_from_no_clock {
        mint.raise_id(id);
        assert_eq!(mint.id(), (9000, 4), "{id:?}");
    }
    mint.raise_id((INSTANT_MAX, u64::MAX / 2 - 1));
    assert_eq!(mint.id(), (INSTANT_MAX, u64::MAX / 2 - 1));
    let token = mint.next_token(now, 0);
    assert_eq!(mint.token(), token);
    mint.raise_token(token + 10);
    assert_eq!(mint.next_token(now, 0), token + 11);
    mint.raise_token(token);
    assert_eq!(mint.token(), token + 11, "a smaller one raises nothing");
}

#[test]
fn an_id_that_is_made_is_neither_that_of_a_job_nor_remembered() {
    let now = Now::from_ms(5000);
    let mut queue = new_queue(1);
    queue.apply(&added(b"5000-0")).unwrap();
    let remembered = Effect::Remembered {
        id: b"5000-1",
        until: INSTANT_MAX,
    };
    queue.apply(&remembered).unwrap();
    let mut mint = Mint::new();
    let made = queue.add(
        &Add::new(None, b"p"),
        now,
        &mut mint,
        &mut Effects::default(),
    );
    assert_eq!(made.unwrap().unwrap(), &b"5000-2"[..]);
}

#[test]
fn a_pause_tells_when_it_ends() {
    let (mut queue, now) = (new_queue(1), Now::from_ms(5000));
    let mut out = Effects::default();
    let paused = |queue: &Queue, now| paused_shown(queue.paused_until(), now);
    assert_eq!(paused(&queue, now), 0);
    queue.pause(Some(100), now, &mut out).unwrap();
    assert_eq!(paused(&queue, now), 5100);
    assert_eq!(paused(&queue, Now::from_ms(5099)), 5100);
    assert_eq!(paused(&queue, Now::from_ms(5100)), 0);
    queue.pause(None, now, &mut out).unwrap();
    assert_eq!(paused(&queue, now), -1);
    queue.resume(now, &mut out);
    assert_eq!(paused(&queue, now), 0);
}
