//! One simulated run: a master, a model, a replica and a log, all from one seed.

use crate::audit::{Audit, Dues, LongScan};
use crate::compare::{compare, equal, Before};
use crate::ends::Ends;
use crate::explain;
use crate::follow::{digest, new_queue, same, snapshot, Follower, Log};
use crate::generate::{Generator, Shape};
use crate::master::{zone_of, Call};
use crate::model::{Fault, Model, LAST};
use crate::moved::Defrag;
use crate::op::{Id, Op, Reply};
use crate::rng::Rng;
use dq::queue::clock::{Mint, Now};
use dq::queue::effect::Effect;
use dq::queue::effects::Effects;
use dq::queue::event::Event;
use dq::queue::job::State;
use dq::queue::overdue::At;
use dq::queue::stats::Totals;
use dq::queue::Queue;

/// What the queue expires before a command by itself, at least; the rest is left to the timer.
const EXPIRED_AT_ONCE: usize = 100;

/// A planted fault of a run, to prove that it is noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    #[default]
    Nothing,
    /// The model gets this rule wrong.
    Model(Fault),
    /// The replica loses one message.
    ReplicaMisses,
    /// The log loses one message.
    LogMisses,
    /// The queue's clock runs ahead, and the model is not compared.
    ClockAhead,
    /// One delivery has the token of an earlier one, and the model is not compared.
    TokenAgain,
    /// A command that did nothing emits an effect.
    IdleEffect,
    /// A change is not emitted.
    HiddenChange,
    /// One end is not recorded.
    EndMissed,
}

pub struct Run {
    seed: u64,
    shape: Shape,
    sabotage: Sabotage,
    /// The model is not compared: if the clock may step back at any time, or more is overdue than a command expires,
    /// only the promises are certain.
    wild: bool,
    generator: Generator,
    queue: Queue,
    mint: Mint,
    out: Effects,
    /// Totals of dropped queues: with those of this queue they must match what `out` counted.
    retired: Totals,
    model: Model,
    /// How much became overdue since the queue was last expired, at most.
    past: usize,
    replica: Follower,
    log: Log,
    audit: Audit,
    ends: Ends,
    scan: LongScan,
    defrag: Defrag,
}

impl Run {
    pub fn new(seed: u64, shape: Shape, sabotage: Sabotage) -> Self {
        Self::by(Rng::new(seed), seed, shape, sabotage)
    }

    /// A run in which a fuzzer's bytes make all choices.
    pub fn of_bytes(bytes: &[u8], shape: Shape, sabotage: Sabotage) -> Self {
        Self::by(Rng::of_bytes(bytes), 0, shape, sabotage)
    }

    fn by(rng: Rng, seed: u64, shape: Shape, sabotage: Sabotage) -> Self {
        let fault = match sabotage {
            Sabotage::Model(fault) => fault,
            _ => Fault::None,
        };
        let mut out = Effects::default();
        out.know_zones(zone_of);
        let unmodelled = matches!(sabotage, Sabotage::ClockAhead | Sabotage::TokenAgain);
        Run {
            seed,
            shape,
            sabotage,
            wild: !shape.modelled || unmodelled,
            generator: Generator::new(rng, shape),
            queue: new_queue(seed),
            mint: Mint::new(),
            out,
            retired: Totals::default(),
            model: Model::new(fault),
            past: 0,
            replica: Follower::new(seed + 1),
            log: Log::default(),
            audit: Audit::default(),
            ends: Ends::default(),
            scan: LongScan::default(),
            defrag: Defrag::default(),
        }
    }

    /// Runs so many operations, or as many as there are bytes to choose by. The error is the first mismatch, with all
    /// that is needed to reproduce it.
    pub fn steps(&mut self, steps: u64) -> Result<(), String> {
        (0..steps).try_for_each(|step| {
            if self.generator.rng.is_spent() {
                return Ok(());
            }
            let (name, seed) = (self.shape.name, self.seed);
            self.step(step).map_err(|what| {
                let now_us = self.generator.now_us;
                format!("{name} | DQ_SEED={seed} step {step} at {now_us} us\n{what}")
            })
        })
    }

    fn step(&mut self, step: u64) -> Result<(), String> {
        self.clock()?;
        if self.generator.rng.one_in(400) {
            self.incident()?;
        }
        // Depends on the clock, so that histories are the same with sleep and without.
        if self.generator.now_us.is_multiple_of(13) {
            self.sleep()?;
        }
        let op = self.generator.operation();
        let dense = step.is_multiple_of(self.shape.compare_every);
        self.operation(&op, dense)
            .map_err(|what| format!("{op:?}\n{what}"))?;
        self.drop_if_empty()
    }

