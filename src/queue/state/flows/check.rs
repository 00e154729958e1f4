//! What must hold of flows, checked in full: for tests.

use super::{scattered, What};
use crate::queue::after::Verdict;
use crate::queue::job::{Handle, Place};
use crate::queue::state::Queue;
use std::collections::HashMap;

impl Queue {
    pub(in crate::queue::state) fn check_flows(&self) -> Result<(), String> {
        let blocked = |handle: Handle| self.jobs.job(handle).place() == Place::Blocked;
        let Some(flows) = &self.flows else {
            return match self.jobs.handles().any(blocked) {
                true => Err("a blocked job, and no flows".into()),
                false => Ok(()),
            };
        };
        let seq = |handle| self.jobs.job(handle).seq();
        flows.blocked.check_invariants(seq)?;
        flows.members.check_invariants(seq)?;
        flows.edges.check_invariants(seq)?;
        let waiter = |it: u32| flows.records.get(it).map_or(0, |it| scattered(it.waiter));
        flows.waiters.check_invariants(waiter)?;
        let mut users: HashMap<u32, u32> = HashMap::new();
        let mut ends: HashMap<u32, u32> = HashMap::new();
        let mut edges = 0;
        for record in flows.records.iter() {
            let is_purged = self.is_purged(record.waiter);
            let mut open = 0;
            for &number in record.links.get() {
                *users.entry(number).or_default() += 1;
                let is_open = flows.is_open(number, record.waiter, &self.jobs);
                open += usize::from(is_open);
                let is_held = !matches!(flows.awaited(number).what, What::Over(_));
                if is_held && !is_open && !is_purged {
                    return Err(format!("{record:?} waits not for what is there"));
                }
                if flows.awaited(number).on_dead != record.on_dead {
                    return Err(format!("{record:?} under another ONDEAD"));
                }
            }
            edges += open;
            if is_purged {
                continue;
            }
            if open != usize::from(record.open) || blocked(record.waiter) != (open > 0) {
                return Err(format!("{record:?} counts not {open}"));
            }
        }
        if edges != flows.edges.len() {
            return Err(format!("{} edges, not {edges}", flows.edges.len()));
        }
        for pending in &flows.line {
            *ends.entry(pending.over).or_default() += 1;
            let outcome = flows.over(pending.over).outcome;
            for &number in pending.numbers.iter().filter(|&&it| it != super::NONE) {
                *users.entry(number).or_default() += 1;
                let awaited = flows.awaited(number);
                let stays = outcome.map(|it| awaited.on_dead.verdict(it)) == Some(Verdict::Stays);
                if awaited.what != What::Over(pending.over) || stays {
                    return Err(format!("{awaited:?} in the line"));
                }
            }
        }
        let restoring = flows.restoring.iter().flat_map(|it| &it.ends);
        for &(over, _) in restoring {
            *ends.entry(over).or_default() += 1;
        }
        let mut known = 0;
        for (number, &count) in &users {
            let awaited = flows.awaited(*number);
            if awaited.users != count {
                return Err(format!("{awaited:?} has {count} users"));
            }
            match awaited.what {
                What::Over(over) => *ends.entry(over).or_default() += 1,
                What::Group(group) => {
                    if flows.of_group.get(&group) != Some(number) {
                        return Err("a group that is awaited, and not known".into());
                    }
                }
                What::Job(job) => {
                    if flows.number_of(job, awaited.on_dead) == Some(*number) {
                        known += 1;
                        let is_dead = self.jobs.job(job).place() == Place::Dead;
                        if is_dead && awaited.on_dead != crate::queue::after::OnDead::Wait {
                            return Err(format!("{awaited:?} waits for the dead"));
                        }
                    } else if !self.has_purged() {
                        return Err(format!("{awaited:?} is not known"));
                    }
                }
            }
        }
        if users.len() != flows.awaited.len() || known != flows.of_job.len() {
            return Err("what is awaited by nobody".into());
        }
        let mut bytes = 0;
        for (over, &count) in &ends {
            let over = flows.over(*over);
            bytes += over.value_len();
            if over.users != count {
                return Err(format!("{over:?} has {count} users"));
            }
        }
        if ends.len() != flows.overs.len() || bytes != flows.value_bytes {
            return Err("ends that nobody has".into());
        }
        let there = flows.blocked.iter().all(|(_, job)| blocked(job));
        if !there {
            return Err("a job among the blocked that is not".into());
        }
        match flows.is_unchecked || self.stuck().is_empty() {
            true => Ok(()),
            false => Err("a job that stays blocked for ever".into()),
        }
    }
}
