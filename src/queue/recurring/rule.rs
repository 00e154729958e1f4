//! The rule by which a job comes again, and how far it has come.

use super::cron::Cron;
use super::cron_error::CronError;
use super::zone::{Fixed, Zone};
use crate::queue::error::QueueError;
use crate::queue::instant::{spread, INSTANT_MAX};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::rc::Rc;

/// The least interval between two occurrences, not counting jitter.
pub const EVERY_MIN_MS: u64 = 1000;
/// Bytes in the name of a zone, at most.
pub const ZONE_MAX: usize = 64;

/// Finds a zone by its name.
pub type ZoneOf = fn(&[u8]) -> Option<Rc<dyn Zone>>;

/// When occurrences come.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Pattern<'a> {
    /// At equal intervals.
    Every {
        /// From one instant to the next, not counting jitter.
        ms: u64,
    },
    /// At the times that an expression names.
    Cron {
        /// As the client sent it.
        #[serde(with = "serde_bytes", borrow)]
        text: Cow<'a, [u8]>,
        /// The zone whose clock shows these times: a name of the time zone database.
        #[serde(with = "serde_bytes", borrow)]
        zone: Cow<'a, [u8]>,
    },
}

/// The options of DQ.ADD for a rule. 0: not given.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rule<'a> {
    /// When occurrences come.
    #[serde(borrow)]
    pub pattern: Pattern<'a>,
    /// The last instant at which an occurrence may come.
    pub until: u64,
    /// How many occurrences there are in all.
    pub times: u64,
    /// How late an occurrence may be delivered.
    pub grace_ms: u64,
    /// How much later than its instant an occurrence may be due, at most.
    pub jitter_ms: u64,
    /// The TTL of each occurrence.
    pub ttl_ms: u64,
}

impl Rule<'_> {
    /// With its texts copied.
    pub fn into_owned(self) -> Rule<'static> {
        let pattern = match self.pattern {
            Pattern::Every { ms } => Pattern::Every { ms },
            Pattern::Cron { text, zone } => Pattern::Cron {
                text: text.into_owned().into(),
                zone: zone.into_owned().into(),
            },
        };
        Rule { pattern, ..self }
    }

    /// Without copying its texts.
    pub fn borrowed(&self) -> Rule<'_> {
        let pattern = match &self.pattern {
            &Pattern::Every { ms } => Pattern::Every { ms },
            Pattern::Cron { text, zone } => Pattern::Cron {
                text: Cow::Borrowed(text),
                zone: Cow::Borrowed(zone),
            },
        };
        Rule { pattern, ..*self }
    }

    /// How much later than its instant an occurrence is due: computed from that instant and the job's id, so it is the
    /// same on all servers.
    pub fn jitter_of(&self, id: &[u8], occurrence: u64) -> u64 {
        if self.jitter_ms == 0 {
            return 0;
        }
        spread(id, occurrence, self.jitter_ms)
    }

    /// When an occurrence with this due time expires: 0 is never.
    pub fn expires_after(&self, due: u64) -> u64 {
        match self.ttl_ms {
            0 => 0,
            ttl_ms => (due + ttl_ms).min(INSTANT_MAX),
        }
    }

    /// The due that the TTL of an occurrence goes on from. While the job waits for a signal its due says nothing, so it is
    /// the one that the occurrence began with.
    pub fn began(&self, occurrence: Occurrence, due: u64, expires: u64) -> u64 {
        match (due, expires) {
            (INSTANT_MAX, 0 | INSTANT_MAX) => occurrence.at,
            (INSTANT_MAX, expires) => expires.saturating_sub(self.ttl_ms),
            (due, _) => due,
        }
    }
}

/// How far a job has come with its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    /// The instant of the current occurrence.
    pub at: u64,
    /// Occurrences that have ended.
    pub runs: u64,
    /// The current occurrence has been delivered.
    pub delivered: bool,
    /// How far the rule's zone was ahead of UTC at that instant: for a server that does not know the zone.
    pub offset_s: i32,
}

/// An occurrence that is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// The instant that the rule names.
    pub occurrence: u64,
    /// That instant and its jitter.
    pub due: u64,
    /// 0 is never.
    pub expires: u64,
    /// As in [`Occurrence`].
    pub offset_s: i32,
}

