//! After a server stood still, more is overdue than one command carries out. Yet no consumer and no producer is turned
//! away because of it.

use crate::follow::new_queue;
use dq::queue::add::Add;
use dq::queue::claim::{Claim, Nack, NackKind};
use dq::queue::clock::{Mint, Now, When};
use dq::queue::codec::decode;
use dq::queue::deliver::{LeaseLength, Pop};
use dq::queue::effects::Effects;
use dq::queue::job::State;
use dq::queue::overdue::At;
use dq::queue::settings::SettingsChange;
use dq::queue::view::Peek;
use dq::queue::Queue;

const NOW: u64 = 5_000;
/// More than a command's budget.
const MANY: usize = 3_000;
const LEASE: u64 = 30;

struct Stood {
    queue: Queue,
    mint: Mint,
    out: Effects,
}

impl Stood {
    fn new() -> Self {
        Stood {
            queue: new_queue(1),
            mint: Mint::new(),
            out: Effects::default(),
        }
    }

    fn configure(&mut self, change: &SettingsChange) {
        let now = Now::from_ms(NOW);
        let configured = self.queue.configure_with(change, now, &mut self.out);
        configured.unwrap();
    }

    /// Gives the job back so that it is dead.
    fn fail(&mut self, id: &str, kind: NackKind) {
        let nack = Nack {
            id: id.as_bytes(),
            claim: Claim::Current,
            delay_ms: None,
            priority: None,
            kind,
            reason: None,
            awaits: None,
            default_backoff: &[],
        };
        let dead = self.queue.nack(&nack, Now::from_ms(NOW), &mut self.out);
        assert_eq!(dead.unwrap(), Some(State::Dead));
    }

    fn add(&mut self, kind: &str, number: usize, ttl_ms: Option<u64>, now: Now) -> bool {
        let id = format!("{kind}-{number:04}").into_bytes();
        let mut add = Add::new(Some(&id), b"p");
        add.ttl_ms = ttl_ms;
        add.when = When::Delay(ttl_ms.unwrap_or(0));
        let added = self.queue.add(&add, now, &mut self.mint, &mut self.out);
        added.is_ok_and(|id| id.is_some())
    }

    fn add_many(&mut self, kind: &str, ttl_ms: Option<u64>) {
        for number in 0..MANY {
            assert!(self.add(kind, number, ttl_ms, Now::from_ms(NOW)));
        }
    }

    fn pop(&mut self, count: usize, noack: bool, now: Now) -> Vec<String> {
        let pop = Pop {
            count: count as u64,
            lease: LeaseLength::Asked(LEASE),
            noack,
            ..Pop::default()
        };
        let mut ids = Vec::new();
        let (queue, mint, out) = (&mut self.queue, &mut self.mint, &mut self.out);
        queue.pop(&pop, now, mint, out, |job| {
            ids.push(String::from_utf8_lossy(job.id).into_owned());
        });
        ids
    }
}

/// A queue with ids in its dedupe window, which ends at NOW + 10.
fn remembering(max_len: usize) -> Stood {
    let mut stood = Stood::new();
    let change = SettingsChange {
        dedupe_ms: Some(10),
        max_len: Some(max_len as u64),
        ..SettingsChange::default()
    };
    let now = Now::from_ms(NOW);
    stood.configure(&change);
    stood.add_many("forgotten", None);
    assert_eq!(stood.pop(MANY, true, now).len(), MANY);
    stood
}

/// As [`remembering`], with `leases` leases that end at NOW + 30, and jobs whose TTL ends after `ttl_ms`.
fn stood_still(max_len: usize, leases: usize, ttl_ms: u64) -> Stood {
    let (mut stood, now) = (remembering(max_len), Now::from_ms(NOW));
    for number in 0..leases {
        assert!(stood.add("leased", number, None, now));
    }
    assert_eq!(stood.pop(leases, false, now).len(), leases);
    stood.add_many("expired", Some(ttl_ms));
    stood
}

