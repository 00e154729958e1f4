//! A table's invariants.

use super::shards::Shards;
use super::{rank_of, roomy, slot, IdTable, Node, Shard, MERGE_BELOW, PAGE, SPLIT_ABOVE};

impl IdTable {
    /// Checks all invariants; `hash_of` returns the hash of the id of a handle.
    pub fn check_invariants(&self, hash_of: impl Fn(u32) -> u64) -> Result<(), String> {
        let shards = self.shards.iter().count();
        ensure(shards == self.count(), || {
            format!("{shards} shards, counted {}", self.count)
        })?;
        if let Shards::Pages(pages) = &self.shards {
            ensure(pages.len() == shards.div_ceil(PAGE) && shards > 1, || {
                format!("{} pages of {shards} shards", pages.len())
            })?;
            ensure(pages.iter().all(|p| p.len() <= PAGE), || {
                "a page is too long".into()
            })?;
        }
        let (mut len, mut capacity) = (0, 0);
        for number in shards as u64..2 * shards as u64 {
            let leaf = Node {
                number,
                bits: number.ilog2(),
            };
            let slots = self
                .shard(leaf.index())
                .ok_or_else(|| format!("no shard for leaf {number}"))?;
            check_shard(leaf, slots, &hash_of)?;
            len += slots.len();
            capacity += slots.capacity();
        }
        ensure(len == self.len(), || {
            format!("{len} entries, counted {}", self.len)
        })?;
        ensure(len == self.handles().count(), || {
            format!("{len} entries to find, others beside them")
        })?;
        ensure(capacity == self.capacity, || {
            format!("capacity {capacity}, counted {}", self.capacity)
        })?;
        ensure(len <= shards * SPLIT_ABOVE, || {
            format!("{len} entries in only {shards} shards")
        })?;
        ensure(len >= shards.saturating_sub(1) * MERGE_BELOW, || {
            format!("only {len} entries in {shards} shards")
        })
    }
}

fn check_shard(leaf: Node, slots: &Shard, hash_of: impl Fn(u32) -> u64) -> Result<(), String> {
    let Node { number, .. } = leaf;
    ensure(slots.capacity() <= roomy(slots.len()), || {
        format!(
            "leaf {number}: {} of {} slots",
            slots.len(),
            slots.capacity()
        )
    })?;
    ensure(slots.is_sorted_by(|a, b| a < b), || {
        format!("leaf {number} is out of order")
    })?;
    let (first, end) = leaf.ranks();
    for &s in slots {
        ensure((first..end).contains(&(s >> 32)), || {
            format!("rank {} in leaf {number}", s >> 32)
        })?;
        ensure(s == slot(rank_of(hash_of(s as u32)), s as u32), || {
            format!("handle {} under a wrong rank", s as u32)
        })?;
    }
    Ok(())
}

fn ensure(holds: bool, or: impl FnOnce() -> String) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(or())
    }
}
