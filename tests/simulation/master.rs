//! Carries out operations on the queue itself.

use crate::op::{AddOp, AfterOp, Delivered, Id, NackOp, NewOp, Op, PopOp, Reply, RuleOp, StepOp};
use dq::queue::add::{Add, Recur};
use dq::queue::add_many::NewOne;
use dq::queue::after::{For, JobResult, Outcome};
use dq::queue::budget::FOLLOWED;
use dq::queue::claim::{Claim, Nack};
use dq::queue::clock::{Mint, Now, When};
use dq::queue::configure::GroupChange;
use dq::queue::deliver::Wanted;
use dq::queue::deliver::{LeaseLength, Pop};
use dq::queue::effects::Effects;
use dq::queue::note::check_step_name;
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
        let reply = Self::act(op, queue, now, mint, out);
        if !matches!(op, Op::Expire(_)) {
            queue.follow_up(FOLLOWED, now, out);
        }
        reply
    }

    fn act(op: &Op, queue: &mut Queue, now: Now, mint: &mut Mint, out: &mut Effects) -> Reply {
        let count = |reached: bool| Reply::Count(u64::from(reached));
        match op {
            Op::Add(add) => execute_add(add, queue, now, mint, out),
            Op::AddMany(add, jobs) => execute_add_many((add, jobs), queue, now, mint, out),
            Op::Pop(pop) => execute_pop(pop, queue, now, mint, out),
            Op::Ack { id, token, result } => {
                let result = result.as_deref();
                count(queue.ack(id, claim(token), result, now, out))
            }
            Op::Nack(nack) => execute_nack(nack, queue, now, out),
            Op::Touch(op) => queue
                .touch(&op.id, claim(&op.token), op.given(), now, out)
                .map_or(Reply::Nil, Reply::Deadline),
            Op::Step(op) => execute_step(op, queue, now, out),
            Op::Signal { id, name, value } => match queue.signal(id, (name, value), now, out) {
                Ok(set) => set.map_or(Reply::Nil, count),
                Err(error) => Reply::Error(error.text()),
            },
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
            Op::Group(name, None) => {
                let _ = queue.change_group(name, GroupChange::Clear, now, out);
                Reply::Ok
            }
            Op::Group(name, Some(change)) => {
                done(queue.change_group(name, GroupChange::Set(*change), now, out))
            }
            Op::PauseGroup(name, ms) => {
                done(queue.change_group(name, GroupChange::Pause(*ms), now, out))
            }
            Op::ResumeGroup(name) => {
                let _ = queue.change_group(name, GroupChange::Resume, now, out);
                Reply::Ok
            }
            Op::Configure(change) => done(queue.configure_with(change, now, out)),
            Op::Expire(budget) => {
                queue.work_off(*budget);
                let left = queue.expire_overdue(now, *budget, out);
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

/// Sets steps as DQ.STEP does, which checks the names first.
fn execute_step(op: &StepOp, queue: &mut Queue, now: Now, out: &mut Effects) -> Reply {
    let steps = op.pairs.iter().map(|(name, value)| (&**name, &**value));
    let named = steps
        .clone()
        .try_for_each(|(name, _)| check_step_name(name));
    let claim = Claim::of_token(&op.token);
    match named.and_then(|()| queue.step(&op.id, claim, steps, now, out)) {
        Ok(true) => Reply::Count(1),
        Ok(false) => Reply::Nil,
        Err(error) => Reply::Error(error.text()),
    }
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
    let add = add_of(add);
    match queue.add(&add, now, mint, out) {
        Ok(Some(id)) => Reply::Added(id.into_owned()),
        Ok(None) => Reply::Nil,
        Err(error) => Reply::Error(error.text()),
    }
}

fn add_of(add: &AddOp) -> Add<'_> {
    let mut said = add.said.attrs();
    if let Some(ladder) = &add.backoff {
        said = said.with_backoff(ladder);
    }
    Add {
        condition: add.condition,
        when: add.when.unwrap_or(When::Delay(0)),
        priority: add.priority,
        ttr_ms: add.ttr,
        server_ttr_ms: add.server_ttr,
        max_attempts: add.attempts,
        ttl_ms: add.ttl,
        recur: add.rule.as_ref().map(|rule| recur(rule, add)),
        group: add.group.as_deref(),
        said,
        after: add.after.as_ref().map(until),
        ..Add::new(add.id.as_deref(), &add.payload)
    }
}

fn execute_add_many(
    (add, jobs): (&AddOp, &[NewOp]),
    queue: &mut Queue,
    now: Now,
    mint: &mut Mint,
    out: &mut Effects,
) -> Reply {
    fn new_one(job: &NewOp) -> NewOne<'_> {
        NewOne {
            id: job.id.as_deref(),
            payload: &job.payload,
        }
    }
    let jobs: Vec<NewOne> = jobs.iter().map(new_one).collect();
    let mut ids = Vec::new();
    let told = |id: Option<&[u8]>| ids.push(id.map(<[u8]>::to_vec));
    let added = queue.add_many(&add_of(add), &jobs, now, mint, out, told);
    match added {
        Ok(()) => Reply::AddedMany(ids),
        Err(error) => {
            assert!(ids.is_empty(), "told of jobs that did not come");
            Reply::Error(error.text())
        }
    }
}

/// The rule as DQ.ADD reads it.
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
        lease: match (pop.ttr, pop.lease) {
            (Some(ms), _) => LeaseLength::Asked(ms),
            (None, Some(lease_ms)) => LeaseLength::InPlaceOf {
                ttr_ms: pop.server_ttr,
                lease_ms,
            },
            (None, None) => LeaseLength::OfJob,
        },
        noack: pop.noack,
        with: Wanted {
            terms: pop.with_terms,
            steps: pop.with_steps,
            results: true,
        },
        client: now.us(),
    };
    let mut jobs = Vec::new();
    let delivered = queue.pop(&pop, now, mint, out, |job| {
        let extras = job.extras.expect("results are asked for");
        let results_there = extras.results.as_deref();
        jobs.push(Delivered {
            id: job.id.to_vec(),
            payload: job.payload.to_vec(),
            attempts: job.attempts,
            lease: job.lease.map(|lease| (lease.token, lease.deadline_ms)),
            terms: extras
                .terms
                .map(|it| (it.ttr_ms, it.max_attempts, it.wait_ms)),
            steps: extras.steps.map(|it| it.steps().map(owned).collect()),
            results: results(results_there.expect("they are asked for")),
        });
    });
    assert_eq!(delivered, jobs.len() as u64);
    Reply::Jobs(jobs)
}

