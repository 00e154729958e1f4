//! The commands, each from its paragraph of the contract.

use super::recurring::{first, Recurring};
use super::{after, Fault, Job, Model, Pause, Phase, LAST};
use crate::op::{AddOp, Delivered, Id, NackOp, Op, PopOp, Reply};
use dq::queue::add::{Condition, When};
use dq::queue::deliver::NackKind;
use dq::queue::job::State;
use dq::queue::settings::SettingsChange;

const OUT_OF_RANGE: Reply = Reply::Error("ERR value is not an integer or out of range");

impl Model {
    /// The reply that the contract wants. Made ids and tokens it takes from the actual one, where
    /// they are such as they must be.
    pub fn execute(&mut self, op: &Op, now: u64, actual: &Reply) -> Reply {
        match op {
            Op::Add(add) => self.add(add, now, actual),
            Op::Pop(pop) => self.pop(pop, now, actual),
            Op::Ack { id, token } => self.ack(id, token.as_deref(), now),
            Op::Nack(nack) => self.nack(nack, now),
            Op::Touch { id, token, ttr } => self.touch(id, token.as_deref(), *ttr, now),
            Op::Reschedule { id, when, priority } => self.reschedule(id, *when, *priority, now),
            Op::Kick(id) => Reply::Count(self.kick(self.find(id), now)),
            Op::KickOldest(count) => self.kick_oldest(*count, now),
            Op::Del { id, unreserved } => self.del(id, *unreserved),
            Op::Purge(state) => self.purge(*state, now),
            Op::Pause(ms) => self.pause(*ms, now),
            Op::Resume => {
                if self.is_paused(now) {
                    self.pause = Pause::Off;
                }
                Reply::Ok
            }
            Op::Configure(change) => self.configure(change),
            Op::Settle(_) => Reply::Ok,
        }
    }

    fn add(&mut self, add: &AddOp, now: u64, actual: &Reply) -> Reply {
        let instants = match add_instants(add, now) {
            Ok(instants) => instants,
            Err(error) => return error,
        };
        let there = add.id.as_deref().and_then(|id| self.find(id));
        let live = there.is_some_and(|at| !matches!(self.jobs[at].phase, Phase::Dead { .. }));
        let until = add.rule.as_ref().map_or(0, |rule| rule.until);
        let first = self
            .first_of(add, now)
            .map_or(0, |(occurrence, _)| occurrence);
        if until != 0 && first > until && self.renews(there, add).is_none() {
            return Reply::Error("ERR UNTIL leaves no occurrence");
        }
        let full = self.is_full(live);
        if full && self.has(Fault::MaxLenBeforeCondition) {
            return Reply::Error("MAXLEN queue is full");
        }
        if self.refuses(add, there.is_some(), live, now) {
            return Reply::Nil;
        }
        if full {
            return Reply::Error("MAXLEN queue is full");
        }
        let follows = there.filter(|&at| self.is_followed_by(at, add));
        let renews = self.renews(there, add);
        if self.exceeds_bytes(add, actual, there, follows, now) {
            return Reply::Error("MAXBYTES queue is full");
        }
        let id = match &add.id {
            Some(id) => id.clone(),
            None => match self.check_made_id(actual, now) {
                Some(id) => id,
                None => return Reply::Nil,
            },
        };
        match (follows, renews) {
            (Some(at), _) => self.follow(at, add, id.clone(), instants, now),
            (None, Some(at)) => {
                let adds = self.adds;
                let new = self.new_job(add, id.clone(), instants, now);
                self.adds = adds;
                self.renew(at, add, new);
            }
            (None, None) => self.put(add, id.clone(), there, instants, now),
        }
        Reply::Added(id)
    }

    /// "where the job of that id is reserved this one is kept as its *successor*"
    fn is_followed_by(&self, at: usize, add: &AddOp) -> bool {
        let reserved = matches!(self.jobs[at].phase, Phase::Reserved { .. });
        add.condition == Condition::Next && reserved && self.jobs[at].recur.is_none()
    }

