//! Workers and queues against a server of the test's own, whose clock the test moves. Needs `DQ_MODULE`.

use dq_redis::testing::TestServer;
use dq_redis::{
    give_up, BoxError, Codec, Error, Handler, Headers, Hooks, Job, Kind, NewJob, OnDead, Outcome,
    Peek, Pop, Queue, QueueSettings, Rate, Reschedule, Scan, Server, State, Suspended, WaitFor,
    Worker,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
struct Order {
    number: u32,
}

async fn double(job: Job<Order>) -> Result<u32, Error> {
    Ok(2 * job.data.number)
}

async fn server() -> (TestServer, Queue) {
    let server = TestServer::start().await.expect("a server");
    let queue = server.queue("orders");
    (server, queue)
}

#[tokio::test]
async fn a_job_in_thirty_days() -> Result<(), Error> {
    let (server, queue) = server().await;
    let worker = Worker::new(&queue).handler(Handler::new(double));
    let added = queue
        .add(&Order { number: 21 })
        .id("close:17")
        .delay(30 * DAY)
        .keep(DAY)
        .await?;
    assert_eq!(added.as_deref(), Some("close:17"));
    assert_eq!(queue.add(&Order { number: 22 }).id("close:17").await?, None);
    server.clock().advance(29 * DAY).await?;
    assert_eq!(worker.drain().await?, 0);
    server.clock().advance(DAY).await?;
    assert_eq!(worker.drain().await?, 1);
    assert_eq!(queue.result("close:17").await?, Some(42));
    assert_eq!(queue.result::<u32>("nothing").await?, None);
    Ok(())
}

#[tokio::test]
async fn ladders_attempts_and_reasons() -> Result<(), Error> {
    let (server, queue) = server().await;
    let handler = |job: Job<Order>| async move {
        match job.data.number {
            0 => Err::<(), BoxError>("no paper".into()),
            1 => panic!("out of ink"),
            _ => Err(give_up("no such order").into()),
        }
    };
    let worker = Worker::new(&queue).handler(Handler::new(handler).attempts(2).backoff([MINUTE]));
    for number in 0..3 {
        queue.add(&Order { number }).id(number.to_string()).await?;
    }
    queue.add_bytes("no JSON").id("bad").await?;
    assert_eq!(worker.drain().await?, 4);
    server.clock().advance(MINUTE).await?;
    assert_eq!(worker.drain().await?, 2);
    let mut reasons = Vec::new();
    for id in ["0", "1", "2"] {
        let job = queue.get(id).await?.expect("it is kept");
        assert_eq!(job.state, State::Dead);
        reasons.push(job.reason.unwrap_or_default());
    }
    assert_eq!(
        reasons,
        ["Error: no paper", "panic: out of ink", "no such order"]
    );
    let bad = queue
        .get("bad")
        .await?
        .and_then(|job| job.reason)
        .unwrap_or_default();
    assert!(bad.starts_with("payload cannot be decoded: "), "{bad}");
    assert!(matches!(
        queue.result::<u32>("2").await,
        Err(Error::JobFailed {
            outcome: Outcome::Dead,
            ..
        })
    ));
    assert_eq!(queue.kick(["0", "1"]).await?, 2);
    Ok(())
}

#[tokio::test]
async fn steps_sleeps_and_children() -> Result<(), Error> {
    static CHARGED: AtomicUsize = AtomicUsize::new(0);
    let (server, queue) = server().await;
    async fn parent(job: Job<Order>) -> Result<u32, BoxError> {
        if job.kind().is_some() {
            return Ok(job.data.number);
        }
        let charge = || async { Ok::<_, Error>(CHARGED.fetch_add(1, Ordering::Relaxed)) };
        let charged: usize = job.step("charge", charge).await?;
        job.sleep("a day", DAY).await?;
        let children = (1..3).map(|number| NewJob::new(&Order { number }).kind("child").keep(DAY));
        let results = job.spawn(children.collect(), WaitFor::new()).await?;
        let sum: u32 = results
            .iter()
            .filter_map(|each| each.decode::<u32>().ok().flatten())
            .sum();
        Ok(sum + charged as u32)
    }
    let worker = Worker::new(&queue)
        .handler(Handler::new(parent))
        .handler(Handler::new(parent).kind("child"));
    queue
        .add(&Order { number: 17 })
        .id("j")
        .attempts(1)
        .keep(DAY)
        .await?;
    assert_eq!(worker.drain().await?, 1);
    server.clock().advance(DAY).await?;
    assert_eq!(worker.drain().await?, 4);
    assert_eq!(
        (queue.result("j").await?, CHARGED.load(Ordering::Relaxed)),
        (Some(3), 1)
    );
    Ok(())
}

#[tokio::test]
async fn what_a_delivery_costs_is_said_afterwards() -> Result<(), Error> {
    let (server, queue) = server().await;
    let rate = Rate {
        jobs: 10,
        window: MINUTE,
    };
    queue
        .configure(QueueSettings {
            rate: Some(rate),
            ..QueueSettings::default()
        })
        .await?;
    for number in 0..3 {
        queue.add(&Order { number }).await?;
    }
    let work = |job: Job<Order>| async move { job.set_cost(10).await };
    let worker = Worker::new(&queue).handler(Handler::new(work));
    assert_eq!((worker.drain().await?, worker.drain().await?), (1, 0));
    server.clock().advance(MINUTE).await?;
    assert_eq!(worker.drain().await?, 1);
    server.clock().advance(MINUTE).await?;
    let job = queue.pop(Pop::default()).await?.remove(0);
    let token = job.token.as_deref().expect("a token");
    assert!(queue.set_cost(&job.id, token, 2).await?);
    assert!(!queue.set_cost(&job.id, "17", 2).await?);
    Ok(())
}

#[tokio::test]
async fn a_script_that_fails_has_no_step() -> Result<(), Error> {
    const SCRIPT: &str =
        "if ARGV[1] ~= '' then return redis.error_reply(ARGV[1]) end return redis.call('LPUSH', KEYS[1], 1)";
    let (server, queue) = server().await;
    let handler = |job: Job<Order>| async move {
        let is_first = job.attempt() == 1;
        let mine = job
            .once(
                "mine",
                SCRIPT,
                &["l"],
                &[if is_first { "MYERR no" } else { "" }],
            )
            .await;
        let theirs = job
            .once(
                "theirs",
                SCRIPT,
                &[if is_first { "orders" } else { "l" }],
                &[""],
            )
            .await;
        match job.attempt() {
            1 => {
                assert!(
                    matches!(mine, Err(Error::Refused(why)) if (&*why.code, &*why.said) == ("MYERR", "no"))
                );
                assert!(matches!(theirs, Err(Error::Refused(why)) if why.code == "WRONGTYPE"));
            }
            attempt => {
                let ran = [mine?.is_some(), theirs?.is_some()];
                assert_eq!(ran, [attempt == 2; 2]);
            }
        }
        (job.attempt() == 3)
            .then_some(())
            .ok_or(BoxError::from("again"))
    };
    let worker = Worker::new(&queue).handler(Handler::new(handler).backoff([MINUTE]));
    queue
        .add(&Order { number: 1 })
        .id("j")
        .attempts(3)
        .keep(DAY)
        .await?;
    for _ in 0..3 {
        assert_eq!(worker.drain().await?, 1);
        server.clock().advance(MINUTE).await?;
    }
    let ended = queue.get("j").await?.expect("it is kept");
    assert_eq!((ended.state, ended.reason), (State::Done, None));
    Ok(())
}

/// The server says so, and closes the connection amid the command.
#[tokio::test]
async fn a_result_too_large_for_the_server_is_left_out() -> Result<(), Error> {
    let (server, queue) = server().await;
    let mut limit = redis::cmd("CONFIG");
    limit.arg("SET").arg("proto-max-bulk-len").arg("1mb");
    let client = redis::Client::open(server.url()).expect("a URL");
    let mut connection = client
        .get_multiplexed_async_connection()
        .await
        .expect("it is there");
    let _: String = limit
        .query_async(&mut connection)
        .await
        .expect("it may be set");
    for number in 0..20 {
        queue.add(&Order { number }).await?;
    }
    let handler = |job: Job<Order>| async move {
        Ok::<_, Error>(
            job.data
                .number
                .is_multiple_of(7)
                .then(|| "x".repeat(5 << 20)),
        )
    };
    let worker = Worker::new(&queue)
        .handler(Handler::new(handler))
        .concurrency(2);
    let all_are_done = async {
        while queue.len().await.expect("it answers") > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let limit = Duration::from_secs(60);
    worker
        .run_until(async {
            tokio::time::timeout(limit, all_are_done)
                .await
                .expect("all jobs are done in time")
        })
        .await
}

#[tokio::test]
async fn a_rule_stands_beside_its_handler() -> Result<(), Error> {
    let (server, queue) = server().await;
    let ruled = |kind: &str, rule: NewJob| {
        let handler = Handler::new(|_: Job| async { Ok::<_, Error>(()) });
        Worker::new(&queue).handler(handler.kind(kind).rule(rule))
    };
    let nightly = || {
        NewJob::cron("0 2 * * *", &())
            .tz("Europe/Berlin")
            .attempts(3)
    };
    for count in [0, 1] {
        assert_eq!(ruled("nightly", nightly()).drain().await?, count);
        let job = queue.get("nightly").await?.expect("it is said");
        assert_eq!(
            (job.label.as_deref(), job.max_attempts),
            (Some("nightly"), 3)
        );
        server.clock().advance(DAY).await?;
    }
    let past = std::time::UNIX_EPOCH + DAY;
    ruled("over", nightly().until(past)).drain().await?;
    queue
        .configure(QueueSettings {
            maxlen: Some(1),
            ..Default::default()
        })
        .await?;
    ruled("full", nightly().id("another")).drain().await?;
    assert_eq!(queue.ids(&Scan::new()).await?, ["nightly"]);
    for (rule, mistake) in [
        (
            NewJob::cron("0 25 * * *", &()),
            "job \"other\" of queue \"orders\": the server refused cron=\"0 25 * * *\"",
        ),
        (NewJob::new(&()), "the rule of a handler is a job of"),
    ] {
        let error = ruled("other", rule)
            .drain()
            .await
            .expect_err(mistake)
            .to_string();
        assert!(error.contains(mistake), "{error}");
    }
    Ok(())
}

static DOUBLE: Kind<Order, u32> = Kind::new("double").defaults(|job| job.attempts(5));

#[tokio::test]
async fn a_kind_is_declared_once() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let order = Order { number: 21 };
    let worker = Worker::new(&queue).handler(DOUBLE.handler(double));
    let id = DOUBLE.add(&queue, &order).attempts(2).keep(DAY).await?;
    let id = id.expect("it is new");
    queue.add_many([DOUBLE.job(&order).id("second")]).await?;
    for (id, attempts) in [(&*id, 2), ("second", 5)] {
        let job = queue.get(id).await?.expect("it is there");
        assert_eq!(
            (job.label.as_deref(), job.max_attempts),
            (Some("double"), attempts)
        );
    }
    assert_eq!(worker.drain().await?, 2);
    assert_eq!(DOUBLE.result(&queue, &id).await?, Some(42));
    assert_eq!(DOUBLE.wait(&queue, &id, MINUTE).await?, Some(42));
    let running = tokio::spawn(worker.run());
    let waited = DOUBLE.add(&queue, &order).and_wait(MINUTE).await?;
    assert_eq!(waited, Some(42));
    worker.stopper().stop();
    running.await.expect("it does not panic")
}

#[tokio::test]
async fn a_worker_runs_in_a_task_of_its_own() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let (stop, is_stopped) = tokio::sync::oneshot::channel::<()>();
    let running = {
        let worker = Worker::new(&queue).handler(Handler::new(double));
        tokio::spawn(worker.run_until(async { _ = is_stopped.await }))
    };
    let doubled = queue.add(&Order { number: 21 }).and_wait(MINUTE).await?;
    assert_eq!(doubled, Some(42));
    drop(stop);
    running.await.expect("it does not panic")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn where_one_task_runs_all_a_handler_that_blocks_its_thread_holds_up_no_other(
) -> Result<(), Error> {
    let (_server, queue) = server().await;
    for number in 0..60 {
        queue.add(&number).await?;
    }
    let (worker, two_run) = (Worker::new(&queue), Arc::new(std::sync::Barrier::new(2)));
    let (stopper, ran) = (worker.stopper(), AtomicUsize::new(0));
    let handler = Handler::new(move |job: Job<u32>| {
        if job.data >= 50 {
            two_run.wait();
        }
        if ran.fetch_add(1, Ordering::Relaxed) == 59 {
            stopper.stop();
        }
        async { Ok::<_, Error>(()) }
    });
    let running = worker.handler(handler).concurrency(10).run();
    let ended = tokio::time::timeout(MINUTE, running).await;
    ended.expect("each handler has another one beside it")
}

#[tokio::test]
async fn a_stop_is_for_all_runs_of_a_worker() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let worker = Worker::new(&queue).handler(Handler::new(double));
    let running = [worker.clone(), worker.clone()].map(|it| tokio::spawn(it.run()));
    let dropped = tokio::spawn(worker.run());
    for n in 0..20 {
        let doubled = queue.add(&Order { number: n }).and_wait(MINUTE).await?;
        assert_eq!(doubled, Some(2 * n));
    }
    dropped.abort();
    assert!(dropped.await.is_err());
    worker.stopper().stop();
    for each in running {
        each.await.expect("it does not panic")?;
    }
    Ok(())
}