fn owned((name, value): (&[u8], &[u8])) -> (Vec<u8>, Vec<u8>) {
    (name.to_vec(), value.to_vec())
}

/// Results as DQ.GET shows them.
pub fn results(results: &[JobResult<'_>]) -> Vec<(Id, Option<Outcome>, Option<Vec<u8>>)> {
    let shown = |it: &JobResult<'_>| (it.id.to_vec(), it.outcome, it.value.map(<[u8]>::to_vec));
    results.iter().map(shown).collect()
}

fn until(after: &AfterOp) -> For<'_> {
    match after {
        AfterOp::Group(name) => For::Group(name),
        AfterOp::Jobs(ids, on_dead) => {
            let ids = ids.iter().map(|id| serde_bytes::Bytes::new(id));
            For::Jobs(ids.collect::<Vec<_>>().into(), *on_dead)
        }
    }
}

fn execute_nack(nack: &NackOp, queue: &mut Queue, now: Now, out: &mut Effects) -> Reply {
    let after = nack.after.clone();
    let nack = Nack {
        id: &nack.id,
        claim: claim(&nack.token),
        delay_ms: nack.delay,
        priority: nack.priority,
        kind: nack.kind,
        reason: nack.reason.as_deref(),
        awaits: nack.awaits.as_deref(),
        default_backoff: &nack.server_backoff,
    };
    let state = match &after {
        Some(after) => queue.nack_after(&nack, &until(after), now, out),
        None => queue.nack(&nack, now, out),
    };
    match state {
        Ok(state) => state.map_or(Reply::Nil, Reply::State),
        Err(error) => Reply::Error(error.text()),
    }
}