    /// "An ADD that makes the sum larger, and larger than MAXBYTES, is refused; what it replaces is taken off
    /// first." A made id is as long as one that is answered, or would have been.
    fn exceeds_bytes(
        &self,
        add: &AddOp,
        actual: &Reply,
        there: Option<usize>,
        follows: Option<usize>,
        now: u64,
    ) -> bool {
        let limit = self.settings.max_bytes;
        let made = match actual {
            Reply::Added(id) => id.len(),
            _ if now / 1000 > self.last_made_id.0 => format!("{}-0", now / 1000).len(),
            _ => format!("{}-{}", self.last_made_id.0, self.last_made_id.1 + 1).len(),
        };
        let id_len = add.id.as_ref().map_or(made, Vec::len);
        let names = self.names_grow(add, there, follows);
        let old = match (follows, there) {
            (Some(at), _) => self.jobs[at].next.as_ref().map_or(0, |next| next.bytes()),
            (None, Some(at)) => self.jobs[at].bytes(),
            (None, None) => 0,
        };
        let new = (id_len + add.payload.len()) as i64;
        let grown = new - old as i64 + names;
        limit != 0 && grown > 0 && self.bytes() as i64 + grown > limit.min(1 << 60) as i64
    }

    fn follow(&mut self, at: usize, add: &AddOp, id: Id, instants: (u64, Option<u64>), now: u64) {
        let job = self.new_job(add, id, instants, now);
        let old = self.jobs[at].next.replace(Box::new(job));
        self.totals.deleted += u64::from(old.is_some());
    }

    fn is_full(&self, replaces_live: bool) -> bool {
        let limit = self.settings.max_len as usize;
        let counted = if self.has(Fault::MaxLenCountsDead) {
            self.jobs.len()
        } else {
            self.live()
        };
        limit != 0 && !replaces_live && counted >= limit
    }

    fn refuses(&self, add: &AddOp, there: bool, live: bool, now: u64) -> bool {
        if self.has(Fault::PauseHoldsAdding) && self.is_paused(now) {
            return true;
        }
        let remembered = || {
            let id = add.id.as_deref();
            let until = id.and_then(|id| self.memory.get(id));
            until.is_some_and(|until| now / 1000 < *until)
        };
        match add.condition {
            Condition::New if self.has(Fault::AddTakesExistingId) => remembered(),
            Condition::Next if self.follows(add) => self.has(Fault::NextRefused),
            Condition::New | Condition::Next => live || remembered(),
            Condition::Existing if self.has(Fault::XxOnlyLive) => !live,
            Condition::Existing => !there,
            Condition::Replace => false,
        }
    }

    fn follows(&self, add: &AddOp) -> bool {
        let there = add.id.as_deref().and_then(|id| self.find(id));
        there.is_some_and(|at| self.is_followed_by(at, add))
    }

    /// `<unix-ms>-<seq>`, growing, not there and not remembered.
    fn check_made_id(&mut self, actual: &Reply, now: u64) -> Option<Id> {
        let Reply::Added(id) = actual else {
            return None;
        };
        let text = std::str::from_utf8(id).ok()?;
        let (ms, seq) = text.split_once('-')?;
        let parts = (ms.parse().ok()?, seq.parse().ok()?);
        let fits = parts > self.last_made_id
            && parts.0 >= now / 1000
            && format!("{}-{}", parts.0, parts.1) == text
            && self.find(id).is_none()
            && !self.memory.contains_key(id);
        self.last_made_id = self.last_made_id.max(parts);
        fits.then(|| id.clone())
    }

    /// The last in the order of adding.
    fn new_job(
        &mut self,
        add: &AddOp,
        id: Id,
        (due, expires): (u64, Option<u64>),
        now: u64,
    ) -> Job {
        self.adds += 1;
        let lost_us = self.has(Fault::DelayRoundedDown) && !now.is_multiple_of(1000);
        let delayed = matches!(add.when, Some(When::Delay(1..)));
        let backoff = add.backoff.as_ref().unwrap_or(&self.settings.backoff_ms);
        Job {
            id,
            payload: add.payload.clone(),
            priority: add.priority,
            due: due - u64::from(lost_us && delayed),
            ttr: add.ttr.or(self.settings.ttr_ms).unwrap_or(add.server_ttr),
            attempts: 0,
            max_attempts: add.attempts.unwrap_or(self.settings.max_attempts),
            backoff: backoff.clone(),
            expires,
            token: None,
            phase: Phase::Waiting,
            seq: self.adds,
            failure: None,
            next: None,
            recur: None,
            group: add.group.clone(),
        }
    }

    fn first_of(&self, add: &AddOp, now: u64) -> Option<(u64, u64)> {
        let id = add.id.as_deref().unwrap_or_default();
        first(add, add.rule.as_ref()?, id, now).ok()
    }