/// Else another task of the worker finds it at work here, and gives it back for a second.
#[tokio::test]
async fn a_job_that_sleeps_is_ours_until_its_handler_has_returned() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let own = queue.clone();
    let nap = move |job: Job| {
        let queue = own.clone();
        async move {
            let slept = job.sleep("nap", Duration::ZERO).await;
            for _ in 0..300 {
                let found = queue.get("j").await?.map(|job| job.state);
                assert_eq!(found, Some(State::Reserved));
            }
            slept
        }
    };
    let worker = Arc::new(
        Worker::new(&queue)
            .handler(Handler::new(nap))
            .concurrency(2),
    );
    let (stopper, running) = (worker.stopper(), worker.clone());
    let running = tokio::spawn(async move { running.run().await });
    queue.add("").id("j").attempts(1).keep(DAY).await?;
    let ended: Result<Option<()>, Error> = queue.wait("j", MINUTE).await;
    assert!(ended.is_ok(), "{ended:?}");
    stopper.stop();
    running.await.expect("no panic")?;
    Ok(())
}

#[tokio::test]
async fn signals_and_their_time() -> Result<(), Error> {
    let (server, queue) = server().await;
    let approve = |job: Job| async move {
        match job.wait_within::<String>("approved", DAY).await {
            Err(Error::TimedOut { id, timeout, .. }) => {
                assert_eq!((&*id, timeout), ("never", DAY));
                Ok("too late".to_owned())
            }
            other => other.map(Option::unwrap_or_default),
        }
    };
    let worker = Worker::new(&queue).handler(Handler::new(approve));
    for id in ["now", "never"] {
        queue.add("").id(id).keep(10 * DAY).await?;
    }
    assert_eq!(worker.drain().await?, 2);
    assert_eq!(queue.signal("now", "approved", "by Ada").await?, Some(true));
    assert_eq!(
        queue.signal("now", "approved", "by Bob").await?,
        Some(false)
    );
    assert_eq!(queue.signal("nobody", "approved", &()).await?, None);
    assert_eq!(worker.drain().await?, 1);
    assert_eq!(
        queue.result::<String>("now").await?.as_deref(),
        Some("by Ada")
    );
    server.clock().advance(DAY).await?;
    assert_eq!(worker.drain().await?, 1);
    assert_eq!(
        queue.result::<String>("never").await?.as_deref(),
        Some("too late")
    );
    Ok(())
}

