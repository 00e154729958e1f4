//! dq through redis-rs: one job at a time.

use crate::{Job, Seen, System};
use dq_redis::redis::aio::MultiplexedConnection;
use dq_redis::redis::{cmd, AsyncConnectionConfig, Client, Cmd, Pipeline, Value};

pub const QUEUE: &str = "jobs";

pub struct Dq(MultiplexedConnection);

impl Dq {
    pub async fn open(url: &str) -> Self {
        let waits_for_ever = AsyncConnectionConfig::new().set_response_timeout(None);
        let client = Client::open(url).unwrap();
        Dq(client
            .get_multiplexed_async_connection_with_config(&waits_for_ever)
            .await
            .unwrap())
    }
}

fn words(job: &Job) -> Cmd {
    let mut words = cmd("DQ.ADD");
    words.arg(QUEUE).arg(job.number).arg(&job.payload);
    if job.due_ms != 0 {
        words.arg("AT").arg(job.due_ms);
    }
    words
}

impl System for Dq {
    async fn add(&mut self, job: Job) {
        words(&job).exec_async(&mut self.0).await.unwrap();
    }

    async fn add_many(&mut self, jobs: Vec<Job>) {
        let mut pipe = Pipeline::with_capacity(jobs.len());
        jobs.iter().for_each(|job| _ = pipe.add_command(words(job)));
        pipe.query_async::<Vec<Value>>(&mut self.0).await.unwrap();
    }

    async fn work(mut self, seen: Seen, is_ready: impl FnOnce()) {
        is_ready();
        loop {
            let mut pop = cmd("DQ.BPOP");
            let job = pop.arg(QUEUE).arg(0).query_async(&mut self.0).await;
            let (_, id, payload, token, _, _): (Value, String, String, String, Value, Value) =
                job.unwrap();
            let is_over = seen.handle(&payload);
            let mut ack = cmd("DQ.ACK");
            ack.arg(QUEUE)
                .arg("WITHTOKENS")
                .arg(id)
                .arg(token)
                .exec_async(&mut self.0)
                .await
                .unwrap();
            if is_over {
                return std::future::pending().await; // whoever measures looks at it yet
            }
        }
    }
}
