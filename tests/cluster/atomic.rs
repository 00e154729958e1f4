//! Valkey 9.1's atomic slot migration: a copy of the slot, then all that is written meanwhile, then the
//! handover, on a target whose timer sees the queues long before they are its own.

use std::time::Duration;

use crate::resharding::{assert_nothing_left, digest, popped};
use crate::router::Guides;
use crate::scene::{let_pass, now_ms, Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::{skipped, wait_until, Builder, Server, PATIENCE};
use crate::traffic::Traffic;

const KEYS: &str = "{x}q {x}new {x}gone {x}leased";

/// A slot with queues on its way, held up just before the handover.
struct Migration {
    cluster: Cluster,
    slot: u16,
    from: usize,
    to: usize,
    /// Of the target.
    replica: usize,
}

impl Migration {
    /// None where the server knows no such thing.
    fn held(builder: Builder) -> Option<Migration> {
        let mut cluster = Cluster::start_with(2, builder.clone());
        if !cluster.moves_atomically() {
            skipped("modules take part in CLUSTER MIGRATESLOTS from Valkey 9.1 on");
            return None;
        }
        let (from, slot) = (cluster.node_of("{x}q"), cluster.slot_of("{x}q"));
        let to = 1 - from;
        let migration = Migration {
            replica: cluster.add_replica(to, builder),
            cluster,
            slot,
            from,
            to,
        };
        let mut client = migration.source().raw();
        for number in 0..3000 {
            client.begin(&format!("DQ.ADD {{x}}q {number} x DELAY 600000"));
        }
        (0..3000).for_each(|_| drop(client.read()));
        client.says("DEBUG SLOTMIGRATION PREVENT-PAUSE 1", "+OK");
        migration.begin();
        Some(migration)
    }

    fn source(&self) -> &Server {
        &self.cluster.nodes[self.from]
    }

    fn target(&self) -> &Server {
        &self.cluster.nodes[self.to]
    }

    fn replica(&self) -> &Server {
        &self.cluster.nodes[self.replica]
    }

    fn begin(&self) {
        self.cluster
            .begin_atomic_move(self.slot, self.from, self.to);
        self.cluster
            .wait_for_migration(self.from, &["waiting-to-pause"]);
    }

    fn release(&self) {
        let mut client = self.source().raw();
        client.says("DEBUG SLOTMIGRATION PREVENT-PAUSE 0", "+OK");
    }

    /// What must be written while it is held up: by commands, in transactions, by scripts and by the
    /// timer. All of it is part of the digest that is returned.
    fn write_in_all_ways(&self) -> Vec<String> {
        let mut client = self.source().raw();
        let due = now_ms() + 300;
        let waiting = ["DQ.BPOP {x}q 0 TTR 600000", "DQ.BPOP {x}none {x}q 0 NOACK"];
        let mut waiting = waiting.map(|line| self.source().waiting(line));
        for line in [
            &format!("DQ.ADD {{x}}q soon x AT {due}"),
            &format!("DQ.ADD {{x}}q too x AT {due}"),
            "DQ.ADD {x}q vanishes x DELAY 600000 TTL 300",
            "DQ.ADD {x}leased a x ATTEMPTS 1",
            "DQ.POP {x}leased TTR 300",
            "MULTI",
            "DQ.ADD {x}q inmulti x DELAY 600000",
            "DQ.ADD {x}new a x",
            "EXEC",
            "DQ.ADD {x}gone a x",
            "DQ.POP {x}gone NOACK",
        ] {
            client.run(line);
        }
        client.call(&[
            b"EVAL",
            b"return redis.call('DQ.ADD', KEYS[1], 'inlua', 'x', 'DELAY', 600000)",
            b"1",
            b"{x}q",
        ]);
        for client in &mut waiting {
            client.delivery();
        }
        // All by the timer: deliveries, a death by a lease's end, a job past its TTL.
        wait_until("the timer has done its part", PATIENCE, || {
            client.ask("DQ.LEN {x}leased DEAD") == "1"
                && client.ask("DQ.GET {x}q vanishes") == "nil$"
        });
        digest(&mut client, KEYS)
    }
}

#[test]
fn what_is_written_meanwhile_arrives() {
    let Some(migration) = Migration::held(Server::builder().aof()) else {
        return;
    };
    let written = migration.write_in_all_ways();
    let mut client = migration.source().raw();
    client.run("DQ.ADD {x}late a x DELAY 1500");
    let mut waiting = migration.source().waiting("DQ.BPOP {x}nothing 0");
    migration.release();
    migration
        .cluster
        .wait_for_migration(migration.to, &["success"]);
    let reply = waiting.reply();
    assert!(reply.starts_with("-MOVED "), "{reply}");
    let mut there = migration.target().raw();
    assert_eq!(digest(&mut there, KEYS), written);
    popped(&mut there, "DQ.BPOP {x}late 0");
    assert_nothing_left(migration.source());
    migration.replica().assert_same_data_as(migration.target());
    // And it is there after a restart.
    let Migration {
        mut cluster, to, ..
    } = migration;
    cluster.nodes[to].kill();
    cluster.nodes[to].restart();
    let mut there = cluster.nodes[to].raw();
    wait_until("the node serves its slots again", PATIENCE, || {
        there.ask("DQ.LEN {x}q").parse::<u64>().is_ok()
    });
    assert_eq!(digest(&mut there, KEYS), written);
}

/// While the slot is still the source's, the target's timer looks and does nothing; at the handover all
/// that came due is done.
#[test]
fn the_target_waits_for_its_turn() {
    let Some(migration) = Migration::held(Server::builder()) else {
        return;
    };
    let mut client = migration.source().raw();
    let due = now_ms() + 200;
    // Nobody waits on the source, so what is due stays; and what it must end, it may not for now.
    for number in 0..50 {
        client.run(&format!("DQ.ADD {{x}}due {number} x AT {due}"));
    }
    client.run("DQ.ADD {x}ends vanishes x DELAY 600000 TTL 300");
    client.run("DQ.ADD {x}ends leased x");
    client.run("DQ.POP {x}ends TTR 300");
    client.says("CLIENT PAUSE 60000 WRITE", "+OK");
    let_pass(Duration::from_millis(600));
    let of_source = digest(&mut client, "{x}due {x}ends");
    let of_target = digest(&mut migration.target().raw(), "{x}due {x}ends");
    assert_eq!(of_target, of_source);
    assert_eq!(migration.target().number("dq", "dq_expired_total"), 0);
    client.says("CLIENT UNPAUSE", "+OK");
    let refused = migration.target().raw().ask("DQ.POP {x}due");
    assert!(refused.starts_with("-MOVED "), "{refused}");
    migration.release();
    migration
        .cluster
        .wait_for_migration(migration.to, &["success"]);
    let mut there = migration.target().raw();
    for _ in 0..50 {
        popped(&mut there, "DQ.BPOP {x}due 0");
    }
    assert_eq!(popped(&mut there, "DQ.BPOP {x}ends 0").attempts, 2);
}

/// Nothing has changed on the source, and nothing stays on the target.
#[test]
fn a_cancelled_one_leaves_nothing_behind() {
    let Some(migration) = Migration::held(Server::builder()) else {
        return;
    };
    for round in 0..3 {
        let written = migration.write_in_all_ways();
        let mut client = migration.source().raw();
        client.run("DQ.ADD {x}due a x TTL 100");
        assert!(migration.target().number("dq", "dq_queues") > 0);
        client.says("CLUSTER CANCELSLOTMIGRATIONS", "+OK");
        migration
            .cluster
            .wait_for_migration(migration.from, &["cancelled"]);
        for node in [migration.target(), migration.replica()] {
            assert_nothing_left(node);
        }
        assert_eq!(digest(&mut client, KEYS), written, "round {round}");
        assert_eq!(migration.cluster.node_of("{x}q"), migration.from);
        if round < 2 {
            client.run("DEL {x}q {x}new {x}leased");
            migration.begin();
        }
    }
}

/// The source dies in the middle: the target throws away what it has got.
#[test]
fn a_failed_one_leaves_nothing_behind() {
    let Some(mut migration) = Migration::held(Server::builder().aof()) else {
        return;
    };
    let written = migration.write_in_all_ways();
    let from = migration.from;
    migration.cluster.nodes[from].kill();
    assert_nothing_left(migration.target());
    migration.cluster.nodes[from].restart();
    migration.cluster.wait_until_ok();
    assert_eq!(digest(&mut migration.source().raw(), KEYS), written);
    // The other way round: the target dies, and comes back without it.
    migration
        .source()
        .raw()
        .says("DEBUG SLOTMIGRATION PREVENT-PAUSE 1", "+OK");
    migration.begin();
    let to = migration.to;
    migration.cluster.nodes[to].kill();
    migration.cluster.wait_for_migration(from, &["failed"]);
    migration.cluster.nodes[to].restart();
    migration.cluster.wait_until_ok();
    assert_nothing_left(migration.target());
    assert_eq!(digest(&mut migration.source().raw(), KEYS), written);
}

/// Cancelled and successful ones in turn, under traffic.
#[test]
fn under_traffic() {
    let cluster = Cluster::start(3);
    if !cluster.moves_atomically() {
        return skipped("modules take part in CLUSTER MIGRATESLOTS from Valkey 9.1 on");
    }
    let queues: Vec<String> = (0..4).map(|n| format!("{{t{n}}}q")).collect();
    let traffic = Traffic {
        guides: &Guides::Nodes(cluster.ports()),
        queues: &queues,
        wait: false,
    };
    let seen = traffic.during(|| {
        for queue in queues.iter().cycle().take(12) {
            let from = cluster.node_of(queue);
            let (to, slot) = ((from + 1) % 3, cluster.slot_of(queue));
            cluster.begin_atomic_move(slot, from, to);
            let_pass(Duration::from_millis(20));
            // Too late is too late.
            cluster.nodes[from]
                .raw()
                .ask("CLUSTER CANCELSLOTMIGRATIONS");
            for node in [from, to] {
                cluster.wait_for_migration(node, &["success", "cancelled", "failed"]);
            }
            if cluster.node_of(queue) == from {
                cluster.move_slot_atomically(slot, from, to);
            }
        }
    });
    seen.assert_sound(None);
    cluster.nodes.iter().for_each(assert_nothing_left);
}
