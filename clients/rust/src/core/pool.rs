//! How jobs are fetched and handed to handlers.

use super::ends::ack_all;
use super::held::{Held, Progress};
use super::link::Asked;
use super::nearest::nearest;
use super::outcome::Outcome;
use super::scheduler::TURN;
use super::state::{Core, SLACK};
use super::{Action, Delivered, JobKey, Line, Name, Owner, Said, Serial};
use crate::values::{self, server_error};
use redis::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NO_WAIT: Duration = Duration::from_millis(1);
/// The most jobs of one fetch.
const AT_ONCE: usize = 100_000;
/// The most keys of which a fetch asks why.
const MOST_EXPLAINED: usize = 100;

impl Core {
    /// Does everything that is due now.
    pub fn advance(&mut self, now: Instant) {
        self.expire(now);
        self.time_out(now);
        self.start(now);
        self.fetch(now);
        for link in 0..self.links.len() {
            self.listen(link, now);
            self.control(link, now);
        }
        self.go_on_stopping(now);
        self.awake = now;
    }

    // --- Fetching

    /// How many jobs can start, whatever their kinds, plus how many may be fetched ahead.
    fn free(&mut self, now: Instant) -> usize {
        if self.alone.is_some() || self.is_held() {
            return 0;
        }
        if self.isolation.is_on(now) {
            return (self.in_hand() == 0 && self.claimed == 0).into();
        }
        let doubtful: usize = self.links.iter().map(|link| link.doubtful.len()).sum();
        let idle = self.settings.concurrency - self.at_work;
        let room = idle
            .saturating_mul(self.size)
            .saturating_add(self.settings.prefetch);
        room.saturating_sub(self.backlog.len() + doubtful + self.claimed)
            .min(AT_ONCE)
    }

    fn fetch(&mut self, now: Instant) {
        while let Some(link) = self.scheduler.first(now, |link| self.may_fetch(link, now)) {
            let free = self.free(now);
            if free == 0 {
                if let Some(late) = self.scheduler.recall(now) {
                    self.links[late].is_recalled = self.links[late].is_recallable;
                }
                return;
            }
            self.scheduler.begin(link, now);
            // A link whose server is away claims one place only, so that it does not hold up others.
            let is_well = self.links[link].waiting.troubles == 0;
            let share = if is_well { free / self.links.len() } else { 1 };
            self.fetch_by(link, share.max(1), now);
        }
    }

    pub(super) fn may_fetch(&self, link: usize, now: Instant) -> bool {
        let link = &self.links[link];
        let has_more = !(self.settings.is_drained && link.is_empty);
        self.is_working() && has_more && link.waiting.is_free(now)
    }

    /// How long a fetch may wait.
    fn waits(&self, link: usize) -> Duration {
        if self.settings.is_drained {
            return NO_WAIT;
        }
        let link = &self.links[link];
        if self.links.len() == 1 || (link.is_recallable && link.waiting.number.is_some()) {
            return self.settings.wait;
        }
        self.settings.wait.min(TURN)
    }

    /// Sends a fetch, with the outcomes that are pending in the same write.
    fn fetch_by(&mut self, link: usize, claim: usize, now: Instant) {
        let wait = self.waits(link);
        let outcomes = self.take_outcomes(link, usize::MAX, now);
        let mut commands = Vec::new();
        self.ask_outcomes(link, Name::Waiting, outcomes, &mut commands);
        self.ask_why(link, now, &mut commands);
        self.claimed += claim;
        self.links[link].unblocks_at = None; // that was for the fetch before
        let fetch = self.links[link]
            .fetches
            .command(claim, wait, self.lease, &mut self.rng, now);
        let state = &mut self.links[link].waiting;
        state.asked.push_back(Asked::Fetch { claim });
        state.rests_until = None;
        let line = Line {
            link,
            name: Name::Waiting,
        };
        let turn = state.turn;
        self.actions.push_back(Action::Send {
            line,
            turn,
            commands,
            last: Some(fetch),
            within: wait + SLACK,
        });
    }

    /// Asks why the link gets no jobs, if it has got none for a while.
    fn ask_why(&mut self, link: usize, now: Instant, into: &mut Vec<redis::Cmd>) {
        let link = &mut self.links[link];
        if !link.idle.asks(self.settings.idle, now) {
            return;
        }
        for member in link.fetches.members.iter().take(MOST_EXPLAINED) {
            let mut explain = redis::cmd("DQ.EXPLAIN");
            explain.arg(&*member.key);
            into.push(explain);
            let asked = Asked::Explained(member.key.clone());
            link.waiting.asked.push_back(asked);
        }
    }

