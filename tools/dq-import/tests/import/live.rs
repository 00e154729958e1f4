//! Old workers and producers that continue during the import.

use redis::Value;

use crate::cmd;
use crate::support::{wait_until, PATIENCE};
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
    world.run(&["--check"]).ok().counts(3, "imported, but GONE");
    let run = world.run(&["--delete-source"]);
    assert_eq!(run.code, 1, "{}", run.text);
    run.counts(JOBS - 3, "deleted from the source")
        .counts(3, "imported, but GONE");
    assert_eq!((world.len(), world.zcard("old")), (JOBS, 0));

    // A worker of the new queue has reserved one job: it cannot be cancelled.
    cmd!(world.client, "DQ.RESCHEDULE", QUEUE, "DELAY", 0, "o1");
    cmd!(world.client, "DQ.POP", QUEUE, "ID", "o1");
    world
        .run(&["--delete-source", "--cancel-gone"])
        .ok()
        .counts(2, "gone from the source since: cancelled in the queue")
        .counts(1, "gone from the source and from the queue");
    assert_eq!(world.len(), JOBS - 2);
    // Then nothing is left in the source and in the ledger.
    let run = world.run(&["--delete-source", "--cancel-gone"]);
    assert_eq!(run.code, 2, "{}", run.text);
    run.says("the sorted set old does not exist");
    assert_eq!(world.len(), JOBS - 2);
}

#[test]
fn an_import_that_died_while_deleting_cancels_nothing() {
    let mut world = imported();
    // The run fails between deleting a batch in the source and recording that.
    cmd!(world.client, "ACL", "SETUSER", "default", "-hdel");
    let run = world.run(&["--delete-source", "--cancel-gone", "--batch", "50"]);
    assert_eq!(run.code, 2, "{}", run.text);
    let gone = JOBS - world.zcard("old");
    assert!(gone > 0, "it deleted nothing");
    cmd!(world.client, "ACL", "SETUSER", "default", "+hdel");
    world
        .run(&["--delete-source", "--cancel-gone"])
        .ok()
        .counts(gone, "deleted from the source before")
        .counts(JOBS - gone, "deleted from the source,");
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
        .counts(40, "left: due before --due-after")
        .counts(60, "deleted from the source");
    assert_eq!((world.len(), world.zcard("old")), (60, 40));
    // A second run with a longer margin still deletes nothing that was not imported.
    world
        .run(&["--due-after", &(9 * HOUR_MS).to_string(), "--delete-source"])
        .ok();
    assert_eq!((world.len(), world.zcard("old")), (60, 40));
    world.run(&["--delete-source"]).ok();
    assert_eq!((world.len(), world.zcard("old")), (100, 0));
}

#[test]
fn what_was_imported_before_goes_however_soon_it_is_due() {
    let mut world = imported();
    world
        .run(&["--due-after", &(9 * HOUR_MS).to_string(), "--delete-source"])
        .ok()
        .counts(JOBS, "imported before")
        .counts(JOBS, "deleted from the source,");
    assert_eq!((world.len(), world.zcard("old")), (JOBS, 0));
}

/// Deletes while another client changes jobs in the source. `change` is a script that changes the job ARGV[1] if it
/// exists, and replies whether it did; none of the changed jobs may be deleted.
fn change_while_deleting(source: &[&str], change: &str) {
    const MANY: usize = 4000;
    let mut world = World::new(source);
    for n in 0..MANY {
        cmd!(world.client, "HSET", "bodies", n, "as it was");
        cmd!(world.client, "ZADD", "old", now_ms() + HOUR_MS, n);
    }
    world.run(&["--rate", "0"]).ok();
    let mut tool = world.start(&["--delete-source", "--rate", "2000"]);
    wait_until("the tool deletes", PATIENCE, || world.zcard("old") < MANY);
    let changed: Vec<usize> = (0..MANY)
        .filter(|n| count(cmd!(world.client, "EVAL", change, 0, n)) == 1)
        .collect();
    tool.wait().expect("the tool ends");
    assert!(!changed.is_empty(), "it was quicker");
    for n in changed {
        let score = cmd!(world.client, "ZSCORE", "old", n);
        assert_ne!(score, Value::Nil, "{n} was changed before it was deleted");
        assert_eq!(count(cmd!(world.client, "HEXISTS", "bodies", n)), 1);
    }
}

#[test]
fn another_payload_at_the_moment_of_deletion() {
    change_while_deleting(
        &["ids", "old", "--payload-hash", "bodies"],
        "if not redis.call('ZSCORE', 'old', ARGV[1]) then return 0 end
         redis.call('HSET', 'bodies', ARGV[1], 'changed') return 1",
    );
}

#[test]
fn another_due_at_the_moment_of_deletion() {
    let change = "if not redis.call('ZSCORE', 'old', ARGV[1]) then return 0 end
                  redis.call('ZINCRBY', 'old', 1, ARGV[1]) return 1";
    change_while_deleting(&["ids", "old", "--payload-hash", "bodies"], change);
    change_while_deleting(&["zset", "old"], change);
}
