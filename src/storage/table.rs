//! The id index: finds the handle of a job by the hash of its id.
//!
//! All entries form one sequence, ordered by *rank*: 32 bits computed from the hash. The ranks are
//! halved again and again into intervals, the leaves of a binary tree. Each leaf has one shard, a
//! small sorted array. A lookup computes the leaf, then interpolates the place in the shard (ranks
//! are evenly spread). It asks the caller only if all 32 bits of the rank agree.
//!
//! ```text
//!                            1                      a node: 1, then the leading bits of its ranks
//!               2                         3
//!         4           5             6           7   a table of 5 shards has the leaves 5 to 9
//!      8     9
//!   |  0  |  4  |     2     |       1     |     3     |      the indices of their shards
//!   rank 0                                         2^32
//!
//!   pages  [ page 0 | page 1 | .. ]      a page: up to 1024 shards; only the last one is not full.
//!                                        The only shard of a small table stands in place of the pages
//!              |
//!          [ shard 0 | shard 1 | .. ]    a shard: pointer, capacity, length: 24 bytes
//!              |
//!          [ rank : handle | rank : handle | .. | spare ]     8 bytes each, ascending
//! ```
//!
//! **Growth** is linear hashing (Litwin 1980) by leading bits: `n` shards are the leaves `n` to
//! `2 n - 1`. Leaf `n` is split next, into `2 n` and `2 n + 1`: as the slots are sorted, one cut.
//! A merge undoes it: one concatenation. An insert splits at most once, a removal merges at most
//! once.
//!
//! The rank is not uniform: its density falls from 3/2 to 3/4, about as 1 / (1 + rank / 2^32)
//! (spiral storage, Martin 1979). So a leaf that is yet to be split is not twice as full as one
//! just split: fullness falls smoothly from leaf `n` to leaf `2 n - 1`, in the same way at every
//! `n`. Thus time and memory per entry do not depend on the size. There are shards of all sizes at
//! any time, so an array that a shard has outgrown is just what another one needs. With uniform
//! ranks all shards outgrow the same size at about the same time, and jemalloc held half as much
//! memory again in slabs that were nearly empty.
//!
//! **Bounds.** A shard holds 0.7 to 1.5 times the mean, which is at most `SPLIT_ABOVE`, give or
//! take a few: an operation moves about 1 KiB. A page that grows copies up to 24 KiB, the list of
//! pages up to 64 KiB below 10^8 entries (then in proportion, 1.5 MiB at 2^32). Only equal ranks
//! are never separated: ids that collide in 32 bits share a shard, whose length is then their
//! number. All stays correct, but they are moved as a whole, so the caller's hash must be seeded.
//! 2^32 handles need 2^26 shards. At 2^31 shards, splitting would end, and shards would only become
//! longer.
//!
//! **Scan.** The cursor is the rank to continue from. Neither growth nor shrinking changes the rank
//! of an entry, and a call visits all entries from its cursor up to, not including, the cursor that
//! it returns. So the calls from 0 to 0 cover all ranks, and an entry that exists throughout is
//! visited by the one call whose interval has its rank. A cursor is valid under the same seed.
//! Every number is safe as a cursor. Cursors strictly rise, so every scan ends.

pub mod bulk;
mod check;
mod prefetch;
mod shards;

use crate::storage::allocated::reserve;
use crate::storage::broken::there;
use crate::storage::relocate::{move_vec, Mover, STEP};
use shards::Shards;
use std::hint::select_unpredictable;

/// Shards in a page. It decides how much is copied when a page or the list of pages grows.
const PAGE: usize = 1024;
/// Mean entries per shard above which one is split, and below which two are merged. They are apart
/// so that alternating inserts and removals do not split and merge each time.
const SPLIT_ABOVE: usize = 64;
const MERGE_BELOW: usize = 40;
const MAX_SHARDS: usize = 1 << 31;
/// Slots compared at once around the interpolated place: two cache lines.
const WINDOW: usize = 16;
/// Entries of one step of a scan, unless more have equal ranks.
const SCAN_STEP: usize = 8;

type Shard = Vec<u64>;

const SHARD: &str = "a leaf without a shard";

