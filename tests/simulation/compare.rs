//! Compares everything visible of the queue with the model.

use crate::follow::digest;
use crate::master;
use crate::master::zone_of;
use crate::model::{Job, Link, Model, Phase, LAST};
use crate::op::{AddOp, Reply};
use crate::rng::Rng;
use dq::queue::after::Waits;
use dq::queue::budget::{FOLLOWED, STEP_BYTES};
use dq::queue::clock::Now;
use dq::queue::codec::decode;
use dq::queue::configure::paused_shown;
use dq::queue::effects::Effects;
use dq::queue::job::{JobView, State};
use dq::queue::stats::Totals;
use dq::queue::view::{Forecast, Peek};
use dq::queue::Queue;
use std::fmt::Debug;

/// Fails if the two are not equal.
pub fn equal<T: PartialEq + Debug>(what: &str, queue: T, model: T) -> Result<(), String> {
    if queue == model {
        return Ok(());
    }
    Err(format!("{what}\n  queue: {queue:?}\n  model: {model:?}"))
}

struct Comparison<'a> {
    queue: &'a Queue,
    model: &'a Model,
    now: Now,
    /// The queue's totals, including what was overdue.
    totals: Totals,
}

/// Compares everything. Overdue jobs are first expired in a copy, as it must not matter when that happens.
pub fn compare(queue: &Queue, model: &Model, now: Now, rng: &mut Rng) -> Result<(), String> {
    // The rate window of a copy is empty.
    let rate_used = model.rate_used(now.us());
    equal("rate-used", queue.serving().rate_used(now), rate_used)?;
    for name in model.own.keys() {
        let used = model.group_used(&Some(name.clone()), now.us());
        let seen = queue.at(now).group_seen(name).map(|seen| seen.rate_used);
        equal("rate-used of a group", seen, Some(used))?;
    }
    let mut totals = queue.totals().clone();
    if queue.next_event().is_none_or(|at| at > now.ms()) {
        let comparison = Comparison {
            queue,
            model,
            now,
            totals,
        };
        comparison.next_delivery(rng.one_in(2))?;
        comparison.next_instant()?;
        return comparison.all(rng);
    }
    let mut expired = queue.copied();
    let mut out = Effects::default();
    out.know_zones(zone_of);
    expired.expire_overdue(now, usize::MAX, &mut out);
    expired.follow_up(FOLLOWED, now, &mut out);
    totals.add(expired.totals());
    let comparison = Comparison {
        queue: &expired,
        model,
        now,
        totals,
    };
    comparison.all(rng)
}

