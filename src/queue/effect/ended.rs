//! The end of one occurrence of a recurring job.

use crate::queue::event::Event;
use crate::queue::stats::Totals;
use serde::{Deserialize, Serialize};

/// How an occurrence ended.
#[allow(
    missing_docs,
    reason = "`at` is the instant of death everywhere, `kept` whether it stays as dead"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OccurrenceCause {
    Acked,
    Popped,
    /// GRACE expired.
    Missed,
    Expired,
    /// Its TTL had expired when its lease ended.
    TimedOutExpired,
    /// Dead as its lease ended, or, with `Nacked`, by NACK. `kept` says whether it stays as a separate dead job.
    TimedOut {
        at: u64,
        kept: bool,
    },
    Nacked {
        at: u64,
        priority: i32,
        kept: bool,
    },
}

impl OccurrenceCause {
    pub(in crate::queue) fn events(self) -> &'static [Event] {
        match self {
            OccurrenceCause::Acked => &[Event::Ack],
            OccurrenceCause::Popped => &[Event::Pop],
            OccurrenceCause::Missed => &[Event::Missed],
            OccurrenceCause::Expired => &[Event::Expired],
            OccurrenceCause::TimedOutExpired => &[Event::Timeout, Event::Expired],
            OccurrenceCause::TimedOut { .. } => &[Event::Timeout, Event::Dead],
            OccurrenceCause::Nacked { .. } => &[Event::Nack, Event::Dead],
        }
    }

    pub(in crate::queue) fn count(self, totals: &mut Totals) {
        match self {
            OccurrenceCause::Acked => totals.acked += 1,
            OccurrenceCause::Popped => totals.delivered += 1,
            OccurrenceCause::Missed => totals.missed += 1,
            OccurrenceCause::Expired => totals.expired += 1,
            OccurrenceCause::TimedOutExpired => {
                totals.timed_out += 1;
                totals.expired += 1;
            }
            OccurrenceCause::TimedOut { kept, .. } => {
                totals.timed_out += 1;
                totals.died += 1;
                totals.deleted += u64::from(!kept);
            }
            OccurrenceCause::Nacked { kept, .. } => {
                totals.nacked += 1;
                totals.died += 1;
                totals.deleted += u64::from(!kept);
            }
        }
    }

    /// The instant of death, if the occurrence stays in the dead list.
    pub fn death(self) -> Option<u64> {
        match self {
            OccurrenceCause::TimedOut { at, kept } | OccurrenceCause::Nacked { at, kept, .. } => {
                kept.then_some(at)
            }
            _ => None,
        }
    }

    pub(in crate::queue) fn died(self) -> bool {
        matches!(
            self,
            OccurrenceCause::TimedOut { .. } | OccurrenceCause::Nacked { .. }
        )
    }
}