pub struct IdTable {
    shards: Shards,
    /// How many shards there are, at least one.
    count: u32,
    len: u32,
    /// Sum of the capacities of the shards, in slots.
    capacity: usize,
}

impl Default for IdTable {
    fn default() -> Self {
        Self::new()
    }
}

/// Copied arrays have no spare slots.
impl Clone for IdTable {
    fn clone(&self) -> Self {
        let shards = self.shards.clone();
        let capacity = shards.iter().map(Vec::capacity).sum();
        IdTable {
            shards,
            capacity,
            ..*self
        }
    }
}

/// Where a search of the table ended: an insert or a removal there needs no other search. Whatever happened to the table
/// since, it does no harm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Near {
    rank: u32,
    at: u32,
}

/// A node of the tree, and how many leading bits its ranks have in common.
#[derive(Clone, Copy)]
struct Node {
    number: u64,
    bits: u32,
}

impl Node {
    /// A left half keeps the index of the node that was split. A right half, `2 n + 1`, appears
    /// when there are `n` shards, and gets the next index. So the directory has no holes.
    fn index(self) -> usize {
        (self.number >> self.number.trailing_zeros() >> 1) as usize
    }

    /// Its ranks: from the first number up to, not including, the second, which may be 2^32.
    fn ranks(self) -> (u64, u64) {
        let width = 1 << (32 - self.bits);
        let first = self.number * width - (1 << 32);
        (first, first + width)
    }
}

