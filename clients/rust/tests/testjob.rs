//! Jobs without a server.

use dq_redis::{BoxError, Error, Handler, Job, NewJob, Outcome, State, TestJob, WaitFor};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_job_for_a_handlers_unit_test() -> Result<(), BoxError> {
    let order = NewJob::new(&21).id("17").kind("close").header("by", "hand");
    let order = TestJob::of(order.attempts(3)).attempt(3).queue("orders");
    let order = order
        .result("1", &5)?
        .failed("2", Outcome::Dead, "no paper")
        .signal("signed", "Ada")?;
    let job: Job<u32> = order.job()?;
    assert_eq!(
        (job.data, &*job.id(), job.kind(), &*job.queue()),
        (21, "17", Some("close"), "orders")
    );
    assert_eq!(
        (
            job.headers()["by"].as_str(),
            job.attempt(),
            job.is_last_attempt()
        ),
        ("hand", 3, true)
    );
    let results = job.results();
    assert_eq!(results[0].decode::<u32>()?, Some(5));
    assert_eq!(
        (results[1].outcome, results[1].value.as_deref()),
        (Some(Outcome::Dead), Some(&b"no paper"[..]))
    );
    assert_eq!(job.step("charge", || async { Ok::<_, Error>(1) }).await?, 1);
    assert_eq!(job.steps()["charge"], b"1");
    assert_eq!(job.wait("signed").await?, Some("Ada".to_owned()));
    job.progress(1.0, "all")?;
    job.set_cost(5).await?;
    let needs = |error: Error| error.to_string().contains("needs a server");
    assert!(job.once("a", "", &[], &[]).await.is_err_and(needs));
    assert!(job
        .spawn(vec![NewJob::new(&1)], WaitFor::new())
        .await
        .is_err_and(needs));
    assert!(matches!(
        job.sleep("a month", 30 * DAY).await,
        Err(Error::Suspended(_))
    ));
    Ok(())
}

async fn climb(job: Job) -> Result<Option<String>, BoxError> {
    if job.attempt() == 1 {
        return Err("first".into());
    }
    let charged = || async { Ok::<_, Error>(job.attempt()) };
    assert_eq!(job.step("charge", charged).await?, 2);
    job.sleep("a month", 30 * DAY).await?;
    let late = job.wait_within::<u32>("late", HOUR).await;
    match late {
        Err(Error::TimedOut { .. }) => Ok(job.wait("signed").await?),
        late => Ok(late.map(|_| None)?),
    }
}

#[tokio::test]
async fn a_handler_walks_its_ladder_without_a_server() -> Result<(), BoxError> {
    let handler = || {
        Handler::new(climb)
            .kind("climb")
            .attempts(4)
            .backoff([MINUTE])
    };
    let run = TestJob::new("")
        .signal("signed", "Ada")?
        .run([handler()])
        .await?;
    assert_eq!(
        (run.state, run.decode()?, &run.reason),
        (State::Done, Some("Ada".to_owned()), &None)
    );
    assert_eq!((run.attempts, run.jobs.len()), (2, 5));
    assert_eq!(run.waits, [MINUTE, 30 * DAY, HOUR].map(Some));
    let ladder = || NewJob::new("").backoff([Duration::from_secs(1), HOUR]);
    let run = TestJob::of(ladder()).run([handler()]).await?;
    assert_eq!(
        (run.state, run.attempts, run.waits[0]),
        (State::Blocked, 1, Some(Duration::from_secs(1)))
    );

    let fails = |job: Job| async move {
        match job.kind() {
            Some("snooze") => Err(dq_redis::snooze(MINUTE))?,
            Some("spawn") => _ = job.spawn(vec![NewJob::new(&1)], WaitFor::new()).await,
            _ => {}
        }
        Err::<(), BoxError>("no paper".into())
    };
    let fails = || [Handler::new(fails)];
    let run = TestJob::of(ladder().attempts(3)).run(fails()).await?;
    assert_eq!(
        (run.state, run.attempts, run.reason.as_deref()),
        (State::Dead, 3, Some("Error: no paper"))
    );
    assert_eq!(run.waits, [Some(Duration::from_secs(1)), Some(HOUR)]);
    let run = TestJob::new("").run(fails()).await?;
    assert_eq!(
        (run.state, run.attempts, run.waits[99]),
        (State::Delayed, 100, None)
    );
    let of_kind = |kind: &str| TestJob::of(NewJob::new("").kind(kind));
    let run = of_kind("snooze").run(fails()).await?;
    assert_eq!(
        (run.state, run.attempts, run.waits[0]),
        (State::Delayed, 0, Some(MINUTE))
    );
    for (ended, mistake) in [
        (
            of_kind("spawn").run(fails()).await,
            "to wait for jobs needs a server",
        ),
        (
            of_kind("b").run([handler()]).await,
            "no handler for jobs of kind \"b\"",
        ),
        (TestJob::new("").run([]).await, "no handler"),
        (
            TestJob::new(&f64::NAN).run(fails()).await,
            "cannot be encoded",
        ),
    ] {
        let error = ended.expect_err(mistake).to_string();
        assert!(error.contains(mistake), "{error}");
    }
    let batch = Handler::batch(
        5,
        |jobs: Vec<Job>| async move { jobs[0].succeed(&jobs.len()) },
    );
    assert_eq!(TestJob::new("").run([batch]).await?.decode()?, Some(1));
    #[allow(deprecated)]
    let ended = dq_redis::Inline::new(fails()).run::<_, u32>("").await;
    assert!(ended.is_err_and(|error| error.to_string().contains("TestJob")));
    Ok(())
}
