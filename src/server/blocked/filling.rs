//! The clients of one key that wait for a batch (FILL): which of them may be served, and when time alone lets one be.
//!
//! Such a client may be served once so many jobs are ready, or a while after the first moment of its wait at which any was.
//! Since when jobs are ready is the same for all of them, so it is kept once. Each command that changes the queue asks; so
//! nothing here goes through all clients, however many different batches they wait for.

use std::collections::{BTreeMap, BTreeSet};

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// So many ready jobs.
    pub least: u64,
    /// Or so long, in ms, since any was ready.
    pub ms: u64,
}

impl Fill {
    /// At its timeout a client gets what there is.
    pub const OVER: Fill = Fill { least: 1, ms: 0 };
}

/// Those with NOACK, or those without, by their tickets.
#[derive(Debug, Default)]
struct Side {
    /// What each waits for, and when it came.
    clients: BTreeMap<u64, (Fill, u64)>,
    by_least: BTreeMap<u64, BTreeSet<u64>>,
    /// Their time began, or will begin, when jobs became ready: by its length.
    early: BTreeSet<(u64, u64)>,
    /// They came when jobs were ready: by the end of their time.
    late: BTreeSet<(u64, u64)>,
    /// Their time is over.
    over: BTreeSet<u64>,
}

impl Side {
    fn insert(&mut self, ticket: u64, (fill, came): (Fill, u64), is_late: bool) -> bool {
        if self.clients.insert(ticket, (fill, came)).is_some() {
            return false;
        }
        self.by_least.entry(fill.least).or_default().insert(ticket);
        match is_late {
            true => self.late.insert((came.saturating_add(fill.ms), ticket)),
            false => self.early.insert((fill.ms, ticket)),
        }
    }

    fn remove(&mut self, ticket: u64) -> Option<u64> {
        let (fill, came) = self.clients.remove(&ticket)?;
        if let Some(alike) = self.by_least.get_mut(&fill.least) {
            alike.remove(&ticket);
            if alike.is_empty() {
                self.by_least.remove(&fill.least);
            }
        }
        let is_early = self.early.remove(&(fill.ms, ticket));
        if !is_early && !self.over.remove(&ticket) {
            self.late.remove(&(came.saturating_add(fill.ms), ticket));
        }
        Some(came)
    }

    fn begin_anew(&mut self) {
        let late = std::mem::take(&mut self.late).into_iter();
        let over = std::mem::take(&mut self.over).into_iter();
        for ticket in late.map(|(_, ticket)| ticket).chain(over) {
            if let Some((fill, _)) = self.clients.get(&ticket) {
                self.early.insert((fill.ms, ticket));
            }
        }
    }

    /// Finds those whose time is over.
    fn settle(&mut self, since: u64, now_ms: u64) {
        while let Some((end, ticket)) = self.next(since).filter(|&(end, _)| end <= now_ms) {
            if !self.late.remove(&(end, ticket)) {
                self.early.pop_first();
            }
            self.over.insert(ticket);
        }
    }

    /// Whose time ends next, and when.
    fn next(&self, since: u64) -> Option<(u64, u64)> {
        let early = self.early.first();
        let early = early.map(|&(ms, ticket)| (since.saturating_add(ms), ticket));
        early.into_iter().chain(self.late.first().copied()).min()
    }

    /// Those that may be served: the first of each number of jobs, and of those whose time is over.
    fn firsts(&self, ready: u64) -> impl Iterator<Item = u64> + '_ {
        let full = self.by_least.range(..=ready);
        let full = full.filter_map(|(_, alike)| alike.first());
        self.over.first().into_iter().chain(full).copied()
    }
}

#[derive(Debug, Default)]
pub struct Filling {
    /// Without NOACK and with it.
    sides: [Side; 2],
    /// Since when jobs are ready.
    ready: Option<u64>,
    /// The clock when it was last told.
    seen_ms: u64,
}

impl Filling {
    pub fn len(&self) -> usize {
        self.sides.iter().map(|side| side.clients.len()).sum()
    }

    /// False if the client is there already.
    pub fn insert(&mut self, ticket: u64, (fill, noack): (Fill, bool), came: u64) -> bool {
        let is_late = self.ready.is_some_and(|since| came > since);
        self.sides[usize::from(noack)].insert(ticket, (fill, came), is_late)
    }

    /// Returns when the client came.
    pub fn remove(&mut self, ticket: u64, noack: bool) -> Option<u64> {
        let came = self.sides[usize::from(noack)].remove(ticket)?;
        if self.len() == 0 {
            // From now on nobody notes when none is ready.
            self.ready = None;
        }
        Some(came)
    }

    /// Another queue is under the name, or none: counting begins anew.
    pub fn begin_anew(&mut self) {
        if self.ready.take().is_some() {
            self.sides.iter_mut().for_each(Side::begin_anew);
        }
    }

    /// Notes how many jobs are ready now. If none is, counting begins anew.
    pub fn note(&mut self, ready: usize, now_ms: u64) {
        let since = self.ready;
        // The clock may have been set back.
        if ready == 0 || now_ms + 1 < self.seen_ms {
            self.begin_anew();
        }
        self.seen_ms = now_ms;
        self.ready = (ready > 0).then(|| since.map_or(now_ms, |since| since.min(now_ms)));
    }

