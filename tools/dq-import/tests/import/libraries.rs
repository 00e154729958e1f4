//! Structures made by BullMQ and Redisson themselves.

use std::collections::HashMap;
use std::process::Command;

use redis::{from_redis_value, Value};
use serde_json::Value as Json;

use crate::cmd;
use crate::world::{all_jobs, count, library, program, World, QUEUE};

const JOBS: usize = 700;

#[track_caller]
pub fn output_of(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

fn bullmq(world: &World) -> Option<Vec<Json>> {
    let (node, folder) = (program("node")?, library("bullmq", "node_modules/bullmq")?);
    let said = output_of(Command::new(node).arg(folder.join("make.mjs")).args([
        &world.server.port().to_string(),
        "orders",
        &JOBS.to_string(),
    ]));
    Some(
        said.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect(),
    )
}

fn text(json: &Json) -> String {
    json.as_str().expect("text").to_owned()
}

#[test]
fn bullmq_delayed_jobs() {
    let mut world = World::new(&["bullmq", "orders"]);
    let Some(made) = bullmq(&world) else { return };
    assert_eq!(made.len(), JOBS + 1);
    world
        .run(&[])
        .ok()
        .counts(JOBS + 1, "in the queue")
        .counts(1, "left: it belongs to a job scheduler")
        .counts(1, "left: it is the child of a flow")
        .says("2 jobs are already due, 0 are active");
    for job in &made {
        let found = world.job(&text(&job["id"])).expect("imported");
        assert_eq!(Some(found.due_ms), job["due"].as_u64(), "{job}");
        let expected = format!(
            r#"{{"name":{},"data":{}}}"#,
            serde_json::to_string(&job["name"]).expect("JSON"),
            text(&job["data"])
        );
        assert_eq!(found.payload, expected);
    }
    let first = world.job("1").expect("BullMQ counts from 1");
    assert_eq!((first.priority, first.max_attempts), (1, 4));
    assert_eq!(first.backoff, [1000, 2000, 4000]);
    let second = world.job("order-1").expect("imported");
    assert_eq!((second.priority, second.max_attempts), (0, 1));
}

#[test]
fn bullmq_is_left_as_if_it_had_removed_the_jobs_itself() {
    let mut world = World::new(&["bullmq", "orders", "--payload", "data"]);
    let Some(made) = bullmq(&world) else { return };
    world
        .run(&["--delete-source"])
        .ok()
        .counts(JOBS + 1, "deleted from the source");
    let id = text(&made[0]["id"]);
    assert_eq!(
        world.job(&id).expect("imported").payload,
        text(&made[0]["data"])
    );
    assert_eq!(world.zcard("bull:orders:delayed"), 2);
    for job in &made {
        let key = format!("bull:orders:{}", text(&job["id"]));
        assert_eq!(count(cmd!(world.client, "EXISTS", key)), 0, "{job}");
    }
    // The id that excluded other jobs is free again, and BullMQ continues with its queue.
    assert_eq!(
        count(cmd!(world.client, "EXISTS", "bull:orders:de:shared")),
        0
    );
    assert_eq!(bullmq(&world).expect("BullMQ is here").len(), JOBS + 1);
}

#[test]
fn bullmqs_due_jobs_move_if_asked() {
    let mut world = World::new(&["bullmq", "orders", "--due"]);
    if bullmq(&world).is_none() {
        return;
    }
    let places = |world: &mut World| {
        [("LLEN", "wait"), ("ZCARD", "prioritized")].map(|(length, place)| {
            count(cmd!(world.client, length, format!("bull:orders:{place}")))
        })
    };
    assert_eq!(places(&mut world), [1, 1]);
    world
        .run(&["--delete-source"])
        .ok()
        .counts(JOBS + 3, "deleted from the source");
    assert_eq!(places(&mut world), [0, 0]);
    assert_eq!(count(cmd!(world.client, "DQ.LEN", QUEUE, "READY")), 2);
    // The order of priorities is BullMQ's: a job without one comes before all others.
    let payloads: Vec<String> = (0..2)
        .map(|_| {
            let job: Vec<Value> =
                from_redis_value(cmd!(world.client, "DQ.POP", QUEUE)).expect("a job");
            from_redis_value(job[1].clone()).expect("text")
        })
        .collect();
    assert_eq!(
        payloads,
        [
            r#"{"name":"due","data":{}}"#,
            r#"{"name":"urgent","data":{}}"#
        ]
    );
    // A paused queue keeps its jobs elsewhere.
    assert!(bullmq(&world).is_some());
    cmd!(
        world.client,
        "RENAME",
        "bull:orders:wait",
        "bull:orders:paused"
    );
    world.run(&[]).ok();
    assert_eq!(count(cmd!(world.client, "DQ.LEN", QUEUE, "READY")), 2);
}

#[test]
fn bullmq_data_changed_in_the_source() {
    let mut world = World::new(&["bullmq", "orders"]);
    if bullmq(&world).is_none() {
        return;
    }
    world.run(&[]).ok();
    cmd!(world.client, "HSET", "bull:orders:order-1", "data", "{}");
    world
        .run(&["--delete-source"])
        .not_in_order("changed in the source");
    assert_eq!(world.zcard("bull:orders:delayed"), JOBS + 3);
}

#[test]
fn redisson_of_today() {
    redisson("3.52.0");
}

#[test]
fn redisson_with_its_former_packing() {
    redisson("3.16.8");
}

fn redisson(version: &str) {
    let mut world = World::new(&["redisson", "orders"]);
    let (Some(java), Some(folder)) = (
        program("java"),
        library(
            &format!("redisson-{version}"),
            &format!("redisson-{version}.jar"),
        ),
    ) else {
        return;
    };
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../dq-import/tests/real/redisson/Make.java"
    );
    let said = output_of(Command::new(java).args([
        "-cp",
        &format!("{}/*", folder.display()),
        source,
        &world.server.port().to_string(),
        "orders",
        &JOBS.to_string(),
    ]));
    let mut made = elements(&said);
    assert_eq!(made.len(), JOBS);
    let before = lists(&mut world);
    world
        .run(&[])
        .ok()
        .counts(JOBS, "in the queue")
        .says("one element is already due");
    assert_eq!(lists(&mut world), before, "the source is only read");

    let mut found: Vec<(String, u64)> = all_jobs(&mut world.client)
        .into_values()
        .map(|job| (job.payload, job.due_ms))
        .collect();
    found.sort();
    made.sort();
    for ((payload, due), (element, earliest, latest)) in found.iter().zip(&made) {
        assert_eq!(payload, element);
        assert!((earliest..=latest).contains(&due), "{element}");
    }
    world
        .run(&["--delete-source"])
        .ok()
        .counts(JOBS, "deleted from the source");
    assert_eq!(lists(&mut world), [0, 0, 1]);
    assert_eq!(count(cmd!(world.client, "DQ.LEN", QUEUE)), JOBS);
}