#[tokio::test]
async fn a_limit_of_time_holds_where_a_test_drains() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let slow = Handler::new(|job: Job<u32>| async move {
        job.cancelled().await;
        Ok::<_, Error>(())
    });
    let slow = slow.timeout(Duration::from_millis(20)).backoff([MINUTE]);
    queue.add(&1).id("a").await?;
    assert_eq!(Worker::new(&queue).handler(slow).drain().await?, 1);
    let found = queue.get("a").await?.expect("it is tried again");
    assert_eq!(found.reason.as_deref(), Some("timeout after 0.02 s"));
    Ok(())
}

/// As MessagePack would: bytes that are no JSON.
struct Reversed;

impl Codec for Reversed {
    fn encode<T: Serialize + ?Sized>(&self, data: &T) -> Result<Vec<u8>, BoxError> {
        Ok(serde_json::to_vec(data)?.into_iter().rev().collect())
    }

    fn decode<T: DeserializeOwned>(&self, payload: &[u8]) -> Result<T, BoxError> {
        assert!(payload.len() < 100, "too long");
        let json: Vec<u8> = payload.iter().rev().copied().collect();
        Ok(serde_json::from_slice(&json)?)
    }
}

#[tokio::test]
async fn data_in_another_form() -> Result<(), Error> {
    async fn read(job: Job) -> Result<u32, Error> {
        Ok(job.decode_with::<Order>(&Reversed)?.number)
    }
    let (_server, queue) = server().await;
    queue
        .add_with(&Reversed, &Order { number: 17 })
        .id("a")
        .keep(DAY)
        .await?;
    queue.add_bytes("x".repeat(100)).id("b").await?;
    let unfit = queue.add_with(&Reversed, &HashMap::from([((1, 2), 3)]));
    assert!(matches!(unfit.await, Err(Error::Encode(_))));
    let worker = Worker::new(&queue).handler(Handler::new(read).attempts(9));
    assert_eq!(worker.drain().await?, 2);
    assert_eq!(queue.result::<u32>("a").await?, Some(17));
    let dead = queue.get("b").await?.expect("it is dead");
    assert_eq!(dead.state, State::Dead);
    assert!(dead.reason.expect("a reason").contains("too long"));
    Ok(())
}

