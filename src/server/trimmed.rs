//! Redis 8.4 and newer take the keys of a slot that moved away atomically out of the keyspace all at once,
//! and free them on another thread: no event comes for any of them. Their names are taken out of
//! `deadlines` afterwards, in steps, by looking whether a queue is still there.

use super::agenda;
use super::api::{Ctx, OwnString};
use super::key::OpenKey;
use super::timer;
use crate::slots::slot_of;
use crate::storage::broken::breaking_point;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::c_int;

/// Names whose slot is computed in one step.
const NAMES_PER_STEP: usize = 8;

#[derive(Default)]
struct Sweep {
    slots: BTreeSet<u16>,
    /// How far the look at all names has come.
    after: Option<agenda::Place>,
    /// Slots were added on the way: the names before are to be looked at again.
    again: bool,
}

thread_local! {
    static SWEEP: RefCell<Sweep> = RefCell::default();
}

/// The keys of these slots are gone, on a master or on a replica.
pub fn add(slots: impl Iterator<Item = u16>) {
    SWEEP.with_borrow_mut(|sweep| {
        sweep.slots.extend(slots);
        sweep.again = sweep.after.is_some();
    });
    timer::arm(0);
}

pub fn is_empty() -> bool {
    SWEEP.with_borrow(|sweep| sweep.slots.is_empty())
}

/// Takes out names, with so many steps; returns how many are left.
pub fn sweep(ctx: Ctx<'_>, mut steps: usize) -> usize {
    let mut taken = Taken(SWEEP.take());
    let sweep = &mut taken.0;
    while steps > 0 && !sweep.slots.is_empty() {
        steps -= 1;
        breaking_point("sweep");
        let (names, next) = agenda::names_from(sweep.after, NAMES_PER_STEP);
        for (db, name) in &names {
            let is_meant = sweep.slots.contains(&slot_of(name));
            if is_meant && !is_queue(ctx, *db, name) {
                agenda::remove(*db, name);
            }
        }
        sweep.after = next;
        if next.is_none() && !std::mem::take(&mut sweep.again) {
            sweep.slots.clear();
        }
    }
    steps
}

/// Out of its place while names are looked at; it comes back also where a panic unwinds.
struct Taken(Sweep);

impl Drop for Taken {
    fn drop(&mut self) {
        SWEEP.set(std::mem::take(&mut self.0));
    }
}

fn is_queue(ctx: Ctx<'_>, db: c_int, name: &[u8]) -> bool {
    ctx.select_db(db) && OpenKey::db_of_queue(ctx, OwnString::new(name).name()).is_some()
}
