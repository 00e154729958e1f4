//! Old workers and producers that go on meanwhile.

use crate::cmd;
use crate::world::{count, now_ms, World, HOUR_MS, QUEUE};

const JOBS: usize = 1200;

fn imported() -> World {
    let mut world = World::new(&["zset", "old", "--id-json", "id"]);
    let due = now_ms() + HOUR_MS;
    world.zadd(
        "old",
        (0..JOBS).map(|n| (member(n), (due + n as u64).to_string())),
    );
    world.run(&[]).ok();
    world
}

fn member(n: usize) -> String {
    format!(r#"{{"id":"o{n}"}}"#)
}

#[test]
fn what_an_old_worker_took_is_counted_and_cancelled_only_if_told() {
    let mut world = imported();
    for n in 0..3 {
        assert_eq!(count(cmd!(world.client, "ZREM", "old", member(n))), 1);
    }
    world.run(&["--check"]).ok().counts(3, "imported, and GONE");
    let run = world.run(&["--delete-source"]);
    assert_eq!(run.code, 1, "{}", run.text);
    run.counts(JOBS - 3, "deleted from the source")
        .counts(3, "imported, and GONE");
    assert_eq!((world.len(), world.zcard("old")), (JOBS, 0));

    // One of them is with a worker of the new queue: that one cannot be cancelled.
    cmd!(world.client, "DQ.RESCHEDULE", QUEUE, "DELAY", 0, "o1");
    cmd!(world.client, "DQ.POP", QUEUE, "ID", "o1");
    world
        .run(&["--delete-source", "--cancel-gone"])
        .ok()
        .counts(2, "gone from the source since: cancelled in the queue")
        .counts(1, "gone from the source since, and from the queue");
    assert_eq!(world.len(), JOBS - 2);
    // And then there is nothing left to cancel.
    world.run(&["--delete-source", "--cancel-gone"]).ok();
    assert_eq!(world.len(), JOBS - 2);
}

#[test]
fn an_import_that_died_while_deleting_cancels_nothing() {
    let mut world = imported();
    // As it stands when the import dies between its deletion in the source and its note of that.
    let ledger = format!("dq-import:{{{QUEUE}}}:zset old");
    let line: String =
        redis::from_redis_value(cmd!(world.client, "HGET", &ledger, "o4")).expect("a line");
    cmd!(
        world.client,
        "HSET",
        &ledger,
        "o4",
        format!("{line} deleting")
    );
    cmd!(
        world.client,
        "HSET",
        &ledger,
        "o5",
        format!("{line} deleting")
    );
    cmd!(world.client, "ZREM", "old", member(4));
    world
        .run(&["--delete-source", "--cancel-gone", "--finished-ok"])
        .not_in_order("changed in the source"); // o5 has the line of another job
    cmd!(world.client, "ZREM", "old", member(5));
    world
        .run(&["--delete-source", "--cancel-gone"])
        .ok()
        .counts(2, "deleted from the source before")
        .counts(JOBS - 2, "deleted from the source,");
    assert_eq!(world.len(), JOBS, "all of them are jobs still");
}

#[test]
fn what_is_due_soon_stays_with_the_old_workers() {
    let mut world = World::new(&["zset", "old", "--id-json", "id"]);
    let now = now_ms();
    let soon = (0..40).map(|n| (member(n), (now + 1000 * n as u64).to_string()));
    let later = (40..100).map(|n| (member(n), (now + 2 * HOUR_MS + n as u64).to_string()));
    let members: Vec<_> = soon.chain(later).collect();
    world.zadd("old", members);
    let margin = HOUR_MS.to_string();
    world
        .run(&["--due-after", &margin, "--delete-source"])
        .ok()
        .counts(60, "imported")
        .counts(40, "left: due sooner than --due-after")
        .counts(60, "deleted from the source");
    assert_eq!((world.len(), world.zcard("old")), (60, 40));
    // A second run with a longer margin still deletes nothing that it did not import.
    world
        .run(&["--due-after", &(9 * HOUR_MS).to_string(), "--delete-source"])
        .ok();
    assert_eq!((world.len(), world.zcard("old")), (60, 40));
    world.run(&["--delete-source"]).ok();
    assert_eq!((world.len(), world.zcard("old")), (100, 0));
}
