//! What a worker and its handlers are told to do.

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
    /// Limits durations: users may write `Duration::MAX` for "no limit".
    pub fn bound(&mut self) {
        let bound = |length: &mut Duration| *length = (*length).min(LONGEST);
        bound(&mut self.drain);
        bound(&mut self.wait);
        self.lease.iter_mut().for_each(bound);
        for shape in &mut self.shapes {
            shape.lease.iter_mut().for_each(bound);
        }
    }
}
