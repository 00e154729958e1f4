//! "Why": DQ.EXPLAIN.

use super::rates::window_us;
use super::{Fault, Job, Link, Model, Pause, Phase, LAST};
use dq::queue::job::State;

/// "an array of `[code, number, until]`"
pub type Hold = (&'static str, Option<u64>, Option<u64>);

impl Model {
    /// "Of a queue"
    pub fn explain(&self, now_us: u64) -> Vec<Hold> {
        let mut all = self.limits(now_us);
        let count = |state| self.count(state, now_us) as u64;
        let ready = count(State::Ready);
        if ready == 0 {
            let [delayed, blocked, reserved] =
                [State::Delayed, State::Blocked, State::Reserved].map(count);
            let first_lease = self.jobs.iter().filter_map(deadline).min();
            let coming = [
                ("delayed", Some(delayed), self.next_due(now_us)),
                ("blocked", Some(blocked), None),
                ("reserved", Some(reserved), first_lease),
            ];
            all.extend(coming.into_iter().filter(|it| it.1 != Some(0)));
            if delayed + blocked + reserved == 0 {
                all.push(("empty", None, None));
            }
            return all;
        }
        match self.next_in_turn(now_us, false) {
            Some(turn) => all.extend(self.rate_holds(turn, now_us)),
            None => all.push(("groups", Some(ready), self.windows_open(now_us))),
        }
        if self.would_deliver(now_us, false) {
            all.push(("idle", Some(ready), None));
        }
        all
    }

    /// "Of a job"
    pub fn explain_job(&self, id: &[u8], now_us: u64) -> Option<Vec<Hold>> {
        let Some(index) = self.find(id) else {
            return self.find_done(id).map(|_| vec![("done", None, None)]);
        };
        let job = &self.jobs[index];
        let held = match job.state(now_us) {
            State::Ready => return Some(self.explain_ready(job, now_us)),
            State::Done => ("done", None, None),
            State::Dead => ("dead", None, None),
            State::Reserved => ("reserved", None, deadline(job)),
            State::Blocked => {
                let links = job.waits.iter().flat_map(|waits| &waits.links);
                let held = links.filter(|it| it.1 == Link::Held).count() as u64;
                ("blocked", Some(held.max(1)), None)
            }
            State::Delayed if job.notes.awaits.is_some() => {
                ("signal", None, Some(job.due).filter(|&due| due < LAST))
            }
            State::Delayed => ("delayed", None, Some(job.due)),
        };
        Some(vec![held])
    }

    fn explain_ready(&self, job: &Job, now_us: u64) -> Vec<Hold> {
        let mut all = Vec::new();
        let is_fifo = self.settings.group_limits.is_fifo;
        let max_reserved = self.max_of(&job.group);
        let is_reserved = |job: &&Job| matches!(job.phase, Phase::Reserved { .. });
        let reserved = self.live_of(&job.group).filter(is_reserved).count() as u64;
        let grouped = job.group.is_some();
        if let Some(until) = self.paused_until(&job.group, now_us) {
            all.push(("group-paused", None, Some(until).filter(|&it| it <= LAST)));
        }
        if grouped && max_reserved != 0 && reserved >= max_reserved {
            all.push(("group-max", Some(reserved), None));
        }
        if !self.fits_group(job, now_us) {
            let until = self.window_opens(job, now_us);
            all.push((
                "group-rate",
                Some(self.group_used(&job.group, now_us)),
                until,
            ));
        }
        if grouped && !self.is_next_in_group(job) {
            all.push(("group-fifo", None, None));
        }
        let ready = self.ordered(State::Ready, now_us);
        let others = self.has(Fault::BehindOtherGroups);
        let before = ready.iter().take_while(|other| other.id != job.id);
        let before = before.filter(|other| others || other.group == job.group);
        let before = before.count() as u64;
        if before > 0 && !(grouped && is_fifo) {
            all.push(("behind", Some(before.min(1000)), None));
        }
        all.extend(self.limits(now_us));
        let turn = self.next_in_turn(now_us, false);
        all.extend(turn.and_then(|turn| self.rate_holds(turn, now_us)));
        let goes = self.ready_of_id(&job.id, now_us, false).is_some();
        let goes = goes && !self.is_held(now_us, false) && self.rate_lets(Some(job), false, now_us);
        if goes || all.is_empty() {
            all.push(("idle", Some(ready.len() as u64), None));
        }
        all
    }

    fn limits(&self, now_us: u64) -> Vec<Hold> {
        let until = match self.pause {
            Pause::Until(until) => Some(until),
            Pause::Off | Pause::Forever => None,
        };
        let paused = self.is_paused(now_us).then_some(("paused", None, until));
        let (most, reserved) = (
            self.settings.max_reserved,
            self.count(State::Reserved, now_us) as u64,
        );
        let is_full = most != 0 && reserved >= most;
        let full = is_full.then_some(("maxreserved", Some(reserved), None));
        paused.into_iter().chain(full).collect()
    }

    /// "when the one whose turn it is fits, which it does not now"
    fn rate_holds(&self, turn: &Job, now_us: u64) -> Option<Hold> {
        let by_one = self.has(Fault::RateToldByOne);
        let cost = if by_one { 1 } else { turn.notes.said.cost() };
        if self.rate_allows(cost, now_us) {
            return None;
        }
        let window_us = window_us(self.settings.rate?);
        let mut later = self.clone();
        // What seems to lie ahead, because the clock stepped back, was at the latest now.
        let deliveries = later.deliveries.iter_mut();
        deliveries.for_each(|it| it.at = it.at.min(now_us));
        let leaves = later.deliveries.iter();
        let leaves = leaves.map(|it| it.at.saturating_add(window_us).div_ceil(1000));
        let fits = leaves.filter(|ms| later.rate_allows(cost, ms.saturating_mul(1000)));
        Some(("rate", Some(self.rate_used(now_us)), fits.min()))
    }

    /// "the first end of a pause, or moment of a window, that lets one of these go, RATE apart"
    pub fn windows_open(&self, now_us: u64) -> Option<u64> {
        let ready = self.ordered(State::Ready, now_us);
        let is_first = |job: &&&Job| {
            let of_it = ready.iter().find(|it| it.group == job.group);
            of_it.is_some_and(|first| first.id == job.id)
        };
        let firsts = ready.iter().filter(|job| self.may_go(job, false));
        let is_fifo = self.settings.group_limits.is_fifo;
        let firsts = firsts.filter(|job| is_fifo || is_first(job));
        let opens = |job: &&&Job| {
            let paused = self.paused_until(&job.group, now_us);
            let opens = match self.fits_group(job, now_us) {
                true => None,
                false => Some(self.window_opens(job, now_us)?),
            };
            paused.max(opens).filter(|&at| at != u64::MAX)
        };
        firsts.filter_map(|job| opens(&job)).min()
    }

    /// The first millisecond in which GROUPRATE allows the job.
    fn window_opens(&self, job: &Job, now_us: u64) -> Option<u64> {
        let window_us = window_us(self.rate_of(&job.group)?);
        let all = self.group_deliveries.iter().map(|(_, it)| it.at);
        let leaves = all.map(|at| at.saturating_add(window_us).div_ceil(1000));
        leaves
            .filter(|ms| *ms > now_us / 1000 && self.fits_group(job, ms.saturating_mul(1000)))
            .min()
    }

    /// What the window of a group holds, in whole milliseconds.
    pub fn group_used(&self, group: &Option<Vec<u8>>, now_us: u64) -> u64 {
        let Some((rate, name)) = self.rate_of(group).zip(group.as_ref()) else {
            return 0;
        };
        let leaves = |at: u64| at.saturating_add(window_us(rate)).div_ceil(1000);
        let all = self.group_deliveries.iter().filter(|(of, _)| of == name);
        let recent = all.filter(|(_, it)| leaves(it.at) > now_us / 1000);
        recent.map(|(_, it)| u64::from(it.cost)).sum()
    }
}

fn deadline(job: &Job) -> Option<u64> {
    match job.phase {
        Phase::Reserved { deadline, .. } => Some(deadline),
        _ => None,
    }
}
