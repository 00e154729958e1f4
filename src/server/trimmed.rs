//! Forgets keys that Redis 8.4 and newer trimmed. When a slot has moved away atomically, they
//! remove all its keys at once, without an event for any, and free them on another thread.
//! Afterwards their names are removed from the agenda, in steps, where no queue is left.

use super::agenda;
use super::api::{Ctx, OwnString};
use super::key::OpenKey;
use super::timer;
use crate::slots::slot_of;
use crate::storage::broken::breaking_point;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::c_int;

/// So many names are checked in one step, as their slots are computed.
const NAMES_PER_STEP: usize = 8;

#[derive(Default)]
struct Sweep {
    slots: BTreeSet<u16>,
    /// How far the sweep over all names has come.
    after: Option<agenda::Place>,
    /// Slots were added during the sweep: the names before must be checked again.
    again: bool,
}

thread_local! {
    static SWEEP: RefCell<Sweep> = RefCell::default();
}

/// Notes that the keys of these slots are gone, on a master or on a replica.
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

/// Removes names, in at most `steps` steps; returns how many are left.
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

/// Taken out while names are checked; dropping it puts it back, also when a panic unwinds.
struct Taken(Sweep);

impl Drop for Taken {
    fn drop(&mut self) {
        SWEEP.set(std::mem::take(&mut self.0));
    }
}

fn is_queue(ctx: Ctx<'_>, db: c_int, name: &[u8]) -> bool {
    ctx.select_db(db) && OpenKey::db_of_queue(ctx, OwnString::new(name).name()).is_some()
}
