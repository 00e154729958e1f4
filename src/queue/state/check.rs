//! What must hold of a queue: that its parts agree with each other.

use super::Queue;

impl Queue {
    /// For tests: everything that must hold between any two calls.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.jobs.check_invariants()?;
        self.parts.check(&self.jobs)?;
        let (done, limits) = (&self.parts.done, self.settings.done_limits);
        let next = done.wakes_at(limits);
        if (next, limits.any()) != (done.wakes, self.keeps_done) {
            return Err(format!(
                "done jobs are to go at {next}, not at {}",
                done.wakes
            ));
        }
        Ok(())
    }
}