    fn settle(&mut self, now_ms: u64) {
        if let Some(since) = self.ready {
            let sides = self.sides.iter_mut();
            sides.for_each(|side| side.settle(since, now_ms));
        }
    }

    fn firsts(&self, ready: usize, only_noack: bool) -> impl Iterator<Item = u64> + '_ {
        let sides = self.sides[usize::from(only_noack)..].iter();
        sides.flat_map(move |side| side.firsts(ready as u64))
    }

    /// The first in line of those that may be served.
    pub fn first(&mut self, ready: usize, only_noack: bool, now_ms: u64) -> Option<u64> {
        self.settle(now_ms);
        self.firsts(ready, only_noack).min()
    }

    /// Whether any may be served.
    pub fn has_any(&mut self, ready: usize, only_noack: bool, now_ms: u64) -> bool {
        self.settle(now_ms);
        self.firsts(ready, only_noack).next().is_some()
    }

    /// The first instant after now at which time alone lets another client be served.
    pub fn next_end(&mut self, now_ms: u64) -> Option<u64> {
        self.settle(now_ms);
        let since = self.ready?;
        let next = self.sides.iter().filter_map(|side| side.next(since));
        next.map(|(end, _)| end).min()
    }

    /// How many more jobs would let a client be served that may not be now: one, where none is ready.
    pub fn lacks(&self, ready: usize) -> Option<u64> {
        let more = |side: &Side| {
            side.by_least
                .range(ready as u64 + 1..)
                .next()
                .map(|it| *it.0)
        };
        let least = self.sides.iter().filter_map(more).min()?;
        Some(if ready == 0 { 1 } else { least - ready as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the contract has it, client by client.
    #[derive(Default)]
    struct Naive {
        /// Ticket, what it waits for, NOACK, when it came, since when jobs are ready as it waits.
        clients: Vec<(u64, Fill, bool, Option<u64>)>,
    }

    impl Naive {
        fn note(&mut self, ready: usize, now: u64) {
            for (.., since) in &mut self.clients {
                *since = (ready > 0).then(|| since.unwrap_or(now));
            }
        }

        fn first(&self, ready: usize, only_noack: bool, now: u64) -> Option<u64> {
            let due = self.clients.iter().filter(|(_, fill, noack, since)| {
                let over = since.is_some_and(|since| since + fill.ms <= now);
                (*noack || !only_noack) && (ready as u64 >= fill.least || over)
            });
            due.map(|it| it.0).min()
        }

        fn next_end(&self, now: u64) -> Option<u64> {
            let ends = self.clients.iter().filter_map(|it| Some(it.3? + it.1.ms));
            ends.filter(|&end| end > now).min()
        }
    }

    #[test]
    fn who_is_served_is_who_the_contract_says() {
        for seed in 1..=300_u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut random = |below: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % below
            };
            let (mut filling, mut naive) = (Filling::default(), Naive::default());
            let (mut now, mut ready, mut ticket) = (1_000, 0_usize, 0);
            for _ in 0..300 {
                match random(6) {
                    0 => now += random(4),
                    1 => ready += random(3) as usize,
                    2 => ready = ready.saturating_sub(random(6) as usize),
                    3 if !naive.clients.is_empty() => {
                        let at = random(naive.clients.len() as u64) as usize;
                        let (ticket, _, noack, _) = naive.clients.remove(at);
                        assert!(filling.remove(ticket, noack).is_some());
                    }
                    _ => {
                        ticket += 1;
                        let fill = Fill {
                            least: 2 + random(3),
                            ms: 1 + random(5),
                        };
                        let noack = random(4) == 0;
                        filling.insert(ticket, (fill, noack), now);
                        naive.clients.push((ticket, fill, noack, None));
                    }
                }
                filling.note(ready, now);
                naive.note(ready, now);
                assert_eq!(filling.len(), naive.clients.len());
                for only_noack in [false, true] {
                    let found = filling.first(ready, only_noack, now);
                    assert_eq!(found, naive.first(ready, only_noack, now), "seed {seed}");
                    let any = filling.has_any(ready, only_noack, now);
                    assert_eq!(any, found.is_some(), "seed {seed}");
                }
                // While one that may be served is not, no other matters.
                if naive.first(ready, false, now).is_none() {
                    assert_eq!(filling.next_end(now), naive.next_end(now), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn another_queue_and_a_clock_set_back_begin_anew() {
        let kind = (Fill { least: 9, ms: 10 }, false);
        let mut filling = Filling::default();
        assert!(filling.insert(1, kind, 1000) && !filling.insert(1, kind, 1000));
        filling.note(1, 1000);
        assert_eq!(filling.next_end(1000), Some(1010));
        filling.begin_anew();
        filling.note(1, 1005);
        assert_eq!(filling.next_end(1005), Some(1015));
        filling.note(1, 500);
        assert_eq!(filling.next_end(500), Some(510));
        assert_eq!(filling.first(1, false, 509), None);
        assert_eq!(filling.first(1, false, 510), Some(1));
        filling.note(0, 511);
        assert_eq!((filling.next_end(511), filling.lacks(0)), (None, Some(1)));
        assert_eq!(filling.lacks(4), Some(5));
        // Who comes while nobody else fills knows nothing of what was noted before.
        filling.note(3, 600);
        filling.remove(1, false);
        filling.insert(2, kind, 600);
        assert_eq!(filling.next_end(600), None);
    }
}
