//! "Jobs after others": which job waits for which; ends are carried out at once.

use super::{Fault, Job, Model, Phase, LAST};
use crate::op::{AfterOp, Id, Reply};
use dq::queue::after::{OnDead, Outcome};
use dq::queue::clock::When;
use std::collections::BTreeSet;

/// One of the jobs that a job is after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    Held,
    /// How it ended, its result or reason, and the number of that end.
    Over(Outcome, Option<Vec<u8>>, u64),
    /// The job stopped waiting for it.
    Left,
}

#[derive(Clone, Debug)]
pub struct Waits {
    pub links: Vec<(Id, Link)>,
    pub group: Option<Vec<u8>>,
    pub on_dead: OnDead,
    /// The due time as its ADD gave it.
    pub when: When,
    /// When the latest of them ended, in us.
    latest: u64,
}

/// An end that is still to be carried out.
#[derive(Clone, Debug)]
pub struct End {
    id: Id,
    outcome: Outcome,
    at_us: u64,
    value: Option<Vec<u8>>,
    number: u64,
    /// The jobs that wait for it.
    waiters: Vec<Id>,
}

impl Waits {
    fn is_over(&self) -> bool {
        self.links.iter().all(|(_, link)| *link != Link::Held)
    }

    /// The results as GET shows them.
    pub fn results(&self) -> Vec<(Id, Option<Outcome>, Option<Vec<u8>>)> {
        let shown = |(id, link): &(Id, Link)| match link {
            Link::Over(outcome, value, _) => (id.clone(), Some(*outcome), value.clone()),
            Link::Held | Link::Left => (id.clone(), None, None),
        };
        self.links.iter().map(shown).collect()
    }

    fn due(&self) -> u64 {
        match self.when {
            When::At(instant) => instant,
            When::Delay(0) => self.latest / 1000,
            When::Delay(ms) => self.latest.div_ceil(1000).saturating_add(ms).min(LAST),
        }
    }
}

impl Job {
    pub fn is_blocked(&self) -> bool {
        self.phase == Phase::Blocked
    }

    /// The instant that a blocked job named.
    pub fn named_due(&self) -> Option<u64> {
        match self.waits.as_ref().map(|waits| waits.when) {
            Some(When::At(instant)) => Some(instant),
            _ => None,
        }
    }

    pub fn waits_for(&self, id: &[u8]) -> bool {
        let waits = self.waits.as_ref();
        let links = waits.map_or(&[][..], |waits| &waits.links);
        self.is_blocked()
            && links
                .iter()
                .any(|(of, link)| of == id && *link == Link::Held)
    }
}

/// What AFTER means: what the job waits for, and the reason if it dies at once.
pub type Plan = (Waits, Option<Vec<u8>>);

impl Model {
    /// Whether any job is or was after others.
    pub fn flows(&self) -> bool {
        self.jobs.iter().any(|job| job.waits.is_some())
    }

    /// Bytes of results and reasons of ended jobs, each counted once.
    pub fn values_len(&self) -> u64 {
        self.values_of(self.jobs.iter().filter_map(|job| job.waits.as_ref()))
    }

    /// By how many bytes these grow with a job that has such a plan in the place of another one.
    pub fn values_grow(&self, replaced: Option<usize>, plan: Option<&Plan>) -> i64 {
        let jobs = self.jobs.iter().enumerate();
        let others = jobs.filter(|&(index, _)| Some(index) != replaced);
        let others = others.filter_map(|(_, job)| job.waits.as_ref());
        let new = plan.map(|(waits, _)| waits);
        self.values_of(others.chain(new)) as i64 - self.values_len() as i64
    }

