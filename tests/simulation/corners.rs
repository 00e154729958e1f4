//! Cases that no history of ordinary length reaches.

use crate::follow::new_queue;
use dq::queue::add::Add;
use dq::queue::attr::Attrs;
use dq::queue::clock::{Mint, Now, When};
use dq::queue::codec::decode;
use dq::queue::deliver::{LeaseLength, Pop};
use dq::queue::effect::{Came, Change, DeathCause, Effect, How, Purge, RemovalCause};
use dq::queue::effects::Effects;
use dq::queue::error::QueueError;
use dq::queue::event::Event;
use dq::queue::job::{State, Terms};
use dq::queue::overdue::At;
use dq::queue::reschedule::Reschedule;

const NOW: u64 = 5_000;

fn now() -> Now {
    Now::from_ms(NOW)
}

/// Expiring in steps expires no more jobs than the budget allows.
#[test]
fn a_step_settles_no_more_than_its_budget() {
    let (mut queue, mut mint, mut out) = (new_queue(1), Mint::new(), Effects::default());
    for number in 0..10 {
        let id = number.to_string().into_bytes();
        let added = queue.add(&Add::new(Some(&id), b"p"), now(), &mut mint, &mut out);
        assert!(added.unwrap().is_some());
    }
    let pop = Pop {
        count: 10,
        lease: LeaseLength::Asked(5),
        ..Pop::default()
    };
    assert_eq!(queue.pop(&pop, now(), &mut mint, &mut out, |_| {}), 10);
    let later = Now::from_ms(NOW + 5);
    for (budget, left, reserved) in [(3, 0, 7), (1, 0, 6), (4, 0, 2), (10, 8, 0), (5, 5, 0)] {
        assert_eq!(queue.expire_overdue(later, budget, &mut out), left);
        let as_shown = At::as_shown(later);
        assert_eq!(queue.at(as_shown).len(Some(State::Reserved)), reserved);
    }
}

#[test]
fn a_job_that_is_moved_to_now_becomes_ready_once() {
    let (mut queue, mut mint) = (new_queue(1), Mint::new());
    let mut out = Effects::default();
    let mut add = Add::new(Some(b"j"), b"p");
    add.when = When::At(NOW + 100);
    queue.add(&add, now(), &mut mint, &mut out).unwrap();
    let moves = [
        (NOW + 50, false),
        (NOW + 1, false),
        (NOW, true),
        (NOW - 1, false),
        (NOW + 9, false),
        (NOW - 5, true),
    ];
    let to = |due| Reschedule {
        due: Some(due),
        priority: None,
    };
    for (due, becomes_ready) in moves {
        out.clear();
        assert!(queue.reschedule(b"j", to(due), now(), &mut out));
        let told: Vec<Event> = out.events().collect();
        let ready = if becomes_ready {
            &[Event::Ready][..]
        } else {
            &[]
        };
        assert_eq!(told, ready, "to {due}");
    }
    assert!(!queue.reschedule(b"other", to(NOW), now(), &mut out));
}

#[test]
fn effects_that_nobody_hears_happen_and_are_not_written() {
    let mut out = Effects::default();
    assert!(out.is_empty() && !out.is_unencoded());
    out.leave_unencoded();
    out.push(&Effect::Dropped);
    assert!(out.is_unencoded() && !out.is_empty());
    assert_eq!(out.bytes(), b"");
    assert!(!out.has_events());
    out.raise(Event::Ack);
    out.raise(Event::Add);
    assert!(out.has_events());
    assert!(out.events().eq([Event::Add, Event::Ack]));
    out.clear();
    assert!(out.is_empty() && !out.is_unencoded() && !out.has_events());
    out.push(&Effect::Dropped);
    out.push(&Effect::Paused { until: 0 });
    let told: Vec<Effect<'_>> = decode(out.bytes()).map(Result::unwrap).collect();
    assert_eq!(told, [Effect::Dropped, Effect::Paused { until: 0 }]);
}

