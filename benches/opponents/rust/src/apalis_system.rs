//! apalis, with handlers on tokio's tasks, as its documentation shows.

use crate::{Job, Seen, System, CONCURRENCY};
use apalis::prelude::*;
use apalis_redis::{Config, RedisStorage};

pub struct Apalis(RedisStorage<String>);

impl Apalis {
    pub async fn open(url: &str) -> Self {
        let storage = RedisStorage::new(apalis_redis::connect(url).await.unwrap());
        Apalis(storage.with_config(Config::default().queue("jobs").batch_size(100)))
    }
}

fn task(job: Job) -> Task<String> {
    let task = TaskBuilder::new(job.payload);
    match job.due_ms {
        0 => task.build(),
        due_ms => task.run_at_timestamp(due_ms / 1000).build(), // whole seconds are all that it knows
    }
}

impl System for Apalis {
    async fn add(&mut self, job: Job) {
        self.0.push_task(task(job)).await.unwrap();
    }

    async fn add_many(&mut self, jobs: Vec<Job>) {
        self.0
            .push_all(futures::stream::iter(jobs.into_iter().map(task)))
            .await
            .unwrap();
    }

    async fn work(self, seen: Seen, is_ready: impl FnOnce()) {
        is_ready();
        let worker = WorkerBuilder::new("worker")
            .backend(self.0)
            .concurrency(CONCURRENCY)
            .parallelize(tokio::spawn)
            .data(seen)
            .build(handle);
        worker.run().await.unwrap();
    }
}

async fn handle(payload: String, seen: Data<Seen>) -> Result<(), BoxDynError> {
    seen.handle(&payload);
    Ok(())
}
