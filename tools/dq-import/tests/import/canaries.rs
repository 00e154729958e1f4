//! Faults that must make the check fail, and keep the source from being deleted.

use crate::cmd;
use crate::world::{now_ms, World, HOUR_MS, QUEUE};

/// A finished import, whose source still has its 50 jobs.
fn imported() -> World {
    let mut world = World::new(&["ids", "old", "--payload-hash", "bodies"]);
    let due = now_ms() + HOUR_MS;
    for n in 0..50 {
        cmd!(world.client, "HSET", "bodies", n, format!("body {n}"));
        cmd!(world.client, "ZADD", "old", due, n);
    }
    world.run(&[]).ok();
    world
}

#[track_caller]
fn must_fail(mut world: World, left: usize, hint: &str) {
    world.run(&["--check"]).not_in_order(hint);
    world.run(&["--delete-source"]).not_in_order(hint);
    assert_eq!(world.zcard("old"), left, "nothing may be deleted");
}

#[test]
fn the_untouched_one_passes() {
    let mut world = imported();
    world.run(&["--check"]).ok().counts(50, "in the queue");
    world.run(&["--delete-source"]).ok();
    assert_eq!(world.zcard("old"), 0);
}

#[test]
fn another_due_in_the_source() {
    let mut world = imported();
    cmd!(world.client, "ZINCRBY", "old", 1, "7");
    must_fail(world, 50, "changed in the source");
}

#[test]
fn another_payload_in_the_source() {
    let mut world = imported();
    cmd!(world.client, "HSET", "bodies", "7", "body 7!");
    must_fail(world, 50, "changed in the source");
}

#[test]
fn a_new_job_in_the_source() {
    let mut world = imported();
    cmd!(world.client, "HSET", "bodies", "50", "body 50");
    cmd!(world.client, "ZADD", "old", now_ms() + HOUR_MS, "50");
    world
        .run(&["--check"])
        .not_in_order("added to the source")
        .counts(1, "MISSING");
    // The next run imports it.
    world.run(&[]).ok().counts(51, "in the queue");
}

#[test]
fn a_job_lost_from_the_queue() {
    let mut world = imported();
    cmd!(world.client, "DQ.DEL", QUEUE, "7");
    must_fail(world, 50, "no longer in the queue");
}

#[test]
fn another_payload_in_the_queue() {
    let mut world = imported();
    let due = now_ms() + HOUR_MS;
    cmd!(
        world.client,
        "DQ.ADD",
        QUEUE,
        "7",
        "other",
        "REPLACE",
        "AT",
        due
    );
    must_fail(world, 50, "differ from what was imported");
}

#[test]
fn another_due_in_the_queue() {
    let mut world = imported();
    cmd!(
        world.client,
        "DQ.RESCHEDULE",
        QUEUE,
        "DELAY",
        HOUR_MS * 2,
        "7"
    );
    must_fail(world, 50, "differ from what was imported");
}

#[test]
fn a_lost_ledger() {
    let mut world = imported();
    cmd!(
        world.client,
        "DEL",
        format!("dq:import:{{{QUEUE}}}:ids old")
    );
    world.run(&["--check"]).not_in_order("added to the source");
    // A second run finds the jobs by their ids, adds nothing, and deletes nothing.
    world
        .run(&["--delete-source"])
        .ok()
        .counts(50, "duplicates");
    assert_eq!((world.len(), world.zcard("old")), (50, 50));
}

#[test]
fn the_wrong_kind_of_key_is_an_error_that_names_it() {
    for source in ["text", QUEUE] {
        let mut world = World::new(&["zset", source]);
        cmd!(world.client, "SET", "text", "x");
        cmd!(world.client, "DQ.ADD", QUEUE, "a", "x");
        let run = world.run(&[]);
        assert_eq!(run.code, 2, "{}", run.text);
        run.says(&format!("the sorted set {source}: "))
            .says("WRONGTYPE");
    }
}
