//! Builds a table from all its entries at once: each shard is written once, from the lowest rank to
//! the highest. Single inserts would each read and move a part of a shard anywhere in memory.

use super::{class, rank_of, slot, IdTable, Shard, SPLIT_ABOVE};

/// The entries of a table that is yet to be built.
#[derive(Clone, Default)]
pub struct Entries(Vec<u64>);

impl Entries {
    pub fn push(&mut self, hash: u64, handle: u32) {
        self.0.push(slot(rank_of(hash), handle));
    }

    /// The table; none if two handles have the `same` id. `same` is called only if all 32 stored
    /// bits agree.
    pub fn into_table(self, same: impl Fn(u32, u32) -> bool) -> Option<IdTable> {
        let mut slots = self.0;
        slots.sort_unstable();
        let collide = |a: &u64, b: &u64| a >> 32 == b >> 32;
        let groups = slots.chunk_by(collide).filter(|group| group.len() > 1);
        let mut pairs = groups.flat_map(|group| {
            let later = move |at: usize| group[at + 1..].iter().map(move |&b| (group[at], b));
            (0..group.len()).flat_map(later)
        });
        let twice = pairs.any(|(a, b)| same(a as u32, b as u32));
        (!twice).then(|| IdTable::of(&slots))
    }
}

impl IdTable {
    /// Builds the table that inserts in any order would have made, without spare slots.
    fn of(slots: &[u64]) -> IdTable {
        let mut table = IdTable::new();
        for _ in 1..slots.len().div_ceil(SPLIT_ABOVE) {
            table.push_shard(Shard::new());
        }
        let (mut rest, mut first) = (slots, 0);
        while let (false, Ok(rank)) = (rest.is_empty(), u32::try_from(first)) {
            let leaf = table.leaf(rank);
            let (_, end) = leaf.ranks();
            let len = rest.iter().take_while(|&&slot| slot >> 32 < end).count();
            if let (Some(shard), 1..) = (table.shards.get_mut(leaf.index()), len) {
                shard.reserve_exact(class(len));
                shard.extend_from_slice(&rest[..len]);
                table.capacity += shard.capacity();
            }
            (rest, first) = (&rest[len..], end);
        }
        table.len = slots.len() as u32;
        table
    }
}
