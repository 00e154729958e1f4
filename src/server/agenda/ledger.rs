//! The figures of a database's queues, and their sums: for INFO, however many queues there are.
//!
//! A queue's figures are entered after each command on it. They hold until its next due comes, which
//! nobody is told of; so each account stands in an order by such an instant, or an earlier one, and who
//! wants the sums first sees to the accounts that are outdated by then.
//!
//! ```text
//!   Value ── Ticket ──►  accounts [ figures, until | figures, until | ... ]     sum: all figures
//!                                            ▲
//!                        by_instant  { (1700, 0) (1755, 2) ... }
//! ```
//!
//! A ticket is but a hint: it fits no account that was closed, whatever stands there now.

use super::least::Least;
use super::Name;
use crate::queue::state::figures::Figures;
use crate::storage::slab::Slab;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Number of an account that is not there.
pub const NO_ACCOUNT: u32 = u32::MAX;

thread_local! {
    static LAST_SERIAL: Cell<u64> = const { Cell::new(0) };
}

/// Names an account, in no time. The default names none.
#[derive(Clone, Copy, Default)]
pub struct Ticket {
    account: u32,
    /// Not 0, and not that of any other account.
    serial: u64,
}

impl Ticket {
    pub fn account(self) -> u32 {
        self.account
    }
}

struct Account {
    name: Name,
    serial: u64,
    figures: Figures,
    /// They hold until then.
    until: u64,
    /// Where it stands in the order; u64::MAX where it does not.
    stands_at: u64,
}

#[derive(Default)]
pub struct Ledger {
    accounts: Slab<Account>,
    by_instant: BTreeSet<(u64, u32)>,
    sum: Figures,
    first_due: Least,
}

impl Ledger {
    pub fn len(&self) -> usize {
        self.accounts.len()
    }

    pub fn sum(&self) -> &Figures {
        &self.sum
    }

    /// Of all queues.
    pub fn first_due(&self) -> Option<u64> {
        self.first_due.get()
    }

    pub fn open(&mut self, name: Name) -> Ticket {
        let serial = LAST_SERIAL.get() + 1;
        LAST_SERIAL.set(serial);
        let account = self.accounts.insert(Account {
            name,
            serial,
            figures: Figures::default(),
            until: u64::MAX,
            stands_at: u64::MAX,
        });
        Ticket { account, serial }
    }

    pub fn ticket(&self, account: u32) -> Option<Ticket> {
        let serial = self.accounts.get(account)?.serial;
        Some(Ticket { account, serial })
    }

    pub fn close(&mut self, account: u32) {
        if let Some(closed) = self.accounts.remove(account) {
            self.sum.exchange(closed.figures, Figures::default());
            self.by_instant.remove(&(closed.stands_at, account));
            self.first_due.set(account, u64::MAX);
        }
    }

    /// False where the ticket fits no account.
    #[inline]
    pub fn enter(&mut self, ticket: Ticket, figures: Figures, until: u64) -> bool {
        let account = self.accounts.get_mut(ticket.account);
        let Some(account) = account.filter(|account| account.serial == ticket.serial) else {
            return false;
        };
        account.until = until;
        if account.figures != figures {
            self.sum.exchange(account.figures, figures);
            account.figures = figures;
            let first_due = figures.first_due.unwrap_or(u64::MAX);
            self.first_due.set(ticket.account, first_due);
        }
        if until < account.stands_at {
            self.stand(ticket.account, until);
        }
        true
    }

    fn stand(&mut self, number: u32, instant: u64) {
        if let Some(account) = self.accounts.get_mut(number) {
            self.by_instant.remove(&(account.stands_at, number));
            account.stands_at = instant;
            if instant < u64::MAX {
                self.by_instant.insert((instant, number));
            }
        }
    }

    /// Frees about `count` accounts of a ledger that is of no use any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        let instants = self.by_instant.len();
        for _ in 0..count.min(instants) {
            self.by_instant.pop_first();
        }
        self.accounts.free_some(count) || instants > 0
    }

    /// The name of a queue whose figures do not hold any more.
    pub fn outdated(&mut self, now_ms: u64) -> Option<Name> {
        loop {
            let &(instant, number) = self.by_instant.first()?;
            let account = self.accounts.get(number)?;
            if instant > now_ms {
                return None;
            }
            if account.until <= now_ms {
                return Some(Arc::clone(&account.name));
            }
            // Entered since.
            let until = account.until;
            self.stand(number, until);
        }
    }

    pub fn next(&self) -> Option<u64> {
        self.by_instant.first().map(|&(instant, _)| instant)
    }
}
