//! What must hold of a queue: that its parts agree with each other.

use super::Queue;

impl Queue {
    /// For tests: everything that must hold between any two calls.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.jobs.check_invariants()?;
        self.parts.check(&self.jobs)?;
        self.check_wakes()
    }

    fn check_wakes(&self) -> Result<(), String> {
        let next = self.parts.done.wakes_at(self.settings.done_limits);
        if (next, self.settings.done_limits.any()) != (self.parts.done.wakes, self.keeps_done) {
            return Err(format!(
                "done jobs are to go at {next}, not at {}",
                self.parts.done.wakes
            ));
        }
        Ok(())
    }
}