#[test]
fn a_job_whose_lease_is_over_is_found_behind_all_that_is_past() {
    let mut stood = stood_still(0, 2, 20);
    let early = Now::from_ms(NOW + 29);
    assert_eq!(stood.pop(1, false, early), Vec::<String>::new());
    let now = Now::from_ms(NOW + 30);
    let mut stood = stood_still(0, 2, 20);
    assert_eq!(stood.pop(1, false, now), ["leased-0000"]);
    assert_eq!(stood.pop(1, false, now), ["leased-0001"]);
    assert_eq!(stood.pop(1, false, now), Vec::<String>::new());
    stood.queue.check_invariants().unwrap();
}

#[test]
fn who_asks_for_many_gets_all_whose_leases_are_over() {
    let mut stood = stood_still(0, MANY, 20);
    let ids = stood.pop(2 * MANY, false, Now::from_ms(NOW + 30));
    assert_eq!(ids.len(), MANY);
    assert!(ids.is_sorted(), "by the order of adding");
    stood.queue.check_invariants().unwrap();
}

#[test]
fn a_look_at_one_job_and_a_purge_see_whose_lease_is_over() {
    let now = Now::from_ms(NOW + LEASE);
    let mut stood = stood_still(0, MANY, 20);
    let last = format!("leased-{:04}", MANY - 1).into_bytes();
    let Stood { queue, out, .. } = &mut stood;
    let carried_out = |queue: &Queue| queue.at(At::as_shown(now)).get(&last).unwrap().state;
    assert_eq!(queue.at(now).get(&last).unwrap().state, State::Ready);
    assert_eq!(carried_out(queue), State::Reserved);
    queue.expire_job(&last, now, out);
    assert_eq!(carried_out(queue), State::Ready);
    assert_eq!(queue.purge(Some(State::Reserved), now, out), 0);
    assert!(queue.at(now).get(&last).is_some());
    assert_eq!(stood.pop(2 * MANY, false, now).len(), MANY);
}

#[test]
fn as_many_dead_jobs_are_kicked_as_are_asked_for() {
    let mut stood = stood_still(0, 0, 20);
    let now = Now::from_ms(NOW);
    for number in 0..MANY {
        let id = format!("dies-{number:04}").into_bytes();
        let mut add = Add::new(Some(&id), b"p");
        add.max_attempts = Some(1);
        let Stood { queue, mint, out } = &mut stood;
        queue.add(&add, now, mint, out).unwrap();
    }
    assert_eq!(stood.pop(MANY, false, now).len(), MANY);
    let (now, Stood { queue, out, .. }) = (Now::from_ms(NOW + LEASE), &mut stood);
    assert_eq!(queue.kick_oldest(2 * MANY as u64, now, out), MANY as u64);
}

#[test]
fn jobs_whose_ttl_is_over_take_no_place() {
    let mut stood = stood_still(2 * MANY, MANY, LEASE + 10);
    assert!(!stood.add("new", 0, None, Now::from_ms(NOW + LEASE)));
    let now = Now::from_ms(NOW + LEASE + 10);
    for number in 0..MANY {
        assert!(stood.add("new", number, None, now), "{number}");
    }
    assert!(!stood.add("new", MANY, None, now));
    stood.queue.check_invariants().unwrap();
}

#[test]
fn a_last_attempt_that_is_over_takes_no_place() {
    let mut stood = remembering(0);
    let (now, later) = (Now::from_ms(NOW), Now::from_ms(NOW + LEASE));
    let change = SettingsChange {
        max_len: Some(5),
        ..SettingsChange::default()
    };
    stood.configure(&change);
    for (number, max_attempts) in [0, 0, 0, 0, 1].into_iter().enumerate() {
        let id = number.to_string().into_bytes();
        let mut add = Add::new(Some(&id), b"p");
        add.max_attempts = Some(max_attempts);
        let Stood { queue, mint, out } = &mut stood;
        queue.add(&add, now, mint, out).unwrap();
    }
    assert_eq!(stood.pop(5, false, now).len(), 5);
    assert!(!stood.add("new", 0, None, now));
    assert!(stood.add("new", 0, None, later));
    assert!(!stood.add("new", 1, None, later));
    stood.queue.check_invariants().unwrap();
}

