//! One command on all groups takes no more work, even with very many groups.

use crate::follow::new_queue;
use dq::queue::add::Add;
use dq::queue::clock::{Mint, Now, When};
use dq::queue::deliver::Pop;
use dq::queue::effects::Effects;
use dq::queue::job::State;
use dq::queue::settings::{Rate, SettingsChange};
use dq::queue::Queue;
use std::time::{Duration, Instant};

fn now() -> Now {
    Now::from_ms(5_000)
}

struct Stage {
    queue: Queue,
    mint: Mint,
    out: Effects,
}

/// `count` groups with two ready jobs each, and one delayed job in a group of its own.
fn groups(count: usize) -> Stage {
    let (queue, mint, out) = (new_queue(1), Mint::new(), Effects::default());
    let mut stage = Stage { queue, mint, out };
    for number in 0..2 * count {
        stage.add(number, 0);
    }
    stage.add(2 * count, 1000);
    stage
}

impl Stage {
    fn add(&mut self, number: usize, wait_ms: u64) {
        let (id, name) = (number.to_string(), (number / 2).to_string());
        let add = Add {
            when: When::Delay(wait_ms),
            group: Some(name.as_bytes()),
            ..Add::new(Some(id.as_bytes()), b"p")
        };
        let Stage { queue, mint, out } = self;
        queue.add(&add, now(), mint, out).unwrap();
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let (mut id, pop) = (
            None,
            Pop {
                count: 1,
                ..Pop::default()
            },
        );
        let Stage { queue, mint, out } = self;
        queue.pop(&pop, now(), mint, out, |job| id = Some(job.id.to_vec()));
        id
    }
}

type Call = fn(&mut Stage);

fn configure(stage: &mut Stage, change: SettingsChange) {
    let Stage { queue, out, .. } = stage;
    queue.configure_with(&change, now(), out).unwrap();
}

const CALLS: [(&str, Call); 4] = [
    ("GROUPMAX", |stage| {
        let group_max = Some(1);
        configure(
            stage,
            SettingsChange {
                group_max,
                ..SettingsChange::default()
            },
        );
    }),
    ("GROUPFIFO", |stage| {
        let group_fifo = Some(true);
        configure(
            stage,
            SettingsChange {
                group_fifo,
                ..SettingsChange::default()
            },
        );
    }),
    ("GROUPRATE", |stage| {
        let rate = Rate {
            count: 1,
            window_ms: 1000,
        };
        let group_rate = Some(Some(rate));
        configure(
            stage,
            SettingsChange {
                group_rate,
                ..SettingsChange::default()
            },
        );
    }),
    ("PURGE READY", |stage| {
        let Stage { queue, out, .. } = stage;
        assert!(queue.purge(Some(State::Ready), now(), out) > 100);
    }),
];

#[test]
fn many_groups_are_no_more_work_for_one_command() {
    let took = |count: usize, call: Call| {
        let mut stage = groups(count);
        let began = Instant::now();
        call(&mut stage);
        let took = began.elapsed();
        stage.queue.check_invariants().unwrap();
        took
    };
    for (name, call) in CALLS {
        let (mut few, mut many) = (Duration::MAX, Duration::MAX);
        for _ in 0..7 {
            few = few.min(took(300, call));
            many = many.min(took(30_000, call));
        }
        println!("{name}: {few:?} with few groups, {many:?} with a hundred times as many");
        assert!(many < 25 * few, "{name}: {many:?} instead of {few:?}");
    }
}

/// The remaining work is known, and what a client sees never waits for it, except `groups` after a large purge.
#[test]
fn a_job_that_comes_after_the_purge_of_many_groups_is_served() {
    let mut stage = groups(10_000);
    let Stage { queue, out, .. } = &mut stage;
    assert_eq!(queue.purge(Some(State::Ready), now(), out), 20_000);
    assert!(queue.has_leftovers());
    assert_eq!(queue.at(now()).group_len(b"7"), 0);
    stage.add(20_003, 0);
    assert_eq!(stage.pop(), Some(b"20003".to_vec()));
    assert_eq!(stage.pop(), None);
    stage.queue.work_off(usize::MAX);
    assert!(!stage.queue.has_leftovers());
    assert_eq!(stage.queue.at(now()).groups().len(), 2);
    stage.queue.check_invariants().unwrap();
}