/// A rule that was parsed once, for all the jobs that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The rule itself.
    pub rule: Rule<'static>,
    cron: Option<Cron>,
}

impl Compiled {
    /// An error if no job can have the rule. Only [`Cron::parse`] says what is wrong with a cron expression.
    pub fn of(rule: &Rule<'_>) -> Result<Self, QueueError> {
        const WRONG: QueueError = QueueError::Malformed("a rule that no job can have");
        let numbers = [rule.until, rule.grace_ms, rule.jitter_ms, rule.ttl_ms];
        let sound = numbers.into_iter().all(|number| number <= INSTANT_MAX);
        let cron = match &rule.pattern {
            Pattern::Every { ms } if (EVERY_MIN_MS..=INSTANT_MAX).contains(ms) => None,
            Pattern::Cron { text, zone } if (1..=ZONE_MAX).contains(&zone.len()) => {
                Some(Cron::parse(text).map_err(|_: CronError| WRONG)?)
            }
            _ => return Err(WRONG),
        };
        if !sound {
            return Err(WRONG);
        }
        Ok(Compiled {
            rule: rule.clone().into_owned(),
            cron,
        })
    }

    /// The zone that it needs, if it needs one.
    pub fn zone_name(&self) -> Option<&[u8]> {
        match &self.rule.pattern {
            Pattern::Every { .. } => None,
            Pattern::Cron { zone, .. } => Some(zone),
        }
    }

    /// The rule's zone. If `zone_of` does not know it: a clock with the offset of the current occurrence, and the
    /// zone's name.
    pub fn zone(&self, zone_of: ZoneOf, occurrence: Occurrence) -> (Rc<dyn Zone>, Option<&[u8]>) {
        let fixed = || {
            Rc::new(Fixed {
                offset_s: occurrence.offset_s,
            })
        };
        match self.zone_name() {
            None => (fixed(), None),
            Some(name) => zone_of(name).map_or_else(
                || (fixed() as Rc<dyn Zone>, Some(name)),
                |zone| (zone, None),
            ),
        }
    }

    /// The rule's first instant after now, if DELAY or AT does not give one; of EVERY it is `from_now`.
    pub fn first(&self, now_ms: u64, from_now: Option<u64>, zone: &dyn Zone) -> Option<u64> {
        match &self.cron {
            Some(cron) => cron.next_after(now_ms, zone),
            None => from_now,
        }
    }

    /// The occurrence at this instant, due later by the jitter of the job's id.
    pub fn at(&self, id: &[u8], occurrence: u64, zone: &dyn Zone) -> Next {
        let jitter = self.rule.jitter_of(id, occurrence);
        let due = (occurrence + jitter).min(INSTANT_MAX);
        self.given(occurrence, due, zone)
    }

    /// The occurrence at this instant, with a given due time.
    pub fn given(&self, occurrence: u64, due: u64, zone: &dyn Zone) -> Next {
        let offset_s = match self.cron {
            Some(_) => zone.span_at((occurrence / 1000) as i64).offset_s,
            None => 0,
        };
        Next {
            occurrence,
            due,
            expires: self.rule.expires_after(due),
            offset_s,
        }
    }

    /// The occurrence that follows if `occurrence` ends now; `None` if the rule ends with it.
    pub fn next(
        &self,
        id: &[u8],
        occurrence: Occurrence,
        now_ms: u64,
        zone: &dyn Zone,
    ) -> Option<Next> {
        let Rule { until, times, .. } = self.rule;
        if times != 0 && occurrence.runs + 1 >= times {
            return None;
        }
        let last = if until == 0 { INSTANT_MAX } else { until };
        let after = now_ms.max(occurrence.at);
        let occurrence = match (&self.rule.pattern, &self.cron) {
            (Pattern::Every { ms }, _) => {
                let steps = (after - occurrence.at) / ms + 1;
                occurrence.at.checked_add(steps.checked_mul(*ms)?)
            }
            (_, Some(cron)) => cron.next_after(after, zone),
            _ => None,
        };
        let occurrence = occurrence.filter(|&instant| instant <= last)?;
        Some(self.at(id, occurrence, zone))
    }

