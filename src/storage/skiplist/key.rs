//! What a list is sorted by, and what all its parts know: keys, ties, links and their sizes.

use std::cmp::Ordering;

/// Items in a full node.
pub(super) const NODE: usize = 64;
/// So many inserts, each right after the one before, count as a sequence that will continue.
pub(super) const RUN: u8 = 8;
/// Nodes in a full segment: some 32 KiB, the most that growing ever copies at once.
pub(super) const SEGMENT: usize = 512;
pub(super) const NIL: u32 = u32::MAX;

/// What a list is sorted by.
pub trait Key: Copy + Ord {
    /// The due time that links store for what is below them. It is nothing if the order is that of
    /// due times anyway.
    type Floor: Copy + Ord;
    fn floor(self) -> Self::Floor;
    /// Whether floors can only rise from one key to a later one.
    fn rises_to(self, later: Self) -> bool;
}

/// A bare instant.
impl Key for u64 {
    type Floor = ();
    fn floor(self) {}
    fn rises_to(self, _: u64) -> bool {
        true
    }
}

/// A number that many entries share, which are then ordered by their ties.
impl Key for u32 {
    type Floor = ();
    fn floor(self) {}
    fn rises_to(self, _: u32) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadyKey {
    pub priority: i32,
    pub due: u64,
}

impl Key for ReadyKey {
    type Floor = u64;
    fn floor(self) -> u64 {
        self.due
    }
    fn rises_to(self, later: ReadyKey) -> bool {
        self.priority == later.priority
    }
}

/// A group's turn, least first, and the instant from which the group may be served, which has no say in the order.
#[derive(Clone, Copy, Debug)]
pub struct TurnKey {
    pub turn: u64,
    pub at: u64,
}

impl Ord for TurnKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.turn.cmp(&other.turn)
    }
}

impl PartialOrd for TurnKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TurnKey {
    fn eq(&self, other: &Self) -> bool {
        self.turn == other.turn
    }
}

impl Eq for TurnKey {}

impl Key for TurnKey {
    type Floor = u64;
    fn floor(self) -> u64 {
        self.at
    }
    fn rises_to(self, _: TurnKey) -> bool {
        false
    }
}

#[derive(Clone, Copy)]
pub(super) struct Link<F> {
    pub(super) tie: Tie,
    pub(super) floor: F,
    pub(super) child: u32,
    pub(super) span: u32,
}

/// A search's step on one level: link number `at` of `node`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) node: u32,
    pub(super) at: u32,
}

/// Orders entries of equal keys: by the caller's sequence number, then by the handle. The handle
/// keeps entries distinct if two sequence numbers are equal (in a forged dump).
pub(super) type Tie = (u64, u32);
