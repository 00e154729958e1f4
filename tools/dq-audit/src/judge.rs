//! The faults that were found, and what is known of the server's clock.
//!
//! An effect does not say when it happened, but some let it be computed: a lease's end less its length, the instant of
//! a KICK or of a PURGE. Between two of those the clock is only known to have advanced. So an effect that requires an
//! instant to have come claims it ([`Judge::claim`]), and the next known time decides.

use crate::rule::Rule;

/// Faults that are kept to be reported. All are counted.
const KEPT: usize = 10_000;
/// Claims that wait for the next known time.
const CLAIMS: usize = 10_000;
/// The least time between two entries of `passed`, and the most that a time without effects counts.
const STEP_MS: u64 = 1000;

/// A command's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// The index of the file.
    pub part: usize,
    /// Where it begins there, in bytes.
    pub offset: u64,
}

#[derive(Clone, Debug)]
pub struct Fault {
    pub rule: Rule,
    pub at: At,
    pub db: u32,
    pub queue: Vec<u8>,
    pub id: Vec<u8>,
    pub text: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub commands: u64,
    pub effects: u64,
    pub deliveries: u64,
    /// Effects on jobs that were added before the files begin.
    pub unknown: u64,
    /// How often the clock was seen to be set back.
    pub set_back: u64,
}

#[derive(Default)]
pub struct Judge {
    pub at: At,
    pub tally: Tally,
    /// Whether RATE and GROUPRATE are judged, too.
    pub judges_rates: bool,
    db: u32,
    queue: Vec<u8>,
    faults: Vec<Fault>,
    counts: [u64; Rule::ALL.len()],
    /// The clock had reached this unix-ms.
    known_ms: u64,
    /// How long the server is known to have run, in ms: of a time without effects only the first second counts, as the
    /// server may have stood still.
    gone_on_ms: u64,
    /// Earlier pairs of `known_ms` and `gone_on_ms`, one a second at most.
    passed: Vec<(u64, u64)>,
    claims: Vec<(u64, Fault)>,
}

impl Judge {
    /// Sets the queue of the faults that follow.
    pub fn turn_to(&mut self, db: u32, queue: &[u8]) {
        self.db = db;
        self.queue.clear();
        self.queue.extend_from_slice(queue);
    }

    pub fn fault(&mut self, rule: Rule, id: &[u8], text: impl Into<String>) {
        let fault = self.made(rule, id, text.into());
        self.add(fault);
    }

    fn made(&self, rule: Rule, id: &[u8], text: String) -> Fault {
        Fault {
            rule,
            at: self.at,
            db: self.db,
            queue: self.queue.clone(),
            id: id.to_vec(),
            text,
        }
    }

    fn add(&mut self, fault: Fault) {
        self.counts[fault.rule as usize] += 1;
        if self.faults.len() < KEPT {
            self.faults.push(fault);
        }
    }

    /// The clock showed an instant between these two.
    pub fn clock_within(&mut self, earliest_ms: u64, latest_ms: u64) {
        if latest_ms < self.known_ms {
            // The clock was set back: what was claimed since may have come before that.
            self.tally.set_back += 1;
            self.claims.clear();
            self.known_ms = earliest_ms;
            self.passed.retain(|&(known_ms, _)| known_ms < earliest_ms);
            return;
        }
        self.gone_on_ms += earliest_ms.saturating_sub(self.known_ms).min(STEP_MS);
        self.known_ms = self.known_ms.max(earliest_ms);
        let last = self.passed.last();
        if last.is_none_or(|(known_ms, _)| known_ms + STEP_MS <= self.known_ms) {
            self.passed.push((self.known_ms, self.gone_on_ms));
        }
        for (instant, mut fault) in std::mem::take(&mut self.claims) {
            if instant > latest_ms {
                let early = instant - latest_ms;
                fault.text = format!("{}, {early} ms or more before it had come", fault.text);
                self.add(fault);
            }
        }
    }

    /// An effect requires this instant to have come.
    pub fn claim(&mut self, instant: u64, rule: Rule, id: &[u8], text: &str) {
        if instant > self.known_ms && self.claims.len() < CLAIMS {
            let fault = self.made(rule, id, format!("{text} at {instant}"));
            self.claims.push((instant, fault));
        }
    }

    /// How long the server has run since it was first known that the instant was past.
    pub fn gone_on_after_ms(&self, instant: u64) -> u64 {
        let first = self
            .passed
            .partition_point(|&(known_ms, _)| known_ms <= instant);
        let first = self.passed.get(first);
        first.map_or(0, |(_, gone_on_ms)| self.gone_on_ms - gone_on_ms)
    }

    /// The least that the clock can have shown last.
    pub fn known_ms(&self) -> u64 {
        self.known_ms
    }

    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    pub fn count(&self, rule: Rule) -> u64 {
        self.counts[rule as usize]
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_decided_by_the_next_instant_that_is_known() {
        let mut judge = Judge::default();
        judge.clock_within(1000, 1000);
        judge.claim(1000, Rule::NeverEarly, b"a", "popped");
        judge.claim(1005, Rule::NeverEarly, b"b", "popped");
        judge.claim(1009, Rule::NeverEarly, b"c", "popped");
        judge.clock_within(1004, 1005);
        let ids: Vec<_> = judge.faults().iter().map(|it| it.id.clone()).collect();
        assert_eq!(ids, [b"c"]);
        assert_eq!(judge.known_ms(), 1004);
    }

    #[test]
    fn what_went_on_counts_from_when_an_instant_was_known_to_be_over() {
        let mut judge = Judge::default();
        for known in [1000, 1500, 60_000, 60_500, 64_000] {
            judge.clock_within(known, known);
        }
        assert_eq!(judge.gone_on_after_ms(2000), 1500);
        assert_eq!(judge.gone_on_after_ms(60_000), 0);
        assert_eq!(judge.gone_on_after_ms(70_000), 0);
        judge.clock_within(1700, 1700);
        assert_eq!(judge.gone_on_after_ms(2000), 0);
    }

    #[test]
    fn a_clock_that_was_set_back_decides_nothing() {
        let mut judge = Judge::default();
        judge.clock_within(1000, 1000);
        judge.claim(1200, Rule::NeverEarly, b"a", "popped");
        judge.clock_within(500, 500);
        assert_eq!((judge.total(), judge.tally.set_back), (0, 1));
        judge.claim(700, Rule::OneLease, b"a", "ended");
        judge.clock_within(600, 600);
        assert_eq!(judge.count(Rule::OneLease), 1);
    }
}