impl Comparison<'_> {
    fn all(&self, rng: &mut Rng) -> Result<(), String> {
        self.summary()?;
        for state in State::ALL {
            self.state(state)?;
        }
        self.peek(rng)?;
        self.forecast(rng)?;
        self.totals()?;
        self.settings()?;
        self.next(rng)?;
        if rng.one_in(64) {
            self.scan()?;
            self.memory()?;
        }
        if rng.one_in(1024) {
            self.lateness()?;
        }
        Ok(())
    }

    fn summary(&self) -> Result<(), String> {
        let now = self.now.us();
        let summary = self.queue.at(self.now).summary();
        let counts = [
            summary.delayed,
            summary.ready,
            summary.reserved,
            summary.dead,
            summary.done,
            summary.blocked,
        ];
        let expected = State::ALL.map(|state| self.model.count(state, now));
        equal("STATS: jobs by state", counts, expected)?;
        let lens = State::ALL.map(|state| self.queue.at(self.now).len(Some(state)));
        equal("LEN by state", lens, expected)?;
        equal("bytes", self.queue.bytes(), self.model.bytes())?;
        let done_bytes = self.model.done_bytes();
        equal("done-bytes", self.queue.parts().done().bytes(), done_bytes)?;
        equal("LEN", self.queue.at(self.now).len(None), self.model.live())?;
        self.groups()?;
        let times = (summary.next_due, summary.oldest_ready_ms);
        let expected = (self.model.next_due(now), self.model.oldest_ready(now));
        equal("STATS: next due, oldest ready", times, expected)
    }

    /// Groups: by GROUPS, by LEN, and as STATS counts them.
    fn groups(&self) -> Result<(), String> {
        let (mut cursor, mut shown) = (0, Vec::new());
        let groups = self.queue.at(self.now).groups();
        let mut set = Vec::new();
        loop {
            cursor = groups.scan(cursor, false, |group| {
                shown.push((group.name.to_vec(), group.waiting, group.reserved));
            });
            if cursor == 0 {
                break;
            }
        }
        loop {
            cursor = groups.scan(cursor, true, |group| set.push(group.name.to_vec()));
            if cursor == 0 {
                break;
            }
        }
        set.sort_unstable();
        equal("GROUPS SET", set.iter().eq(self.model.own.keys()), true)?;
        shown.sort_unstable();
        let expected = self.model.groups();
        equal("STATS: groups", groups.len(), expected.len())?;
        for (name, waiting, reserved) in &expected {
            let of_it = self.queue.at(self.now).group_len(name);
            equal("LEN GROUP", of_it, waiting + reserved)?;
        }
        for name in expected.iter().map(|it| &it.0).chain(&set) {
            let group = Some(name.clone());
            let own = self.model.own_of(&group);
            let seen = self.queue.at(self.now).group_seen(name);
            equal("GROUPGET", seen.map(|seen| seen.own), Some(own))?;
        }
        equal("GROUPS", shown, expected)
    }

    /// All jobs of a state: their order and every field, by PEEK and by GET.
    fn state(&self, state: State) -> Result<(), String> {
        let expected = self.model.ordered(state, self.now.us());
        let mut expected = expected.into_iter();
        let mut result = Ok(());
        let all = Peek {
            state,
            from: 0,
            to: LAST,
            count: u64::MAX,
            prefix: usize::MAX,
            is_bounded: false,
        };
        self.queue.at(self.now).peek(&all, |view| {
            if result.is_ok() {
                result = self.job(state, &view, expected.next());
            }
        });
        result?;
        equal("PEEK: jobs missing", 0, expected.count())
    }

    fn job(&self, state: State, view: &JobView<'_>, job: Option<&Job>) -> Result<(), String> {
        let differs = |what| Err(format!("{what}\n  queue: {view:?}\n  model: {job:?}"));
        let Some(job) = job else {
            return differs("PEEK: a job too many");
        };
        if view.state != state || view.id != job.id {
            return differs("PEEK: the order of jobs");
        }
        if !same_fields(view, job, self.now) {
            return differs("PEEK: a job's fields");
        }
        let next = self.queue.at(self.now).next_instants(view.id, 4, zone_of);
        let expected = self.model.next_instants(job, 4, self.now.ms());
        if next.as_ref() != Some(&expected) {
            return Err(format!(
                "NEXT\n  queue: {next:?}\n  model: {expected:?}\n  {job:?}"
            ));
        }
        let got = self.queue.at(self.now).get(view.id);
        let plain = got.clone().map(|got| JobView {
            waits: None,
            client: None,
            ..got
        });
        if state != State::Reserved && got.as_ref().is_some_and(|got| got.client.is_some()) {
            return Err(format!("a client of a job that nobody has\n  {got:?}"));
        }
        if !same_waits(got.as_ref().and_then(|got| got.waits.as_ref()), job) {
            return Err(format!("what it is after\n  {got:?}\n  {job:?}"));
        }
        if plain.as_ref() != Some(view) {
            return Err(format!("GET and PEEK differ\n  {got:?}\n  {view:?}"));
        }
        Ok(())
    }

    /// A part of a state: FROM, TO and COUNT.
    fn peek(&self, rng: &mut Rng) -> Result<(), String> {
        let around = self.now.ms().saturating_sub(10);
        let peek = Peek {
            state: *rng.pick(&State::ALL),
            from: if rng.one_in(4) {
                0
            } else {
                around + rng.below(20)
            },
            to: if rng.one_in(4) {
                LAST
            } else {
                around + rng.below(30)
            },
            count: if rng.one_in(4) {
                u64::MAX
            } else {
                rng.within(1, 4)
            },
            prefix: usize::MAX,
            is_bounded: true,
        };
        let mut shown = Vec::new();
        self.queue
            .at(self.now)
            .peek(&peek, |view| shown.push(view.id.to_vec()));
        let within = |job: &&Job| {
            let is_named = !job.is_blocked() || job.named_due().is_some();
            is_named && (peek.from..=peek.to).contains(&job.at())
        };
        let expected = self.model.ordered(peek.state, self.now.us());
        let count = usize::try_from(peek.count).unwrap_or(usize::MAX);
        let expected = expected.into_iter().filter(within).take(count);
        equal(
            &format!("PEEK {peek:?}"),
            shown,
            expected.map(|job| job.id.clone()).collect(),
        )
    }

    /// FORECAST against counting by hand, part by part.
    fn forecast(&self, rng: &mut Rng) -> Result<(), String> {
        let from = match rng.below(4) {
            0 => 0,
            _ => self.now.ms().saturating_sub(rng.below(20)).min(LAST - 1),
        };
        let longest = if rng.one_in(4) { LAST - from } else { 60 };
        let to = (from + rng.within(1, longest)).min(LAST);
        let forecast = Forecast {
            from,
            to,
            buckets: rng.within(1, 9),
        };
        let mut shown = Vec::new();
        self.queue
            .jobs()
            .forecast(&forecast, |count| shown.push(count));
        let expected = self.model.forecast(from, to, forecast.buckets);
        equal(&format!("FORECAST {forecast:?}"), shown, expected)
    }

    fn totals(&self) -> Result<(), String> {
        let (queue, model) = (&self.totals, &self.model.totals);
        let expected = [
            model.added,
            model.delivered,
            model.acked,
            model.nacked,
            model.timed_out,
            model.died,
            model.deleted,
            model.expired,
            model.missed,
        ];
        let names = queue.named().map(|(name, _)| name);
        equal(
            &format!("totals {names:?}"),
            queue.named().map(|(_, n)| n),
            expected,
        )?;
        let lateness = &queue.lateness;
        equal(
            "lateness: count, sum, max",
            (lateness.count, lateness.sum_us, lateness.max_us),
            (model.late_count, model.late_sum, model.late_max),
        )
    }

    fn lateness(&self) -> Result<(), String> {
        let values = &self.model.totals.lateness;
        for (bound, count) in self.totals.lateness.buckets() {
            let below = |late: &&u64| bound.is_none_or(|bound| **late <= bound);
            let expected = values.iter().filter(below).count() as u64;
            equal(&format!("lateness up to {bound:?} us"), count, expected)?;
        }
        Ok(())
    }

    fn settings(&self) -> Result<(), String> {
        equal("CFGGET", &**self.queue.settings(), &self.model.settings)?;
        let paused = self.model.paused(self.now.us());
        equal(
            "paused",
            paused_shown(self.queue.paused_until(), self.now),
            paused,
        )?;
        let disposable = self.model.is_disposable();
        equal("no key is kept", self.queue.is_disposable(), disposable)
    }

    /// A whole scan shows each job once.
    fn scan(&self) -> Result<(), String> {
        let (mut cursor, mut shown) = (0, Vec::new());
        loop {
            cursor = self
                .queue
                .at(self.now)
                .scan(cursor, |view| shown.push(view.id.to_vec()));
            if cursor == 0 {
                break;
            }
        }
        let all = self.model.jobs.iter().chain(&self.model.done);
        let mut expected: Vec<_> = all.map(|job| job.id.clone()).collect();
        shown.sort_unstable();
        expected.sort_unstable();
        equal("SCAN", shown, expected)
    }

    /// MEMORY USAGE counts at least the bytes that clients gave.
    fn memory(&self) -> Result<(), String> {
        let jobs = self.model.jobs.iter().chain(&self.model.done);
        let given: usize = jobs.map(|job| job.id.len() + job.payload.len()).sum();
        let remembered: usize = self.model.memory.keys().map(Vec::len).sum();
        let counted = self.queue.memory_bytes();
        if counted < given + remembered {
            return Err(format!(
                "{counted} bytes for {given} of jobs, {remembered} remembered"
            ));
        }
        let successors = self.model.jobs.iter().filter(|job| job.next.is_some());
        let bytes = self.model.bytes() + self.model.done_bytes();
        let effort = self.model.jobs.len()
            + self.model.done.len()
            + successors.count()
            + self.model.memory.len()
            + self.model.own.len()
            + bytes as usize / STEP_BYTES;
        let purged = self.queue.free_effort().checked_sub(effort);
        let accounted = purged.is_some_and(|purged| purged == 0 || self.queue.jobs().has_purged());
        equal("the effort of freeing is accounted for", accounted, true)
    }

    /// When the timer is needed next.
    fn next(&self, rng: &mut Rng) -> Result<(), String> {
        let (event, expected) = (self.queue.next_event(), self.model.next_event());
        // An unfinished purge may call the timer too early.
        let late = event.unwrap_or(u64::MAX) > expected.unwrap_or(u64::MAX);
        let now = self.now.us();
        if late || !self.queue.jobs().has_purged() {
            equal("next event", event, expected)?;
        }
        equal(
            "next due",
            self.queue.jobs().next_due(self.now),
            self.model.next_due(now),
        )?;
        let since = (self.now.ms() + 2).saturating_sub(rng.below(12));
        let came =
            |job: &Job| job.phase == Phase::Waiting && since < job.due && job.due <= self.now.ms();
        equal(
            "became ready",
            self.queue.jobs().became_ready(since, self.now),
            self.model.jobs.iter().any(came),
        )
    }

    /// Where the test clock stops next.
    fn next_instant(&self) -> Result<(), String> {
        let now = self.now.us();
        if self.queue.jobs().has_purged() || self.model.deliveries.iter().any(|it| it.at > now) {
            return Ok(());
        }
        let instant = self.queue.next_instant(self.now);
        let expected = self.model.next_instant(now);
        if self.model.has_costs() {
            // With costs it may stop at an instant at which nothing happens.
            let is_late = expected.is_some_and(|at| instant.is_none_or(|it| it > at));
            return equal("a next instant too late", is_late, false);
        }
        equal("next instant", instant, expected)
    }

    /// A delivery succeeds at that instant and not before, if nothing else happens.
    fn next_delivery(&self, noack: bool) -> Result<(), String> {
        let next = self.queue.serving().next_delivery(self.now, noack);
        let would = |us: u64| self.model.would_deliver(us, noack);
        let what = format!("a delivery succeeds now; next delivery {next:?}, noack {noack}");
        let now_ms = self.now.ms();
        let (is_now, is_right) = (next.is_some_and(|at| at <= now_ms), would(self.now.us()));
        if is_now && !is_right && self.model.has_costs() {
            return Ok(()); // it may be early: a client that tries finds out
        }
        equal(&what, is_now, is_right)?;
        let Some(next) = next.filter(|at| *at > now_ms) else {
            let never = next.is_none() && would(LAST * 1000);
            return equal(
                "a delivery succeeds later, but is not expected",
                never,
                false,
            );
        };
        if next > LAST {
            return equal(
                "a delivery past the last instant",
                would(LAST * 1000),
                false,
            );
        }
        // A rate window may open during the millisecond before.
        let before = (next * 1000 - 1000).max(self.now.us());
        equal(&format!("a delivery before {next}"), would(before), false)?;
        if self.model.has_costs() {
            return Ok(()); // it may be early
        }
        let ahead = self.model.deliveries.iter().any(|it| it.at > self.now.us());
        equal(
            &format!("no delivery at {next}"),
            ahead || would(next * 1000),
            true,
        )
    }
}

