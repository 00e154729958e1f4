//! The commands, each as its paragraph of the contract says.

use super::flows::Plan;
use super::recurring::{first, Recurring};
use super::{after, Fault, Job, Link, Model, Notes, Outcome, Pause, Phase, Waits, LAST};
use crate::op::{AddOp, AfterOp, Delivered, Id, NackOp, NewOp, Op, PopOp, Reply, TouchOp};
use dq::queue::add::Condition;
use dq::queue::attr::Attrs;
use dq::queue::claim::NackKind;
use dq::queue::clock::When;
use dq::queue::instant::spread;
use dq::queue::job::State;
use dq::queue::settings::SettingsChange;

const OUT_OF_RANGE: Reply = Reply::Error("ERR value is not an integer or out of range");

impl Model {
    /// The reply that the contract requires. Generated ids and tokens are taken from the actual reply if they are
    /// valid.
    pub fn execute(&mut self, op: &Op, now: u64, actual: &Reply) -> Reply {
        (self.now_us, self.moment) = (now, now);
        let reply = self.act(op, now, actual);
        self.follow_up();
        reply
    }

    fn act(&mut self, op: &Op, now: u64, actual: &Reply) -> Reply {
        match op {
            Op::Add(add) => self.add(add, now, actual),
            Op::AddMany(add, jobs) => self.add_many(add, jobs, now, actual),
            Op::Pop(pop) => self.pop(pop, now, actual),
            Op::Ack { id, token, result } => self.ack(id, token.as_deref(), result.as_deref(), now),
            Op::Nack(nack) => self.nack(nack, now),
            Op::Touch(touch) => self.touch(touch, now),
            Op::Step(step) => self.step(step),
            Op::Signal { id, name, value } => self.signal(id, name, value, now),
            Op::Reschedule { id, when, priority } => self.reschedule(id, *when, *priority, now),
            Op::Kick(id) => Reply::Count(match self.find(id) {
                Some(at) => self.kick(Some(at), now),
                None => self.kick_done(id, now),
            }),
            Op::KickOldest(count) => self.kick_oldest(*count, now),
            Op::Del { id, unreserved } => self.del(id, *unreserved, now),
            Op::Purge(state) => self.purge(*state, now),
            Op::Pause(ms) => self.pause(*ms, now),
            Op::Resume => {
                if self.is_paused(now) {
                    self.pause = Pause::Off;
                }
                Reply::Ok
            }
            Op::PauseGroup(name, ms) => self.pause_group(name, *ms, now),
            Op::ResumeGroup(name) => {
                self.resume_group(name);
                Reply::Ok
            }
            Op::Configure(change) => self.configure(change),
            Op::Group(name, change) => self.set_group(name, *change),
            Op::Expire(_) => Reply::Ok,
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
        let full = self.is_full(live);
        if full && self.has(Fault::MaxLenBeforeCondition) {
            return Reply::Error("MAXLEN queue is full");
        }
        let done = add.id.as_deref().and_then(|id| self.find_done(id));
        let done = done.is_some() && !self.has(Fault::DoneUnseenByXx);
        if self.refuses(add, there.is_some() || done, live, now) {
            return Reply::Nil;
        }
        if until != 0 && first > until && self.renews(there, add).is_none() {
            return Reply::Error("ERR UNTIL is before the first occurrence");
        }
        let mut plan = None;
        if let Some(after) = &add.after {
            let when = add.when.unwrap_or(When::Delay(0));
            let id = add.id.as_deref().unwrap_or_default();
            plan = match self.plan(after, id, add.group.as_deref(), (when, now)) {
                Ok(plan) => plan,
                Err(error) => return error,
            };
        }
        let awaited = |at: usize| {
            let id = &self.jobs[at].id;
            self.jobs.iter().any(|job| job.waits_for(id))
        };
        if add.rule.is_some() && there.is_some_and(awaited) {
            return Reply::Error("ERR AFTER cannot be combined with a recurring job");
        }
        if full {
            return Reply::Error("MAXLEN queue is full");
        }
        let follows = there.filter(|&at| self.is_followed_by(at, add));
        if follows.is_none() && self.group_is_full(add, there.filter(|_| live)) {
            return Reply::Error("MAXLEN group is full");
        }
        let renews = self.renews(there, add);
        let replaced = (there, plan.as_ref());
        if self.exceeds_bytes(add, actual, replaced, follows, now) {
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
            (None, None) => self.put(add, id.clone(), there, (instants, plan), now),
        }
        Reply::Added(id)
    }

    /// "as n DQ.ADDs with these options, in order [...] all or none"
    fn add_many(&mut self, add: &AddOp, jobs: &[NewOp], now: u64, actual: &Reply) -> Reply {
        let of = |job: &NewOp| AddOp {
            id: job.id.clone(),
            payload: job.payload.clone(),
            ..add.clone()
        };
        // Errors in the arguments themselves are found before anything else, ids first.
        let wrong = |job: &NewOp| add_instants(&of(job), now).err();
        let is_no_id = |id: &Id| !(1..=1024).contains(&id.len());
        let wrong_id = jobs
            .iter()
            .find(|job| job.id.as_ref().is_some_and(is_no_id));
        let wrong_id = wrong_id.and_then(wrong);
        if let Some(error) = wrong_id.or_else(|| jobs.iter().find_map(wrong)) {
            return error;
        }
        let before = self.clone();
        let mut ids = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            let told = match actual {
                Reply::AddedMany(ids) => ids.get(number).cloned().flatten(),
                _ => Some(job.id.clone().unwrap_or_else(|| self.next_made_id(now))),
            };
            let told = told.map_or(Reply::Nil, Reply::Added);
            match self.add(&of(job), now, &told) {
                Reply::Added(id) => ids.push(Some(id)),
                Reply::Nil => ids.push(None),
                error => {
                    let fault = self.has(Fault::SomeOfMany);
                    if !fault {
                        *self = before;
                    }
                    return error;
                }
            }
        }
        Reply::AddedMany(ids)
    }