/// Element, earliest and latest due time. Of two equal elements the first added is due first only by chance, so both
/// are compared in the order of their due times.
fn elements(said: &str) -> Vec<(String, u64, u64)> {
    said.lines()
        .map(|line| {
            let mut parts = line.split('\t');
            let mut part = || parts.next().expect("three parts").to_owned();
            let (earliest, latest) = (part(), part());
            let number = |text: String| text.parse().expect("an instant");
            (part(), number(earliest), number(latest))
        })
        .collect()
}

/// Lengths of the sorted set, of the list of delayed elements, and of the list of elements that are due.
fn lists(world: &mut World) -> [usize; 3] {
    let client = &mut world.client;
    [
        count(cmd!(
            client,
            "ZCARD",
            "redisson_delay_queue_timeout:{orders}"
        )),
        count(cmd!(client, "LLEN", "redisson_delay_queue:{orders}")),
        count(cmd!(client, "LLEN", "orders")),
    ]
}

#[test]
fn the_libraries_write_what_is_expected_of_them() {
    // If a library changes its layout, this test shows it first.
    let mut world = World::new(&["bullmq", "orders"]);
    if bullmq(&world).is_none() {
        return;
    }
    let fields: HashMap<String, Value> =
        from_redis_value(cmd!(world.client, "HGETALL", "bull:orders:1")).expect("a hash");
    for name in ["name", "data", "opts", "priority", "timestamp", "delay"] {
        assert!(fields.contains_key(name), "{name} in {fields:?}");
    }
}
