//! After a server that stood still: more is past than one command carries out, and yet no consumer and
//! no producer is sent away for what is over.

use crate::follow::new_queue;
use dq::queue::add::{Add, When};
use dq::queue::clock::{Mint, Now};
use dq::queue::deliver::Pop;
use dq::queue::effect::Effects;
use dq::queue::job::State;
use dq::queue::settings::SettingsChange;
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
            ttr_ms: Some(LEASE),
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

/// At NOW + 10 ids are forgotten, at NOW + 30 so many leases end, and TTLs after `ttl_ms`.
fn stood_still(max_len: usize, leases: usize, ttl_ms: u64) -> Stood {
    let mut stood = Stood {
        queue: new_queue(1),
        mint: Mint::new(),
        out: Effects::default(),
    };
    let change = SettingsChange {
        dedupe_ms: Some(10),
        max_len: Some(max_len as u64),
        ..SettingsChange::default()
    };
    let now = Now::from_ms(NOW);
    let configured = stood.queue.configure_with(&change, now, &mut stood.out);
    configured.unwrap();
    stood.add_many("forgotten", None);
    assert_eq!(stood.pop(MANY, true, now).len(), MANY);
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
    assert_eq!(queue.get(&last, now).unwrap().state, State::Reserved);
    queue.settle_job(&last, now, out);
    assert_eq!(queue.get(&last, now).unwrap().state, State::Ready);
    assert_eq!(queue.purge(Some(State::Reserved), now, out), 0);
    assert!(queue.get(&last, now).is_some());
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