fn same_fields(view: &JobView<'_>, job: &Job, now: Now) -> bool {
    let life = &view.life;
    let token = (life.token != 0).then_some(life.token);
    let expires = (life.expires != 0).then_some(life.expires);
    let deadline = match job.phase {
        Phase::Reserved { deadline, .. } => Some(deadline),
        _ => None,
    };
    let shown = (view.state == State::Reserved).then_some(life.at);
    view.payload == job.payload
        && view.state == job.state(now.us())
        && (!view.has_due
            || (view.due, view.at())
                == (
                    job.named_due()
                        .filter(|_| job.is_blocked())
                        .unwrap_or(job.due),
                    job.at(),
                ))
        && view.has_due == (!job.is_blocked() || job.named_due().is_some())
        && (token, expires, shown) == (job.token, job.expires, deadline)
        && (view.terms.priority, view.terms.ttr_ms) == (job.priority, job.ttr)
        && (life.attempts, view.terms.max_attempts) == (job.attempts, job.max_attempts)
        && view
            .terms
            .rest
            .backoff()
            .map(|ladder| ladder.iter().collect())
            == job.backoff
        && view
            .failure
            .map(|it| (it.at, it.reason.map(<[u8]>::to_vec)))
            == job.failure
        && view.group == job.group.as_deref()
        && same_end(view, job)
        && view.next == job.next.as_ref().map(|next| &*next.payload)
        && job.notes.are_shown(view)
        && same_rule(view, job)
}

