//! What must hold of a queue: that its parts agree with each other.

use super::store::Course;
use super::Queue;
use crate::queue::job::{Handle, Place};

impl Queue {
    /// For tests: everything that must hold between any two calls.
    pub fn check_invariants(&self) -> Result<(), String> {
        let seq = |handle| self.jobs.job(handle).seq();
        self.jobs.check_invariants()?;
        self.dedupe.check_invariants(&**self.jobs.hasher())?;
        self.schedule
            .check_invariants(|handle| self.standing(handle), seq)?;
        self.check_groups()?;
        self.reserved.check_invariants(seq)?;
        self.dead
            .check_invariants(|handle| self.jobs.job(handle).life().death)?;
        self.expiring.check_invariants(seq)?;
        self.check_purged()?;
        self.check_followed()?;
        let there = self.jobs.len() - self.jobs.successors_len();
        if self.live_len() + self.dead.len() + self.count_purged() != there {
            return Err(format!(
                "{} live and {} dead jobs, but {there} in all",
                self.live_len(),
                self.dead.len(),
            ));
        }
        for (list, place) in [(&self.reserved, Place::Reserved), (&self.dead, Place::Dead)] {
            for (instant, handle) in list.iter() {
                let job = self.jobs.job(handle);
                if job.place() != place || job.life().at != instant {
                    return Err(format!("job {handle} is not {place:?} at {instant}"));
                }
            }
        }
        self.check_expiring()
    }

    fn check_expiring(&self) -> Result<(), String> {
        let mut expected = 0;
        let reserved = self.reserved.iter().map(|(_, handle)| handle);
        let scheduled = self
            .schedule
            .by_due(0, |handle| self.jobs.job(handle).seq());
        let others = scheduled
            .map(|(_, handle)| handle)
            .chain(self.dead.iter().map(|(_, h)| h));
        for handle in others {
            let Course { place, life, .. } = self.jobs.job(handle).course();
            expected += usize::from(self.end_of(handle) != 0);
            if place == Place::Scheduled && life.at != 0 {
                return Err(format!("scheduled job {handle} has a deadline"));
            }
        }
        for (expires, handle) in self.expiring.iter() {
            let job = self.jobs.job(handle);
            expected += usize::from(job.place() == Place::Successor);
            if self.end_of(handle) != expires {
                return Err(format!("job {handle} does not expire at {expires}"));
            }
        }
        for handle in reserved {
            if self.jobs.job(handle).life().token == 0 {
                return Err(format!("reserved job {handle} has no token"));
            }
        }
        let living = |&(_, handle): &(u64, Handle)| !self.is_purged(handle);
        if self.expiring.iter().filter(living).count() != expected {
            return Err("jobs with a TTL and their list differ".into());
        }
        Ok(())
    }
}