#[tokio::test]
async fn chains_batches_and_many() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let sizes = Arc::new(AtomicUsize::new(0));
    let seen = sizes.clone();
    let batch = Handler::batch(100, move |jobs: Vec<Job<Order>>| {
        seen.fetch_max(jobs.len(), Ordering::Relaxed);
        async move {
            for job in &jobs {
                match job.data.number {
                    7 => job.fail("alone"),
                    number => job.succeed(&number)?,
                }
            }
            Ok::<_, Error>(())
        }
    });
    let worker = Worker::new(&queue).handler(batch);
    let job = |number| {
        NewJob::new(&Order { number })
            .id(number.to_string())
            .keep(DAY)
    };
    let unfit = NewJob::bytes("bytes").kind("order"); // bytes have no kind
    let refused = queue.add_many((0..2500).map(job).chain([unfit])).await;
    assert!(matches!(refused, Err(Error::Encode(_))));
    assert_eq!(queue.len().await?, 0);
    let added = queue.add_many((0..2500).map(job)).await?;
    assert!(added
        .iter()
        .enumerate()
        .all(|(n, id)| id.as_deref() == Some(&n.to_string())));
    assert_eq!(worker.drain().await?, 2500);
    assert_eq!(
        (sizes.load(Ordering::Relaxed), queue.len().await?),
        (100, 1)
    );
    assert_eq!(queue.result::<u32>("2499").await?, Some(2499));
    let ids = queue
        .chain((0..3).map(|number| NewJob::new(&Order { number })))
        .await?;
    assert_eq!((ids.len(), queue.len_of(State::Blocked).await?), (3, 2));
    let after = queue
        .add(&Order { number: 9 })
        .after(&ids)
        .on_dead(OnDead::Run)
        .await?;
    let shown = queue.get(&after.expect("an id")).await?.unwrap();
    let ids: Vec<String> = ids.into_iter().flatten().collect();
    assert_eq!(
        (shown.after, shown.on_dead.as_deref(), shown.cost),
        (ids, Some("run"), 1)
    );
    assert_eq!(worker.drain().await?, 4);
    Ok(())
}