    fn now(&self) -> Now {
        Now::from_us(self.generator.now_us)
    }

    fn clock(&mut self) -> Result<(), String> {
        if self.must_expire() && !self.wild {
            self.expire_all()?;
        }
        if !self.generator.wants_back() {
            self.generator.step_clock();
            return Ok(());
        }
        if !self.wild {
            // What is overdue before the step back is carried out first: what follows is then well defined.
            self.expire_all()?;
        }
        self.generator.step_back();
        Ok(())
    }

    /// When the end of an occurrence is noticed decides what follows: here it is noticed at once.
    fn must_expire(&self) -> bool {
        let now_ms = self.now().ms();
        (self.model.recurs() || self.model.flows() || self.queue.jobs().blocked_len() > 0)
            && self.queue.next_event().is_some_and(|at| at <= now_ms)
    }

    fn expire_all(&mut self) -> Result<(), String> {
        self.operation(&Op::Expire(usize::MAX), true)
    }

    fn operation(&mut self, op: &Op, dense: bool) -> Result<(), String> {
        let now = self.now();
        self.past += self.model.advance(now.us());
        if (self.past > EXPIRED_AT_ONCE || self.must_expire())
            && !self.wild
            && !matches!(op, Op::Expire(_))
        {
            self.expire_all()?;
        }
        self.audit.time(now.us());
        if dense && self.queue.next_event().is_some_and(|at| at <= now.ms()) {
            self.overdue(now)?;
        }
        let before = dense.then(|| Before::of(&self.queue, now));
        let totals = self.queue.totals().clone();
        let dues = self.dues(op);
        if now.ms().is_multiple_of(2) {
            // As the server does; from then on the queue keeps count of what is ready.
            self.queue.figures(now);
        }
        self.out.clear();
        if !self.wild {
            self.ends.listen(&mut self.queue, &self.model);
        }
        let mut reply = self.execute(op, now);
        let misses_one = self.sabotage == Sabotage::EndMissed;
        self.ends.hear(&mut self.queue, now.ms(), misses_one);
        self.tamper(&mut reply);
        self.audit.see(op, &reply, &dues, now.us())?;
        self.generator.recent.note(op, &reply);
        if !self.wild {
            let expected = self.model.execute(op, now.us(), &reply);
            equal("the reply", &reply, &expected)?;
            // At the last instant a lease ends as soon as it begins.
            self.past += self.model.advance(now.us());
            self.ends.lose(op, &reply, (&self.model, now.ms()));
            let is_expired = self.queue.next_event().is_none_or(|at| at > now.ms());
            self.ends.compare(&mut self.model, is_expired)?;
        }
        self.check_events(&totals)?;
        if let Some(before) = before {
            before.check(&self.queue, &self.out, &reply)?;
            self.queue.check_invariants()?;
        }
        let mut garbage = self.queue.take_garbage().unwrap_or_default();
        garbage.retain_mut(|garbage| garbage.free_some(1000));
        if self.queue.next_event().is_none_or(|at| at > now.ms()) {
            self.past = 0;
        }
        self.tell_followers()?;
        if dense {
            self.compare(now)?;
        }
        self.figures(now)?;
        self.scan_on(now)
    }

    /// Overdue jobs are counted as what they will be once they are expired.
    fn overdue(&self, now: Now) -> Result<(), String> {
        if self.queue.jobs().blocked_len() > 0 {
            // What an end means to the jobs after it is seen only once it is carried out.
            return Ok(());
        }
        let lens = |queue: &Queue| State::ALL.map(|state| queue.at(now).len(Some(state)));
        let [mut still, mut expired] = [self.queue.copied(), self.queue.copied()];
        let mut out = Effects::default();
        out.know_zones(zone_of);
        still.expire_odd(now, &mut out);
        expired.expire_overdue(now, usize::MAX, &mut out);
        let (mut seen, mut there) = (lens(&still), lens(&expired));
        if self.queue.settings().dead_len != 0 {
            // Depending on the order, an overdue TTL had or had not made room among the dead before others died.
            (seen[3], there[3]) = (0, 0);
        }
        equal("what is past", seen, there)
    }

