//! Groups that are passed over: their first job costs more than their window of GROUPRATE allows.

use super::{GroupNumber, Groups};
use crate::queue::clock::Now;
use crate::queue::job::Handle;
use crate::queue::state::Queue;

impl Groups {
    /// Until when a group is passed over; in the past if it is not.
    #[inline]
    pub(super) fn passed_over_until(&self, number: GroupNumber) -> u64 {
        if self.passed_over.is_empty() {
            return 0;
        }
        self.passed_over.get(&number).copied().unwrap_or(0)
    }
}

impl Queue {
    /// Whether RATE and the group's GROUPRATE allow a job whose turn it is, with what it costs.
    #[inline]
    pub(in crate::queue) fn fits_rates(&self, handle: Handle, now: Now) -> bool {
        !self.jobs().says_cost() || !self.has_rates() || self.fits_costing(handle, now)
    }

    #[cold]
    fn fits_costing(&self, handle: Handle, now: Now) -> bool {
        let cost = self.cost_of(handle);
        self.group_opens_ms(handle, cost, now) <= now.ms() && self.rate_opens_ms(cost, now) == 0
    }

    /// Passes over the group whose first job is `handle`, until its window allows this job, or another may be first.
    /// False if the window allows it now.
    #[cold]
    pub(in crate::queue) fn pass_over(&mut self, handle: Handle, now: Now) -> bool {
        let opens = self.group_opens_ms(handle, self.cost_of(handle), now);
        let number = self.jobs.job(handle).group();
        let (Some(groups), Some(number)) = (&mut self.groups, number) else {
            return false;
        };
        if opens <= now.ms() {
            return false;
        }
        let next_due = groups.get(number).line.next_due(now);
        let until = next_due.map_or(opens, |due| due.min(opens));
        groups.passed_over.insert(number, until);
        groups.refresh(number, &self.jobs, self.group_rates.as_deref());
        true
    }

    /// Updates a group that another job may be first in, or whose window may allow a delivery.
    pub(in crate::queue::state) fn reconsider_group(&mut self, number: GroupNumber) {
        if let Some(groups) = &mut self.groups {
            groups.passed_over.remove(&number);
        }
        self.refresh_group(number);
    }
}