/// Jobs whose TTL ends at NOW + 20 and that were ready before: `before` of them ahead of one without a TTL.
fn overdue(before: usize) -> Stood {
    let mut stood = Stood::new();
    for number in 0..before {
        let id = format!("expired-{number}").into_bytes();
        let mut add = Add::new(Some(&id), b"p");
        add.ttl_ms = Some(20);
        let added = stood
            .queue
            .add(&add, Now::from_ms(NOW), &mut stood.mint, &mut stood.out);
        added.unwrap();
    }
    assert!(stood.add("lasting", 0, None, Now::from_ms(NOW)));
    stood
}

#[test]
fn a_pop_finds_a_job_behind_ten_thousand_whose_ttl_is_over() {
    let now = Now::from_ms(NOW + 20);
    for before in [500, 2_000, 10_999] {
        let mut stood = overdue(before);
        assert_eq!(stood.pop(1, false, now), ["lasting-0000"], "{before}");
        assert_eq!(stood.queue.totals().expired, before as u64);
        assert_eq!(stood.pop(1, false, now), Vec::<String>::new());
        stood.queue.check_invariants().unwrap();
    }
    let mut stood = overdue(50_000);
    assert_eq!(stood.pop(1, false, now), Vec::<String>::new());
    assert_eq!(stood.queue.totals().expired, 11_000);
    stood.queue.expire_overdue(now, usize::MAX, &mut stood.out);
    assert_eq!(stood.pop(1, false, now), ["lasting-0000"]);
}

#[test]
fn the_timer_serves_within_its_steps() {
    let now = Now::from_ms(NOW + 20);
    let mut stood = overdue(MANY);
    let pop = Pop {
        count: 1,
        ..Pop::default()
    };
    let (queue, mint, out) = (&mut stood.queue, &mut stood.mint, &mut stood.out);
    let mut steps = 100;
    let served = queue.take(&pop, now, mint, out, &mut steps, &mut |_| {});
    assert_eq!((served, steps, queue.totals().expired), (0, 0, 100));
}

#[test]
fn a_kick_removes_ten_thousand_dead_whose_ttl_is_over() {
    let mut stood = overdue(5 * MANY);
    let now = Now::from_ms(NOW);
    for id in stood.pop(6 * MANY, false, now) {
        stood.fail(&id, NackKind::Fatal);
    }
    let now = Now::from_ms(NOW + 20);
    let kicked = stood.queue.kick_oldest(1, now, &mut stood.out);
    assert_eq!((kicked, stood.queue.totals().expired), (0, 11_000));
    let (queue, out) = (&mut stood.queue, &mut stood.out);
    assert_eq!(queue.kick_oldest(4_000, now, out), 1);
    queue.check_invariants().unwrap();
}