    /// The figures that the queue keeps are those found by counting.
    fn figures(&mut self, now: Now) -> Result<(), String> {
        let (figures, until) = self.queue.figures(now);
        let summary = self.queue.at(At::as_shown(now)).summary();
        let counted = [
            figures.delayed,
            figures.ready,
            figures.reserved,
            figures.dead,
            figures.blocked,
        ];
        let found = [
            summary.delayed,
            summary.ready,
            summary.reserved,
            summary.dead,
            summary.blocked,
        ];
        equal("the bytes", figures.bytes, self.queue.bytes())?;
        let oldest = figures.first_due.and_then(|due| now.ms().checked_sub(due));
        equal("the oldest that is ready", oldest, summary.oldest_ready_ms)?;
        equal("the figures", counted, found.map(|count| count as u64))?;
        let unfreed = figures.unfreed > 0 && !self.queue.jobs().has_purged();
        equal("purged jobs that nobody knows of", unfreed, false)?;
        let next = self.queue.jobs().next_due(now).unwrap_or(u64::MAX);
        equal(
            "how long they hold",
            now.ms() < until && until <= next,
            true,
        )
    }

    fn execute(&mut self, op: &Op, now: Now) -> Reply {
        let ahead = u64::from(self.sabotage == Sabotage::ClockAhead) * 700;
        let call = Call {
            queue: &mut self.queue,
            now: Now::from_us(now.us() + ahead),
            mint: &mut self.mint,
            out: &mut self.out,
        };
        call.execute(op)
    }

    fn tamper(&mut self, reply: &mut Reply) {
        let rng = &mut self.generator.rng;
        match (self.sabotage, reply) {
            (Sabotage::TokenAgain, Reply::Jobs(jobs)) if rng.one_in(20) => {
                if let Some((token, _)) = jobs.last_mut().and_then(|job| job.lease.as_mut()) {
                    *token -= 1;
                }
            }
            (Sabotage::IdleEffect, Reply::Nil) => {
                self.out.push(&Effect::Floors {
                    seq: 0,
                    death: 0,
                    token: 0,
                });
            }
            (Sabotage::HiddenChange, Reply::Ok) if !self.out.has_events() => self.out.clear(),
            _ => {}
        }
    }

    fn dues(&self, op: &Op) -> Dues {
        let mut dues = Dues::new();
        let Op::Pop(_) = op else {
            return dues;
        };
        let mut cursor = 0;
        loop {
            cursor = self
                .queue
                .at(At::as_shown(self.now()))
                .scan(cursor, |view| {
                    let reserved = view.state == State::Reserved;
                    let expires = Some(view.life.expires).filter(|at| *at != 0 && !reserved);
                    // The successor may take the job's place in this very operation, with its own due time.
                    let followed = reserved && view.next.is_some();
                    let due = if followed { 0 } else { view.due };
                    dues.insert(view.id.to_vec(), (due, expires.unwrap_or(u64::MAX)));
                });
            if cursor == 0 {
                return dues;
            }
        }
    }

    /// Events and totals agree: what the server counts is what the queues count.
    fn check_events(&mut self, before: &Totals) -> Result<(), String> {
        let (now, old) = (self.queue.totals(), before);
        let counted = [
            (Event::Add, now.added - old.added),
            (Event::Pop, now.delivered - old.delivered),
            (Event::Ack, now.acked - old.acked),
            (Event::Nack, now.nacked - old.nacked),
            (Event::Timeout, now.timed_out - old.timed_out),
            (Event::Dead, now.died - old.died),
            (Event::Expired, now.expired - old.expired),
            (Event::Missed, now.missed - old.missed),
        ];
        for (event, count) in counted {
            let same =
                |raised| raised == event || (raised, event) == (Event::SuccessorAdd, Event::Add);
            let raised = self.out.events().any(same);
            equal(&format!("{event:?} raised, and counted"), raised, count > 0)?;
        }
        let mut all = self.retired.clone();
        all.add(now);
        equal("INFO's totals and the queues'", &self.out.totals, &all)
    }

    fn tell_followers(&mut self) -> Result<(), String> {
        let bytes = self.out.bytes();
        let rng = &mut self.generator.rng;
        if self.sabotage != Sabotage::ReplicaMisses || !rng.one_in(200) {
            self.replica.tell(bytes);
        }
        if self.sabotage != Sabotage::LogMisses || !rng.one_in(200) {
            self.log.write(bytes);
        }
        if self.shape.compare_every == 1 && rng.one_in(4) || rng.one_in(64) {
            self.replica.follow(rng)?;
            if !self.replica.is_behind() {
                same("replica", &self.queue, &self.replica.queue)?;
                self.replica.queue.check_invariants()?;
            }
        }
        Ok(())
    }

    fn compare(&mut self, now: Now) -> Result<(), String> {
        if self.wild {
            return Ok(());
        }
        let rng = &mut self.generator.rng;
        compare(&self.queue, &self.model, now, rng)?;
        if self.queue.next_event().is_none_or(|at| at > now.ms()) {
            explain::compare(&mut self.queue, &mut self.model, now)?;
        }
        Ok(())
    }