    fn next_made_id(&self, now: u64) -> Id {
        let (ms, seq) = match self.last_made_id {
            last if now / 1000 > last.0 => (now / 1000, 0),
            last => (last.0, last.1 + 1),
        };
        let mut ids = (seq..).map(|seq| format!("{ms}-{seq}").into_bytes());
        let free = |id: &Id| self.find(id).is_none() && !self.memory.contains_key(id);
        ids.find(free).unwrap_or_default()
    }

    /// "where the job of that id is reserved this one is kept as its *successor*"
    fn is_followed_by(&self, at: usize, add: &AddOp) -> bool {
        let reserved = matches!(self.jobs[at].phase, Phase::Reserved { .. });
        add.condition == Condition::Next && reserved && self.jobs[at].recur.is_none()
    }

    /// "An ADD that makes the sum larger, and larger than MAXBYTES, is refused; what it replaces is taken off first." A
    /// generated id has the length of the one in the reply, or of the one that there would have been.
    fn exceeds_bytes(
        &self,
        add: &AddOp,
        actual: &Reply,
        (there, plan): (Option<usize>, Option<&Plan>),
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
        let stays = self
            .renews(there, add)
            .map_or(0, |at| self.jobs[at].notes.bytes());
        let old = match (follows, there) {
            (Some(at), _) => self.jobs[at].next.as_ref().map_or(0, |next| next.bytes()),
            (None, Some(at)) => self.jobs[at].bytes(),
            (None, None) => 0,
        };
        let new = (id_len + add.payload.len()) as i64 + stays as i64;
        let values = match self.has(Fault::ResultsOutliveReplaced) {
            true => 0,
            false => self.values_grow(there.filter(|_| follows.is_none()), plan),
        };
        let grown = new - old as i64 + names + values;
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

    /// A generated id is `<unix-ms>-<seq>`, growing, of no existing job and not in the dedupe window.
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
            && self.find_done(id).is_none()
            && !self.memory.contains_key(id);
        self.last_made_id = self.last_made_id.max(parts);
        fits.then(|| id.clone())
    }

