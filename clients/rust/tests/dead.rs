//! The hook of dead jobs. Needs `DQ_MODULE`.

use dq_redis::testing::TestServer;
use dq_redis::{give_up, BoxError, Error, Handler, Hooks, Job, Kind, NewJob, State, Worker};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, Semaphore};

const PATIENCE: Duration = Duration::from_secs(60);
static SELL: Kind<u32> = Kind::new("sell");

async fn lose(job: Job<u32>) -> Result<(), BoxError> {
    Err(give_up(format!("no order {}", job.data)).into())
}

#[tokio::test]
async fn a_hook_hears_of_a_dead_job_though_another_panics() -> Result<(), Error> {
    let server = TestServer::start().await?;
    let queue = server.queue("orders");
    let (tell, mut told) = mpsc::unbounded_channel();
    let hooks = Hooks::new().dead(move |queue, job| {
        let record = (
            queue,
            job.id.clone(),
            job.kind(),
            job.headers(),
            job.decode::<u32>().ok(),
        );
        _ = tell.send((record, job.reason, job.state));
        async {}
    });
    let worker = Worker::new(&queue)
        .handler(SELL.handler(lose))
        .hooks(Hooks::new().dead(|_, _| async { panic!("no paper") }))
        .hooks(hooks);
    SELL.add(&queue, &17)
        .id("j")
        .header("tenant", "acme")
        .await?;
    worker.drain().await?;
    let ((of, id, kind, headers, data), reason, state) = told.recv().await.expect("it is told");
    assert_eq!(
        (&*of, &*id, kind.as_deref(), data),
        ("orders", "j", Some("sell"), Some(17))
    );
    assert_eq!(
        (headers["tenant"].as_str(), reason.as_deref(), state),
        ("acme", Some("no order 17"), State::Dead)
    );
    drop(worker);
    assert!(told.recv().await.is_none(), "it is told once");
    Ok(())
}

async fn until(what: &str, is: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect(what);
}

/// Those that find no room are found at the server.
#[tokio::test]
async fn no_death_is_missed_however_many_wait_for_the_hook() -> Result<(), Error> {
    let server = TestServer::start_with(&[]).await?;
    let queue = server.queue("orders");
    let (gate, told) = (
        Arc::new(Semaphore::new(0)),
        Arc::new(Mutex::new(Vec::new())),
    );
    let (held, all) = (gate.clone(), told.clone());
    let hooks = Hooks::new().dead(move |_, job| {
        let (held, all) = (held.clone(), all.clone());
        async move {
            _ = held.acquire().await;
            all.lock().expect("no panic").push(job.id);
        }
    });
    let second = Duration::from_secs(1);
    let handler = SELL.handler(lose).lease(second);
    let worker = Worker::new(&queue).handler(handler).hooks(hooks);
    let running = tokio::spawn(worker.run());
    queue.add_many((0..2500).map(|n| SELL.job(&n))).await?;
    let dead = queue.clone();
    let all_are_dead = async move || {
        dead.len_of(State::Dead)
            .await
            .is_ok_and(|dead| dead == 2500)
    };
    until("all are dead", all_are_dead).await;
    gate.add_permits(1 << 20);
    let all = told.clone();
    let is_all = async move || all.lock().expect("no panic").len() >= 2500;
    until("all are told", is_all).await;
    worker.stopper().stop();
    running.await.expect("it does not panic")?;
    let told = told.lock().expect("no panic");
    assert_eq!(
        told.iter().collect::<BTreeSet<_>>().len(),
        told.len(),
        "each once"
    );
    Ok(())
}

/// This runtime has one thread.
#[tokio::test]
async fn a_hook_that_blocks_its_thread_holds_up_neither_handlers_nor_leases() -> Result<(), Error> {
    let server = TestServer::start_with(&[]).await?;
    let queue = server.queue("orders");
    let (goes_on, waits) = std::sync::mpsc::channel::<()>();
    let (waits, (tell, mut told)) = (Mutex::new(waits), mpsc::unbounded_channel());
    let hooks = Hooks::new().dead(move |_, _| {
        _ = tell.send(true);
        let waits = waits.lock().expect("no panic");
        _ = tell.send(waits.recv_timeout(PATIENCE).is_ok());
        async {}
    });
    let lease = Duration::from_millis(500);
    let slow = move |_: Job| async move {
        tokio::time::sleep(3 * lease).await;
        Ok::<_, BoxError>(())
    };
    let worker = Worker::new(&queue)
        .handler(SELL.handler(lose).lease(lease))
        .handler(Handler::new(slow).lease(lease))
        .hooks(hooks);
    let running = tokio::spawn(worker.run());
    queue.add_many([SELL.job(&1)]).await?;
    told.recv().await.expect("it is called");
    let done: Option<()> = queue.add(&()).and_wait(PATIENCE).await?;
    assert_eq!(done, None, "one attempt was enough");
    _ = goes_on.send(());
    assert_eq!(told.recv().await, Some(true), "the test went on beside it");
    worker.stopper().stop();
    running.await.expect("it does not panic")
}

#[tokio::test]
async fn a_second_stop_leaves_a_hook_that_hangs_behind() -> Result<(), Error> {
    let server = TestServer::start_with(&[]).await?;
    let queue = server.queue("orders");
    let (tell, mut told) = mpsc::unbounded_channel();
    let hooks = Hooks::new().dead(move |_, _| {
        _ = tell.send(());
        std::future::pending()
    });
    let handler = Handler::new(lose);
    let worker = Worker::new(&queue)
        .handler(handler)
        .hooks(hooks)
        .drain_for(Duration::MAX);
    let running = tokio::spawn(worker.run());
    queue.add_many([NewJob::new(&1), NewJob::new(&2)]).await?;
    told.recv().await.expect("it is called");
    worker.stopper().stop();
    worker.stopper().stop();
    let ended = tokio::time::timeout(PATIENCE, running)
        .await
        .expect("it stops");
    ended.expect("it does not panic")
}
