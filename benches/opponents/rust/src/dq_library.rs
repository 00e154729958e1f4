//! The Rust library of dq: a worker with as many handlers as apalis's.

use crate::dq::{Dq, QUEUE};
use crate::{Job, Seen, System, CONCURRENCY};
use dq_redis::{Error, Handler, Queue, Worker};

pub struct DqLibrary {
    dq: Dq,
    queue: Queue,
}

impl DqLibrary {
    pub async fn open(url: &str) -> Self {
        DqLibrary {
            dq: Dq::open(url).await,
            queue: Queue::open(url, QUEUE).unwrap(),
        }
    }
}

impl System for DqLibrary {
    async fn add(&mut self, job: Job) {
        self.dq.add(job).await;
    }

    async fn add_many(&mut self, jobs: Vec<Job>) {
        self.dq.add_many(jobs).await;
    }

    async fn work(self, seen: Seen, is_ready: impl FnOnce()) {
        let handler = Handler::new(move |job: dq_redis::Job| {
            seen.handle(std::str::from_utf8(job.payload()).unwrap());
            async { Ok::<_, Error>(()) }
        });
        is_ready();
        Worker::new(&self.queue)
            .handler(handler)
            .concurrency(CONCURRENCY)
            .run()
            .await
            .unwrap();
    }
}