    /// Its rule, and what that says of its first occurrence.
    fn begin(&self, job: &mut Job, add: &AddOp, now: u64) {
        let Some(rule) = &add.rule else { return };
        let Ok((occurrence, due)) = first(add, rule, &job.id, now) else {
            return;
        };
        job.due = due;
        job.expires = add.ttl.map(|ttl| (due + ttl).min(LAST));
        job.recur = Some(Recurring {
            rule: rule.clone(),
            ttl: add.ttl,
            occurrence,
            runs: 0,
            delivered: false,
        });
    }

    fn put(
        &mut self,
        add: &AddOp,
        id: Id,
        there: Option<usize>,
        instants: (u64, Option<u64>),
        now: u64,
    ) {
        let mut job = self.new_job(add, id, instants, now);
        self.begin(&mut job, add, now);
        self.totals.added += 1;
        let taken_along = there.is_some_and(|at| self.jobs[at].next.is_some());
        self.totals.deleted += u64::from(there.is_some()) + u64::from(taken_along);
        if let Some(at) = there {
            if self.has(Fault::AttemptsNotReset) {
                job.attempts = self.jobs[at].attempts;
            }
            if self.has(Fault::ReplaceKeepsPlace) {
                self.jobs[at] = job;
                return;
            }
            self.jobs.remove(at);
        }
        self.begins(&job.group);
        self.jobs.push(job);
    }

    fn pop(&mut self, pop: &PopOp, now: u64, actual: &Reply) -> Reply {
        let mut tokens = match actual {
            Reply::Jobs(jobs) => jobs
                .iter()
                .map(|job| job.lease.map(|lease| lease.0))
                .collect(),
            _ => Vec::new(),
        }
        .into_iter();
        if pop.count > 0 {
            self.follow_clock_back(now);
        }
        let mut jobs = Vec::new();
        while (jobs.len() as u64) < pop.count && !self.is_held(now, pop.noack) {
            let early = self.has(Fault::EarlyByOneMs);
            let seen = if early { now + 1000 } else { now };
            let next = match &pop.id {
                Some(id) => self.ready_of_id(id, seen, pop.noack),
                None => self.next_in_turn(seen, pop.noack),
            };
            let Some(id) = next.map(|job| job.id.clone()) else {
                break;
            };
            let index = self.find(&id).expect("it is there");
            jobs.push(self.deliver(index, pop, now, tokens.next().flatten()));
        }
        Reply::Jobs(jobs)
    }

    fn deliver(&mut self, index: usize, pop: &PopOp, now: u64, token: Option<u64>) -> Delivered {
        let late = now.saturating_sub(self.jobs[index].due * 1000);
        self.count_delivery(late);
        let group = self.jobs[index].group.clone();
        self.serves(group, now);
        if self.settings.rate.is_some() {
            // What seems to lie ahead, because the clock stepped back, was now at the latest.
            self.deliveries
                .iter_mut()
                .for_each(|at| *at = (*at).min(now));
            self.deliveries.push(now);
            let kept = self.settings.rate.map_or(0, |rate| rate.count as usize);
            let surplus = self.deliveries.len().saturating_sub(kept);
            self.deliveries.drain(..surplus);
        }
        if pop.noack && self.jobs[index].recur.is_some() {
            let job = self.jobs[index].clone();
            self.occurrence_ends(index);
            return Delivered {
                id: job.id,
                payload: job.payload,
                attempts: job.attempts.saturating_add(1),
                lease: None,
            };
        }
        if pop.noack {
            let job = self.ends(index);
            self.remember(&job.id, now);
            return Delivered {
                id: job.id,
                payload: job.payload,
                attempts: job.attempts.saturating_add(1),
                lease: None,
            };
        }
        let token = self.check_token(token, now);
        let lost_us = self.has(Fault::LeaseRoundedDown) && !now.is_multiple_of(1000);
        let job = &mut self.jobs[index];
        let lease = pop.ttr.unwrap_or(job.ttr);
        let deadline = after(now, lease).unwrap_or(LAST) - u64::from(lost_us);
        job.attempts = job.attempts.saturating_add(1);
        job.token = Some(token);
        job.phase = Phase::Reserved { deadline, lease };
        if let Some(recur) = &mut job.recur {
            recur.delivered = true;
        }
        Delivered {
            id: job.id.clone(),
            payload: job.payload.clone(),
            attempts: job.attempts,
            lease: Some((token, deadline)),
        }
    }

