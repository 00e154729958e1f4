//! What a worker and its handlers are told to do.

use crate::bounds;
use crate::error::Error;
use std::time::Duration;

/// The settings of a handler.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub kind: Option<String>,
    /// 0: no limit.
    pub attempts: u32,
    pub backoff: Vec<Duration>,
    pub lease: Option<Duration>,
    pub timeout: Option<Duration>,
    /// How many jobs it takes at a time; 0: one, not as a batch.
    pub batch: usize,
    pub fill: Option<Fill>,
}

/// For how many jobs a fetch waits, and for how long since any was ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub jobs: usize,
    pub wait: Duration,
}

impl Shape {
    pub fn size(&self) -> usize {
        self.batch.max(1)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub shapes: Vec<Shape>,
    pub concurrency: usize,
    pub prefetch: usize,
    pub lease: Option<Duration>,
    pub drain: Duration,
    /// How long a fetch waits at the server.
    pub wait: Duration,
    /// How long a link gets nothing before it asks why.
    pub idle: Duration,
    /// For tests: handle all jobs that are ready, one after the other, then end.
    pub is_drained: bool,
}

/// In effect no limit, but can be added to an instant.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Settings {
    /// Checks what handlers wait for, and limits durations: users may write `Duration::MAX` for "no limit".
    pub fn bound(&mut self) -> Result<(), Error> {
        if let Some(fill) = self.fill() {
            self.check_fill()?;
            self.wait = self.wait.saturating_add(fill.wait); // so that few fetches end before their batch is full
        }
        let bound = |length: &mut Duration| *length = (*length).min(LONGEST);
        bound(&mut self.drain);
        bound(&mut self.wait);
        self.lease.iter_mut().for_each(bound);
        for shape in &mut self.shapes {
            shape.lease.iter_mut().for_each(bound);
        }
        Ok(())
    }

    /// The shortest lease that is said.
    pub fn shortest_lease(&self) -> Option<Duration> {
        let of_shapes = self.shapes.iter().filter_map(|shape| shape.lease);
        of_shapes.chain(self.lease).min()
    }

    /// The least of what handlers wait for.
    pub fn fill(&self) -> Option<Fill> {
        let all = || self.shapes.iter().filter_map(|shape| shape.fill);
        let jobs = all().map(|fill| fill.jobs).min()?;
        let wait = all().map(|fill| fill.wait).min()?;
        Some(Fill { jobs, wait })
    }

    fn check_fill(&self) -> Result<(), Error> {
        if self.shapes.iter().any(|shape| shape.batch == 0) {
            let why = "fill needs handlers that all take batches: another one of this worker takes single jobs";
            return Err(Error::usage(why));
        }
        let fills = |shape: &Shape| shape.fill.map(|fill| (fill, shape.batch as u64));
        self.shapes
            .iter()
            .filter_map(fills)
            .try_for_each(|(fill, batch)| {
                bounds::between("fill", fill.jobs as u64, " jobs", 2, batch)?;
                bounds::lengths([("the wait of fill", Some(fill.wait), 1)])
            })
    }
}
