//! Groups that are passed over: their first job weighs more than their window of GROUPRATE allows.

use super::Groups;
use crate::queue::clock::Now;
use crate::queue::job::GroupNumber;
use crate::queue::job::Handle;
use crate::queue::state::rate::group::GroupRates;
use crate::queue::state::store::Store;

impl Groups {
    /// Until when a group is passed over; in the past if it is not.
    #[inline]
    pub(super) fn passed_over_until(&self, number: GroupNumber) -> u64 {
        if self.passed_over.is_empty() {
            return 0;
        }
        self.passed_over.get(&number).copied().unwrap_or(0)
    }
    /// Passes over the group whose first job is `handle`, until its window allows this job, or another may be first.
    /// False if the window allows it now.
    #[cold]
    pub fn pass_over(
        &mut self,
        handle: Handle,
        now: Now,
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) -> bool {
        let opens = self.opens_ms(handle, jobs.weight_of(handle), now, jobs, rates);
        let Some(number) = jobs.job(handle).group().filter(|_| opens > now.ms()) else {
            return false;
        };
        let next_due = self.get(number).line.next_due(now);
        let until = next_due.map_or(opens, |due| due.min(opens));
        self.passed_over.insert(number, until);
        self.refresh(number, jobs, rates);
        true
    }

    /// Updates a group that another job may be first in, or whose window may allow a delivery.
    pub fn reconsider(&mut self, number: GroupNumber, jobs: &Store, rates: Option<&GroupRates>) {
        self.passed_over.remove(&number);
        self.refresh(number, jobs, rates);
    }
}