/// "started (the instant of the latest delivery, of reserved jobs too; nil of others; a token tells it)"
fn same_end(view: &JobView<'_>, job: &Job) -> bool {
    let end = view.done.map(|it| (it.finished, it.result));
    match &job.phase {
        Phase::Done {
            finished,
            started,
            result,
            ..
        } => end == Some((*finished, result.as_deref())) && view.started == Some(*started),
        Phase::Reserved { .. } => {
            end.is_none() && view.started == job.token.map(|token| token >> 20)
        }
        _ => (end, view.started) == (None, None),
    }
}

fn same_waits(shown: Option<&Waits<'_>>, job: &Job) -> bool {
    let (Some(shown), Some(waits)) = (shown, &job.waits) else {
        return shown.is_none() && job.waits.is_none();
    };
    let held = waits.links.iter().filter(|(_, link)| *link == Link::Held);
    let held: Vec<&[u8]> = held.map(|(id, _)| id.as_slice()).collect();
    let group = waits.group.as_deref().filter(|_| job.is_blocked());
    shown.on_dead == waits.on_dead
        && master::results(&shown.results) == waits.results()
        && shown.group == group
        && (shown.after == held || waits.group.is_some())
}

fn same_rule(view: &JobView<'_>, job: &Job) -> bool {
    let Some((rule, occurrence)) = view.recurring else {
        return job.recur.is_none();
    };
    job.recur.as_ref().is_some_and(|recur| {
        let add = AddOp {
            ttl: recur.ttl,
            ..AddOp::like(&job.id)
        };
        *rule == master::recur(&recur.rule, &add).rule
            && (occurrence.at, occurrence.runs) == (recur.occurrence, recur.runs)
            && occurrence.delivered == recur.delivered
    })
}