    fn values_of<'a>(&'a self, waits: impl Iterator<Item = &'a Waits>) -> u64 {
        let links = waits.flat_map(|waits| &waits.links);
        let values = links.filter_map(|(id, link)| match link {
            Link::Over(_, Some(value), number) => Some((id, value, *number)),
            _ => None,
        });
        let waiting = self.line.iter().filter(|end| !end.waiters.is_empty());
        let waiting = waiting.filter_map(|end| Some((&end.id, end.value.as_ref()?, end.number)));
        let again = self.has(Fault::ResultsOfLateWeighAgain);
        let all: BTreeSet<_> = (values.chain(waiting))
            .map(|(id, value, number)| (id, value, if again { number } else { 0 }))
            .collect();
        all.iter().map(|(_, value, _)| value.len() as u64).sum()
    }

    fn holds(&self, group: &[u8]) -> bool {
        let of_it = |job: &Job| {
            !matches!(job.phase, Phase::Dead { .. }) && job.group.as_deref() == Some(group)
        };
        self.jobs.iter().any(of_it)
    }

    /// Blocked jobs whose group is empty.
    fn behind_nothing(&self) -> Vec<Id> {
        let is_free = |job: &&Job| {
            let group = job.waits.as_ref().and_then(|waits| waits.group.as_ref());
            job.is_blocked() && group.is_some_and(|group| !self.holds(group))
        };
        let free = self.jobs.iter().filter(is_free);
        free.map(|job| job.id.clone()).collect()
    }

    /// Whether ends must be carried out before an event at that instant.
    pub(super) fn must_follow_before(&self, at: u64) -> bool {
        let first = self.line.front();
        first.is_some_and(|end| end.at_us / 1000 < at) || !self.behind_nothing().is_empty()
    }

    /// A job ends, or is removed: the jobs after it learn of it when the command is done.
    pub(super) fn notes_end(
        &mut self,
        id: &[u8],
        outcome: Outcome,
        at_us: u64,
        value: Option<Vec<u8>>,
    ) {
        self.moment = at_us;
        if self.has(Fault::EndsUnheard) && outcome == Outcome::Deleted {
            return;
        }
        let waiting = self.jobs.iter().filter(|job| job.waits_for(id));
        let means = waiting.filter(|job| {
            let on_dead = job.waits.as_ref().map(|waits| waits.on_dead);
            outcome != Outcome::Dead || on_dead != Some(OnDead::Wait)
        });
        let waiters: Vec<Id> = means.map(|job| job.id.clone()).collect();
        if waiters.is_empty() {
            return;
        }
        self.end_numbers += 1;
        let number = self.end_numbers;
        for job in &mut self.jobs {
            if waiters.contains(&job.id) {
                let waits = job.waits.as_mut().expect("it waits");
                for (of, link) in &mut waits.links {
                    if of == id && *link == Link::Held {
                        *link = Link::Over(outcome, value.clone(), number);
                    }
                }
            }
        }
        self.line.push_back(End {
            id: id.to_vec(),
            outcome,
            at_us,
            value,
            number,
            waiters,
        });
    }

    /// A waiting job is removed or kicked: earlier ends no longer concern it.
    pub(super) fn waits_no_more(&mut self, id: &[u8]) {
        for end in &mut self.line {
            end.waiters.retain(|waiter| waiter != id);
        }
    }

    /// Carries out all ends, and those that follow from them.
    pub fn follow_up(&mut self) {
        loop {
            let free = self.behind_nothing();
            for id in &free {
                let at_us = self.moment;
                let index = self.find(id).expect("it is there");
                self.unblock(index, at_us);
                self.jobs[index].waits = None;
            }
            let Some(end) = self.line.pop_front() else {
                let before = self.line.len();
                self.trim_dead();
                if free.is_empty() && self.line.len() == before {
                    return;
                }
                continue;
            };
            let mut waiters = end.waiters.clone();
            waiters.sort_by_key(|id| self.find(id).map(|index| self.jobs[index].seq));
            for id in waiters {
                self.carry_out(&end, &id);
            }
        }
    }

    fn carry_out(&mut self, end: &End, id: &[u8]) {
        let Some(index) = self.find(id) else { return };
        let waits = self.jobs[index].waits.as_ref().expect("it waits");
        let over = match (end.outcome, waits.on_dead) {
            (Outcome::Done, _) | (_, OnDead::Run) => true,
            _ => self.has(Fault::OnDeadIgnored),
        };
        if over {
            let waits = self.jobs[index].waits.as_mut().expect("it waits");
            waits.latest = waits.latest.max(end.at_us);
            let later = |other: &End| other.waiters.iter().any(|waiter| waiter == id);
            let first = self.has(Fault::FirstEndEnough);
            let waits = self.jobs[index].waits.as_ref().expect("it waits");
            if first || waits.is_over() && !self.line.iter().any(later) {
                let latest = waits.latest;
                self.unblock(index, latest);
            }
            return;
        }
        let mut reason = [b"after ", &*end.id, b": ", end.outcome.name().as_bytes()].concat();
        reason.truncate(1024);
        self.dies_of(index, reason, end.at_us);
    }

    /// A job that waits, or was about to, dies because another one died.
    pub(super) fn dies_of(&mut self, index: usize, reason: Vec<u8>, at_us: u64) {
        let id = self.jobs[index].id.clone();
        self.waits_no_more(&id);
        let job = &mut self.jobs[index];
        job.due = job.named_due().unwrap_or(at_us / 1000);
        if let Some(waits) = &mut job.waits {
            for (_, link) in &mut waits.links {
                if *link == Link::Held {
                    *link = Link::Left;
                }
            }
        }
        job.token = None;
        job.failure = Some((at_us / 1000, Some(reason.clone())));
        self.holds_trim = true;
        self.dies(index, at_us / 1000, at_us, Some(reason));
        self.holds_trim = false;
    }

    fn unblock(&mut self, index: usize, latest: u64) {
        let id = self.jobs[index].id.clone();
        self.waits_no_more(&id);
        let job = &mut self.jobs[index];
        let waits = job.waits.as_mut().expect("it waits");
        waits.latest = waits.latest.max(latest);
        job.due = waits.due();
        job.phase = Phase::Waiting;
    }

    /// KICK of a blocked job.
    pub(super) fn kick_blocked(&mut self, index: usize, now: u64) {
        self.unblock(index, 0);
        let job = &mut self.jobs[index];
        job.due = now / 1000;
        let waits = job.waits.as_mut().expect("it waits");
        for (_, link) in &mut waits.links {
            if *link == Link::Held {
                *link = Link::Left;
            }
        }
        if waits.group.is_some() {
            job.waits = None;
        }
    }

    /// Plans what the job waits for; None: it need not wait.
    pub(super) fn plan(
        &mut self,
        after: &AfterOp,
        id: &[u8],
        group: Option<&[u8]>,
        (when, now): (When, u64),
    ) -> Result<Option<Plan>, Reply> {
        const ITSELF: Reply = Reply::Error("ERR AFTER would wait for itself");
        let mut waits = Waits {
            links: Vec::new(),
            group: None,
            on_dead: OnDead::Wait,
            when,
            latest: now,
        };
        let mut dies_of = None;
        match after {
            AfterOp::Group(name) => {
                if group == Some(&**name) {
                    return Err(ITSELF);
                }
                let of_it = |job: &Job| {
                    job.id != id
                        && !matches!(job.phase, Phase::Dead { .. })
                        && job.group.as_deref() == Some(name)
                };
                if !self.jobs.iter().any(of_it) {
                    return Ok(None);
                }
                waits.group = Some(name.clone());
            }
            AfterOp::Jobs(ids, on_dead) => {
                waits.on_dead = *on_dead;
                if ids.iter().any(|of| of == id) {
                    return Err(ITSELF);
                }
                for of in ids {
                    let done = self.find_done(of).map(|at| self.done[at].result().cloned());
                    let Some(index) = self.find(of) else {
                        if let Some(result) = done {
                            self.end_numbers += 1;
                            let link = Link::Over(Outcome::Done, result, self.end_numbers);
                            waits.links.push((of.clone(), link));
                            continue;
                        }
                        return Err(Reply::Error(
                            "ERR AFTER names a job that the queue does not hold",
                        ));
                    };
                    let job = &self.jobs[index];
                    if job.recur.is_some() {
                        return Err(Reply::Error(
                            "ERR AFTER cannot be combined with a recurring job",
                        ));
                    }
                    let dead = matches!(job.phase, Phase::Dead { .. });
                    let value = job.failure.as_ref().and_then(|(_, reason)| reason.clone());
                    let link = match on_dead {
                        OnDead::Run | OnDead::Die if dead => {
                            if *on_dead == OnDead::Die && dies_of.is_none() {
                                dies_of = Some([b"after ", &**of, b": dead"].concat());
                            }
                            self.end_numbers += 1;
                            Link::Over(Outcome::Dead, value, self.end_numbers)
                        }
                        _ => Link::Held,
                    };
                    waits.links.push((of.clone(), link));
                }
                let distinct: BTreeSet<&Id> = ids.iter().collect();
                if distinct.len() < ids.len() {
                    return Err(Reply::Error("ERR AFTER names an id twice"));
                }
            }
        }
        let open = waits.group.is_some() || !waits.is_over();
        if open && dies_of.is_none() && self.leads_back(&waits, id, group) {
            return Err(ITSELF);
        }
        if let Some(reason) = &mut dies_of {
            reason.truncate(1024);
            for (_, link) in &mut waits.links {
                if *link == Link::Held {
                    *link = Link::Left;
                }
            }
        }
        Ok(Some((waits, dies_of)))
    }

    fn leads_back(&self, waits: &Waits, id: &[u8], group: Option<&[u8]>) -> bool {
        let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
        let mut left = vec![waits];
        while let Some(waits) = left.pop() {
            if waits.group.is_some() && waits.group.as_deref() == group {
                return true;
            }
            let held = waits.links.iter().filter(|(_, link)| *link == Link::Held);
            let ids = held.map(|(of, _)| of.as_slice());
            let of_group = |job: &&Job| waits.group.is_some() && job.group == waits.group;
            let members = self.jobs.iter().filter(of_group);
            let members = members.map(|job| job.id.as_slice()).filter(|of| *of != id);
            for of in ids.chain(members) {
                if of == id {
                    return true;
                }
                let job = self.find(of).map(|index| &self.jobs[index]);
                if let Some(job) = job.filter(|job| job.is_blocked() && seen.insert(of)) {
                    left.extend(job.waits.as_ref());
                }
            }
        }
        false
    }
}