/// In a sharded queue whatever is added without an id is where its id says, beside what it belongs to.
#[tokio::test]
async fn flows_of_a_sharded_queue_stay_in_their_shard() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let queue = queue.shards(7);
    let order = |number| NewJob::new(&Order { number }).keep(DAY);
    let parent = |job: Job<Order>| async move {
        if job.data.number != 17 {
            return Ok(0);
        }
        let children = (0..9).map(|number| NewJob::new(&Order { number }).kind("child").keep(DAY));
        let results = job.spawn(children.collect(), WaitFor::new()).await?;
        Ok::<_, BoxError>(results.len())
    };
    let worker = Worker::new(&queue)
        .handler(Handler::new(parent))
        .handler(Handler::new(parent).kind("child"));
    for round in 0..5 {
        let id = format!("parent:{round}");
        let chain = queue.chain((0..5).map(order)).await?;
        let behind = queue
            .add(&Order { number: 1 })
            .after(&chain)
            .keep(DAY)
            .await?;
        queue.add(&Order { number: 17 }).id(&id).keep(DAY).await?;
        worker.drain().await?;
        for id in chain.iter().flatten().chain(&behind) {
            assert!(
                queue.get(id).await?.is_some(),
                "{id} is not where its id says"
            );
        }
        assert_eq!(queue.result::<usize>(&id).await?, Some(9));
    }
    let mut children = 0;
    for id in queue.ids(&Scan::default()).await? {
        assert!(
            queue.get(&id).await?.is_some(),
            "{id} is not where its id says"
        );
        children += usize::from(id.starts_with("parent:") && id.contains('/'));
    }
    assert_eq!(children, 5 * 9);
    Ok(())
}

/// Each job's own commands go to the server that it came from.
#[tokio::test]
async fn a_join_is_in_one_shard_and_has_all_results() -> Result<(), Error> {
    let (server, _) = server().await;
    let by = |_: &str, headers: &mut Headers| _ = headers.insert("by".into(), "hook".into());
    let queue = server.queue("q").shards(5).hooks(Hooks::new().adding(by));
    let handler = |job: Job| async move {
        let mut said = job.headers().remove("by").unwrap_or_default();
        for each in job.results() {
            said += &each.decode::<String>()?.unwrap_or_default();
        }
        Ok::<_, Error>(said)
    };
    let worker = Worker::new(&queue).handler(Handler::new(handler));
    let part = || NewJob::new("").kind("part");
    let then = NewJob::new("").on_dead(OnDead::Run).priority(1);
    let last = queue.join([part(), part()], then).await?.expect("an id");
    assert_eq!(
        queue.get(&last).await?.expect("a job").on_dead,
        Some("run".to_owned())
    );
    assert_eq!(worker.drain().await?, 3);
    assert_eq!(
        queue.result::<String>(&last).await?.as_deref(),
        Some("hookhookhook")
    );

    let late = || NewJob::new("").id("late").delay(DAY);
    assert_eq!(queue.join([part()], late()).await?.as_deref(), Some("late"));
    assert_eq!(queue.join([part()], late()).await?, None);
    let many = || (0..1001).map(|_| NewJob::new(""));
    let then = NewJob::new("").id("x".repeat(1024));
    let last = queue.join(many(), then).await?.expect("an id");
    let job = queue.get(&last).await?.expect("a job");
    assert!(job
        .after_group
        .is_some_and(|group| group.starts_with("join:")));
    assert_eq!(job.keep, Some(MINUTE));

    let apart = (0..9).map(|n| NewJob::new("").id(n.to_string()));
    let other = many().chain([NewJob::new("").group("other")]);
    for (mistake, jobs, then) in [
        ("needs jobs", Vec::new(), NewJob::new("")),
        (
            "neither after nor",
            vec![part()],
            NewJob::new("").after(["a"]),
        ),
        ("in one shard", apart.collect(), NewJob::new("")),
        ("by their group: give", other.collect(), NewJob::new("")),
        (
            "ttl: 0 ms",
            vec![part()],
            NewJob::new("").ttl(Duration::ZERO),
        ),
        ("\"*\" is not an id", vec![part()], NewJob::new("").id("*")),
    ] {
        let said = refusal(queue.join(jobs, then).await);
        assert!(said.contains(mistake), "{mistake}: {said}");
    }
    let full = server.queue("full");
    let one = QueueSettings {
        maxlen: Some(1),
        ..QueueSettings::default()
    };
    full.configure(one).await?;
    let said = refusal(full.join([part()], NewJob::new("")).await);
    assert!(
        said.ends_with("MAXLEN queue is full; 1 of 2 jobs were added"),
        "{said}"
    );
    Ok(())
}

