//! Frees the purged jobs of keys that have any: see [`crate::queue::state::purged`].

use super::api::{Ctx, OwnString};
use super::key::OpenKey;
use super::reclaim;

/// Frees purged jobs, in at most `steps` steps; returns how many are left.
pub fn free_purged(ctx: Ctx<'_>, mut steps: usize) -> usize {
    while steps > 0 {
        let Some((db, name)) = reclaim::next_with_purged() else {
            break;
        };
        steps -= 1;
        let raw_name = OwnString::new(&name);
        if !ctx.select_db(db) {
            continue;
        }
        let Ok(mut open) = OpenKey::peek(ctx, raw_name.name()) else {
            continue;
        };
        let key_db = open.db();
        let Some(value) = open.value() else {
            continue;
        };
        steps = value.queue().work_off(steps);
        value.account_as(key_db, &name);
        if value.queue().has_leftovers() {
            reclaim::note_purged(db, &name);
        }
    }
    steps
}
