//! How a worker stops: it fetches no more, handlers get time to end, those that do not are told, and the rest is
//! given back.

use super::link::Link;
use super::state::{Core, Phase};
use super::{Action, CancelReason, Said};
use crate::error::Error;
use std::time::{Duration, Instant};

/// After the drain: half of it for handlers that were told to end, half for the server.
const TELLING: Duration = Duration::from_secs(1);

impl Core {
    pub(super) fn stop(&mut self, now: Instant) {
        match self.phase {
            Phase::Working => self.drain(self.settings.drain, now),
            Phase::Draining { .. } => self.tell_all(now, now),
            Phase::Telling { .. } => {
                self.phase = Phase::Telling {
                    until: now,
                    last: now,
                }
            }
            Phase::Finishing { by, .. } => self.phase = Phase::Finishing { by, last: by },
            _ => {}
        }
    }

    /// Ends a worker that cannot run as it is configured: what its handlers do could not be acknowledged.
    pub(super) fn fail(&mut self, error: Error, now: Instant) {
        self.error = Some(error);
        self.drain(Duration::ZERO, now);
    }

    fn drain(&mut self, drain: Duration, now: Instant) {
        self.phase = Phase::Draining { until: now + drain };
        if self.at_work > 0 && !drain.is_zero() {
            self.actions
                .push_back(Action::Say(Said::Stopping { jobs: self.at_work }));
        }
        let doubtful: Vec<_> = self
            .links
            .iter_mut()
            .flat_map(|link| std::mem::take(&mut link.doubtful))
            .collect();
        for serial in std::mem::take(&mut self.backlog)
            .into_iter()
            .chain(doubtful)
        {
            self.give_back(serial);
        }
        self.go_on_stopping(now);
    }

    fn tell_all(&mut self, now: Instant, last: Instant) {
        for serial in self.chosen(|held| held.is_open) {
            self.tell_job(serial, CancelReason::Stopping);
        }
        self.phase = Phase::Telling {
            until: now + TELLING / 2,
            last,
        };
    }

    pub(super) fn go_on_stopping(&mut self, now: Instant) {
        match self.phase {
            Phase::Working if self.settings.is_drained && self.is_done() => {
                let by = now + TELLING;
                self.phase = Phase::Finishing { by, last: by };
            }
            Phase::Draining { until } if self.at_work == 0 || until <= now => {
                self.tell_all(now, until)
            }
            Phase::Telling { until, last } if self.at_work == 0 || until <= now => {
                for serial in self.chosen(|held| held.is_open) {
                    self.give_back(serial);
                }
                self.phase = Phase::Finishing {
                    by: now + TELLING / 2,
                    last,
                };
                for link in 0..self.links.len() {
                    self.control(link, now);
                }
            }
            Phase::Finishing { by, last }
                if self.has_finished() || by <= now && (last <= now || !self.is_owed()) =>
            {
                self.phase = Phase::Finished;
                for link in 0..self.links.len() {
                    if !self.links[link].has_finished {
                        self.last_words(link);
                    }
                }
                self.actions.push_back(Action::Say(Said::Stopped {
                    gave_back: self.gave_back,
                }));
                let result = self.error.take().map_or(Ok(()), Err);
                self.actions.push_back(Action::Finish(result));
            }
            _ => {}
        }
    }

    /// Whether the server has answered how all deliveries ended.
    pub(super) fn has_told_all(&self) -> bool {
        self.links.iter().all(Link::has_told_all)
    }

    fn has_finished(&self) -> bool {
        let mut links = self.links.iter();
        links.all(|link| link.has_finished || link.has_told_all() && !link.waiting.is_fetching())
    }

    /// Whether outcomes have no answer, or the server says that it holds a fetch back.
    fn is_owed(&self) -> bool {
        self.links.iter().any(|link| {
            let answers = link.control.asked.is_empty() && link.control.troubles == 0;
            let is_held = link.waiting.is_fetching() && link.waiting.number.is_some();
            !link.has_finished && (!link.has_told_all() || answers && is_held && link.is_recallable)
        })
    }

    /// For a drained worker: nothing is ready, and nothing is under way.
    fn is_done(&self) -> bool {
        self.at_work == 0
            && self.backlog.is_empty()
            && self.links.iter().all(|link| link.is_empty)
            && self.has_told_all()
    }

    pub(super) fn phase_wakes_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Draining { until } | Phase::Telling { until, .. } => Some(until),
            Phase::Finishing { by, last } => Some(if self.awake < by { by } else { last }),
            _ => None,
        }
    }
}
