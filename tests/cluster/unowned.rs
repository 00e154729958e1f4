//! Queues whose slot is not this node's (yet), and in which all is overdue.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use crate::resharding::assert_nothing_left;
use crate::scene::{let_pass, Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::{wait_until, Server, PATIENCE};

const QUEUES: usize = 20_000;

/// Seconds of CPU that the server uses in about ten periods of the module's asking.
fn cost(node: &Server, meanwhile: impl FnOnce()) -> f64 {
    let before = node.cpu();
    meanwhile();
    let_pass(Duration::from_secs(1));
    node.cpu() - before
}

/// So many slots on their way, and queues in them that are overdue over there.
struct Overdue {
    cluster: Cluster,
    slots: Vec<u16>,
    tags: Vec<usize>,
    from: usize,
    to: usize,
}

impl Overdue {
    fn in_slots(count: usize) -> Overdue {
        let cluster = Cluster::start(2);
        let from = cluster.node_of("0");
        let to = 1 - from;
        let half = |slot: u16| slot / 8192;
        let mut tags = BTreeMap::new();
        for number in 0.. {
            let slot = cluster.slot_of(number);
            if half(slot) == half(cluster.slot_of("0")) {
                tags.insert(slot, number);
            }
            if tags.len() == count {
                break;
            }
        }
        let slots: Vec<u16> = tags.keys().copied().collect();
        for &slot in &slots {
            cluster.begin_move(slot, from, to);
        }
        Overdue {
            cluster,
            slots,
            tags: tags.into_values().collect(),
            from,
            to,
        }
    }

    /// Queues with these numbers, evenly over the slots.
    fn add(&self, numbers: Range<usize>) {
        let mut there = self.target().raw();
        for number in numbers.clone() {
            let tag = self.tags[number % self.tags.len()];
            there.begin("ASKING");
            there.begin(&format!("DQ.ADD {{{tag}}}{number} a x TTL 1"));
        }
        for _ in numbers {
            assert_eq!(there.reply(), "+OK");
            assert_eq!(there.reply(), "'a'");
        }
    }

    fn target(&self) -> &Server {
        &self.cluster.nodes[self.to]
    }

    /// The slots become the target's: all that is overdue is settled, and nothing is left to ask for.
    fn finish(&self) {
        assert_eq!(self.target().number("dq", "dq_queues"), QUEUES as u64);
        assert_eq!(self.target().number("dq", "dq_expired_total"), 0);
        for &slot in &self.slots {
            self.cluster.finish_move(slot, self.from, self.to);
        }
        assert_nothing_left(self.target());
        assert_eq!(
            self.target().number("dq", "dq_expired_total"),
            QUEUES as u64
        );
    }
}

/// What the module does for them does not grow with the queues; it did, to a hundred times as much.
fn costs_no_more_for_many_queues(slots: usize) {
    const BOUND: f64 = 8.0;
    let overdue = Overdue::in_slots(slots);
    overdue.add(0..1);
    let of_one = cost(overdue.target(), || ());
    overdue.add(1..QUEUES);
    wait_until("it costs about as little as before", PATIENCE, || {
        cost(overdue.target(), || ()) < BOUND * of_one
    });
    // As many looks as it took once are seen.
    let of_work = cost(overdue.target(), || {
        let mut client = overdue.target().raw();
        for _ in 0..10 {
            (0..QUEUES).for_each(|_| client.begin("DQ.LEN 0"));
            (0..QUEUES).for_each(|_| drop(client.read()));
        }
    });
    assert!(of_work > BOUND * of_one, "{of_work} against {of_one}");
    overdue.finish();
}

#[test]
fn many_queues_of_one_slot_cost_no_more_than_one() {
    costs_no_more_for_many_queues(1);
}

#[test]
fn many_queues_of_many_slots_cost_no_more_than_one() {
    costs_no_more_for_many_queues(300);
}

/// What is deleted while its slot is on its way is not asked for any more.
#[test]
fn what_has_gone_is_forgotten() {
    let overdue = Overdue::in_slots(3);
    overdue.add(0..300);
    let mut there = overdue.target().raw();
    there.says("ASKING", "+OK");
    there.says(&format!("DEL {{{}}}0", overdue.tags[0]), "1");
    assert_eq!(overdue.target().number("dq", "dq_queues"), 299);
    there.says("FLUSHALL", "+OK");
    assert_nothing_left(overdue.target());
}
