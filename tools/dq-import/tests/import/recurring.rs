//! Sources of recurring jobs: BullMQ's schedulers, made by BullMQ itself, and the lines of a crontab.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::process::Command;

use redis::{from_redis_value, Value};

use crate::cmd;
use crate::libraries::output_of;
use crate::world::{count, library, program, World, QUEUE};

/// The named fields of a recurring job, as text.
fn fields(world: &mut World, id: &str, names: &[&str]) -> Vec<String> {
    let answer = cmd!(world.client, "DQ.GET", QUEUE, id);
    let fields: Option<HashMap<String, Value>> = from_redis_value(answer).expect("DQ.GET answers");
    let fields = fields.unwrap_or_else(|| panic!("{id} was imported"));
    let text = |name: &&str| match &fields[*name] {
        Value::Nil => "nil".to_owned(),
        Value::Array(all) => format!("{:?}", all.iter().map(number).collect::<Vec<_>>()),
        other => from_redis_value(other.clone()).expect("text"),
    };
    names.iter().map(text).collect()
}

fn number(value: &Value) -> i64 {
    from_redis_value(value.clone()).expect("a number")
}

/// When each runs next.
fn schedulers(world: &World) -> Option<HashMap<String, i64>> {
    let (node, folder) = (program("node")?, library("bullmq", "node_modules/bullmq")?);
    let port = world.server.port().to_string();
    let said = output_of(
        Command::new(node)
            .arg(folder.join("schedulers.mjs"))
            .args([&port, "orders"]),
    );
    Some(serde_json::from_str(&said).expect("JSON"))
}

#[test]
fn bullmq_schedulers_go_on_where_they_were() {
    let mut world = World::new(&["bullmq-schedulers", "orders"]);
    let Some(next) = schedulers(&world) else {
        return;
    };
    assert_eq!(next.len(), 5);
    world
        .run(&[])
        .not_in_order("refused")
        .counts(3, "imported,")
        .counts(
            1,
            "left: its pattern uses the time zone of BullMQ's process",
        )
        .says("REFUSED by the server");
    for id in ["workdays", "hourly", "bounded"] {
        assert_eq!(
            fields(&mut world, id, &["due"])[0],
            next[id].to_string(),
            "{id}"
        );
    }
    let names = [
        "cron",
        "tz",
        "max-attempts",
        "priority",
        "backoff",
        "payload",
    ];
    assert_eq!(
        fields(&mut world, "workdays", &names),
        [
            "0 30 9 * * 1-5",
            "Europe/Berlin",
            "4",
            "3",
            "[1000, 2000, 4000]",
            r#"{"name":"make workdays","data":{"a":"é"}}"#
        ]
    );
    assert_eq!(
        fields(&mut world, "hourly", &["every", "cron"]),
        ["3600000", "nil"]
    );
    assert_eq!(fields(&mut world, "bounded", &["times"]), ["7"]);
    assert_ne!(fields(&mut world, "bounded", &["until"]), ["nil"]);
    // The rule's next instants are those of BullMQ.
    let after = cmd!(world.client, "DQ.NEXT", QUEUE, "hourly", "COUNT", 2);
    let after: Vec<i64> = from_redis_value(after).expect("instants");
    assert_eq!(after, [next["hourly"], next["hourly"] + 3_600_000]);
}

#[test]
fn bullmq_schedulers_are_removed_as_bullmq_does() {
    let mut world = World::new(&["bullmq-schedulers", "orders", "--tz", "UTC"]);
    if schedulers(&world).is_none() {
        return;
    }
    // Schedulers that no server accepts must be removed first, so that the import succeeds.
    for key in ["bull:orders:repeat", "bull:orders:delayed"] {
        let members: Vec<String> =
            from_redis_value(cmd!(world.client, "ZRANGE", key, 0, -1)).expect("members");
        for member in members.iter().filter(|member| member.contains("strange")) {
            cmd!(world.client, "ZREM", key, member);
        }
    }
    world.run(&[]).ok().counts(4, "in the queue");
    // A scheduler that is changed meanwhile stays.
    cmd!(
        world.client,
        "HSET",
        "bull:orders:repeat:hourly",
        "data",
        "{}"
    );
    world
        .run(&["--delete-source"])
        .not_in_order("changed in the source");
    cmd!(world.client, "HDEL", "bull:orders:repeat:hourly", "data");
    world
        .run(&["--delete-source"])
        .ok()
        .counts(4, "deleted from the source");
    assert_eq!(world.zcard("bull:orders:repeat"), 0);
    assert_eq!(world.zcard("bull:orders:delayed"), 0);
    assert_eq!(world.len(), 4);
}

