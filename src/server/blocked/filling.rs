//! The clients of one key that wait for a batch (FILL): which of them may be served, and when time alone lets one be.
//!
//! Such a client may be served once so many jobs are ready, or a while after the first moment of its wait at which any was.
//! Since when jobs are ready is the same for all of them, so it is kept once; each has when it came. Clients that ask for
//! the same are then alike, and of these the first in line comes first in every respect: one look asks one of each kind.

use std::collections::BTreeMap;

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// The clients that ask for the same, by their tickets, each with the instant at which it came. NOACK is part of it.
type Kinds = BTreeMap<(Fill, bool), BTreeMap<u64, u64>>;

#[derive(Debug, Default)]
pub struct Filling {
    kinds: Kinds,
    len: usize,
    /// Since when jobs are ready.
    ready: Option<u64>,
}

impl Filling {
    pub fn len(&self) -> usize {
        self.len
    }

    /// False if the client is there already.
    pub fn insert(&mut self, ticket: u64, kind: (Fill, bool), came: u64) -> bool {
        let is_new = self
            .kinds
            .entry(kind)
            .or_default()
            .insert(ticket, came)
            .is_none();
        self.len += usize::from(is_new);
        is_new
    }

    /// Returns when the client came.
    pub fn remove(&mut self, ticket: u64, kind: (Fill, bool)) -> Option<u64> {
        let clients = self.kinds.get_mut(&kind)?;
        let came = clients.remove(&ticket)?;
        self.len -= 1;
        if clients.is_empty() {
            self.kinds.remove(&kind);
        }
        if self.len == 0 {
            // From now on nobody notes when none is ready.
            self.begin_anew();
        }
        Some(came)
    }

    /// Another queue is under the name, or none: counting begins anew.
    pub fn begin_anew(&mut self) {
        self.ready = None;
    }

    /// Notes how many jobs are ready now. If none is, counting begins anew.
    pub fn note(&mut self, ready: usize, now_ms: u64) {
        // The clock may have been set back.
        let since = self.ready.map_or(now_ms, |since| since.min(now_ms));
        self.ready = (ready > 0).then_some(since);
    }

    /// When time alone lets the first client of each kind be served, if jobs stay ready.
    fn ends(&self, now_ms: u64) -> impl Iterator<Item = (&(Fill, bool), u64, Option<u64>)> {
        self.kinds.iter().filter_map(move |(kind, clients)| {
            let (&ticket, &came) = clients.first_key_value()?;
            // One that seems to come later came before the clock was set back.
            let came = if came > now_ms + 1 { 0 } else { came };
            let end = |since: u64| came.max(since).saturating_add(kind.0.ms);
            Some((kind, ticket, self.ready.map(end)))
        })
    }

    /// The first in line of those that may be served.
    pub fn first(&self, ready: usize, only_noack: bool, now_ms: u64) -> Option<u64> {
        let due = self.ends(now_ms).filter(|&(&(fill, noack), _, end)| {
            let is_full = ready as u64 >= fill.least;
            (noack || !only_noack) && (is_full || end.is_some_and(|end| end <= now_ms))
        });
        due.map(|(_, ticket, _)| ticket).min()
    }

    /// The first instant after now at which time alone lets another client be served.
    pub fn next_end(&self, now_ms: u64) -> Option<u64> {
        let ends = self.ends(now_ms).filter_map(|(_, _, end)| end);
        ends.filter(|&end| end > now_ms).min()
    }

    /// How many more jobs would let a client be served that may not be now: one, where none is ready.
    pub fn lacks(&self, ready: usize) -> Option<u64> {
        let lacks = self.kinds.keys().map(|(fill, _)| match ready {
            0 => 1,
            _ => fill.least.saturating_sub(ready as u64),
        });
        lacks.filter(|&it| it > 0).min()
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
                        let (ticket, fill, noack, _) = naive.clients.remove(at);
                        assert!(filling.remove(ticket, (fill, noack)).is_some());
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
        filling.remove(1, kind);
        filling.insert(2, kind, 600);
        assert_eq!(filling.next_end(600), None);
    }
}
