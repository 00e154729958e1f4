//! What must hold of the groups, checked in full: for tests.

use super::{Groups, NOWHERE};
use crate::queue::job::Place;
use crate::queue::state::Queue;
use crate::storage::skiplist::Skiplist;
use std::collections::HashMap;

impl Queue {
    pub(in crate::queue::state) fn check_groups(&self) -> Result<(), String> {
        let Some(groups) = &self.groups else {
            let grouped = self
                .jobs
                .handles()
                .any(|it| self.jobs.job(it).group().is_some());
            return match grouped {
                true => Err("a job with a group, and no groups".into()),
                false => Ok(()),
            };
        };
        let hasher = self.jobs.hasher();
        groups
            .names
            .check_invariants(|number| hasher.hash_one(groups.name(number)))?;
        let mut users: HashMap<u32, u32> = HashMap::new();
        let (mut lines, mut reserved) = (HashMap::new(), HashMap::new());
        for handle in self.jobs.handles() {
            let job = self.jobs.job(handle);
            let Some(number) = job.group() else {
                continue;
            };
            *users.entry(number).or_default() += 1;
            match job.place() {
                _ if self.is_purged(handle) => {}
                Place::Scheduled => *lines.entry(number).or_insert(0) += 1,
                Place::Reserved => *reserved.entry(number).or_insert(0) += 1,
                Place::Dead | Place::Successor => {}
            }
        }
        for number in groups.numbers() {
            let group = groups.get(number);
            let waiting = group.line.check_invariants(groups.order(&self.jobs))?;
            let of_it = |&handle: &u32| self.jobs.job(handle).group() == Some(number);
            let counted = (
                users.get(&number),
                lines.get(&number),
                reserved.get(&number),
            );
            let counted = (counted.0.copied(), counted.1.copied(), counted.2.copied());
            let expected = (Some(group.users), waiting.len(), group.reserved);
            if (counted.0, counted.1.unwrap_or(0), counted.2.unwrap_or(0)) != expected
                || !waiting.iter().all(of_it)
            {
                return Err(format!(
                    "group {number} counts {expected:?}, there are {counted:?}"
                ));
            }
        }
        self.check_group_counts(groups)?;
        self.check_turn_lists(groups)
    }

    fn check_group_counts(&self, groups: &Groups) -> Result<(), String> {
        let all = || groups.numbers().map(|number| groups.get(number));
        let held = all().filter(|group| group.live() > 0).count();
        let reserved: usize = all().map(|group| group.reserved as usize).sum();
        let bytes: usize = all().map(|group| group.name.len()).sum();
        if (held, reserved, bytes as u64) != (groups.held, groups.reserved, groups.name_bytes) {
            return Err(format!(
                "{held} groups with {reserved} reserved jobs are not counted so"
            ));
        }
        if groups.all.len() != groups.names.len() {
            return Err("groups without a name that leads to them".into());
        }
        Ok(())
    }

    /// Each group stands where it belongs, and nowhere else.
    fn check_turn_lists(&self, groups: &Groups) -> Result<(), String> {
        let mut standing = 0;
        for number in groups.numbers() {
            let group = groups.get(number);
            standing += usize::from(group.at != NOWHERE);
            let expected = groups.standing(number, &self.jobs, self.group_rates.as_deref());
            // A window that is past may have gone meanwhile.
            let fits = group.at == expected || (self.group_rates.is_some() && expected < group.at);
            if !fits || group.turn > groups.turn {
                return Err(format!(
                    "group {number} stands at {}, not {expected}",
                    group.at
                ));
            }
        }
        let lists = [(&groups.open, false), (&groups.full, true)];
        for (list, full) in lists {
            list.check_invariants(|_| 0)?;
            for (key, number) in list.iter() {
                let group = groups.get(number);
                if (group.turn, groups.is_full(number)) != (key.turn, full) {
                    return Err(format!("group {number} is not where its turn says"));
                }
            }
        }
        let in_lists: usize = lists
            .iter()
            .map(|(list, _): &(&Skiplist<_>, bool)| list.len())
            .sum();
        if standing != in_lists {
            return Err(format!("{standing} groups stand in lists of {in_lists}"));
        }
        Ok(())
    }
}
