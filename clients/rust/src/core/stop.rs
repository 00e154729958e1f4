//! How a worker stops: it fetches no more, handlers get time to end, those that do not are told, and the rest is
//! given back.

use super::state::Core;
use super::{Action, Said, Why};
use crate::error::Error;
use std::time::{Duration, Instant};

/// After the drain: half of it for handlers that were told to end, half for the server.
const TELLING: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) enum Phase {
    Working,
    Draining { until: Instant },
    Telling { until: Instant },
    Finishing { by: Instant },
    Finished,
}

impl Core {
    pub(super) fn stop(&mut self, now: Instant) {
        match self.phase {
            Phase::Working => self.drain(self.settings.drain, now),
            Phase::Draining { .. } => self.tell_all(now),
            Phase::Telling { .. } => self.phase = Phase::Telling { until: now },
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

    fn tell_all(&mut self, now: Instant) {
        for serial in self.chosen(|held| held.is_open) {
            self.tell_job(serial, Why::Stopping);
        }
        self.phase = Phase::Telling {
            until: now + TELLING / 2,
        };
    }

    pub(super) fn go_on_stopping(&mut self, now: Instant) {
        match self.phase {
            Phase::Working if self.settings.is_drained && self.is_done() => {
                self.phase = Phase::Finishing { by: now + TELLING };
            }
            Phase::Draining { until } if self.at_work == 0 || until <= now => self.tell_all(now),
            Phase::Telling { until } if self.at_work == 0 || until <= now => {
                for serial in self.chosen(|held| held.is_open) {
                    self.give_back(serial);
                }
                self.phase = Phase::Finishing {
                    by: now + TELLING / 2,
                };
                for link in 0..self.links.len() {
                    self.control(link, now);
                }
            }
            Phase::Finishing { by } if by <= now || self.has_told_all() => {
                self.phase = Phase::Finished;
                self.actions.push_back(Action::Say(Said::Stopped {
                    gave_back: self.gave_back,
                }));
                let result = self.error.take().map_or(Ok(()), Err);
                self.actions.push_back(Action::Finish(result));
            }
            _ => {}
        }
    }

    fn has_told_all(&self) -> bool {
        let mut links = self.links.iter();
        links.all(|link| link.has_finished || link.has_told_all() && !link.waiting.is_fetching())
    }

    /// For a drained worker: nothing is ready, and nothing is under way.
    fn is_done(&self) -> bool {
        let mut links = self.links.iter();
        self.at_work == 0
            && self.backlog.is_empty()
            && links.all(|link| link.is_empty && link.has_told_all())
    }

    pub(super) fn phase_wakes_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Draining { until } | Phase::Telling { until } => Some(until),
            Phase::Finishing { by } => Some(by),
            _ => None,
        }
    }
}
