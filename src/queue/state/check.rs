//! What must hold of a queue: that its parts agree with each other.

use super::Queue;

impl Queue {
    /// For tests: everything that must hold between any two calls.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.jobs.check_invariants()?;
        self.dedupe.check_invariants(&**self.jobs.hasher())?;
        let awaited = self.flows.iter().flat_map(|flows| flows.group_users());
        let mut handles = self.jobs.handles();
        match &self.groups {
            Some(groups) => groups.check(&self.jobs, self.group_rates.as_deref(), awaited)?,
            None if handles.any(|it| self.jobs.job(it).group().is_some()) => {
                return Err("a job with a group, and no groups".into());
            }
            None => {}
        }
        self.check_done()?;
        match &self.flows {
            Some(flows) => flows.check(&self.jobs),
            None if self.jobs.blocked_len() > 0 => Err("a blocked job, and no flows".into()),
            None => Ok(()),
        }
    }

    fn check_done(&self) -> Result<(), String> {
        self.done.check_invariants(self.jobs.hasher())?;
        let apart = self.done.check_apart(&self.jobs);
        apart.map_err(|_| "an id that a done job and another one have")?;
        let next = self.done.wakes_at(self.settings.done_limits);
        if (next, self.settings.done_limits.any()) != (self.done.wakes, self.keeps_done) {
            return Err(format!(
                "done jobs are to go at {next}, not at {}",
                self.done.wakes
            ));
        }
        Ok(())
    }
}
