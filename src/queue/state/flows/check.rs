//! What must hold of flows, checked in full: for tests.

use super::{scattered, Flows, What};
use crate::queue::after::{OnDead, Verdict};
use crate::queue::job::Place;
use crate::queue::state::jobs::Jobs;
use std::collections::HashMap;

/// How many users each number and each end has.
#[derive(Default)]
struct Found {
    awaited: HashMap<u32, u32>,
    overs: HashMap<u32, u32>,
}

impl Flows {
    pub fn check(&self, jobs: &Jobs) -> Result<(), String> {
        self.check_lists(jobs)?;
        let mut found = Found::default();
        self.check_records(jobs, &mut found)?;
        check_line(self, &mut found)?;
        let restoring = self.restoring.iter().flat_map(|it| &it.ends);
        for &(over, _) in restoring {
            *found.overs.entry(over).or_default() += 1;
        }
        self.check_awaited(jobs, &mut found)?;
        check_overs(self, &found)?;
        match self.is_unchecked || self.stuck(jobs).is_empty() {
            true => Ok(()),
            false => Err("a job that stays blocked for ever".into()),
        }
    }

    fn check_lists(&self, jobs: &Jobs) -> Result<(), String> {
        let seq = |handle| jobs.job(handle).seq();
        self.members.check_invariants(seq)?;
        self.edges.check_invariants(seq)?;
        let waiter = |it: u32| self.records.get(it).map_or(0, |it| scattered(it.waiter));
        self.waiters.check_invariants(waiter)
    }

    /// What each blocked job waits for, and how much of it is open.
    fn check_records(&self, jobs: &Jobs, found: &mut Found) -> Result<(), String> {
        let mut edges = 0;
        for record in self.records.iter() {
            let is_purged = jobs.is_purged(record.waiter);
            let mut open = 0;
            for &number in record.links.get() {
                *found.awaited.entry(number).or_default() += 1;
                let is_open = self.is_open(number, record.waiter, jobs);
                open += usize::from(is_open);
                let is_held = !matches!(self.awaited(number).what, What::Over(_));
                if is_held && !is_open && !is_purged {
                    return Err(format!("{record:?} waits not for what is there"));
                }
                if self.awaited(number).on_dead != record.on_dead {
                    return Err(format!("{record:?} under another ONDEAD"));
                }
            }
            edges += open;
            if is_purged {
                continue;
            }
            if open != usize::from(record.open) || jobs.is_blocked(record.waiter) != (open > 0) {
                return Err(format!("{record:?} counts not {open}"));
            }
        }
        match edges == self.edges.len() {
            true => Ok(()),
            false => Err(format!("{} edges, not {edges}", self.edges.len())),
        }
    }

    /// Each job, group or end that is awaited has as many users as it counts, and is known.
    fn check_awaited(&self, jobs: &Jobs, found: &mut Found) -> Result<(), String> {
        let mut known = 0;
        for (number, &count) in &found.awaited {
            let awaited = self.awaited(*number);
            if awaited.users != count {
                return Err(format!("{awaited:?} has {count} users"));
            }
            match awaited.what {
                What::Over(over) => *found.overs.entry(over).or_default() += 1,
                What::Group(group) => {
                    if self.of_group.get(&group) != Some(number) {
                        return Err("a group that is awaited, and not known".into());
                    }
                }
                What::Job(job) if self.number_of(job, awaited.on_dead) == Some(*number) => {
                    known += 1;
                    let is_dead = jobs.job(job).place() == Place::Dead;
                    if is_dead && awaited.on_dead != OnDead::Wait {
                        return Err(format!("{awaited:?} waits for the dead"));
                    }
                }
                What::Job(_) if !jobs.has_purged() => {
                    return Err(format!("{awaited:?} is not known"));
                }
                What::Job(_) => {}
            }
        }
        if found.awaited.len() != self.awaited.len() || known != self.of_job.len() {
            return Err("what is awaited by nobody".into());
        }
        Ok(())
    }
}

/// The ends that are still to be carried out.
fn check_line(flows: &Flows, found: &mut Found) -> Result<(), String> {
    for pending in &flows.line {
        *found.overs.entry(pending.over).or_default() += 1;
        let outcome = flows.over(pending.over).outcome;
        for &number in pending.numbers.iter().filter(|&&it| it != super::NONE) {
            *found.awaited.entry(number).or_default() += 1;
            let awaited = flows.awaited(number);
            let stays = outcome.map(|it| awaited.on_dead.verdict(it)) == Some(Verdict::Stays);
            if awaited.what != What::Over(pending.over) || stays {
                return Err(format!("{awaited:?} in the line"));
            }
        }
    }
    Ok(())
}

fn check_overs(flows: &Flows, found: &Found) -> Result<(), String> {
    let mut values = HashMap::new();
    for (over, &count) in &found.overs {
        let over = flows.over(*over);
        if over.value != super::NONE {
            *values.entry(over.value).or_default() += 1;
        }
        if over.users != count {
            return Err(format!("{over:?} has {count} users"));
        }
    }
    match found.overs.len() == flows.overs.len() {
        true => flows.values.check(&values),
        false => Err("ends that nobody has".into()),
    }
}
