//! What must hold of the jobs: that their lists agree with them, and with each other.

use super::Jobs;
use crate::queue::job::{Handle, Place};
use crate::queue::state::position::Fate;
use crate::queue::state::store::Status;

impl Jobs {
    /// For tests.
    pub fn check_invariants(&self) -> Result<(), String> {
        let seq = |handle| self.seq(handle);
        self.store.check_invariants()?;
        self.schedule
            .check_invariants(|handle| self.order_key(handle), seq)?;
        self.reserved.check_invariants(seq)?;
        self.dead
            .check_invariants(|handle| self.store.job(handle).life().death)?;
        self.blocked().check_invariants(seq)?;
        self.expiring.check_invariants(seq)?;
        self.check_purged()?;
        self.check_followed()?;
        let there = self.store.len() - self.store.successors_len();
        if self.listed_len() + self.count_purged() != there {
            return Err(format!(
                "{} jobs on lists, but {there} in all",
                self.listed_len()
            ));
        }
        self.check_places()?;
        self.check_expiring()
    }

    fn check_places(&self) -> Result<(), String> {
        for fate in Fate::ALL {
            for (instant, handle) in self.reserved.list(fate as usize).iter() {
                let at = self.position(handle);
                let Status { place, life, .. } = at.status;
                if (place, life.at, at.fate()) != (Place::Reserved, instant, fate) {
                    return Err(format!(
                        "the lease of {handle} is not {fate:?} at {instant}"
                    ));
                }
                if life.token == 0 {
                    return Err(format!("reserved job {handle} has no token"));
                }
            }
        }
        for (instant, handle) in self.dead.iter() {
            let job = self.store.job(handle);
            if job.place() != Place::Dead || job.life().at != instant {
                return Err(format!("job {handle} is not dead at {instant}"));
            }
        }
        match self.blocked().iter().all(|(_, job)| self.is_blocked(job)) {
            true => Ok(()),
            false => Err("a job among the blocked that is not".into()),
        }
    }

    fn check_expiring(&self) -> Result<(), String> {
        let mut expected = 0;
        for handle in self.in_order() {
            let at = self.position(handle);
            let Status { place, life, .. } = at.status;
            expected += usize::from(at.ends_at().is_some());
            if place == Place::Scheduled && life.at != 0 {
                return Err(format!("scheduled job {handle} has a deadline"));
            }
        }
        let mut late = 0;
        for kind in 0..5 {
            for (expires, handle) in self.expiring.list(kind).iter() {
                let at = self.position(handle);
                expected += usize::from(at.status.place == Place::Successor);
                let ends = at.ends_at();
                if ends.is_none_or(|it| (it.expiry as usize, it.at) != (kind, expires)) {
                    return Err(format!("job {handle} does not expire so at {expires}"));
                }
                late += usize::from(ends.is_some_and(|it| it.late_due.is_some()));
            }
        }
        if late != self.late().len() {
            return Err("jobs that are due after their TTL and their list differ".into());
        }
        let living = |&(_, handle): &(u64, Handle)| !self.is_purged(handle);
        let listed = self.expiring.iter_from(0, |it| self.seq(it));
        if listed.filter(living).count() != expected {
            return Err("jobs with a TTL and their list differ".into());
        }
        Ok(())
    }

    /// All jobs with a successor are listed, except purged and blocked ones.
    fn check_followed(&self) -> Result<(), String> {
        if self.are_plain() && self.store.successors_len() > 0 {
            return Err("plain jobs with a successor".into());
        }
        let mut expected = [const { Vec::new() }; 2];
        for (handle, _) in self.store.successors() {
            let Status { place, due, life } = self.store.job(handle).status();
            match place {
                _ if self.is_purged(handle) => {}
                Place::Reserved => expected[1].push((life.at, handle)),
                Place::Blocked => {}
                _ => expected[0].push((due, handle)),
            }
        }
        let detached = self.cold.purges.iter().map(|purge| purge.followed);
        self.followed().check(expected, detached.sum())
    }
}
