//! What must hold of a queue: that its parts agree with each other.

use super::position::Fate;
use super::store::Course;
use super::wake::NEVER;
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
        self.check_done()?;
        self.check_flows()?;
        let there = self.jobs.len() - self.jobs.successors_len();
        if self.live_len() + self.dead.len() + self.count_purged() != there {
            return Err(format!(
                "{} live and {} dead jobs, but {there} in all",
                self.live_len(),
                self.dead.len(),
            ));
        }
        for fate in Fate::ALL {
            for (instant, handle) in self.reserved.list(fate as usize).iter() {
                let at = self.position(handle);
                let Course { place, life, .. } = at.course;
                if (place, life.at, at.fate()) != (Place::Reserved, instant, fate) {
                    return Err(format!(
                        "the lease of {handle} is not {fate:?} at {instant}"
                    ));
                }
            }
        }
        for (instant, handle) in self.dead.iter() {
            let job = self.jobs.job(handle);
            if job.place() != Place::Dead || job.life().at != instant {
                return Err(format!("job {handle} is not dead at {instant}"));
            }
        }
        self.check_expiring()
    }

    fn check_done(&self) -> Result<(), String> {
        self.done.check_invariants(self.jobs.hasher())?;
        let apart = self.check_done_apart();
        apart.map_err(|_| "an id that a done job and another one have")?;
        let next = match self.surplus_done() {
            true => 0,
            false => self.done.first_until().map_or(NEVER, |(at, _)| at),
        };
        if (next, self.settings.done_limits.any()) != (self.done.wakes, self.keeps_done) {
            return Err(format!(
                "done jobs are to go at {next}, not at {}",
                self.done.wakes
            ));
        }
        Ok(())
    }

    fn check_expiring(&self) -> Result<(), String> {
        let mut expected = 0;
        let reserved = self.leases_from(0).map(|(_, handle)| handle);
        let scheduled = self
            .schedule
            .by_due(0, |handle| self.jobs.job(handle).seq());
        let others = scheduled
            .map(|(_, handle)| handle)
            .chain(self.dead.iter().map(|(_, h)| h))
            .chain(
                self.flows
                    .iter()
                    .flat_map(|flows| flows.blocked().iter().map(|(_, h)| h)),
            );
        for handle in others.chain(self.leases_from(0).map(|(_, h)| h)) {
            let at = self.position(handle);
            let Course { place, life, .. } = at.course;
            expected += usize::from(at.ends_at().is_some());
            if place == Place::Scheduled && life.at != 0 {
                return Err(format!("scheduled job {handle} has a deadline"));
            }
        }
        let mut late = 0;
        for kind in 0..5 {
            for (expires, handle) in self.expiring.list(kind).iter() {
                let at = self.position(handle);
                expected += usize::from(at.course.place == Place::Successor);
                let ends = at.ends_at();
                if ends.is_none_or(|it| (it.ending as usize, it.at) != (kind, expires)) {
                    return Err(format!("job {handle} does not expire so at {expires}"));
                }
                late += usize::from(ends.is_some_and(|it| it.late_due.is_some()));
            }
        }
        if late != self.cold.late.len() {
            return Err("jobs that are due after their TTL and their list differ".into());
        }
        for handle in reserved {
            if self.jobs.job(handle).life().token == 0 {
                return Err(format!("reserved job {handle} has no token"));
            }
        }
        let living = |&(_, handle): &(u64, Handle)| !self.is_purged(handle);
        let seq = |handle| self.jobs.job(handle).seq();
        let listed = self.expiring.iter_from(0, seq);
        if listed.filter(living).count() != expected {
            return Err("jobs with a TTL and their list differ".into());
        }
        Ok(())
    }
}
