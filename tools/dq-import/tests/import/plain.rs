//! Sorted sets as applications poll them.

use redis::Value;

use crate::support::{wait_until, Server, PATIENCE};
use crate::world::{count, job, now_ms, url_of, World, HOUR_MS, QUEUE};
use crate::{cmd, world};

/// Too many members for a listpack, so that ZSCAN has several pages.
const MANY: u64 = 1500;

fn many(world: &mut World, due_ms: u64) {
    let members = (0..MANY).map(|n| {
        (
            format!(r#"{{"id":"o{n}"}}"#),
            (due_ms + n % 700).to_string(),
        )
    });
    world.zadd("old", members);
}

#[test]
fn members_come_with_their_dues_and_the_source_stays() {
    let mut world = World::new(&["zset", "old", "--id-json", "id"]);
    let due = now_ms() + HOUR_MS;
    many(&mut world, due);
    let before = cmd!(world.client, "DUMP", "old");
    world
        .run(&[])
        .ok()
        .counts(MANY as usize, "imported")
        .counts(MANY as usize, "in the queue");
    assert_eq!(world.len(), MANY as usize);
    for n in [0, 1, 699, 700, MANY - 1] {
        let job = world.job(&format!("o{n}")).expect("imported");
        assert_eq!(job.due_ms, due + n % 700);
        assert_eq!(job.payload, format!(r#"{{"id":"o{n}"}}"#));
    }
    assert_eq!(cmd!(world.client, "DUMP", "old"), before);
}

#[test]
fn seconds_become_milliseconds_and_what_is_due_is_ready() {
    let mut world = World::new(&["zset", "old", "--unit", "s"]);
    let due = now_ms() / 1000 + 3600;
    world.zadd(
        "old",
        [
            ("later".to_owned(), format!("{due}.25")),
            ("past".to_owned(), "1000000000".to_owned()),
            ("never".to_owned(), "inf".to_owned()),
        ],
    );
    world
        .run(&[])
        .ok()
        .counts(2, "in the queue")
        .counts(1, "left: its score is not an instant");
    let Value::Array(popped) = cmd!(world.client, "DQ.POP", QUEUE) else {
        panic!("nothing is ready");
    };
    assert_eq!(popped[1], Value::BulkString(b"past".to_vec()));
    let peeked = cmd!(world.client, "DQ.PEEK", QUEUE, "DELAYED");
    let due = (due * 1000 + 250) as i64;
    assert!(
        format!("{peeked:?}").contains(&format!("int({due})")),
        "{peeked:?}"
    );
}

#[test]
fn a_dry_run_writes_nothing() {
    let mut world = World::new(&["zset", "old"]);
    many(&mut world, now_ms() + HOUR_MS);
    let digest = world.server.digest();
    world
        .run(&["--dry-run"])
        .ok()
        .counts(MANY as usize, "would be imported");
    assert_eq!(world.server.digest(), digest);
}

#[test]
fn killed_in_the_middle_it_goes_on_and_adds_nothing_twice() {
    let mut world = World::new(&["zset", "old", "--id-json", "id"]);
    many(&mut world, now_ms() - HOUR_MS); // due: workers can have them at once
    let mut tool = world.start(&["--batch", "10", "--rate", "50"]);
    wait_until("some jobs are imported", PATIENCE, || world.len() >= 30);
    tool.kill().expect("the tool runs");
    tool.wait().expect("the tool ends");
    let so_far = world.len();
    assert!(so_far < MANY as usize, "killed too late");

    // Workers finish some of the jobs before the import continues.
    let finished = 20;
    for _ in 0..finished {
        let popped: (String, Value, Value, Value, Value) =
            redis::from_redis_value(cmd!(world.client, "DQ.POP", QUEUE)).expect("a ready job");
        assert_eq!(count(cmd!(world.client, "DQ.ACK", QUEUE, popped.0)), 1);
    }
    world
        .run(&["--finished-ok"])
        .ok()
        .counts(so_far, "imported before")
        .counts(MANY as usize - so_far, "imported,")
        .counts(finished, "imported, but no longer in the queue");
    assert_eq!(world.len(), MANY as usize - finished, "none came back");
    let added: i64 = world
        .server
        .info("dq", "dq_added_total")
        .parse()
        .expect("a number");
    assert_eq!(added, MANY as i64);
}

#[test]
fn ids_with_a_hash_and_with_keys() {
    let sources: [&[&str]; 3] = [
        &["ids", "old", "--payload-hash", "bodies"],
        &["ids", "old", "--payload-key", "body:{id}:x"],
        &[
            "ids",
            "old",
            "--payload-key",
            "body:{id}:h",
            "--payload-field",
            "data",
        ],
    ];
    for source in sources {
        let mut world = World::new(source);
        let due = now_ms() + HOUR_MS;
        let ids = || (0..600).map(|n| n.to_string());
        world.zadd("old", ids().map(|id| (id, due.to_string())));
        for id in ids().filter(|id| id != "7") {
            cmd!(world.client, "HSET", "bodies", &id, format!("body {id}"));
            cmd!(
                world.client,
                "SET",
                format!("body:{id}:x"),
                format!("body {id}")
            );
            cmd!(
                world.client,
                "HSET",
                format!("body:{id}:h"),
                "data",
                format!("body {id}")
            );
        }
        world
            .run(&[])
            .ok()
            .counts(599, "in the queue")
            .counts(1, "left: it has no payload");
        let job = world.job("8").expect("imported");
        assert_eq!((job.payload.as_str(), job.due_ms), ("body 8", due));
        world
            .run(&["--delete-source"])
            .ok()
            .counts(599, "deleted from the source");
        assert_eq!(world.zcard("old"), 1, "{source:?}");
        let bodies = match source[2] {
            "--payload-hash" => count(cmd!(world.client, "HLEN", "bodies")),
            _ => 599 - count(cmd!(world.client, "DBSIZE")).min(599),
        };
        assert_eq!(bodies, 0, "{source:?}");
    }
}

#[test]
fn the_queue_may_be_on_another_server() {
    let mut world = World::new(&["zset", "old", "--id-json", "id"]);
    let due = now_ms() + HOUR_MS;
    many(&mut world, due);
    let other = Server::start();
    let to = url_of(&other);
    world.run(&["-u", &to]).ok();
    let mut there = other.connect();
    assert_eq!(count(cmd!(there, "DQ.LEN", QUEUE)), MANY as usize);
    assert_eq!(job(&mut there, "o3").expect("imported").due_ms, due + 3);
    world.run(&["-u", &to, "--delete-source"]).ok();
    assert_eq!(count(cmd!(world.client, "DBSIZE")), 0);
    // The ledger was removed with its last job.
    assert_eq!(count(cmd!(there, "DBSIZE")), 1);
}

#[test]
fn a_source_that_does_not_exist_is_an_error() {
    for source in [
        vec!["zset", "old"],
        vec!["ids", "old", "--payload-hash", "bodies"],
        vec!["redisson", "old"],
        vec!["bullmq", "old"],
    ] {
        let mut world = World::new(&source);
        cmd!(world.client, "ZADD", "odl", now_ms(), "a");
        for mode in ["--dry-run", "--check", "--delete-source", "--finished-ok"] {
            let run = world.run(&[mode]);
            assert_eq!(run.code, 2, "{source:?} {mode}: {}", run.text);
            run.says("old").says("does not exist");
        }
        assert_eq!(count(cmd!(world.client, "DBSIZE")), 1);
    }
    // A source that has disappeared with its last job since is no error.
    let mut world = World::new(&["zset", "old"]);
    world.zadd("old", [("a".to_owned(), (now_ms() + HOUR_MS).to_string())]);
    world.run(&[]).ok();
    cmd!(world.client, "DEL", "old");
    world.run(&[]).ok().counts(1, "imported, but GONE");
}

/// Members as Redisson packs them: a random id and the element, each after its length.
fn redisson(world: &mut World, elements: &[&str]) {
    let due = now_ms() + HOUR_MS;
    for (number, element) in elements.iter().enumerate() {
        let mut member = vec![8, number as u8, 1, 2, 3, 4, 5, 6, 7];
        member.extend((element.len() as u64).to_le_bytes());
        member.extend(element.as_bytes());
        let timeouts = "redisson_delay_queue_timeout:{orders}";
        cmd!(world.client, "ZADD", timeouts, due, &member);
        cmd!(
            world.client,
            "RPUSH",
            "redisson_delay_queue:{orders}",
            &member
        );
    }
}

/// Imports elements that contain their ids, all but the last one.
fn say_their_ids(world: &mut World, elements: &[&str], ids: &[&str], why: &str) {
    world
        .run(&["--delete-source"])
        .ok()
        .counts(ids.len(), "deleted from the source")
        .counts(1, why);
    for (id, element) in ids.iter().zip(elements) {
        assert_eq!(world.job(id).expect("imported").payload, *element);
    }
}

#[test]
fn redissons_elements_say_their_ids() {
    let mut world = World::new(&["redisson", "orders", "--id-json", "order"]);
    let elements = [r#"{"order":"o1"}"#, r#"{"order":17,"x":[]}"#, "no JSON"];
    redisson(&mut world, &elements);
    let why = "left: it is not a JSON object with that field";
    say_their_ids(&mut world, &elements, &["o1", "17"], why);
}

#[test]
fn redissons_elements_are_their_ids() {
    // As StringCodec and a JSON codec write them.
    let mut world = World::new(&["redisson", "orders", "--id-text", "order:{id}"]);
    let elements = ["order:17", r#""order:b 2""#, "bill:3"];
    redisson(&mut world, &elements);
    let why = "left: it does not match --id-text";
    say_their_ids(&mut world, &elements, &["17", "b 2"], why);
}

#[test]
fn members_are_their_ids() {
    let mut world = World::new(&["zset", "old", "--id-text", "{id}"]);
    let elements = ["17", r#""a""#, r#""""#];
    let due = (now_ms() + HOUR_MS).to_string();
    world.zadd("old", elements.map(|it| (it.to_owned(), due.clone())));
    let why = "left: it does not match --id-text";
    say_their_ids(&mut world, &elements, &["17", "a"], why);
}

#[test]
fn an_id_text_without_a_place_for_the_id_is_an_error() {
    let mut world = World::new(&["zset", "old", "--id-text", "order"]);
    world.zadd("old", [("a".to_owned(), "1".to_owned())]);
    let run = world.run(&[]);
    assert_eq!(run.code, 2, "{}", run.text);
    run.says("--id-text must contain {id}");
}

#[test]
fn a_full_queue_stops_it_and_it_goes_on_when_there_is_room() {
    let mut world = World::new(&["zset", "old"]);
    many(&mut world, now_ms() + HOUR_MS);
    cmd!(world.client, "DQ.CFGSET", QUEUE, "MAXLEN", 100);
    let run = world.run(&[]);
    assert_eq!(run.code, 2, "{}", run.text);
    run.says("MAXLEN");
    assert_eq!(world.len(), 100);
    cmd!(world.client, "DQ.CFGSET", QUEUE, "MAXLEN", 0);
    world.run(&[]).ok().counts(100, "imported before");
    assert_eq!(world.len(), MANY as usize);
}

#[test]
fn a_job_that_the_queue_had_before_stays_as_it_is() {
    let mut world = World::new(&["zset", "old", "--id-json", "id"]);
    many(&mut world, now_ms() + HOUR_MS);
    cmd!(world.client, "DQ.ADD", QUEUE, "o5", "of a new producer");
    world
        .run(&["--delete-source"])
        .ok()
        .counts(1, "duplicates: the queue already had a job with that id")
        .counts(MANY as usize - 1, "deleted from the source");
    assert_eq!(world.job("o5").expect("there").payload, "of a new producer");
    assert_eq!(world.zcard("old"), 1, "what was not imported stays");
    // Two sources into one queue, with prefixes.
    let run = world
        .command(&["--id-prefix", "second-", "--delete-source"])
        .output();
    world::run_of(run.expect("the tool runs")).ok();
    assert_eq!(world.job("o5").expect("there").payload, "of a new producer");
}

#[test]
fn of_two_with_one_id_one_moves_and_the_other_holds_up_nothing() {
    let mut world = World::new(&["zset", "old", "--id-json", "id"]);
    let due = now_ms() + HOUR_MS;
    many(&mut world, due);
    let twin = r#"{"id":"o5","n":2}"#.to_owned();
    world.zadd("old", [(twin.clone(), (due + 9).to_string())]);
    let same = "left: another job of the source has the same id";
    world.run(&["--dry-run"]).ok().counts(1, same);
    world
        .run(&[])
        .ok()
        .counts(MANY as usize, "in the queue")
        .counts(1, same);
    world
        .run(&["--delete-source"])
        .ok()
        .counts(MANY as usize, "deleted from the source");
    assert_eq!((world.zcard("old"), world.len()), (1, MANY as usize));
    // The imported job is gone: what is left is another job, whose id the queue cannot hold twice.
    world
        .run(&["--delete-source"])
        .ok()
        .counts(1, "duplicates: the queue already had a job with that id");
}

#[test]
fn two_elements_that_are_equal_but_for_redissons_id_are_two() {
    let mut world = World::new(&["redisson", "orders", "--id-text", "{id}"]);
    redisson(&mut world, &["17", "17", "18"]);
    world
        .run(&["--delete-source"])
        .ok()
        .counts(2, "deleted from the source")
        .counts(1, "left: another job of the source has the same id");
    assert_eq!(world.zcard("redisson_delay_queue_timeout:{orders}"), 1);
}

#[test]
fn redissons_due_elements_move_if_asked() {
    let mut world = World::new(&["redisson", "orders", "--due"]);
    redisson(&mut world, &["later"]);
    for n in 0..500 {
        cmd!(world.client, "RPUSH", "orders", format!("e{}", n / 2));
    }
    world.run(&["--dry-run"]).ok().counts(501, "would be");
    // Repeated and interrupted: each job once, equal ones too.
    let mut tool = world.start(&["--batch", "10", "--rate", "500"]);
    wait_until("some jobs are imported", PATIENCE, || world.len() >= 30);
    tool.kill().expect("the tool runs");
    tool.wait().expect("the tool ends");
    world.run(&[]).ok().counts(501, "in the queue");
    world
        .run(&["--delete-source", "--batch", "7"])
        .ok()
        .counts(501, "deleted from the source");
    assert_eq!(count(cmd!(world.client, "EXISTS", "orders")), 0);
    // In their order, before jobs due later.
    let popped = cmd!(world.client, "DQ.POP", QUEUE, "COUNT", 1000, "NOACK");
    let popped: Vec<Vec<Value>> = redis::from_redis_value(popped).expect("jobs");
    let payloads: Vec<String> = popped
        .into_iter()
        .map(|job| redis::from_redis_value(job[1].clone()).expect("text"))
        .collect();
    let expected: Vec<String> = (0..500).map(|n| format!("e{}", n / 2)).collect();
    assert_eq!(payloads, expected);
}

#[test]
fn what_is_due_and_what_is_left_to_the_old_workers_exclude_each_other() {
    for source in ["redisson", "bullmq"] {
        let world = World::new(&[source, "orders", "--due"]);
        let run = world.run(&["--due-after", "1000"]);
        assert_eq!(run.code, 2, "{}", run.text);
        run.says("--due-after");
    }
}

#[test]
fn large_payloads_go_in_smaller_batches() {
    let mut world = World::new(&["ids", "old", "--payload-hash", "bodies"]);
    for n in 0..7 {
        cmd!(world.client, "HSET", "bodies", n, vec![b'x'; 5 << 20]);
        cmd!(world.client, "ZADD", "old", now_ms() + HOUR_MS, n);
    }
    cmd!(
        world.client,
        "CONFIG",
        "SET",
        "client-query-buffer-limit",
        12 << 20
    );
    world.run(&[]).ok().counts(7, "in the queue");
}