    fn count_delivery(&mut self, mut late_us: u64) {
        if self.has(Fault::LatenessInMs) {
            late_us -= late_us % 1000;
        }
        let totals = &mut self.totals;
        totals.delivered += 1;
        totals.late_count += 1;
        totals.late_sum += late_us;
        totals.late_max = totals.late_max.max(late_us);
        totals.lateness.push(late_us);
    }

    /// "Strictly growing in a queue, never reused; at least unix-ms shifted left by 20 bits". A token
    /// that is not is answered with the least that would be, which differs.
    fn check_token(&mut self, token: Option<u64>, now: u64) -> u64 {
        let least = ((now / 1000) << 20).max(self.last_token + 1);
        self.last_token = token.unwrap_or(0).max(least);
        self.last_token
    }

    /// "an id that was acked (or popped with NOACK) is refused by NX for that long, counted from the
    /// ACK with the window of that moment"
    fn remember(&mut self, id: &[u8], now: u64) {
        if self.settings.dedupe_ms == 0 || self.has(Fault::DedupeOff) {
            return;
        }
        let until = after(now, self.settings.dedupe_ms).unwrap_or(LAST);
        let known = self.memory.entry(id.to_vec()).or_insert(0);
        let shortens = self.fault == Fault::DedupeShortens;
        *known = if shortens { until } else { until.max(*known) };
    }

    /// The job whose current delivery a client speaks of: any, or the one of that token.
    fn claimed(&self, id: &[u8], token: Option<&[u8]>) -> Option<usize> {
        let index = self.find(id)?;
        let current = self.jobs[index].token?.to_string();
        let fits = token.is_none_or(|token| token == current.as_bytes());
        fits.then_some(index)
    }

    fn ack(&mut self, id: &[u8], token: Option<&[u8]>, now: u64) -> Reply {
        let token = token.filter(|_| !self.has(Fault::AckIgnoresToken));
        let Some(index) = self.claimed(id, token) else {
            return Reply::Count(0);
        };
        let reserved = matches!(self.jobs[index].phase, Phase::Reserved { .. });
        if self.has(Fault::ReservedRefusesLateAck) && !reserved {
            return Reply::Count(0);
        }
        self.totals.acked += 1;
        if self.jobs[index].recur.is_some() {
            self.occurrence_ends(index);
            return Reply::Count(1);
        }
        let job = self.ends(index);
        self.remember(&job.id, now);
        Reply::Count(1)
    }

    fn nack(&mut self, nack: &NackOp, now: u64) -> Reply {
        let asked = nack.delay.map(|ms| after(now, ms));
        if asked == Some(None) {
            return OUT_OF_RANGE;
        }
        let Some(index) = self.claimed(&nack.id, nack.token.as_deref()) else {
            return Reply::Nil;
        };
        let dead = matches!(self.jobs[index].phase, Phase::Dead { .. });
        if dead && !self.has(Fault::NackReachesDead) {
            return Reply::Nil;
        }
        if self.jobs[index].expires.is_some_and(|at| at <= now / 1000) {
            self.expires(index);
            self.totals.expired -= u64::from(self.has(Fault::ExpiryUncounted));
            return Reply::Nil;
        }
        self.totals.nacked += 1;
        let state = self.give_back(index, nack, asked.flatten(), now);
        Reply::State(state)
    }

    fn give_back(&mut self, index: usize, nack: &NackOp, asked: Option<u64>, now: u64) -> State {
        let fault = self.fault;
        let job = &mut self.jobs[index];
        job.priority = nack.priority.unwrap_or(job.priority);
        if nack.kind != NackKind::Silent || nack.reason.is_some() {
            let old = job.failure.take().and_then(|(_, reason)| reason);
            let kept = old.filter(|_| fault == Fault::ReasonStays);
            let reason = nack
                .reason
                .as_ref()
                .map(|text| text[..text.len().min(1024)].to_vec());
            job.failure = Some((now / 1000, reason.or(kept)));
        }
        if fault != Fault::NackKeepsToken {
            job.token = None;
        }
        let used_up = job.max_attempts != 0 && job.attempts >= job.max_attempts;
        let fatal = nack.kind == NackKind::Fatal && fault != Fault::FatalOnlyFails;
        if fatal || nack.kind != NackKind::Silent && used_up {
            self.dies(index, now / 1000);
            return State::Dead;
        }
        job.phase = Phase::Waiting;
        if nack.kind == NackKind::Silent {
            job.attempts -= u32::from(fault != Fault::SilentCounts);
            if fault == Fault::SilentMoves {
                job.due = now / 1000;
            }
            job.due = asked.unwrap_or(job.due);
        } else {
            let wait = ladder_step(&job.backoff, job.attempts, fault);
            job.due = asked.or(after(now, wait)).unwrap_or(LAST);
        }
        job.state(now)
    }