/// DEADLEN 2, and in the order of time: `kept` is dead, `gone` is dead and its TTL ends at NOW + 20, and at NOW + 30
/// the last lease of `late` ends.
#[test]
fn a_ttl_that_is_over_makes_room_among_the_dead_before_a_later_death() {
    let mut stood = stood_still(0, 0, 10);
    let change = SettingsChange {
        dead_len: Some(2),
        ..SettingsChange::default()
    };
    let start = Now::from_ms(NOW);
    stood.configure(&change);
    for (id, ttl_ms) in [("kept", None), ("gone", Some(20)), ("late", None)] {
        let mut add = Add::new(Some(id.as_bytes()), b"p");
        (add.ttl_ms, add.max_attempts) = (ttl_ms, Some(1));
        let (queue, mint, out) = (&mut stood.queue, &mut stood.mint, &mut stood.out);
        queue.add(&add, start, mint, out).unwrap();
        assert_eq!(stood.pop(1, false, start), [id]);
        if id != "late" {
            stood.fail(id, NackKind::Fail);
        }
    }
    let now = Now::from_ms(NOW + 30);
    assert_eq!(stood.pop(1, false, now), Vec::<String>::new());
    stood.queue.check_invariants().unwrap();
    stood.queue.expire_overdue(now, usize::MAX, &mut stood.out);
    let peek = Peek {
        state: State::Dead,
        from: 0,
        to: u64::MAX,
        count: 9,
        prefix: usize::MAX,
        is_bounded: false,
    };
    let mut dead = Vec::new();
    stood
        .queue
        .at(now)
        .peek(&peek, |job| dead.push(job.id.to_vec()));
    assert_eq!(dead, [&b"kept"[..], b"late"]);
    stood.queue.check_invariants().unwrap();
}

#[test]
fn ids_that_are_forgotten_at_one_instant_go_in_steps() {
    let mut stood = stood_still(0, 0, 20);
    let now = Now::from_ms(NOW + 10);
    stood.queue.expire_overdue(now, 100, &mut stood.out);
    let add = |stood: &mut Stood, number| stood.add("forgotten", number, None, now);
    let mut steps = 1;
    while stood.queue.expire_overdue(now, 100, &mut stood.out) == 0 {
        steps += 1;
    }
    assert!((MANY / 200..=MANY / 100).contains(&steps), "{steps}");
    for number in 0..MANY {
        assert!(add(&mut stood, number), "{number}");
    }
    stood.queue.check_invariants().unwrap();
}

/// `count` jobs that are dead since NOW, and one that is delayed, so that a purge does not remove all jobs.
fn dead(count: usize, ttl_ms: Option<u64>) -> Stood {
    let mut stood = Stood::new();
    let now = Now::from_ms(NOW);
    let later = Add {
        when: When::Delay(1_000_000),
        ..Add::new(Some(b"later"), b"p")
    };
    let (queue, mint, out) = (&mut stood.queue, &mut stood.mint, &mut stood.out);
    queue.add(&later, now, mint, out).unwrap();
    for number in 0..count {
        let id = format!("dead-{number:06}").into_bytes();
        let add = Add {
            ttl_ms,
            ..Add::new(Some(&id), b"p")
        };
        let (queue, mint, out) = (&mut stood.queue, &mut stood.mint, &mut stood.out);
        queue.add(&add, now, mint, out).unwrap();
    }
    for id in stood.pop(count, false, now) {
        stood.fail(&id, NackKind::Fatal);
        stood.out.clear();
    }
    stood
}

/// The work of a call: effects that it emits, and what it frees at once.
fn steps(stood: &mut Stood, call: impl FnOnce(&mut Queue, &mut Effects)) -> usize {
    stood.out.clear();
    let before = stood.queue.free_effort();
    call(&mut stood.queue, &mut stood.out);
    let told = decode(stood.out.bytes()).count();
    let freed = before - stood.queue.free_effort();
    drop(stood.queue.take_garbage());
    told + freed
}

const FEW: usize = 50;