#[test]
fn effects_say_what_they_raise() {
    let added = Effect::Came(Came {
        id: b"i",
        payload: b"p",
        terms: Terms {
            priority: 0,
            ttr_ms: 1,
            max_attempts: 0,
            rest: Attrs::NONE,
        },
        group: None,
        how: How::New { due: 1, expires: 0 },
    });
    assert_eq!(added.events(), [Event::Add]);
    let purged = Effect::Purged(Purge::State {
        state: None,
        cut: 1,
    });
    assert_eq!(purged.events(), [Event::Del]);
    assert_eq!(Effect::Dropped.events(), []);
    let of = |change| Effect::Job { id: b"i", change }.events();
    let died = |cause| Change::Died { at: 1, cause };
    let removed = |cause| Change::Removed { cause, remember: 0 };
    assert_eq!(of(Change::TimedOut), [Event::Timeout]);
    assert_eq!(of(Change::Kicked { due: 1 }), [Event::Ready]);
    assert_eq!(of(Change::Rescheduled { due: 1 }), []);
    assert_eq!(
        of(died(DeathCause::TimedOut)),
        [Event::Timeout, Event::Dead]
    );
    let nacked = DeathCause::Nacked {
        priority: 0,
        failure: None,
    };
    assert_eq!(of(died(nacked)), [Event::Nack, Event::Dead]);
    assert_eq!(of(removed(RemovalCause::Acked)), [Event::Ack]);
    assert_eq!(of(removed(RemovalCause::Popped)), [Event::Pop]);
    let late = removed(RemovalCause::TimedOutExpired);
    assert_eq!(of(late), [Event::Timeout, Event::Expired]);
}

#[test]
fn names_and_errors_are_those_of_the_contract() {
    let names = State::ALL.map(State::name);
    let all = ["delayed", "ready", "reserved", "dead", "done", "blocked"];
    assert_eq!(names, all);
    let texts = [
        (QueueError::Full, "MAXLEN queue is full"),
        (QueueError::GroupFull, "MAXLEN group is full"),
        (QueueError::FullOfBytes, "MAXBYTES queue is full"),
        (QueueError::AfterItself, "ERR AFTER would wait for itself"),
        (QueueError::AfterTooMuch, "ERR AFTER has too much before it"),
    ];
    for (error, text) in texts {
        assert_eq!(error.to_string(), text);
    }
    let malformed = QueueError::Malformed("it is round").to_string();
    assert_eq!(
        malformed,
        "ERR queue data is malformed or does not fit the queue: it is round"
    );
    let named = [
        (Effect::Dropped, "Dropped"),
        (Effect::Paused { until: 5 }, "Paused"),
        (Effect::Configured(Default::default()), "Configured"),
    ];
    for (effect, name) in named {
        assert_eq!(effect.name(), name);
    }
}

/// The server compresses chunk by chunk, and a reader holds one chunk at a time.
#[test]
fn a_snapshot_comes_in_chunks_of_a_few_kilobytes() {
    let (mut queue, mut mint, mut out) = (new_queue(1), Mint::new(), Effects::default());
    for number in 0..20_000u32 {
        let id = number.to_string().into_bytes();
        // One job is large enough for a chunk of its own, and the chunks after it are small again.
        let payload = vec![b'p'; if number == 10_000 { 100_000 } else { 64 }];
        let add = Add::new(Some(&id), &payload);
        assert!(queue.add(&add, now(), &mut mint, &mut out).is_ok());
    }
    let mut chunks = Vec::new();
    queue.snapshot(&mut |chunk| chunks.push(chunk.len()));
    let all: usize = chunks.iter().sum();
    assert!((1_400_000..1_700_000).contains(&all), "{all} bytes");
    let long = chunks.iter().filter(|&&len| len > 4096 + 200).count();
    assert_eq!(long, 1);
    assert!(chunks.len() < all / 4000, "{} chunks", chunks.len());
}

#[test]
fn remembered_ids_come_in_chunks_too() {
    let mut queue = new_queue(1);
    for number in 0..20_000u32 {
        let id = &number.to_string().into_bytes();
        queue.apply(&Effect::Remembered { id, until: NOW }).unwrap();
    }
    let mut chunks = Vec::new();
    queue.snapshot(&mut |chunk| chunks.push(chunk.len()));
    let all: usize = chunks.iter().sum();
    assert!(chunks.iter().all(|&len| len < 4096 + 200));
    assert!(chunks.len() < all / 4000 + 2, "{} chunks", chunks.len());
}