#[tokio::test]
async fn two_servers_have_queues_of_one_name() -> Result<(), Error> {
    let ((_first, one), (_second, two)) = (server().await, server().await);
    let handler = |job: Job<Order>| async move {
        let number = job.data.number;
        let kept: u32 = job
            .step("kept", move || async move { Ok::<_, Error>(number) })
            .await?;
        if number < 10 {
            let child = NewJob::new(&Order {
                number: number + 10,
            })
            .kind("child")
            .keep(DAY);
            job.spawn(vec![child], WaitFor::new()).await?;
        }
        Ok::<_, BoxError>(kept)
    };
    let worker = Worker::of([&one, &two])?
        .handler(Handler::new(handler))
        .handler(Handler::new(handler).kind("child"));
    for (number, queue) in [&one, &two].into_iter().enumerate() {
        let number = number as u32;
        queue.add(&Order { number }).id("j").keep(DAY).await?;
    }
    worker.drain().await?;
    for (number, queue) in [&one, &two].into_iter().enumerate() {
        let number = number as u32;
        assert_eq!(queue.result("j").await?, Some(number));
        assert_eq!(queue.result("j/1/0").await?, Some(number + 10));
    }
    Ok(())
}

/// Ids of children are bytes, as their parents' are; a name is for one wait; hooks see children.
#[tokio::test]
async fn what_a_handler_spawns_is_told_apart() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let hooked = Arc::new(AtomicUsize::new(0));
    let counter = hooked.clone();
    let queue =
        queue.hooks(Hooks::new().adding(move |_, _| _ = counter.fetch_add(1, Ordering::Relaxed)));
    let handler = |job: Job<Order>| async move {
        if job.kind().is_none() {
            let child = || NewJob::new(&Order { number: 1 }).kind("child").keep(DAY);
            job.spawn(vec![child()], WaitFor::new().name("x")).await?;
            let again = job
                .spawn(vec![child(), child()], WaitFor::new().name("x"))
                .await;
            assert!(matches!(again, Err(Error::Usage(_))), "{again:?}");
        }
        Ok::<_, BoxError>(())
    };
    let worker = Worker::new(&queue)
        .handler(Handler::new(handler))
        .handler(Handler::new(handler).kind("child"));
    for id in [b"\xff1", b"\xfe1"] {
        queue.add(&Order { number: 0 }).id(id).await?;
    }
    assert_eq!(worker.drain().await?, 6);
    assert_eq!(
        (
            queue.len_of(State::Done).await?,
            hooked.load(Ordering::Relaxed)
        ),
        (2, 4)
    );
    Ok(())
}

#[tokio::test]
async fn a_request_has_its_reply() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let hooked = Arc::new(AtomicUsize::new(0));
    let count = hooked.clone();
    let hooks = Hooks::new().after(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { panic!("a hook that fails") }
    });
    let layer = tower::limit::ConcurrencyLimitLayer::new(1);
    let worker = Arc::new(
        Worker::new(&queue)
            .handler(Handler::new(double))
            .hooks(hooks)
            .layer(layer),
    );
    let (stopper, running) = (worker.stopper(), worker.clone());
    let running = tokio::spawn(async move { running.run().await });
    assert_eq!(
        queue
            .add(&Order { number: 4 })
            .and_wait(10 * MINUTE)
            .await?,
        Some(8)
    );
    assert!(worker.is_healthy());
    let waits = (0..20).map(|number| queue.add(&Order { number }).and_wait::<u32>(10 * MINUTE));
    let waits: Vec<_> = waits.map(Box::pin).collect();
    for (number, wait) in waits.into_iter().enumerate() {
        assert_eq!(wait.await?, Some(2 * number as u32));
    }
    stopper.stop();
    running.await.expect("no panic")?;
    assert_eq!(hooked.load(Ordering::Relaxed), 21);
    assert!(!worker.is_healthy());
    Ok(())
}

/// That an attempt goes on later is for the library to say.
#[tokio::test]
async fn a_handler_that_only_says_that_its_job_waits_has_failed() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let handler = |job: Job<Order>| async move {
        match job.data.number {
            0 => Err::<(), BoxError>(Suspended.into()),
            1 => Err(Error::Suspended(Suspended).into()),
            _ => Ok(()),
        }
    };
    let worker = Worker::new(&queue)
        .handler(Handler::new(handler).attempts(1))
        .concurrency(2);
    for number in 0..2 {
        let id = format!("bad:{number}");
        queue.add(&Order { number }).id(id).await?;
    }
    queue
        .add_many((0..100).map(|_| NewJob::new(&Order { number: 2 })))
        .await?;
    worker.drain().await?;
    for id in ["bad:0", "bad:1"] {
        let job = queue.get(id).await?.expect("it is dead");
        assert_eq!((job.state, job.attempts), (State::Dead, 1), "{id}");
        let reason = job.reason.unwrap_or_default();
        assert!(reason.contains("goes on later"), "{reason}");
    }
    assert_eq!(queue.len_of(State::Reserved).await?, 0);
    Ok(())
}