#[test]
fn a_schedulers_run_that_waits_for_bullmqs_workers_does_not_come_twice() {
    let mut world = World::new(&["bullmq-schedulers", "orders", "--tz", "UTC"]);
    let Some(next) = schedulers(&world) else {
        return;
    };
    // As when the run becomes due: BullMQ removes it from the delayed jobs.
    let run = format!("repeat:hourly:{}", next["hourly"]);
    assert_eq!(
        count(cmd!(world.client, "ZREM", "bull:orders:delayed", run)),
        1
    );
    world.run(&[]);
    let due = fields(&mut world, "hourly", &["due"]);
    assert_eq!(due, [(next["hourly"] + 3_600_000).to_string()]);
}

#[test]
fn a_limited_scheduler_runs_no_more_often_than_it_would_have() {
    let mut world = World::new(&["bullmq-schedulers", "orders", "--tz", "UTC"]);
    let Some(next) = schedulers(&world) else {
        return;
    };
    let run = |world: &mut World, id: &str| {
        let run = format!("repeat:{id}:{}", next[id]);
        assert_eq!(
            count(cmd!(world.client, "ZREM", "bull:orders:delayed", run)),
            1
        );
    };
    // The waiting run is BullMQ's: six remain of seven, and none of one.
    run(&mut world, "bounded");
    cmd!(
        world.client,
        "HSET",
        "bull:orders:repeat:hourly",
        "limit",
        1
    );
    run(&mut world, "hourly");
    world
        .run(&[])
        .counts(1, "left: its last run is already due");
    assert_eq!(fields(&mut world, "bounded", &["times"]), ["6"]);
    assert_eq!(
        cmd!(world.client, "DQ.GET", QUEUE, "hourly"),
        Value::Nil,
        "a run too many"
    );
}

#[test]
fn a_crontab_becomes_recurring_jobs_once() {
    let file = env::temp_dir().join(format!("dq-import-crontab-{}", std::process::id()));
    let text =
        "MAILTO=root\nCRON_TZ=Asia/Tokyo\n30 9 * * 1-5 /usr/bin/report.sh --all%to: \\% ann\n\
                @daily rotate.sh\n@reboot start.sh\n5/15 * * * * odd.sh\n";
    fs::write(&file, text).expect("a file");
    let path = file.to_str().expect("text").to_owned();
    let mut world = World::new(&["crontab", &path]);
    let run = world.run(&[]).not_in_order("refused");
    run.counts(2, "imported,")
        .counts(1, "left: @reboot is not a time")
        .says("REFUSED by the server")
        .says("MAILTO");
    assert_eq!(world.len(), 2);
    let scanned = cmd!(world.client, "DQ.SCAN", QUEUE, 0);
    let (_, ids): (String, Vec<String>) = from_redis_value(scanned).expect("ids");
    let report = ids
        .iter()
        .find(|id| id.starts_with("report.sh-"))
        .expect("a readable id");
    assert_eq!(
        fields(&mut world, report, &["cron", "tz", "payload"]),
        [
            "30 9 * * 1-5",
            "Asia/Tokyo",
            r#"{"command":"/usr/bin/report.sh --all","stdin":"to: % ann\n"}"#
        ]
    );
    // A second run adds nothing; and the file is never written.
    world.run(&[]).counts(2, "imported before");
    assert_eq!(world.len(), 2);
    let run = world.run(&["--delete-source"]);
    assert_eq!(run.code, 2, "{}", run.text);
    assert_eq!(fs::read_to_string(&file).expect("a file"), text);
    let _ = fs::remove_file(file);
}