    /// A new job, the last in the order of adding.
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
        let of_queue = || Some(self.settings.rest.backoff()?.iter().collect());
        let backoff = add.backoff.clone().or_else(of_queue);
        Job {
            id,
            payload: add.payload.clone(),
            priority: add.priority,
            due: due - u64::from(lost_us && delayed),
            ttr: add.ttr.or(self.settings.ttr_ms).unwrap_or(add.server_ttr),
            attempts: 0,
            max_attempts: add.attempts.unwrap_or(self.settings.max_attempts),
            backoff,
            expires,
            token: None,
            phase: Phase::Waiting,
            seq: self.adds,
            failure: None,
            next: None,
            recur: None,
            group: add.group.clone(),
            notes: Notes {
                said: add.said.clone(),
                ..Notes::default()
            },
            waits: None,
        }
    }

    fn first_of(&self, add: &AddOp, now: u64) -> Option<(u64, u64)> {
        let id = add.id.as_deref().unwrap_or_default();
        first(add, add.rule.as_ref()?, id, now).ok()
    }

    /// Gives the job its rule, and the due time of its first occurrence.
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
        (instants, plan): ((u64, Option<u64>), Option<Plan>),
        now: u64,
    ) {
        let mut job = self.new_job(add, id, instants, now);
        self.begin(&mut job, add, now);
        self.totals.added += 1;
        // "replace it"; "counted nowhere"
        self.done.retain(|done| done.id != job.id);
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
            let id = job.id.clone();
            self.waits_no_more(&id);
            self.jobs.remove(at);
        }
        self.begins(&job.group);
        let mut dies_of = None;
        if let Some((waits, reason)) = plan {
            let is_open = waits.group.is_some() || waits.links.iter().any(|it| it.1 == Link::Held);
            if is_open {
                job.phase = Phase::Blocked;
            }
            job.waits = Some(waits);
            dies_of = reason;
        }
        self.jobs.push(job);
        if let Some(reason) = dies_of {
            self.dies_of(self.jobs.len() - 1, reason, now);
        }
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
            let fits = |job: &&Job| self.rate_lets(Some(job), pop.noack, now);
            let Some(id) = next.filter(fits).map(|job| job.id.clone()) else {
                break;
            };
            let index = self.find(&id).expect("it is there");
            jobs.push(self.deliver(index, pop, now, tokens.next().flatten()));
        }
        Reply::Jobs(jobs)
    }

    fn deliver(&mut self, index: usize, pop: &PopOp, now: u64, token: Option<u64>) -> Delivered {
        let late = now.saturating_sub(self.jobs[index].due * 1000);
        let attempts = self.jobs[index].attempts.saturating_add(1);
        self.count_delivery(late);
        let group = self.jobs[index].group.clone();
        let token = match pop.noack {
            true => None,
            false => Some(self.check_token(token, now)),
        };
        self.counts(index, token, now);
        if pop.id.is_none() {
            self.gives(&group);
        }
        self.serves(group);
        if pop.noack {
            self.jobs[index].attempts = attempts;
            self.note_end(index, Outcome::Done, now / 1000);
        }
        let results = self.jobs[index].waits.as_ref();
        let results = results.map_or(Vec::new(), Waits::results);
        self.moment = now;
        if pop.noack && self.jobs[index].recur.is_some() {
            let job = self.jobs[index].clone();
            self.occurrence_ends(index);
            return Delivered {
                steps: pop.with_steps.then(|| job.notes.steps.clone()),
                terms: terms_of(&job, pop, attempts),
                id: job.id,
                payload: job.payload,
                attempts,
                lease: None,
                results,
            };
        }
        if pop.noack {
            let id = self.jobs[index].id.clone();
            self.notes_end(&id, Outcome::Done, now, None);
            let job = self.ends(index);
            self.remember(&job.id, now);
            return Delivered {
                steps: pop.with_steps.then(|| job.notes.steps.clone()),
                terms: terms_of(&job, pop, attempts),
                id: job.id,
                payload: job.payload,
                attempts,
                lease: None,
                results,
            };
        }
        let token = token.unwrap_or_default();
        let lost_us = self.has(Fault::LeaseRoundedDown) && !now.is_multiple_of(1000);
        let job = &mut self.jobs[index];
        let default = pop.lease.filter(|_| job.ttr == pop.server_ttr);
        let lease = pop.ttr.or(default).unwrap_or(job.ttr);
        let deadline = after(now, lease).unwrap_or(LAST) - u64::from(lost_us);
        job.attempts = attempts;
        job.notes.awaits = None;
        job.token = Some(token);
        job.phase = Phase::Reserved { deadline, lease };
        if let Some(recur) = &mut job.recur {
            recur.delivered = true;
        }
        Delivered {
            id: job.id.clone(),
            payload: job.payload.clone(),
            attempts,
            lease: Some((token, deadline)),
            terms: terms_of(job, pop, attempts),
            steps: pop.with_steps.then(|| job.notes.steps.clone()),
            results,
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

    /// "Strictly growing in a queue, never reused; at least unix-ms shifted left by 20 bits". If the actual token is
    /// not, the least valid one is returned, which differs.
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

    /// The job whose current delivery a client means: with any token, or with this one.
    pub(super) fn claimed(&self, id: &[u8], token: Option<&[u8]>) -> Option<usize> {
        let index = self.find(id)?;
        let current = self.jobs[index].token?.to_string();
        let fits = token.is_none_or(|token| token == current.as_bytes());
        fits.then_some(index)
    }

    fn ack(&mut self, id: &[u8], token: Option<&[u8]>, result: Option<&[u8]>, now: u64) -> Reply {
        let token = token.filter(|_| !self.has(Fault::AckIgnoresToken));
        let Some(index) = self.claimed(id, token) else {
            return Reply::Count(0);
        };
        let reserved = matches!(self.jobs[index].phase, Phase::Reserved { .. });
        if self.has(Fault::ReservedRefusesLateAck) && !reserved {
            return Reply::Count(0);
        }
        self.totals.acked += 1;
        self.note_end(index, Outcome::Done, now / 1000);
        if let Some(end) = self.ends.last_mut() {
            end.value = result.map(<[u8]>::to_vec);
        }
        self.keep_done(index, result, now);
        self.trim_done();
        if self.jobs[index].recur.is_some() {
            self.occurrence_ends(index);
            return Reply::Count(1);
        }
        let id = self.jobs[index].id.clone();
        self.notes_end(&id, Outcome::Done, now, result.map(<[u8]>::to_vec));
        let job = self.ends(index);
        self.remember(&job.id, now);
        Reply::Count(1)
    }

    fn nack(&mut self, nack: &NackOp, now: u64) -> Reply {
        let named = nack.awaits.as_ref().map_or(1, Vec::len);
        if named == 0 || named > 256 {
            return Reply::Error("ERR step name must be 1 to 256 bytes long");
        }
        if let Err(error) = check_group(nack.after.as_ref().and_then(group_of)) {
            return error;
        }
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
            let at = self.jobs[index].expires.unwrap_or(0);
            self.expires(index, at * 1000);
            self.totals.expired -= u64::from(self.has(Fault::ExpiryUncounted));
            return Reply::Nil;
        }
        if let Some(after) = &nack.after {
            return self.give_back_after(index, nack, after, now);
        }
        self.totals.nacked += 1;
        let state = self.give_back(index, nack, asked.flatten(), now);
        Reply::State(state)
    }

    fn give_back(&mut self, index: usize, nack: &NackOp, asked: Option<u64>, now: u64) -> State {
        let fault = self.fault;
        if nack.kind != NackKind::Silent || fault == Fault::SilentFails {
            let how = match nack.kind {
                NackKind::Fatal => "fatal",
                NackKind::Fail | NackKind::Silent => "nacked",
            };
            self.keep_attempt(index, (now / 1000, how), nack.reason.as_deref());
        }
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
            let reason = job.failure.as_ref().and_then(|(_, reason)| reason.clone());
            self.dies(index, now / 1000, now, reason);
            return State::Dead;
        }
        job.phase = Phase::Waiting;
        if nack.kind == NackKind::Silent {
            job.attempts -= u32::from(fault != Fault::SilentCounts);
            if fault == Fault::SilentMoves {
                job.due = now / 1000;
            }
            match &nack.awaits {
                // "Set already: it keeps its due."
                Some(name) if job.notes.has_step(name) && fault != Fault::AwaitLooksNotAgain => {}
                Some(name) => {
                    job.due = asked.unwrap_or(LAST);
                    // With DELAY 0 it waits for nothing, even if the clock steps back later.
                    let waits = job.state(now) == State::Delayed;
                    job.notes.awaits = waits.then(|| name.clone());
                }
                None => job.due = asked.unwrap_or(job.due),
            }
        } else {
            let wait = match &job.backoff {
                Some(own) => ladder_step(own, job.attempts, fault),
                None if fault == Fault::DefaultLadderIgnored => 0,
                // "up to a tenth longer, always the same for the same id and attempts"
                None => {
                    let ms = ladder_step(&nack.server_backoff, job.attempts, fault);
                    ms + spread(&job.id, job.attempts.into(), ms / 10)
                }
            };
            job.due = asked.or(after(now, wait)).unwrap_or(LAST);
        }
        job.state(now)
    }

    /// "gives a job back, blocked, so that it goes on when those have ended, with the due it had"
    fn give_back_after(&mut self, index: usize, nack: &NackOp, after: &AfterOp, now: u64) -> Reply {
        if self.jobs[index].recur.is_some() {
            return Reply::Error("ERR AFTER cannot be combined with a recurring job");
        }
        let (id, group) = (self.jobs[index].id.clone(), self.jobs[index].group.clone());
        let when = When::At(self.jobs[index].due);
        let plan = match self.plan(after, &id, group.as_deref(), (when, now)) {
            Ok(plan) => plan,
            Err(error) => return error,
        };
        self.totals.nacked += 1;
        self.give_back(index, nack, None, now);
        let (waits, dies_of) = plan.unzip();
        let job = &mut self.jobs[index];
        let open = |waits: &Waits| {
            waits.group.is_some() || waits.links.iter().any(|it| it.1 == Link::Held)
        };
        if waits.as_ref().is_some_and(open) {
            job.phase = Phase::Blocked;
        }
        job.waits = waits;
        if let Some(Some(reason)) = dies_of {
            self.dies_of(index, reason, now);
            if !self.has(Fault::DeathAnswersSuccessor) {
                return Reply::State(State::Dead);
            }
        }
        let left = self.find(&id).map(|index| self.jobs[index].state(now));
        left.map_or(Reply::Nil, Reply::State)
    }

    fn touch(&mut self, touch: &TouchOp, now: u64) -> Reply {
        let Some(index) = self.claimed(&touch.id, touch.token.as_deref()) else {
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
        *lease = touch.ttr.unwrap_or(*lease);
        if fault != Fault::TouchKeepsDeadline {
            *deadline = after(now, *lease).unwrap_or(LAST);
        }
        if let Some(text) = &touch.progress {
            job.notes.progress = Some(text[..text.len().min(1024)].to_vec());
        }
        let (deadline, token) = (*deadline, job.token);
        self.recounts(token, touch);
        Reply::Deadline(deadline)
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
        // "Any other change of its due ends the waiting too."
        job.notes.awaits = job.notes.awaits.take().filter(|_| due == job.due);
        job.due = due;
        job.priority = priority.unwrap_or(job.priority);
        Reply::Count(1)
    }

    fn kick(&mut self, index: Option<usize>, now: u64) -> u64 {
        if let Some(index) = index.filter(|&at| self.jobs[at].is_blocked()) {
            self.kick_blocked(index, now);
            return 1;
        }
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
        if self.fault != Fault::ProgressOutlivesKick {
            job.notes.progress = None;
        }
        if self.fault == Fault::HistoryEndsWithKick {
            job.notes.history.clear();
        }
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

    fn del(&mut self, id: &[u8], unreserved: bool, now: u64) -> Reply {
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
            self.note_end(at, Outcome::Deleted, self.now);
            let job = self.remove(at);
            self.notes_end(id, Outcome::Deleted, now, None);
            self.totals.deleted += 1 + u64::from(job.next.is_some());
        }
        let done = self.find_done(id).filter(|_| there.is_none());
        if let Some(at) = done {
            self.done.remove(at);
            self.totals.deleted += 1;
        }
        Reply::Count(u64::from(there.or(done).is_some()))
    }

    fn purge(&mut self, state: Option<State>, now: u64) -> Reply {
        let before = self.jobs.len();
        let stays = |job: &Job| state.is_some_and(|state| job.state(now) != state);
        let going = self.jobs.iter().filter(|job| !stays(job));
        let taken_along = going.filter(|job| job.next.is_some()).count() as u64;
        for index in 0..self.jobs.len() {
            if !stays(&self.jobs[index]) {
                self.note_end(index, Outcome::Deleted, now / 1000);
            }
        }
        let gone: Vec<Id> = self
            .jobs
            .iter()
            .filter(|job| !stays(job))
            .map(|job| job.id.clone())
            .collect();
        self.jobs.retain(stays);
        for id in &gone {
            self.waits_no_more(id);
        }
        for id in &gone {
            self.notes_end(id, Outcome::Deleted, now, None);
        }
        self.totals.deleted += taken_along;
        let mut purged = (before - self.jobs.len()) as u64;
        if state.is_none_or(|state| state == State::Done) {
            purged += self.done.drain(..).count() as u64;
        }
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
        let backoff = change.backoff_ms.as_ref().and_then(|own| own.as_deref());
        let terms = check_terms(change.ttr_ms, backoff);
        if let Err(error) = terms {
            return error;
        }
        let old_rate = self.settings.rate;
        let settings = &mut self.settings;
        settings.ttr_ms = change.ttr_ms.or(settings.ttr_ms);
        settings.max_attempts = change.max_attempts.unwrap_or(settings.max_attempts);
        if let Some(backoff) = &change.backoff_ms {
            let own = backoff.as_ref().map(|own| Attrs::NONE.with_backoff(own));
            settings.rest = own.unwrap_or(Attrs::NONE);
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
        let done = &mut settings.done_limits;
        done.len = change.done_len.unwrap_or(done.len);
        done.ttl_ms = change.done_ttl_ms.unwrap_or(done.ttl_ms);
        done.bytes = change.done_bytes.unwrap_or(done.bytes);
        settings.history = change.history.unwrap_or(settings.history);
        settings.max_bytes = change.max_bytes.unwrap_or(settings.max_bytes);
        self.kept = true;
        if self.settings.dedupe_ms == 0 && !self.has(Fault::DedupeOutlivesSetting) {
            self.memory.clear();
        }
        if self.settings.group_limits.rate != old_group_rate {
            let own = &self.own;
            self.group_deliveries
                .retain(|(name, _)| own.get(name).is_some_and(|own| own.rate.is_some()));
        }
        if self.settings.rate != old_rate {
            self.deliveries.clear();
        }
        self.trim_dead();
        self.trim_done();
        Reply::Ok
    }
}

/// "BACKOFF: delays before the 2nd, 3rd, ... delivery; the last one repeats; none = 0"
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

/// Due time and expiry, if the contract allows all arguments.
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
    check_group(add.group.as_ref())?;
    check_group(add.after.as_ref().and_then(group_of))?;
    check_terms(add.ttr, add.backoff.as_deref())?;
    Ok((due, expires))
}

/// The terms that WITHTERMS adds to that delivery.
fn terms_of(job: &Job, pop: &PopOp, attempts: u32) -> Option<(u64, u32, Option<u64>)> {
    let own = job.backoff.as_ref();
    let wait = own.map(|own| ladder_step(own, attempts, Fault::None));
    pop.with_terms.then_some((job.ttr, job.max_attempts, wait))
}

fn group_of(after: &AfterOp) -> Option<&Vec<u8>> {
    match after {
        AfterOp::Group(name) => Some(name),
        AfterOp::Jobs(..) => None,
    }
}

fn check_group(name: Option<&Vec<u8>>) -> Result<(), Reply> {
    match name.is_none_or(|name| (1..=256).contains(&name.len())) {
        true => Ok(()),
        false => Err(Reply::Error("ERR GROUP must be 1 to 256 bytes long")),
    }
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