#[tokio::test]
async fn what_is_configured_wrongly_is_said() -> Result<(), Error> {
    let (_server, queue) = server().await;
    assert!(queue
        .every(MINUTE, "no id")
        .await
        .is_err_and(|error| error.to_string().contains("needs an id")));
    assert!(Worker::new(&queue).drain().await.is_err());
    let two = Worker::new(&queue)
        .handler(Handler::new(double))
        .handler(Handler::new(double));
    assert!(two
        .run()
        .await
        .is_err_and(|error| error.to_string().contains("two handlers")));
    let strict = Worker::of(&[] as &[Queue]);
    assert!(strict.is_err());
    Ok(())
}

fn refusal<T>(said: Result<T, Error>) -> String {
    said.map(|_| ()).expect_err("it is refused").to_string()
}

#[tokio::test]
async fn what_is_out_of_bounds_is_refused_by_its_name() -> Result<(), Error> {
    let queue = Queue::open("redis://127.0.0.1:1", "nowhere")?;
    let centuries = Duration::from_millis(6_311_390_400_000);
    let far = std::time::UNIX_EPOCH + Duration::from_secs(253_402_300_800);
    for (said, name) in [
        (
            refusal(queue.add("").delay(centuries).await),
            "delay: 6311390400000 ms is not between 0 and 4398046511103",
        ),
        (
            refusal(queue.add("").at(far).await),
            "at: 253402300800000 ms",
        ),
        (
            refusal(queue.add("").ttr(Duration::ZERO).await),
            "ttr: 0 ms is not between 1",
        ),
        (
            refusal(queue.add("").cost(0).await),
            "cost: 0 is not between 1 and 1000000",
        ),
        (
            refusal(queue.add("").group("").await),
            "group: 0 bytes is not",
        ),
        (
            refusal(queue.add("").id([b'x'; 1025]).await),
            "id: 1025 bytes is not",
        ),
        (
            refusal(queue.add("").id("*").await),
            "id: \"*\" is not an id",
        ),
        (
            refusal(
                queue
                    .add_many([NewJob::new("").id("*"), NewJob::new("")])
                    .await,
            ),
            "id: \"*\" is not an id",
        ),
        (
            refusal(queue.every(MINUTE, "").id("r").delay(MINUTE).await),
            "leave out delay and at",
        ),
        (
            refusal(queue.pop(Pop::new().ttr(centuries)).await),
            "ttr: 6311390400000 ms",
        ),
    ] {
        assert!(said.contains(name), "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn ids_are_data() -> Result<(), Error> {
    let (_server, queue) = server().await;
    for id in [
        "IDS",
        "UNRESERVED",
        "PRIORITY",
        "7",
        "WITHTOKENS",
        "RESULTS",
    ] {
        queue.add("").id(id).await?;
    }
    let late = Reschedule::delay(DAY);
    assert_eq!(queue.reschedule(["PRIORITY", "7", "zz"], late).await?, 2);
    assert_eq!(queue.get("7").await?.map(|job| job.priority), Some(0));
    let pop = |id: &'static str| queue.pop(Pop::new().id(id));
    let token = pop("IDS").await?.remove(0).token.unwrap_or_default();
    assert!(queue.ack("IDS", &token).await? && !queue.ack("IDS", &token).await?);
    let token = pop("RESULTS").await?.remove(0).token.unwrap_or_default();
    assert!(queue.ack_with("RESULTS", &token, &1).await?);
    assert_eq!(queue.delete(["UNRESERVED", "7"]).await?, 2);
    assert_eq!(queue.delete_unreserved(["IDS", "WITHTOKENS"]).await?, 1);
    assert_eq!(queue.unblock([1, 2]).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_refusal_names_job_argument_and_value() -> Result<(), Error> {
    let (server, queue) = server().await;
    let told = |refused: Result<Option<String>, Error>| match refused {
        Err(Error::Refused(told) | Error::QueueFull(told)) => *told,
        other => panic!("{other:?}"),
    };
    let rule = queue.cron("0 9 * * *", "").id("TZ").tz("Europe/Berln");
    let refused = told(rule.await);
    let what = [&refused.id, &refused.argument, &refused.value].map(|it| it.as_deref());
    assert_eq!(what, [Some("TZ"), Some("tz"), Some("Europe/Berln")]);
    assert_eq!(
        refused.to_string(),
        "job \"TZ\" of queue \"orders\": the server refused tz=\"Europe/Berln\": \
         ERR TZ is not the name of a known time zone"
    );
    let full = QueueSettings {
        maxlen: Some(1),
        ..QueueSettings::default()
    };
    queue.configure(full).await?;
    let many = ["1", "2"].map(|id| {
        NewJob::new("")
            .id(id)
            .delay(if id == "1" { DAY } else { MINUTE })
    });
    let refused = told(queue.add_many(many).await.map(|_| None));
    assert_eq!(
        (&*refused.code, refused.id.as_deref()),
        ("MAXLEN", Some("2"))
    );
    let said = refused.to_string();
    assert!(said.ends_with("; 1 of 2 jobs were added"), "{said}");
    assert!(
        matches!(queue.add("").id("1").and_wait::<()>(DAY).await, Err(Error::Exists(id)) if id == "1")
    );
    let other = server.queue("text");
    let client = redis::Client::open(server.url()).expect("a URL");
    let mut plain = client.get_connection().expect("a connection");
    let set = redis::cmd("SET").arg("text").arg(1).exec(&mut plain);
    set.expect("a text");
    let refused = told(other.delete(["a", "b"]).await.map(|_| None));
    assert_eq!((&*refused.code, refused.id), ("WRONGTYPE", None));
    match queue.wait::<()>("1", Duration::from_millis(5)).await {
        Err(Error::TimedOut {
            id,
            timeout,
            signal: None,
        }) => assert_eq!((&*id, timeout.as_millis()), ("1", 5)),
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[tokio::test]
async fn a_job_after_one_that_is_gone_names_it() -> Result<(), Error> {
    let (_server, queue) = server().await;
    queue.add("").id("here").delay(DAY).await?;
    let many = [NewJob::new("").after(["gone"]), NewJob::new("")];
    for said in [
        refusal(queue.add("").after(["here", "gone", "gone"]).await),
        refusal(queue.add_many(many).await),
    ] {
        assert!(
            said.contains("does not hold: gone (") && said.contains("add_many"),
            "{said}"
        );
    }
    let many: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    let said = refusal(queue.add("").after(many).await);
    assert!(
        said.contains("hold: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 15 more ("),
        "{said}"
    );
    let said = refusal(queue.add("").after([None::<String>]).await);
    assert!(said.contains("was not added"), "{said}");
    let handler =
        |job: Job<()>| async move { job.wait_for(&["gone"], WaitFor::new()).await.map(drop) };
    let worker = Worker::new(&queue).handler(Handler::new(handler).attempts(1));
    queue.add(&()).id("waits").await?;
    worker.drain().await?;
    let reason = queue.get("waits").await?.and_then(|job| job.reason);
    let said = reason.unwrap_or_default();
    assert!(said.ends_with("or by spawn (waited for: gone)"), "{said}");
    let handler = |job: Job<()>| async move {
        let children = vec![
            NewJob::new("").id("b"),
            NewJob::new("").after(["b", "gone"]),
        ];
        job.spawn(children, WaitFor::new()).await.map(drop)
    };
    let worker = Worker::new(&queue).handler(Handler::new(handler).attempts(1));
    queue.add(&()).id("spawns").await?;
    worker.drain().await?;
    let reason = queue.get("spawns").await?.and_then(|job| job.reason);
    let said = reason.unwrap_or_default();
    assert!(said.ends_with("or by spawn (waited for: gone)"), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_kind_needs_no_data_and_payloads_may_be_cut() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let handler = |job: Job<()>| async move { Ok::<_, Error>(job.kind().map(str::to_owned)) };
    let worker = Worker::new(&queue).handler(Handler::new(handler).kind("report"));
    queue.add(&()).kind("report").id("r").keep(DAY).await?;
    assert_eq!(worker.drain().await?, 1);
    assert_eq!(queue.result("r").await?, Some("report".to_owned()));
    queue.add_bytes([b'x'; 100]).id("long").await?;
    let job = queue.get_prefix("long", 3).await?.expect("it is there");
    assert_eq!((job.payload.len(), job.payload_bytes), (3, 100));
    let peeked = queue.peek(State::Ready, Peek::new().prefix(0)).await?;
    assert_eq!((peeked[0].payload.len(), peeked[0].payload_bytes), (0, 100));
    Ok(())
}

#[tokio::test]
async fn a_result_that_cannot_be_encoded_ends_the_job() -> Result<(), Error> {
    let (_server, queue) = server().await;
    let deep = |_: Job| async move {
        let one = |value, _| serde_json::Value::Array(vec![value]);
        Ok::<_, Error>((0..3000).fold(serde_json::Value::Null, one))
    };
    let worker = Worker::new(&queue).handler(Handler::new(deep));
    queue.add("").id("deep").await?;
    assert_eq!(worker.drain().await?, 1);
    let job = queue.get("deep").await?.expect("it is dead");
    assert_eq!((job.state, job.attempts), (State::Dead, 1));
    let reason = job.reason.unwrap_or_default();
    let why = "result cannot be encoded: it is nested deeper";
    assert!(reason.starts_with(why), "{reason}");
    Ok(())
}

#[tokio::test]
async fn no_printed_form_shows_a_password() {
    let url = "redis://user:s3cret@127.0.0.1:1/0";
    let server = Server::open(url).expect("a URL");
    let queue = Queue::on(&server, "q");
    let sentinel = Server::sentinel([url, url], "master", url).expect("URLs");
    let cluster = Server::cluster([url]).expect("URLs");
    let wrong = Server::open("redis://user:s3cret@host:port/0").map(|_| ());
    let broken = queue.add("").await;
    let printed = format!(
        "{server:?} {queue:?} {sentinel:?} {cluster:?} {wrong:?} {broken:?} {:?} {:?}",
        Worker::new(&queue),
        NewJob::new("")
    );
    assert!(!printed.contains("s3cret"), "{printed}");
}