/// All queries agree, though none of the many jobs was touched.
#[test]
fn dead_jobs_beyond_a_new_deadlen_are_gone_for_everybody() {
    let mut stood = dead(20_000, None);
    let now = Now::from_ms(NOW);
    let change = SettingsChange {
        dead_len: Some(2),
        ..SettingsChange::default()
    };
    let work = steps(&mut stood, |queue, out| {
        queue.configure_with(&change, now, out).unwrap();
    });
    assert!(work < FEW, "{work} steps");
    let queue = &stood.queue;
    assert_eq!(queue.next_event(), None, "nothing is left to the timer");
    assert_eq!(queue.at(now).len(Some(State::Dead)), 2);
    assert_eq!(queue.at(now).summary().dead, 2);
    let (mut peeked, mut scanned, mut cursor) = (Vec::new(), Vec::new(), 0);
    let peek = Peek {
        state: State::Dead,
        from: 0,
        to: u64::MAX,
        count: 9,
        prefix: usize::MAX,
        is_bounded: false,
    };
    queue
        .at(now)
        .peek(&peek, |job| peeked.push(job.id.to_vec()));
    loop {
        cursor = queue.at(now).scan(cursor, |job| {
            scanned.extend((job.state == State::Dead).then(|| job.id.to_vec()));
        });
        if cursor == 0 {
            break;
        }
    }
    scanned.sort_unstable();
    assert_eq!(peeked, [b"dead-019998", b"dead-019999"]);
    assert_eq!(scanned, peeked);
    for gone in [&b"dead-000000"[..], b"dead-019997"] {
        assert!(queue.at(now).get(gone).is_none());
    }
    let mut fresh = dead(20_000, None);
    for id in 0..19_998 {
        let id = format!("dead-{id:06}").into_bytes();
        fresh.queue.delete(&id, false, now, &mut fresh.out);
    }
    fresh.configure(&change);
    let digest = |queue: &Queue| {
        let mut all: Vec<u8> = Vec::new();
        queue.digest(&mut |bytes| all.extend(bytes));
        all
    };
    assert!(digest(&fresh.queue) == digest(queue));
    let (queue, out) = (&mut stood.queue, &mut stood.out);
    assert!(!queue.kick(b"dead-019997", now, out));
    let mut kicked = 0;
    let work = steps(&mut stood, |queue, out| {
        kicked = queue.kick_oldest(1, now, out);
    });
    assert!(kicked == 1 && work < FEW, "{kicked} in {work} steps");
    assert_eq!(stood.pop(9, false, now), ["dead-019998"]);
    stood.queue.check_invariants().unwrap();
}

#[test]
fn a_kick_of_many_does_little_where_it_kicks_few() {
    // Dead jobs whose TTLs have ended.
    let mut stood = dead(40_000, Some(20));
    let now = Now::from_ms(NOW + 20);
    let work = steps(&mut stood, |queue, out| {
        assert_eq!(queue.kick_oldest(9_000_000_000, now, out), 0);
    });
    assert!(work < 25_000, "{work} steps");
    // Reserved jobs whose leases have ended and that have attempts left.
    let mut stood = Stood::new();
    (0..40_000).for_each(|number| assert!(stood.add("a", number, None, Now::from_ms(NOW))));
    stood.pop(40_000, false, Now::from_ms(NOW));
    let now = Now::from_ms(NOW + LEASE);
    let work = steps(&mut stood, |queue, out| {
        assert_eq!(queue.kick_oldest(9_000_000_000, now, out), 0);
    });
    assert!(work < 12_000, "{work} steps");
}

#[test]
fn a_pop_of_many_does_little_where_it_delivers_few() {
    let mut stood = Stood::new();
    let now = Now::from_ms(NOW);
    for number in 0..40_000 {
        let id = format!("{number:05}").into_bytes();
        let mut add = Add::new(Some(&id), b"p");
        add.max_attempts = Some(1);
        let Stood { queue, mint, out } = &mut stood;
        queue.add(&add, now, mint, out).unwrap();
    }
    stood.pop(40_000, false, now);
    let now = Now::from_ms(NOW + LEASE);
    let delivered = stood.pop(usize::MAX, false, now);
    assert_eq!(delivered, Vec::<String>::new());
    let died = stood.queue.totals().died;
    assert!(died < 12_000, "{died} have died");
}