    /// All jobs of a queue that are done without a result share one ACK.
    pub(super) fn ask_outcomes(
        &mut self,
        link: usize,
        name: Name,
        outcomes: Vec<Outcome>,
        into: &mut Vec<redis::Cmd>,
    ) {
        let asked = &mut self.links[link].state(name).asked;
        let (mut done, others): (Vec<_>, Vec<_>) =
            outcomes.into_iter().partition(Outcome::is_plain);
        for outcome in others {
            let before = into.len();
            outcome.write(into);
            asked.extend((before + 1..into.len()).map(|_| Asked::Part));
            asked.push_back(Asked::Outcome(outcome));
        }
        while let Some(first) = done.first() {
            let key = first.of.job.key.clone();
            let (same, rest): (Vec<_>, _) = done.into_iter().partition(|it| it.of.job.key == key);
            into.extend(ack_all(&same));
            asked.push_back(Asked::Acks(same));
            done = rest;
        }
    }

    pub(super) fn fetched(&mut self, line: Line, claim: usize, reply: Value, now: Instant) {
        self.claimed -= claim;
        let (key, rows) = match reply {
            Value::ServerError(error) => {
                self.fetch_over(line.link, false, now);
                return self.close(line, &server_error(&error), now);
            }
            Value::Array(pair) => match <[Value; 2]>::try_from(pair) {
                Ok([key, rows]) => (values::bytes(key).unwrap_or_default(), values::list(rows)),
                Err(_) => return self.fetch_over(line.link, false, now),
            },
            _ => (Vec::new(), Vec::new()),
        };
        self.heard = Some(now);
        self.links[line.link].is_empty = rows.is_empty();
        self.links[line.link].idle.fetched(!rows.is_empty(), now);
        self.links[line.link].fetches.fetched(!rows.is_empty(), now);
        self.fetch_over(line.link, rows.is_empty(), now);
        let members = &self.links[line.link].fetches.members;
        let Some(key) = members
            .iter()
            .map(|member| &member.key)
            .find(|known| ***known == *key)
            .cloned()
        else {
            return;
        };
        if self.isolation.until.is_some() && !rows.is_empty() && self.in_hand() == 0 {
            self.isolation.end();
        }
        for row in rows {
            if let Some(delivered) = Delivered::read(&key, row) {
                self.receive(line.link, Arc::new(delivered), now);
            }
        }
    }

    pub(super) fn fetch_over(&mut self, link: usize, is_empty: bool, now: Instant) {
        self.scheduler.end(link, now, is_empty);
        self.links[link].is_recalled = false;
    }

    // --- In hand

    fn receive(&mut self, link: usize, of: Arc<Delivered>, now: Instant) {
        if self.runs_here(link, &of.job) {
            self.actions
                .push_back(Action::Say(Said::RunsHere(of.clone())));
            return self.tell(link, Outcome::still_running(&of), now);
        }
        self.last += 1;
        let serial = self.last;
        let handler = self.choose(&of);
        let lease = self.lease.given(of.terms.ttr);
        let held = Held {
            of: of.clone(),
            link,
            handler,
            is_open: true,
            is_running: false,
            is_in_hand: true,
            suspension: None,
            is_unanswered: false,
            told: None,
            lease,
            until: None,
            since: now,
            limit: None,
            is_heard_of: false,
            progress: Progress::default(),
        };
        self.links[link].in_hand.insert(of.job.clone(), serial);
        self.held.insert(serial, held);
        self.lasts(serial, self.awake);
        let Some(handler) = handler else {
            let kinds = self.settings.shapes.iter();
            let kinds = kinds.filter_map(|shape| shape.kind.as_deref());
            let meant = nearest(&of.shown_kind(), kinds).map(str::to_owned);
            self.actions
                .push_back(Action::Say(Said::UnknownKind(of.clone(), meant)));
            let outcome = Outcome::unknown(serial, &of);
            return self.close_with(serial, outcome, now);
        };
        let limit = self.settings.shapes[handler].limit(&of);
        if 0 < limit && limit < of.attempt {
            self.actions
                .push_back(Action::Say(Said::UsedUp(of.clone())));
            return self.close_with(serial, Outcome::used_up(serial, &of), now);
        }
        if !self.is_working() {
            return self.give_back(serial);
        }
        let wanted = self.lease.wanted(
            &self.settings.shapes[handler],
            self.settings.lease,
            of.terms.ttr,
        );
        let link = &mut self.links[link];
        if wanted != lease && !self.settings.is_drained {
            link.relets.push((serial, wanted));
        }
        link.schedule
            .listener
            .get_or_insert(now + super::listener::OLD);
        if 1 < limit && limit == of.attempt && !self.settings.is_drained {
            self.suspect(serial);
        } else if self.is_over(serial, now) {
            let link = &mut self.links[self.held[&serial].link];
            link.doubtful.push(serial);
            link.schedule.is_asked = true;
            self.held.entry(serial).and_modify(|held| held.until = None);
        } else {
            self.backlog.push_back(serial);
        }
    }