    fn touch(&mut self, id: &[u8], token: Option<&[u8]>, ttr: Option<u64>, now: u64) -> Reply {
        let Some(index) = self.claimed(id, token) else {
            return Reply::Nil;
        };
        let fault = self.fault;
        let job = &mut self.jobs[index];
        let Phase::Reserved { deadline, lease } = &mut job.phase else {
            return Reply::Nil;
        };
        if fault == Fault::TouchByJobsTtr {
            *lease = job.ttr;
        }
        *lease = ttr.unwrap_or(*lease);
        if fault != Fault::TouchKeepsDeadline {
            *deadline = after(now, *lease).unwrap_or(LAST);
        }
        Reply::Deadline(*deadline)
    }

    fn reschedule(
        &mut self,
        id: &[u8],
        when: Option<When>,
        priority: Option<i32>,
        now: u64,
    ) -> Reply {
        let due = when.map(|when| instant(when, now));
        if due == Some(None) {
            return OUT_OF_RANGE;
        }
        let keeps = self.has(Fault::RescheduleKeepsToken);
        let Some(index) = self.find(id) else {
            return Reply::Count(0);
        };
        let job = &mut self.jobs[index];
        if job.phase != Phase::Waiting {
            return Reply::Count(0);
        }
        let due = due.flatten().unwrap_or(job.due);
        job.token = job.token.filter(|_| keeps || due == job.due);
        job.due = due;
        job.priority = priority.unwrap_or(job.priority);
        Reply::Count(1)
    }

    fn kick(&mut self, index: Option<usize>, now: u64) -> u64 {
        let dead = |at: &usize| matches!(self.jobs[*at].phase, Phase::Dead { .. });
        let Some(index) = index.filter(dead) else {
            return 0;
        };
        let group = self.jobs[index].group.clone();
        self.begins(&group);
        let job = &mut self.jobs[index];
        job.phase = Phase::Waiting;
        job.attempts = 0;
        job.token = None;
        job.due = now / 1000;
        1
    }

    fn kick_oldest(&mut self, count: u64, now: u64) -> Reply {
        let mut dead = self.in_death_order();
        if self.has(Fault::KickTakesYoungest) {
            dead.reverse();
        }
        let count = dead.len().min(count.try_into().unwrap_or(usize::MAX));
        let kicked = dead[..count].iter().map(|&at| self.kick(Some(at), now));
        Reply::Count(kicked.sum())
    }

    fn del(&mut self, id: &[u8], unreserved: bool) -> Reply {
        let there = self.find(id);
        let reserved = |at: usize| matches!(self.jobs[at].phase, Phase::Reserved { .. });
        let spares = unreserved && !self.has(Fault::UnreservedTakesAll);
        if spares && there.is_some_and(reserved) {
            return Reply::Count(0);
        }
        if !self.has(Fault::DedupeOutlivesDel) {
            self.memory.remove(id);
        }
        if let Some(at) = there {
            let job = self.remove(at);
            self.totals.deleted += 1 + u64::from(job.next.is_some());
        }
        Reply::Count(u64::from(there.is_some()))
    }

    fn purge(&mut self, state: Option<State>, now: u64) -> Reply {
        let before = self.jobs.len();
        let stays = |job: &Job| state.is_some_and(|state| job.state(now) != state);
        let going = self.jobs.iter().filter(|job| !stays(job));
        let taken_along = going.filter(|job| job.next.is_some()).count() as u64;
        self.jobs.retain(stays);
        self.totals.deleted += taken_along;
        let purged = (before - self.jobs.len()) as u64;
        if self.has(Fault::PurgeForgets) && purged > 0 {
            self.memory.clear();
        }
        self.totals.deleted += purged;
        Reply::Count(purged)
    }

    fn pause(&mut self, ms: Option<u64>, now: u64) -> Reply {
        let until = ms.map(|ms| after(now, ms));
        if until == Some(None) {
            return OUT_OF_RANGE;
        }
        self.kept = true;
        if self.has(Fault::PauseSecondIgnored) && self.is_paused(now) {
            return Reply::Ok;
        }
        self.pause = until.flatten().map_or(Pause::Forever, Pause::Until);
        Reply::Ok
    }