/// Its work does not grow with the number of jobs that it names.
#[test]
fn a_command_carries_out_no_more_for_many_ids_than_for_one() {
    let mut stood = dead(20_000, Some(20));
    let change = SettingsChange {
        dead_len: Some(1_000_000),
        ..SettingsChange::default()
    };
    stood.configure(&change);
    let now = Now::from_ms(NOW + 20);
    let work = steps(&mut stood, |queue, out| {
        for number in 19_000..20_000 {
            let id = format!("dead-{number:06}").into_bytes();
            queue.expire_job(&id, now, out);
        }
    });
    assert!(work < 25_000, "{work} steps");
}

/// By contract these jobs are ready, however many they are.
#[test]
fn a_purge_of_the_reserved_leaves_all_whose_leases_are_over() {
    const LEASES: usize = 30_000;
    let mut stood = Stood::new();
    (0..LEASES).for_each(|number| assert!(stood.add("over", number, None, Now::from_ms(NOW))));
    stood.pop(LEASES, false, Now::from_ms(NOW));
    let now = Now::from_ms(NOW + LEASE);
    for number in 0..10 {
        assert!(stood.add("held", number, None, now));
    }
    // The first of them, as many as one command expires, are ready again before the other ten.
    let mut reserved = 0;
    let work = steps(&mut stood, |queue, out| {
        reserved = queue.purge(Some(State::Reserved), now, out);
    });
    assert!(work < 12_000, "{work} steps");
    assert_eq!(reserved, 0);
    assert_eq!(stood.pop(2 * LEASES, false, now).len(), LEASES + 10);
    let purged = stood
        .queue
        .purge(Some(State::Reserved), now, &mut stood.out);
    assert_eq!(purged, LEASES as u64 + 10);
    stood.queue.check_invariants().unwrap();
}

/// Purging the many jobs is as little work as the first purge, and so is all that follows.
#[test]
fn one_purge_more_is_no_more_work() {
    const JOBS: usize = 20_000;
    let mut stood = dead(10, None);
    let now = Now::from_ms(NOW);
    (0..JOBS).for_each(|number| assert!(stood.add("ready", number, None, now)));
    for round in 0..30 {
        let delayed = |number: usize| When::Delay(10 + number as u64);
        for number in 0..10 {
            let id = format!("{round}-{number}").into_bytes();
            let mut add = Add::new(Some(&id), b"p");
            add.when = delayed(round * 10 + number);
            let Stood { queue, mint, out } = &mut stood;
            queue.add(&add, now, mint, out).unwrap();
        }
        let state = [State::Delayed, State::Reserved][round % 2];
        if state == State::Reserved {
            assert_eq!(stood.pop(10, false, now).len(), 10);
        }
        let work = steps(&mut stood, |queue, out| {
            assert!(queue.purge(Some(state), now, out) >= 10);
        });
        assert!(work < FEW, "{work} steps in round {round}");
    }
    let work = steps(&mut stood, |queue, out| {
        assert_eq!(queue.purge(Some(State::Ready), now, out), JOBS as u64 - 150);
    });
    assert!(work < FEW, "{work} steps");
    stood.queue.check_invariants().unwrap();
    let work = steps(&mut stood, |queue, _| {
        assert_eq!(queue.work_off(JOBS / 2), 0)
    });
    assert!(work >= JOBS / 4, "{work} are buried");
}

/// Adding jobs pays for freeing purged ones, so only few purges are unfinished at a time.
#[test]
fn what_is_linked_pays_for_what_was_purged() {
    let mut stood = dead(10, None);
    let now = Now::from_ms(NOW);
    (0..20_000).for_each(|number| assert!(stood.add("ready", number, None, now)));
    assert_eq!(
        stood.queue.purge(Some(State::Ready), now, &mut stood.out),
        20_000
    );
    let before = stood.queue.free_effort();
    (0..5_000).for_each(|number| assert!(stood.add("new", number, None, now)));
    let after = stood.queue.free_effort();
    assert!(after + 10_000 <= before, "from {before} to {after}");
}
