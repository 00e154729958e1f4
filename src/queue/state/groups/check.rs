//! What must hold of the groups, checked in full: for tests.

use super::turns::{Turns, AT_MAX, INSTANT};
use super::Groups;
use crate::queue::job::GroupNumber;
use crate::queue::job::Place;
use crate::queue::state::jobs::Jobs;
use crate::queue::state::rate::group::GroupRates;
use std::collections::HashMap;

impl Groups {
    /// `awaited` are the groups for which jobs wait.
    pub fn check(
        &self,
        jobs: &Jobs,
        rates: Option<&GroupRates>,
        awaited: impl Iterator<Item = GroupNumber>,
    ) -> Result<(), String> {
        let hasher = jobs.hasher();
        self.names
            .check_invariants(|number| hasher.hash_one(self.name(number)))?;
        let mut users: HashMap<u32, u32> = HashMap::new();
        let (mut lines, mut reserved) = (HashMap::new(), HashMap::new());
        let mut blocked: HashMap<u32, usize> = HashMap::new();
        awaited.for_each(|number| *users.entry(number).or_default() += 1);
        for handle in jobs.handles() {
            let job = jobs.job(handle);
            let Some(number) = job.group() else {
                continue;
            };
            *users.entry(number).or_default() += 1;
            match job.place() {
                _ if jobs.is_purged(handle) => {}
                Place::Scheduled => *lines.entry(number).or_insert(0) += 1,
                Place::Reserved => *reserved.entry(number).or_insert(0) += 1,
                Place::Blocked => *blocked.entry(number).or_insert(0) += 1,
                Place::Dead | Place::Successor => {}
            }
        }
        for number in self.numbers() {
            let group = self.get(number);
            let is_current = group.round() == self.round;
            if !is_current && self.pass.is_none() {
                return Err(format!("group {number} is of an older round"));
            }
            let waiting = match is_current {
                true => group.line.check_invariants(jobs)?,
                false => Vec::new(),
            };
            let of_it = |&handle: &u32| jobs.job(handle).group() == Some(number);
            let counted = (
                users.get(&number).copied(),
                lines.get(&number).copied(),
                reserved.get(&number).copied(),
            );
            let (of_line, of_reserved) = self.counts(number);
            let of_blocked = blocked.get(&number).copied().unwrap_or(0);
            if of_blocked != self.blocked_in(number) {
                return Err(format!("group {number} holds {of_blocked} blocked jobs"));
            }
            let of_line = of_line - of_blocked;
            let expected = (self.users(number), of_line, of_reserved as u32);
            let counted = (
                counted.0.unwrap_or(0),
                counted.1.unwrap_or(0),
                counted.2.unwrap_or(0),
            );
            if counted != expected
                || !waiting.iter().all(of_it)
                || (is_current && waiting.len() != of_line)
            {
                return Err(format!(
                    "group {number} counts {expected:?}, there are {counted:?}"
                ));
            }
        }
        self.check_counts()?;
        self.check_turn_lists(jobs, rates)
    }

    fn check_counts(&self) -> Result<(), String> {
        self.check_own()?;
        let used = self.numbers().filter(|&number| self.users(number) > 0);
        let held = self.numbers();
        let lives = |&it: &u32| self.get(it).live() + self.blocked_in(it) > 0;
        let held = held.filter(lives).count();
        let counts = self.numbers().map(|number| self.counts(number).1);
        let reserved: usize = counts.sum();
        let bytes: usize = used.map(|number| self.get(number).name.len()).sum();
        if (held, reserved, bytes as u64) != (self.held, self.reserved, self.name_bytes) {
            return Err(format!(
                "{held} groups with {reserved} reserved jobs are not counted so"
            ));
        }
        if self.all.len() != self.names.len() {
            return Err("groups without a name that leads to them".into());
        }
        Ok(())
    }

    /// Each group stands where it belongs, and nowhere else.
    fn check_turn_lists(&self, jobs: &Jobs, rates: Option<&GroupRates>) -> Result<(), String> {
        let mut standing = 0;
        for number in self.numbers() {
            let group = self.get(number);
            standing += usize::from(!group.stands_nowhere());
            let expected = self.standing(number, jobs, rates);
            let at = group.at & (AT_MAX | INSTANT);
            // A window that has ended may have been dropped meanwhile.
            let fits = at == expected || (rates.is_some() && expected < at);
            if !(fits || self.pass.is_some()) || group.turn > self.turn {
                return Err(format!("group {number} stands at {at}, not {expected}"));
            }
        }
        let in_lists = self.check_lists(&self.turns, self.round)?;
        let older = self.pass.iter().flat_map(|pass| pass.each_older());
        let older: Result<Vec<usize>, String> = older
            .map(|(round, turns)| self.check_lists(turns, round))
            .collect();
        let in_lists = in_lists + older?.into_iter().sum::<usize>();
        if standing != in_lists {
            return Err(format!("{standing} groups stand in lists of {in_lists}"));
        }
        Ok(())
    }

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