    fn configure(&mut self, change: &SettingsChange) -> Reply {
        let terms = check_terms(change.ttr_ms, change.backoff_ms.as_deref());
        if let Err(error) = terms {
            return error;
        }
        let old_rate = self.settings.rate;
        let settings = &mut self.settings;
        settings.ttr_ms = change.ttr_ms.or(settings.ttr_ms);
        settings.max_attempts = change.max_attempts.unwrap_or(settings.max_attempts);
        if let Some(backoff) = &change.backoff_ms {
            settings.backoff_ms.clone_from(backoff);
        }
        settings.max_len = change.max_len.unwrap_or(settings.max_len);
        settings.dead_len = change.dead_len.unwrap_or(settings.dead_len);
        settings.dedupe_ms = change.dedupe_ms.unwrap_or(settings.dedupe_ms);
        settings.max_reserved = change.max_reserved.unwrap_or(settings.max_reserved);
        settings.rate = change.rate.unwrap_or(settings.rate);
        let limits = &mut settings.group_limits;
        let old_group_rate = limits.rate;
        limits.max_reserved = change.group_max.unwrap_or(limits.max_reserved);
        limits.rate = change.group_rate.unwrap_or(limits.rate);
        limits.is_fifo = change.group_fifo.unwrap_or(limits.is_fifo);
        settings.max_bytes = change.max_bytes.unwrap_or(settings.max_bytes);
        self.kept = true;
        if self.settings.dedupe_ms == 0 && !self.has(Fault::DedupeOutlivesSetting) {
            self.memory.clear();
        }
        if self.settings.group_limits.rate != old_group_rate {
            self.group_deliveries.clear();
        }
        if self.settings.rate != old_rate {
            self.deliveries.clear();
        }
        self.trim_dead();
        Reply::Ok
    }
}

/// "BACKOFF: delays before the 2nd, 3rd, ... delivery; the last one repeats; default none = 0"
fn ladder_step(ladder: &[u64], attempts: u32, fault: Fault) -> u64 {
    let failed = attempts as usize - usize::from(fault != Fault::LadderOneStepOff);
    match ladder.get(failed) {
        Some(&ms) => ms,
        None if fault == Fault::LadderRepeats => ladder.first().copied().unwrap_or(0),
        None => ladder.last().copied().unwrap_or(0),
    }
}

fn instant(when: When, now: u64) -> Option<u64> {
    match when {
        When::Delay(ms) => after(now, ms),
        When::At(instant) => (instant <= LAST).then_some(instant),
    }
}

/// Due and expiry, where all arguments are such as the contract wants them.
fn add_instants(add: &AddOp, now: u64) -> Result<(u64, Option<u64>), Reply> {
    let id = add.id.as_deref().unwrap_or_default();
    let due = match &add.rule {
        Some(rule) => first(add, rule, id, now)?.1,
        None => instant(add.when.unwrap_or(When::Delay(0)), now).ok_or(OUT_OF_RANGE)?,
    };
    let expires = match add.ttl {
        Some(ms) if add.rule.is_some() => Some((due + ms).min(LAST)),
        Some(ms) => Some(after(now, ms).ok_or(OUT_OF_RANGE)?),
        None => None,
    };
    let id_len = add.id.as_ref().map_or(1, Vec::len);
    if id_len == 0 || id_len > 1024 {
        return Err(Reply::Error("ERR id must be 1 to 1024 bytes long"));
    }
    let group_len = add.group.as_ref().map_or(1, Vec::len);
    if group_len == 0 || group_len > 256 {
        return Err(Reply::Error("ERR GROUP must be 1 to 256 bytes long"));
    }
    check_terms(add.ttr, add.backoff.as_deref())?;
    Ok((due, expires))
}

fn check_terms(ttr: Option<u64>, backoff: Option<&[u64]>) -> Result<(), Reply> {
    let backoff = backoff.unwrap_or(&[]);
    if backoff.len() > 1024 {
        return Err(Reply::Error("ERR BACKOFF takes at most 1024 delays"));
    }
    let fits = |ms: &u64| (1..=LAST).contains(ms);
    if !backoff.iter().all(fits) || !ttr.iter().all(fits) {
        return Err(OUT_OF_RANGE);
    }
    Ok(())
}