    /// Whether an older delivery of the job still runs in this process; that delivery is then lost.
    fn runs_here(&mut self, link: usize, job: &JobKey) -> bool {
        if let Some(older) = self.links[link].in_hand.get(job).copied() {
            self.lose(older);
            return self.links[link].in_hand.contains_key(job);
        }
        let Some(owner) = self.running.other(self.links[link].place, job) else {
            return false;
        };
        if owner.worker == self.number {
            self.lose(owner.serial);
        } else {
            self.actions.push_back(Action::LoseOther(owner));
        }
        true
    }

    fn choose(&self, of: &Delivered) -> Option<usize> {
        let shapes = &self.settings.shapes;
        let other = shapes.iter().position(|shape| shape.kind.is_none());
        if shapes.len() == 1 && other.is_some() {
            return other;
        }
        match of.envelope() {
            None => other,
            Some(envelope) if !envelope.is_known() => None,
            Some(envelope) => shapes
                .iter()
                .position(|shape| shape.kind.is_some() && shape.kind == envelope.kind)
                .or(other),
        }
    }

    fn start(&mut self, now: Instant) {
        if std::mem::take(&mut self.has_lost_backlog) {
            self.backlog.retain(|serial| self.held.contains_key(serial));
        }
        self.start_alone(now);
        if self.is_held() {
            return;
        }
        while self.is_working() && self.at_work < self.settings.concurrency {
            let Some(handler) = self
                .backlog
                .front()
                .and_then(|first| self.held[first].handler)
            else {
                return;
            };
            let mut jobs = Vec::new();
            for serial in self.take(handler) {
                if self.begin(serial, now) {
                    let held = &self.held[&serial];
                    jobs.push((serial, held.link, held.of.clone()));
                }
            }
            if jobs.is_empty() {
                continue;
            }
            self.at_work += 1;
            self.actions.push_back(Action::Start { handler, jobs });
        }
    }

    /// Takes one job off the backlog, or as many as its handler takes at a time.
    fn take(&mut self, handler: usize) -> Vec<Serial> {
        let size = self.settings.shapes[handler].size();
        if size == 1 {
            return self.backlog.pop_front().into_iter().collect();
        }
        let (mut batch, mut rest) = (Vec::new(), std::collections::VecDeque::new());
        for serial in self.backlog.drain(..) {
            if batch.len() < size && self.held[&serial].handler == Some(handler) {
                batch.push(serial);
            } else {
                rest.push_back(serial);
            }
        }
        self.backlog = rest;
        batch
    }

    pub(super) fn begin(&mut self, serial: Serial, now: Instant) -> bool {
        if self.is_over(serial, now) {
            self.lose(serial);
        }
        let Some(held) = self.held.get_mut(&serial) else {
            return false;
        };
        if !held.is_open {
            return false;
        }
        let owner = Owner {
            worker: self.number,
            serial,
        };
        if !self
            .running
            .begin(self.links[held.link].place, &held.of.job, owner)
        {
            let mut outcome = Outcome::still_running(&held.of);
            outcome.serial = serial;
            self.close_with(serial, outcome, now);
            return false;
        }
        held.is_running = true;
        let limit = held
            .handler
            .and_then(|handler| self.settings.shapes[handler].timeout);
        held.limit = limit.and_then(|limit| now.checked_add(limit));
        if let Some(limit) = held.limit {
            self.next_limit = Some(self.next_limit.map_or(limit, |next| next.min(limit)));
        }
        true
    }
}
