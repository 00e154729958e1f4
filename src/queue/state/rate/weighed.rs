//! Deliveries within a window that do not all count the same, or are so many that some are merged.

use super::{drawn_us, may_be_of, Delivered};
use crate::queue::clock::Now;
use crate::queue::job::TOKEN_MAX;
use crate::queue::settings::Rate;
use std::collections::VecDeque;

/// The token of an entry that no client can name: a job that went at its delivery, or several merged deliveries.
const NOBODY: u64 = 0;
/// With the first token of a microsecond: the entry is of any token that was drawn there.
const ONE_OF: u64 = TOKEN_MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    us: u64,
    /// What this entry and all before it count together, including those that have left.
    upto: u64,
    token: u64,
}

/// The oldest first, and so ordered by their tokens, except those of [`NOBODY`].
#[derive(Clone, Debug, Default)]
pub struct Weighed {
    entries: VecDeque<Entry>,
    /// What the entries that have left count together.
    gone: u64,
    /// Whether any entries were merged.
    is_merged: bool,
}

impl Weighed {
    /// Of deliveries that count 1 each, at these microseconds.
    pub fn of(plain: &VecDeque<u64>) -> Self {
        let entry = |(upto, &us)| Entry {
            us,
            upto,
            token: Now::from_us(us).first_token() | ONE_OF,
        };
        Weighed {
            entries: (1..).zip(plain).map(entry).collect(),
            gone: 0,
            is_merged: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn last_us(&self) -> u64 {
        self.entries.back().map_or(0, |last| last.us)
    }

    fn upto(&self) -> u64 {
        self.entries.back().map_or(self.gone, |last| last.upto)
    }

    /// The instant of the last delivery that must have left before one of this weight fits.
    pub fn last_to_leave(&self, rate: Rate, weight: u32) -> Option<u64> {
        let total = self.upto() - self.gone;
        let may_stay = u64::from(rate.count.saturating_sub(weight));
        let must_leave = total.checked_sub(may_stay).filter(|&must| must > 0)?;
        let upto = self.gone + must_leave;
        let at = self.entries.partition_point(|entry| entry.upto < upto);
        Some(self.entries[at].us)
    }

    /// The first instant for which `is_so` is false. All for which it is true must come before the others.
    pub fn first_not(&self, is_so: impl Fn(u64) -> bool) -> Option<u64> {
        let at = self.entries.partition_point(|entry| is_so(entry.us));
        self.entries.get(at).map(|entry| entry.us)
    }

    /// What all entries that are not past count together. Past ones come before the others.
    pub fn used(&self, is_past: impl Fn(u64) -> bool) -> u64 {
        let past = self.entries.partition_point(|entry| is_past(entry.us));
        let before = past.checked_sub(1).map(|last| self.entries[last].upto);
        self.upto() - before.unwrap_or(self.gone)
    }

    /// As [`super::Deliveries::forget`].
    pub fn forget(&mut self, rate: Rate, is_past: impl Fn(u64) -> bool) {
        let mut is_full = self.entries.len() >= rate.count as usize;
        while let Some(first) = self.entries.front() {
            if !is_full && !is_past(first.us) {
                break;
            }
            is_full = false;
            self.gone = first.upto;
            self.entries.pop_front();
        }
    }

    pub fn record(&mut self, rate: Rate, most: usize, new: Delivered, now: Now) {
        if self.entries.len() >= most {
            self.merge(rate, most);
        }
        self.entries.push_back(Entry {
            us: now.us(),
            upto: self.upto() + u64::from(new.weight),
            token: if new.token < ONE_OF {
                new.token
            } else {
                NOBODY
            },
        });
    }

    pub fn step_back(&mut self, now: Now) {
        let entries = self.entries.iter_mut().rev();
        for entry in entries.take_while(|entry| entry.us > now.us()) {
            entry.us = now.us();
        }
    }

    /// The delivery with this token counts `weight` from now on; false if nothing changes.
    pub fn reweigh(&mut self, token: u64, weight: u32) -> bool {
        let Some(at) = self.find(token) else {
            return false;
        };
        let before = match at.checked_sub(1) {
            Some(before) => self.entries[before].upto,
            None => self.gone,
        };
        self.entries[at].token = token;
        let old = self.entries[at].upto - before;
        let (weight, differs) = (u64::from(weight), old != u64::from(weight));
        for entry in self.entries.range_mut(at..) {
            entry.upto = entry.upto - old + weight;
        }
        differs
    }

    fn find(&self, token: u64) -> Option<usize> {
        let mut found = None;
        for (at, entry) in self.entries.iter().enumerate().rev() {
            let drawn = drawn_us(entry.token & !ONE_OF);
            match entry.token {
                NOBODY => {}
                own if own == token => return Some(at),
                one if one & ONE_OF != 0 && self.is_one_of(token, drawn) => {
                    found = found.or(Some(at));
                }
                _ if drawn < drawn_us(token) && !may_be_of(token, drawn) => break,
                _ => {}
            }
        }
        found
    }

    /// Whether a token is of a delivery at this microsecond. If so many were drawn there that their tokens reach into
    /// the next one, they are among the first that are merged.
    fn is_one_of(&self, token: u64, us: u64) -> bool {
        drawn_us(token) == us || (!self.is_merged && may_be_of(token, us))
    }

    /// Merges neighbours until a quarter of the entries is free again.
    fn merge(&mut self, rate: Rate, most: usize) {
        self.is_merged = true;
        let mut slot_us = rate.window_us() / (2 * most as u64) + 1;
        loop {
            self.merge_within(slot_us);
            if self.entries.len() <= most / 4 * 3 {
                return;
            }
            slot_us = slot_us.saturating_mul(2);
        }
    }

    /// Merges the entries of each slot into one, at the latest of their instants.
    fn merge_within(&mut self, slot_us: u64) {
        let mut last = 0;
        for at in 1..self.entries.len() {
            let entry = self.entries[at];
            if entry.us / slot_us == self.entries[last].us / slot_us {
                self.entries[last] = Entry {
                    token: NOBODY,
                    ..entry
                };
            } else {
                last += 1;
                self.entries[last] = entry;
            }
        }
        self.entries.truncate(last + 1);
    }

    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.entries.capacity() * size_of::<Entry>()
    }
}