/// A digest before an operation, for operations that must change nothing.
pub struct Before {
    digest: u64,
    nothing_past: bool,
}

impl Before {
    pub fn of(queue: &Queue, now: Now) -> Self {
        Before {
            digest: digest(queue),
            nothing_past: queue.next_event().is_none_or(|at| at > now.ms()),
        }
    }

    /// "a command that changes nothing touches no WATCH, raises no event, propagates nothing"; "a
    /// refused command has changed nothing". What time did is a change. A job may be replaced by its
    /// like, which leaves everything as it was.
    pub fn check(&self, queue: &Queue, out: &Effects, reply: &Reply) -> Result<(), String> {
        let changed = digest(queue) != self.digest;
        let replaced = matches!(reply, Reply::Added(_) | Reply::AddedMany(_));
        let refused = matches!(reply, Reply::Error(_));
        if changed && out.is_empty() {
            return Err("changed, but no effects".into());
        }
        if !changed && !out.is_empty() && !replaced {
            let effects: Vec<_> = decode(out.bytes()).collect();
            return Err(format!("effects, but nothing changed: {effects:?}"));
        }
        if refused && self.nothing_past && !out.is_empty() {
            return Err("effects of a refused command".into());
        }
        if out.has_events() && out.is_empty() {
            return Err("events, but no effects".into());
        }
        Ok(())
    }
}
