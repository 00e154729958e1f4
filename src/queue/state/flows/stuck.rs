//! Blocked jobs that wait for nothing that can happen: only forged data has them.

use super::{Flows, What};
use crate::queue::job::Handle;
use crate::queue::state::jobs::Jobs;
use std::collections::HashMap;

impl Flows {
    /// It is still to be checked that no job would stay blocked for ever.
    pub fn check_later(&mut self) {
        self.is_unchecked = true;
    }

    /// Blocked jobs that wait for nothing that can happen. From here on the flows count as checked.
    #[cold]
    pub fn take_stuck(&mut self, jobs: &Jobs) -> Vec<Handle> {
        self.end_restoring();
        self.is_unchecked = false;
        self.stuck(jobs)
    }

    pub(super) fn stuck(&self, jobs: &Jobs) -> Vec<Handle> {
        let waits = |job| self.record(job).is_some_and(|record| record.open > 0);
        let blocked = jobs.blocked().iter().map(|(_, job)| job);
        let idle: Vec<Handle> = blocked.filter(|&job| !waits(job)).collect();
        match idle.is_empty() {
            true => self.in_circles(jobs),
            false => idle.into_iter().chain(self.in_circles(jobs)).collect(),
        }
    }

    /// The blocked jobs that are left once those that wait for no blocked job are taken away, as often as there are
    /// any.
    fn in_circles(&self, jobs: &Jobs) -> Vec<Handle> {
        let is_blocked = |job: Handle| jobs.is_blocked(job);
        let blocked_still = |(job, count): (Handle, usize)| (count > 0).then_some(job);
        // For each job, how many blocked jobs, and groups with blocked jobs, it waits for. How many blocked jobs a
        // group has. And which jobs wait for a job or a group.
        let mut before: HashMap<Handle, usize> = HashMap::new();
        let mut members: HashMap<u32, usize> = HashMap::new();
        let mut of_job: HashMap<Handle, Vec<Handle>> = HashMap::new();
        let mut of_group: HashMap<u32, Vec<Handle>> = HashMap::new();
        for (_, job) in jobs.blocked().iter() {
            let links = self.record(job).map_or(&[][..], |it| it.links.get());
            let mut count = 0;
            for &number in links {
                match self.awaited(number).what {
                    What::Job(other) if is_blocked(other) => {
                        of_job.entry(other).or_default().push(job);
                        count += 1;
                    }
                    What::Group(group) => {
                        let blocked = *members
                            .entry(group)
                            .or_insert_with(|| self.members_of(group).count());
                        if blocked > 0 {
                            of_group.entry(group).or_default().push(job);
                            count += 1;
                        }
                    }
                    What::Job(_) | What::Over(_) => {}
                }
            }
            before.insert(job, count);
        }
        let free = before.iter().filter(|(_, &count)| count == 0);
        let mut free: Vec<Handle> = free.map(|(&job, _)| job).collect();
        while let Some(job) = free.pop() {
            let mut freed = of_job.remove(&job).unwrap_or_default();
            if let Some(group) = jobs.job(job).group() {
                if let Some(count) = members.get_mut(&group) {
                    *count -= 1;
                    if *count == 0 {
                        freed.extend(of_group.remove(&group).unwrap_or_default());
                    }
                }
            }
            for waiter in freed {
                let count = before.entry(waiter).or_default();
                *count = count.saturating_sub(1);
                if *count == 0 {
                    free.push(waiter);
                }
            }
        }
        let mut left: Vec<Handle> = before.into_iter().filter_map(blocked_still).collect();
        left.sort_unstable_by_key(|&job| jobs.job(job).seq());
        left
    }
}
