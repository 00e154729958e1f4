//! What a queue takes, by its own account, which is that of the server's allocator.

use dq::queue::add::Add;
use dq::queue::when::When;
use dq::queue::clock::{Mint, Now};
use dq::queue::effects::Effects;
use dq::queue::{HashSeed, Queue};

use crate::jobs::Job;

/// Bytes of a job with these payloads.
pub fn bytes_per_job<'a>(jobs: impl Iterator<Item = (&'a Job, &'a [u8])>, start_ms: u64) -> f64 {
    let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
    let (mut mint, mut out, mut count) = (Mint::new(), Effects::default(), 0);
    let now = Now::from_ms(start_ms);
    let empty = queue.memory_bytes();
    for (job, payload) in jobs {
        let mut add = Add::new(Some(&job.id), payload);
        add.when = When::At(job.due);
        let added = queue.add(&add, now, &mut mint, &mut out);
        assert!(matches!(added, Ok(Some(_))), "the id is new");
        out.clear();
        count += 1;
    }
    (queue.memory_bytes() - empty) as f64 / f64::from(count)
}