    fn scan_on(&mut self, now: Now) -> Result<(), String> {
        if self.shape.ids > 1000 {
            return Ok(());
        }
        let queue = &self.queue;
        self.scan.went(|id| queue.at(now).get(id).is_some());
        if !self.generator.rng.one_in(8) {
            return Ok(());
        }
        let scan = |cursor, shown: &mut Vec<Id>| {
            queue
                .at(At::as_shown(now))
                .scan(cursor, |view| shown.push(view.id.to_vec()))
        };
        let all = || {
            let (mut ids, mut cursor) = (Vec::new(), 0);
            loop {
                cursor = queue
                    .at(At::as_shown(now))
                    .scan(cursor, |view| ids.push(view.id.to_vec()));
                if cursor == 0 {
                    return ids;
                }
            }
        };
        self.scan.step(scan, all)
    }

    /// A queue without settings is dropped with its last job; or it stays a while, as when clients wait.
    fn drop_if_empty(&mut self) -> Result<(), String> {
        if !self.queue.is_disposable() || self.generator.rng.one_in(2) {
            return Ok(());
        }
        self.out.clear();
        self.out.push(&Effect::Dropped);
        self.retired.add(self.queue.totals());
        self.queue = new_queue(self.seed);
        self.model.drop_key();
        self.audit.forget_leases();
        self.scan.restart();
        self.tell_followers()
    }

    /// A restart, a failover, a copy, a new replica, a rewritten log, a defragmentation.
    fn incident(&mut self) -> Result<(), String> {
        match self.generator.rng.below(7) {
            0 => self.restart(),
            1 => self.fail_over(),
            2 => self.copy(),
            3 => {
                self.replica =
                    Follower::of_snapshot(self.seed + 2, self.mint, &snapshot(&self.queue))?;
                same("a new replica", &self.queue, &self.replica.queue)
            }
            4 => {
                self.log.rewrite(&self.queue);
                Ok(())
            }
            5 => {
                let before = digest(&self.queue);
                let patience = self.generator.rng.within(1, 20);
                self.defrag.step(&mut self.queue, patience);
                self.queue.check_invariants()?;
                equal("the data moved", digest(&self.queue), before)
            }
            _ => {
                let replayed = self.log.replay(self.seed + 3)?;
                same("the replayed log", &self.queue, &replayed)
            }
        }
    }

    fn becomes(&mut self, queue: Queue) -> Result<(), String> {
        same("who takes over", &self.queue, &queue)?;
        self.retired.add(self.queue.totals());
        self.queue = queue;
        self.model.moved_house();
        self.scan.restart();
        self.compare(self.now())
    }

    /// A queue is the same after it has slept and woken, whatever it was in the middle of.
    fn sleep(&mut self) -> Result<(), String> {
        let Some(asleep) = self.queue.asleep() else {
            return Ok(());
        };
        let now = self.now();
        let (figures, until) = asleep.figures(now);
        equal("figures asleep", figures, self.queue.figures(now).0)?;
        let next_due = self.queue.jobs().next_due(now).unwrap_or(u64::MAX);
        // The last instant is not a due time.
        let until = if until == LAST { u64::MAX } else { until };
        equal("how long they hold", until, next_due)?;
        let mut saved = Vec::new();
        asleep.snapshot(&mut |chunk| saved.push(chunk.to_vec()));
        equal("what a queue asleep saves", &saved, &snapshot(&self.queue))?;
        let woken = asleep
            .awake(&self.queue.seed())
            .ok_or("a queue does not wake")?;
        same("who wakes", &self.queue, &woken)?;
        woken.check_invariants()?;
        equal("totals", woken.totals(), self.queue.totals())?;
        self.queue = woken;
        Ok(())
    }

    fn restart(&mut self) -> Result<(), String> {
        self.expire_all()?;
        let restarted = Follower::of_snapshot(self.seed, Mint::new(), &snapshot(&self.queue))?;
        // Ids and tokens continue from what the server saved beside the queues.
        let saved = std::mem::replace(&mut self.mint, restarted.mint);
        self.mint.raise_id(saved.id());
        self.mint.raise_token(saved.token());
        self.becomes(restarted.queue)
    }

    /// The replica becomes the master; the old master becomes its replica, loaded anew.
    fn fail_over(&mut self) -> Result<(), String> {
        self.expire_all()?;
        self.replica.catch_up()?;
        let demoted = Follower::of_snapshot(self.seed + 4, self.mint, &snapshot(&self.queue))?;
        let promoted = std::mem::replace(&mut self.replica, demoted);
        self.mint = promoted.mint;
        self.becomes(promoted.queue)
    }

    fn copy(&mut self) -> Result<(), String> {
        self.expire_all()?;
        self.becomes(self.queue.copied())
    }
}
