//! The queues that are awake, each by its ticket: [`super::sleep`] goes round and has those sleep that nobody uses.

use super::agenda::Ticket;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Tickets that lie together: a line of them never grows by much at once.
const CHUNK: usize = 256;

#[derive(Default)]
struct Line {
    chunks: VecDeque<VecDeque<Ticket>>,
    len: usize,
}

thread_local! {
    static LINE: RefCell<Line> = RefCell::default();
    /// How many the round that is under way has before it.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

impl Line {
    fn push(&mut self, ticket: Ticket) {
        if self.chunks.back().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push_back(VecDeque::new());
        }
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.push_back(ticket);
            self.len += 1;
        }
    }

    fn pop(&mut self) -> Option<Ticket> {
        let first = self.chunks.front_mut()?;
        let ticket = first.pop_front();
        if first.is_empty() {
            self.chunks.pop_front();
        }
        self.len -= usize::from(ticket.is_some());
        ticket
    }
}

/// The queue with this ticket is awake.
pub fn enlist(ticket: Ticket) {
    LINE.with_borrow_mut(|line| line.push(ticket));
}

/// Begins a round past all that stand here, unless one is under way.
pub fn begin_round() {
    if !has_more() {
        LEFT.set(LINE.with_borrow(|line| line.len));
    }
}

/// Whether the round has more before it.
pub fn has_more() -> bool {
    LEFT.get() > 0
}

/// The next one of the round, which stands here no more.
pub fn next() -> Option<Ticket> {
    LEFT.set(LEFT.get().checked_sub(1)?);
    LINE.with_borrow_mut(Line::pop)
}
