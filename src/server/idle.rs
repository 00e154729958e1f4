//! The queues that are awake and may be idle, by ticket: [`super::sleep`] visits them and puts idle ones to sleep.

use super::agenda::{self, Ticket};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Tickets per chunk: in chunks, the queue of tickets never has to grow by much at once.
const CHUNK: usize = 256;
/// There are at most this many tickets more than twice the number of queues.
const SLACK: usize = 1024;

#[derive(Default)]
struct TicketQueue {
    chunks: VecDeque<VecDeque<Ticket>>,
    len: usize,
}

thread_local! {
    static TICKETS: RefCell<TicketQueue> = RefCell::default();
    /// How many there may be, from the number of queues when the last sweep began.
    static LONGEST: Cell<usize> = const { Cell::new(SLACK) };
    /// How many tickets the current sweep still has to visit.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

impl TicketQueue {
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

/// Enters the ticket of a queue that is awake.
pub fn enlist(ticket: Ticket) {
    let len = TICKETS.with_borrow_mut(|tickets| {
        tickets.push(ticket);
        tickets.len
    });
    // Sweeps drop the tickets of removed queues, but queues may be created and removed faster than that.
    if len > LONGEST.get() {
        (0..2).for_each(|_| drop_gone());
    }
}

/// Moves the first ticket to the end, or drops it if its queue is gone.
fn drop_gone() {
    let first = TICKETS.with_borrow_mut(TicketQueue::pop);
    LEFT.set(LEFT.get().saturating_sub(1));
    if let Some(ticket) = first.filter(|&ticket| agenda::find(ticket).is_some()) {
        TICKETS.with_borrow_mut(|tickets| tickets.push(ticket));
    }
}

/// Begins a sweep over all tickets, unless one is under way.
pub fn begin_sweep() {
    LONGEST.set(SLACK + 2 * agenda::queues());
    if !has_more() {
        LEFT.set(TICKETS.with_borrow(|tickets| tickets.len));
    }
}

/// Whether the sweep has more tickets to visit.
pub fn has_more() -> bool {
    LEFT.get() > 0
}

/// Takes the sweep's next ticket.
pub fn next() -> Option<Ticket> {
    LEFT.set(LEFT.get().checked_sub(1)?);
    TICKETS.with_borrow_mut(TicketQueue::pop)
}
