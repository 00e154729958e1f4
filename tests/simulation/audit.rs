//! Promises that must hold whatever the model says, even on a wild clock: they can be checked in
//! the history of operations and replies alone.

use crate::op::{Delivered, Id, Op, Reply};
use dq::queue::add::Condition;
use std::collections::HashMap;

#[derive(Default)]
pub struct Audit {
    last_token: u64,
    /// When each live lease ends.
    leases: HashMap<Id, u64>,
    latest_us: u64,
}

/// Due time and expiry of each job before a POP; of a reserved job only the due time counts, as its
/// lease ends before its TTL.
pub type Dues = HashMap<Id, (u64, u64)>;

impl Audit {
    /// Called for each operation, before its reply. If the clock steps back, leases that have ended
    /// stay ended.
    pub fn time(&mut self, now_us: u64) {
        let latest = self.latest_us.max(now_us) / 1000;
        if now_us < self.latest_us {
            self.leases.retain(|_, end| *end > latest);
        }
        self.latest_us = now_us;
    }

    pub fn see(&mut self, op: &Op, reply: &Reply, dues: &Dues, now_us: u64) -> Result<(), String> {
        match (op, reply) {
            (Op::Pop(pop), Reply::Jobs(jobs)) => {
                for job in jobs {
                    self.delivery(job, pop.ttr, dues, now_us)?;
                }
                if jobs.len() as u64 > pop.count {
                    return Err("more jobs than asked for".into());
                }
            }
            (Op::Touch(touch), Reply::Deadline(deadline)) => {
                check_lease(touch.ttr.unwrap_or(0), *deadline, now_us)?;
                self.leases.insert(touch.id.clone(), *deadline);
            }
            (Op::Purge(_), _) => self.leases.clear(),
            (Op::Nack(nack), Reply::State(_) | Reply::Nil) => {
                self.leases.remove(&nack.id);
            }
            (Op::Ack { id, .. } | Op::Del { id, .. }, Reply::Count(1)) => {
                self.leases.remove(id);
            }
            // A reserved job stays reserved when it gets a successor.
            (Op::Add(add), Reply::Added(_)) if add.condition == Condition::Next => {}
            (_, Reply::Added(id)) => {
                self.leases.remove(id);
            }
            (_, Reply::AddedMany(ids)) => ids.iter().flatten().for_each(|id| {
                self.leases.remove(id);
            }),
            _ => {}
        }
        Ok(())
    }

    /// "A job is never delivered before its due", "at most one live lease per job", tokens strictly
    /// grow and are at least unix-ms << 20.
    fn delivery(
        &mut self,
        job: &Delivered,
        ttr: Option<u64>,
        dues: &Dues,
        now_us: u64,
    ) -> Result<(), String> {
        let (due, expires) = dues.get(&job.id).copied().unwrap_or((u64::MAX, 0));
        if now_us / 1000 < due {
            return Err(format!("delivered before its due {due}: {job:?}"));
        }
        if expires <= now_us / 1000 {
            return Err(format!("delivered past its TTL {expires}: {job:?}"));
        }
        let Some((token, deadline)) = job.lease else {
            self.leases.remove(&job.id);
            return Ok(());
        };
        if token <= self.last_token || token < (now_us / 1000) << 20 {
            return Err(format!(
                "a token that did not grow from {}: {job:?}",
                self.last_token
            ));
        }
        self.last_token = token;
        check_lease(ttr.unwrap_or(1), deadline, now_us)?;
        let live = self.leases.insert(job.id.clone(), deadline);
        if live.is_some_and(|end| end * 1000 > now_us) {
            return Err(format!(
                "a second live lease beside one until {live:?}: {job:?}"
            ));
        }
        Ok(())
    }

    pub fn forget_leases(&mut self) {
        self.leases.clear();
    }
}

/// "no delay or lease is shorter than asked", except at the last instant.
fn check_lease(asked_ms: u64, deadline: u64, now_us: u64) -> Result<(), String> {
    let least_us = asked_ms.saturating_mul(1000).saturating_add(now_us);
    if deadline * 1000 < least_us.min(crate::model::LAST * 1000) {
        return Err(format!("a lease of {asked_ms} ms that ends at {deadline}"));
    }
    Ok(())
}

/// A SCAN that continues while the queue changes: every job that exists throughout must be shown.
#[derive(Default)]
pub struct LongScan {
    cursor: u64,
    there: Vec<Id>,
    shown: Vec<Id>,
}

impl LongScan {
    /// One step of the scan; `exists` says which ids exist.
    pub fn step(
        &mut self,
        scan: impl FnOnce(u64, &mut Vec<Id>) -> u64,
        all: impl FnOnce() -> Vec<Id>,
    ) -> Result<(), String> {
        if self.cursor == 0 {
            self.there = all();
            self.shown.clear();
        }
        self.cursor = scan(self.cursor, &mut self.shown);
        if self.cursor != 0 {
            return Ok(());
        }
        let missed = self.there.iter().find(|id| !self.shown.contains(id));
        missed.map_or(Ok(()), |id| {
            Err(format!("SCAN never showed {id:?}, which was there"))
        })
    }

    pub fn went(&mut self, exists: impl Fn(&Id) -> bool) {
        if self.cursor != 0 {
            self.there.retain(|id| exists(id));
        }
    }

    pub fn restart(&mut self) {
        self.cursor = 0;
    }
}