impl IdTable {
    /// Allocates nothing.
    pub const fn new() -> Self {
        IdTable {
            shards: Shards::One(Shard::new()),
            count: 1,
            len: 0,
            capacity: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    fn count(&self) -> usize {
        self.count as usize
    }

    /// The handle with this hash that `is_it` accepts; asked only if all 32 stored bits agree.
    pub fn find(&self, hash: u64, is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.search(hash, is_it).0
    }

    /// As [`IdTable::find`]; and the place where it is, or would be inserted, for [`IdTable::remove_at`] and
    /// [`IdTable::insert_near`].
    pub fn search(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> (Option<u32>, Near) {
        let rank = rank_of(hash);
        let place = |at: usize| Near {
            rank,
            at: at as u32,
        };
        let leaf = self.leaf(rank);
        let slots = self.shard(leaf.index()).map_or(&[][..], |slots| slots);
        let first = lower_bound(slots, slot(rank, 0), leaf.bits);
        let equals = slots[first..]
            .iter()
            .take_while(|&&s| (s >> 32) as u32 == rank);
        for (at, handle) in (first..).zip(equals.map(|&s| s as u32)) {
            if is_it(handle) {
                return (Some(handle), place(at));
            }
        }
        (None, place(first))
    }

    /// Inserts a handle. The caller has made sure that the id is not there.
    pub fn insert(&mut self, hash: u64, handle: u32) {
        self.insert_near(hash, handle, Near::default());
    }

    /// As [`IdTable::insert`], but faster if a search has just returned the place.
    pub fn insert_near(&mut self, hash: u64, handle: u32, near: Near) {
        let rank = rank_of(hash);
        let leaf = self.leaf(rank);
        let slots = there(self.shards.get_mut(leaf.index()), SHARD);
        let (key, near) = (slot(rank, handle), near.at as usize);
        let at = if is_place(slots, near, key) {
            near
        } else {
            lower_bound(slots, key, leaf.bits)
        };
        if slots.len() == slots.capacity() {
            let before = slots.capacity();
            grow(slots, 1);
            self.capacity += slots.capacity() - before;
        }
        slots.insert(at, key);
        self.len += 1;
        if self.len() > self.count() * SPLIT_ABOVE && self.count() < MAX_SHARDS {
            self.split();
        }
    }

    /// False if this handle is not there under this hash.
    pub fn remove(&mut self, hash: u64, handle: u32) -> bool {
        let rank = rank_of(hash);
        let leaf = self.leaf(rank);
        let slots = self.shard(leaf.index()).map_or(&[][..], |slots| slots);
        let at = lower_bound(slots, slot(rank, handle), leaf.bits) as u32;
        self.remove_at(Near { rank, at }, handle)
    }

    /// Removes this handle where a search has just found it; false if it is not there.
    pub fn remove_at(&mut self, near: Near, handle: u32) -> bool {
        let leaf = self.leaf(near.rank);
        let Some(slots) = self.shards.get_mut(leaf.index()) else {
            return false;
        };
        let at = near.at as usize;
        if slots.get(at) != Some(&slot(near.rank, handle)) {
            return false;
        }
        slots.remove(at);
        let before = slots.capacity();
        trim(slots);
        self.capacity -= before - slots.capacity();
        self.len -= 1;
        if self.len() < (self.count() - 1) * MERGE_BELOW {
            self.merge();
        }
        true
    }

    /// Visits the next few entries and returns the cursor of the next call, 0 at the end.
    pub fn scan(&self, cursor: u64, mut visit: impl FnMut(u32)) -> u64 {
        let Ok(rank) = u32::try_from(cursor) else {
            return 0;
        };
        let leaf = self.leaf(rank);
        let Some(slots) = self.shard(leaf.index()) else {
            return 0;
        };
        let rest = &slots[lower_bound(slots, slot(rank, 0), leaf.bits)..];
        let mut last = rank;
        for (i, &s) in rest.iter().enumerate() {
            let rank = (s >> 32) as u32;
            if i >= SCAN_STEP && rank != last {
                return u64::from(rank);
            }
            visit(s as u32);
            last = rank;
        }
        let (_, end) = leaf.ranks();
        if end > u64::from(u32::MAX) {
            0
        } else {
            end
        }
    }

    /// All handles, in no particular order.
    pub fn handles(&self) -> impl Iterator<Item = u32> + '_ {
        self.shards.iter().flatten().map(|&s| s as u32)
    }

    /// Frees about `count` entries of a discarded table; false once all are freed.
    pub fn free_some(&mut self, count: usize) -> bool {
        for _ in 0..count.div_ceil(SPLIT_ABOVE) {
            let pages = match &mut self.shards {
                Shards::One(shard) => return !std::mem::take(shard).is_empty(),
                Shards::Pages(pages) => pages,
            };
            let Some(page) = pages.last_mut() else {
                return false;
            };
            if page.pop().is_none() {
                pages.pop();
            }
        }
        true
    }

    /// Moves the next few shards; returns the number to continue from. See [`super::relocate`].
    pub fn relocate(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        let pages = match &mut self.shards {
            Shards::One(shard) if from == 0 => {
                move_vec(shard, mover);
                return None;
            }
            Shards::One(_) => return None,
            Shards::Pages(pages) => pages,
        };
        let page = pages.get_mut(from as usize / PAGE)?;
        let first = from as usize % PAGE;
        if first == 0 {
            move_vec(page, mover);
        }
        for shard in page.iter_mut().skip(first).take(STEP as usize) {
            move_vec(shard, mover);
        }
        Some(from + STEP)
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let directory = match &self.shards {
            Shards::One(_) => 0,
            Shards::Pages(pages) => {
                let shards: usize = pages.iter().map(Vec::capacity).sum();
                pages.capacity() * size_of::<Vec<Shard>>() + shards * size_of::<Shard>()
            }
        };
        directory + self.capacity * size_of::<u64>()
    }

    /// The leaf that owns the rank: 1 and as many leading bits as make it `count` or more.
    fn leaf(&self, rank: u32) -> Node {
        let first = u64::from(self.count);
        let level = first.ilog2();
        let path = 1 << 32 | u64::from(rank);
        let bits = level + u32::from(path >> (32 - level) < first);
        Node {
            number: path >> (32 - bits),
            bits,
        }
    }

    /// The leaf to be split next.
    fn first_leaf(&self) -> Node {
        let number = u64::from(self.count);
        Node {
            number,
            bits: number.ilog2(),
        }
    }

    fn shard(&self, index: usize) -> Option<&Shard> {
        self.shards.get(index)
    }

    /// Cuts the shard that is due to be split next; its upper half becomes the last shard.
    fn split(&mut self) {
        let leaf = self.first_leaf();
        let (first, end) = leaf.ranks();
        let lower = there(self.shards.get_mut(leaf.index()), SHARD);
        let cut = lower.partition_point(|&s| s >> 32 < (first + end) / 2);
        let before = lower.capacity();
        let mut upper = Shard::new();
        grow(&mut upper, lower.len() - cut);
        upper.extend_from_slice(&lower[cut..]);
        lower.truncate(cut);
        trim(lower);
        self.capacity = self.capacity - before + lower.capacity() + upper.capacity();
        self.push_shard(upper);
    }

    /// Undoes the last split.
    fn merge(&mut self) {
        let mut upper = there(self.shards.pop(), SHARD);
        self.count -= 1;
        let leaf = self.first_leaf();
        let lower = there(self.shards.get_mut(leaf.index()), SHARD);
        let before = lower.capacity() + upper.capacity();
        if lower.len() + upper.len() > lower.capacity() {
            grow(lower, upper.len());
        }
        lower.append(&mut upper);
        trim(lower);
        self.capacity = self.capacity - before + lower.capacity();
    }

    fn push_shard(&mut self, shard: Shard) {
        self.shards.push(shard);
        self.count += 1;
    }
}

/// Ascending in `x`, the upper half of the hash; as fractions `(2 x + x^2) / 3`. Its slope doubles,
/// from 2/3 to 4/3: just so leaf `n`, the fullest, is twice as full as `2 n - 1`, the emptiest.
/// (The sums stay below 2^64: 2^63 + 2^62.)
pub fn rank_of(hash: u64) -> u32 {
    let x = hash >> 32;
    ((((x << 31) + ((x * x) >> 2)) / 3) >> 30) as u32
}

fn slot(rank: u32, handle: u32) -> u64 {
    u64::from(rank) << 32 | u64::from(handle)
}

/// Approximately where the key belongs, by interpolation.
fn guess(slots: &[u64], key: u64, bits: u32) -> usize {
    let within = (key >> 32 << bits) & 0xffff_ffff;
    ((within * slots.len() as u64) >> 32) as usize
}

/// The first slot not less than `key`; the ranks of the shard agree in `bits` leading bits.
///
/// The window around the interpolated place decides in 29 of 30 cases, without a branch on data: a
/// branch that the processor mispredicts costs as much as the whole search. `select_unpredictable`
/// keeps the compiler from making branches, which takes twice the time. If the window does not
/// decide, its side is searched by bisection, so that no distribution of ranks makes it slow.
fn lower_bound(slots: &[u64], key: u64, bits: u32) -> usize {
    let from = guess(slots, key, bits)
        .saturating_sub(WINDOW / 2)
        .min(slots.len().saturating_sub(WINDOW));
    let Some(window) = slots[from..].first_chunk::<WINDOW>() else {
        return slots.partition_point(|&s| s < key);
    };
    let mut less = 0;
    for step in [8, 4, 2, 1] {
        less = select_unpredictable(window[less + step - 1] < key, less + step, less);
    }
    less += usize::from(window[less] < key);
    match less {
        0 => slots[..from].partition_point(|&s| s < key),
        WINDOW => from + WINDOW + slots[from + WINDOW..].partition_point(|&s| s < key),
        _ => from + less,
    }
}

/// Whether a key that is not there belongs before this slot.
fn is_place(slots: &[u64], at: usize, key: u64) -> bool {
    let is_behind = at == 0 || slots.get(at - 1).is_some_and(|&s| s < key);
    is_behind && slots.get(at).is_none_or(|&s| s > key)
}

/// Rounds up to a capacity in use. These are the ones for which jemalloc has a size class: 1, even,
/// then four per doubling.
fn class(len: usize) -> usize {
    match len.saturating_sub(1).checked_ilog2() {
        None => 1,
        Some(log) => len.next_multiple_of(((1 << log) / 4).max(2)),
    }
}

/// The largest capacity for `len` elements. The extra eighth keeps alternating inserts and removals
/// from copying each time.
fn roomy(len: usize) -> usize {
    class(len + len / 8 + 1)
}

fn grow<T>(vec: &mut Vec<T>, more: usize) {
    reserve(vec, class(vec.len() + more) - vec.len());
}

fn trim<T>(vec: &mut Vec<T>) {
    let most = roomy(vec.len());
    if vec.capacity() > most {
        vec.shrink_to(most);
    }
}

#[cfg(test)]
mod tests;
