//! Carries operations out on the queue itself.

use crate::op::{AddOp, Delivered, NackOp, Op, PopOp, Reply, RuleOp};
use dq::queue::add::{Add, Recur, When};
use dq::queue::clock::{Mint, Now};
use dq::queue::deliver::{Claim, Nack, Pop};
use dq::queue::effects::Effects;
use dq::queue::recurring::rule::{Pattern, Rule};
use dq::queue::recurring::zone::{Zone, UTC};
use dq::queue::reschedule::Reschedule;
use dq::queue::Queue;
use std::rc::Rc;

pub struct Call<'a> {
    pub queue: &'a mut Queue,
    pub now: Now,
    pub mint: &'a mut Mint,
    pub out: &'a mut Effects,
}

impl Call<'_> {
    pub fn execute(self, op: &Op) -> Reply {
        let Call {
            queue,
            now,
            mint,
            out,
        } = self;
        let count = |reached: bool| Reply::Count(u64::from(reached));
        match op {
            Op::Add(add) => execute_add(add, queue, now, mint, out),
            Op::Pop(pop) => execute_pop(pop, queue, now, mint, out),
            Op::Ack { id, token } => count(queue.ack(id, claim(token), now, out)),
            Op::Nack(nack) => execute_nack(nack, queue, now, out),
            Op::Touch { id, token, ttr } => queue
                .touch(id, claim(token), *ttr, now, out)
                .map_or(Reply::Nil, Reply::Deadline),
            Op::Reschedule { id, when, priority } => {
                let due = when.map(|when| when.instant(now)).transpose();
                let new = |due| Reschedule {
                    due,
                    priority: *priority,
                };
                match due {
                    Ok(due) => count(queue.reschedule(id, new(due), now, out)),
                    Err(error) => Reply::Error(error.text()),
                }
            }
            Op::Kick(id) => count(queue.kick(id, now, out)),
            Op::KickOldest(many) => Reply::Count(queue.kick_oldest(*many, now, out)),
            Op::Del { id, unreserved } => count(queue.delete(id, *unreserved, now, out)),
            Op::Purge(state) => Reply::Count(queue.purge(*state, now, out)),
            Op::Pause(ms) => done(queue.pause(*ms, now, out)),
            Op::Resume => {
                queue.resume(now, out);
                Reply::Ok
            }
            Op::Configure(change) => done(queue.configure_with(change, now, out)),
            Op::Settle(budget) => {
                queue.work_off(*budget);
                let left = queue.settle(now, *budget, out);
                let past = queue.next_event().is_some_and(|at| at <= now.ms());
                assert!(left <= *budget, "more budget left than there was");
                assert!(left == 0 || !past, "budget left, and work");
                Reply::Ok
            }
        }
    }
}

fn done(result: Result<(), dq::queue::error::QueueError>) -> Reply {
    result.map_or_else(|error| Reply::Error(error.text()), |()| Reply::Ok)
}

fn claim(token: &Option<Vec<u8>>) -> Claim {
    token.as_deref().map_or(Claim::Current, Claim::of_token)
}

fn execute_add(
    add: &AddOp,
    queue: &mut Queue,
    now: Now,
    mint: &mut Mint,
    out: &mut Effects,
) -> Reply {
    let add = Add {
        condition: add.condition,
        when: add.when.unwrap_or(When::Delay(0)),
        priority: add.priority,
        ttr_ms: add.ttr,
        server_ttr_ms: add.server_ttr,
        max_attempts: add.attempts,
        backoff_ms: add.backoff.as_deref(),
        ttl_ms: add.ttl,
        recur: add.rule.as_ref().map(|rule| recur(rule, add)),
        group: add.group.as_deref(),
        ..Add::new(add.id.as_deref(), &add.payload)
    };
    match queue.add(&add, now, mint, out) {
        Ok(Some(id)) => Reply::Added(id.into_owned()),
        Ok(None) => Reply::Nil,
        Err(error) => Reply::Error(error.text()),
    }
}

/// As DQ.ADD reads it.
pub fn recur(rule: &RuleOp, add: &AddOp) -> Recur<'static> {
    let pattern = match rule.text {
        None => Pattern::Every { ms: rule.ms },
        Some(text) => Pattern::Cron {
            text: text.as_bytes().into(),
            zone: b"UTC"[..].into(),
        },
    };
    Recur {
        rule: Rule {
            pattern,
            until: rule.until,
            times: rule.times,
            grace_ms: rule.grace,
            jitter_ms: rule.jitter,
            ttl_ms: add.ttl.unwrap_or(0),
        },
        is_timed: add.when.is_some(),
    }
}

/// The only zone of a simulation.
pub fn zone_of(name: &[u8]) -> Option<Rc<dyn Zone>> {
    (name == b"UTC").then(|| Rc::new(UTC) as Rc<dyn Zone>)
}

fn execute_pop(
    pop: &PopOp,
    queue: &mut Queue,
    now: Now,
    mint: &mut Mint,
    out: &mut Effects,
) -> Reply {
    let pop = Pop {
        count: pop.count,
        id: pop.id.as_deref(),
        ttr_ms: pop.ttr,
        noack: pop.noack,
    };
    let mut jobs = Vec::new();
    let delivered = queue.pop(&pop, now, mint, out, |job| {
        jobs.push(Delivered {
            id: job.id.to_vec(),
            payload: job.payload.to_vec(),
            attempts: job.attempts,
            lease: job.lease.map(|lease| (lease.token, lease.deadline_ms)),
        });
    });
    assert_eq!(delivered, jobs.len() as u64);
    Reply::Jobs(jobs)
}

fn execute_nack(nack: &NackOp, queue: &mut Queue, now: Now, out: &mut Effects) -> Reply {
    let nack = Nack {
        id: &nack.id,
        claim: claim(&nack.token),
        delay_ms: nack.delay,
        priority: nack.priority,
        kind: nack.kind,
        reason: nack.reason.as_deref(),
    };
    match queue.nack(&nack, now, out) {
        Ok(state) => state.map_or(Reply::Nil, Reply::State),
        Err(error) => Reply::Error(error.text()),
    }
}
