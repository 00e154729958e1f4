//! What must hold of the groups, checked in full: for tests.

use super::turns::Turns;
use super::{Groups, AT_MAX, INSTANT};
use crate::queue::job::Place;
use crate::queue::state::Queue;
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
        let mut blocked: HashMap<u32, usize> = HashMap::new();
        let awaited = self.flows.iter().flat_map(|flows| flows.group_users());
        awaited.for_each(|number| *users.entry(number).or_default() += 1);
        for handle in self.jobs.handles() {
            let job = self.jobs.job(handle);
            let Some(number) = job.group() else {
                continue;
            };
            *users.entry(number).or_default() += 1;
            match job.place() {
                _ if self.jobs.is_purged(handle) => {}
                Place::Scheduled => *lines.entry(number).or_insert(0) += 1,
                Place::Reserved => *reserved.entry(number).or_insert(0) += 1,
                Place::Blocked => *blocked.entry(number).or_insert(0) += 1,
                Place::Dead | Place::Successor => {}
            }
        }
        for number in groups.numbers() {
            let group = groups.get(number);
            let is_current = group.round() == groups.round;
            if !is_current && groups.pass.is_none() {
                return Err(format!("group {number} is of an older round"));
            }
            let waiting = match is_current {
                true => group.line.check_invariants(&self.jobs)?,
                false => Vec::new(),
            };
            let of_it = |&handle: &u32| self.jobs.job(handle).group() == Some(number);
            let counted = (
                users.get(&number),
                lines.get(&number),
                reserved.get(&number),
            );
            let counted = (counted.0.copied(), counted.1.copied(), counted.2.copied());
            let (of_line, of_reserved) = groups.counts(number);
            let of_blocked = blocked.get(&number).copied().unwrap_or(0);
            if of_blocked != groups.blocked_in(number) {
                return Err(format!("group {number} holds {of_blocked} blocked jobs"));
            }
            let of_line = of_line - of_blocked;
            let expected = (Some(group.users), of_line, of_reserved as u32);
            if (counted.0, counted.1.unwrap_or(0), counted.2.unwrap_or(0)) != expected
                || !waiting.iter().all(of_it)
                || (is_current && waiting.len() != of_line)
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
        let held = groups.numbers();
        let lives = |&it: &u32| groups.get(it).live() + groups.blocked_in(it) > 0;
        let held = held.filter(lives).count();
        let counts = groups.numbers().map(|number| groups.counts(number).1);
        let reserved: usize = counts.sum();
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
            standing += usize::from(!group.stands_nowhere());
            let expected = groups.standing(number, &self.jobs, self.group_rates.as_deref());
            let at = group.at & (AT_MAX | INSTANT);
            // A window that has ended may have been dropped meanwhile.
            let fits = at == expected || (self.group_rates.is_some() && expected < at);
            if !(fits || groups.pass.is_some()) || group.turn > groups.turn {
                return Err(format!("group {number} stands at {at}, not {expected}"));
            }
        }
        let in_lists = groups.check_lists(&groups.turns, groups.round)?;
        let older = groups.pass.iter().flat_map(|pass| pass.each_older());
        let older: Result<Vec<usize>, String> = older
            .map(|(round, turns)| groups.check_lists(turns, round))
            .collect();
        let in_lists = in_lists + older?.into_iter().sum::<usize>();
        if standing != in_lists {
            return Err(format!("{standing} groups stand in lists of {in_lists}"));
        }
        Ok(())
    }
}

impl Groups {
    /// How many groups stand in the lists of that round.
    fn check_lists(&self, turns: &Turns, round: usize) -> Result<usize, String> {
        for (list, bit) in [(&turns.open, 0), (&turns.full, AT_MAX)] {
            list.check_invariants(|_| 0)?;
            for (key, number) in list.iter() {
                let group = self.get(number);
                if group.turn != key.turn || !group.stands_at(key.at | bit, round) {
                    return Err(format!("group {number} is not where its turn says"));
                }
            }
        }
        Ok(turns.open.len() + turns.full.len())
    }
}