    /// Bytes that its allocations take, itself included.
    pub fn memory_bytes(&self) -> usize {
        let texts = match &self.rule.pattern {
            Pattern::Every { .. } => 0,
            Pattern::Cron { text, zone } => text.len() + zone.len(),
        };
        // The Arc that shares it holds two counts, too.
        size_of::<Self>() + 2 * size_of::<usize>() + texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::recurring::zone::UTC;

    fn every(ms: u64) -> Rule<'static> {
        Rule {
            pattern: Pattern::Every { ms },
            until: 0,
            times: 0,
            grace_ms: 0,
            jitter_ms: 0,
            ttl_ms: 0,
        }
    }

    fn reached(occurrence: u64) -> Occurrence {
        Occurrence {
            at: occurrence,
            runs: 0,
            delivered: false,
            offset_s: 0,
        }
    }

    fn nowhere(_: &[u8]) -> Option<Rc<dyn Zone>> {
        None
    }

    #[test]
    fn every_keeps_to_its_grid() {
        let rule = Compiled::of(&every(1000)).unwrap();
        let next = |occurrence, now| {
            rule.next(b"a", reached(occurrence), now, &UTC)
                .map(|it| it.occurrence)
        };
        assert_eq!(next(5_500, 5_600), Some(6_500));
        assert_eq!(next(5_500, 6_500), Some(7_500));
        assert_eq!(
            next(5_500, 99_999),
            Some(100_500),
            "many missed ones are one"
        );
        assert_eq!(
            next(5_500, 17),
            Some(6_500),
            "a clock that was set back repeats none"
        );
        assert_eq!(next(INSTANT_MAX, 17), None);
    }

    #[test]
    fn rules_end() {
        let with = |until, times, runs| {
            let rule = Rule {
                until,
                times,
                ..every(1000)
            };
            let occurrence = Occurrence {
                runs,
                ..reached(5_000)
            };
            Compiled::of(&rule)
                .unwrap()
                .next(b"a", occurrence, 5_100, &UTC)
                .is_some()
        };
        assert!(with(0, 0, 1_000_000));
        assert!(with(6_000, 0, 0) && !with(5_999, 0, 0));
        assert!(with(0, 3, 1) && !with(0, 3, 2) && !with(0, 1, 0));
    }

    #[test]
    fn jitter_is_of_the_id_and_the_instant() {
        let rule = Rule {
            jitter_ms: 60_000,
            ..every(1000)
        };
        assert_eq!(every(1000).jitter_of(b"a", 5), 0);
        let all: Vec<u64> = (0..2000u64)
            .map(|n| rule.jitter_of(&n.to_le_bytes(), 5_000))
            .collect();
        assert!(all.iter().all(|&ms| ms <= 60_000));
        // Spread over all of it: of twelve parts none has much more than its share.
        let parts = (0..12).map(|part| all.iter().filter(|&&ms| ms / 5_001 == part).count());
        assert!(
            parts.clone().all(|count| (100..250).contains(&count)),
            "{:?}",
            parts.collect::<Vec<_>>()
        );
        assert_ne!(rule.jitter_of(b"a", 5_000), rule.jitter_of(b"a", 6_000));
        let due = Compiled::of(&rule).unwrap().at(b"a", 5_000, &UTC).due;
        assert_eq!(due, 5_000 + rule.jitter_of(b"a", 5_000));
    }

    #[test]
    fn without_its_zone_the_last_offset_goes_on() {
        let cron = |zone: &'static [u8]| Rule {
            pattern: Pattern::Cron {
                text: b"0 12 * * *"[..].into(),
                zone: zone.into(),
            },
            ..every(1000)
        };
        let rule = Compiled::of(&cron(b"Europe/Berlin")).unwrap();
        let occurrence = Occurrence {
            offset_s: 3600,
            ..reached(0)
        };
        let (zone, unknown) = rule.zone(nowhere, occurrence);
        assert_eq!(unknown, Some(&b"Europe/Berlin"[..]));
        let next = rule.next(b"a", occurrence, 5, &*zone).unwrap();
        assert_eq!((next.occurrence, next.offset_s), (11 * 3_600_000, 3600));
        assert!(Compiled::of(&cron(b"")).is_err() && Compiled::of(&cron(&[b'a'; 65])).is_err());
        assert!(Compiled::of(&every(999)).is_err());
    }
}
