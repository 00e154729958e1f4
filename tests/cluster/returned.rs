//! A node that comes back from its files after another one has taken a slot of it.

use std::time::Duration;

use crate::resharding::{digest, popped};
use crate::scene::{let_pass, Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::{wait_until, Server, PATIENCE};

/// In the slot that goes.
const QUEUES: [&str; 4] = ["{x}leased", "{x}brief", "{x}late", "{x}hourly"];

fn keys_in(node: &Server, slot: u16) -> i64 {
    node.raw().int(&format!("CLUSTER COUNTKEYSINSLOT {slot}"))
}

/// A queue of each kind that time changes, none before ten minutes have passed.
fn fill(node: &Server, other: &str) {
    let mut client = node.raw();
    client.run("DQ.ADD {x}leased a x TTR 600000");
    client.run("DQ.POP {x}leased");
    client.run("DQ.ADD {x}brief a x TTL 600000");
    client.run("DQ.ADD {x}late a x DELAY 600000");
    client.run("DQ.ADD {x}hourly a x EVERY 500000 GRACE 1000");
    client.run(&format!("DQ.ADD {other} a x TTL 600000"));
}

/// What the module has done of itself.
fn done(node: &Server) -> [u64; 3] {
    ["expired", "timed_out", "missed"].map(|what| node.number("dq", &format!("dq_{what}_total")))
}

fn digests(node: &Server) -> Vec<Vec<String>> {
    let mut client = node.raw();
    QUEUES.map(|queue| digest(&mut client, queue)).into()
}

/// Its file has queues of a slot that is another node's by now. Most servers delete them; Redis 7.0 does not tell
/// its AOF so, and has them again after the next start, in a slot that counts as on its way here.
#[test]
fn queues_of_a_slot_that_went_meanwhile_are_left_alone() {
    let builder = Server::builder().aof().module_arguments("test-clock yes");
    let mut cluster = Cluster::start_with(2, builder);
    let (from, slot) = (cluster.node_of("{x}"), cluster.slot_of("{x}"));
    let to = 1 - from;
    let other = (0..)
        .map(|number| format!("{number}"))
        .find(|key| cluster.slot_of(key) != slot && cluster.node_of(key) == from)
        .expect("half of all slots");
    fill(&cluster.nodes[from], &other);
    cluster.begin_move(slot, from, to);
    cluster.nodes[from].kill();
    cluster.tell_owner(slot, to, [to]);
    cluster.nodes[from].restart();
    wait_until("it hears of the new owner", PATIENCE, || {
        keys_in(&cluster.nodes[from], slot) == 0
    });
    cluster.nodes[from].kill();
    cluster.nodes[from].restart();
    cluster.wait_until_ok();

    let (here, there) = (&cluster.nodes[from], &cluster.nodes[to]);
    let (before, is_empty) = (digests(here), keys_in(here, slot) == 0);
    there.raw().says("DQ.ADD {x}late a other", "'a'");
    here.raw().int("DQ.CLOCK ADVANCE 600000");
    wait_until("its own queue's job expires", PATIENCE, || {
        done(here)[0] > 0
    });
    // The slots of the others are asked for three times meanwhile.
    let_pass(Duration::from_millis(350));
    assert_eq!(done(here), [1, 0, 0]);
    assert_eq!(digests(here), before);
    let reply = here.raw().ask("DQ.POP {x}late");
    assert!(reply.starts_with(&format!("-MOVED {slot} ")), "{reply}");
    let job = popped(&mut there.raw(), "DQ.POP {x}late");
    assert_eq!((&*job.payload, job.attempts), ("other", 1));

    // Given back to it, the slot is its own with all that it has there.
    there.raw().says("DEL {x}late", "1");
    cluster.begin_move(slot, to, from);
    cluster.tell_owner(slot, from, [from, to]);
    let all = if is_empty { [1, 0, 0] } else { [2, 1, 1] };
    wait_until("what is overdue has happened", PATIENCE, || {
        done(here) == all
    });
    let jobs = if is_empty { "0" } else { "1" };
    here.raw().says("DQ.LEN {x}late", jobs);
}
