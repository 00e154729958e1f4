//! Leases: when they are renewed, and when they expire by this program's own clock.

use super::link::{Asked, SHORTEST_BEAT};
use super::state::Core;
use super::{Action, CancelReason, Line, Serial};
use crate::values::server_error;
use redis::Value;
use std::time::{Duration, Instant};

fn earliest(one: Option<Instant>, other: Instant) -> Option<Instant> {
    Some(one.map_or(other, |one| one.min(other)))
}

impl Core {
    /// Records that a delivery's lease began at `since`.
    pub(super) fn lasts(&mut self, serial: Serial, since: Instant) {
        if self.settings.is_drained {
            return; // the server's clock may stand still
        }
        let Some(held) = self.held.get_mut(&serial) else {
            return;
        };
        let until = since + held.lease;
        held.until = Some(held.until.map_or(until, |known| known.max(until)));
        let (lease, link) = (held.lease, held.link);
        let schedule = &mut self.links[link].schedule;
        schedule.ends = earliest(schedule.ends, until);
        schedule.shortest = Some(
            schedule
                .shortest
                .map_or(lease, |shortest| shortest.min(lease)),
        );
        schedule.beat = earliest(schedule.beat, since + (lease / 3).max(SHORTEST_BEAT));
    }

    /// The deliveries whose leases are to be renewed now, if it is time; among them those whose outcomes are
    /// unanswered.
    pub(super) fn due_for_beat(&mut self, link: usize, now: Instant) -> Vec<Serial> {
        let schedule = &self.links[link].schedule;
        if !schedule.is_asked && schedule.beat.is_none_or(|beat| now < beat) {
            return Vec::new();
        }
        let all = self.chosen(|held| held.link == link && (held.is_open || held.is_unanswered));
        let shortest = all.iter().map(|serial| self.held[serial].lease).min();
        let schedule = &mut self.links[link].schedule;
        (schedule.is_asked, schedule.shortest) = (false, shortest);
        schedule.beat = shortest.map(|shortest| now + (shortest / 3).max(SHORTEST_BEAT));
        all
    }

    pub(super) fn touched(
        &mut self,
        line: Line,
        all: Vec<Serial>,
        reply: Value,
        sent: Instant,
        length: Option<Duration>,
        now: Instant,
    ) {
        let answers = match reply {
            Value::Array(answers) => answers,
            Value::ServerError(error) => {
                let state = self.links[line.link].state(line.name);
                state.asked.push_front(Asked::Touch { all, sent, length });
                return self.close(line, &server_error(&error), now);
            }
            _ => Vec::new(),
        };
        self.heard = Some(now);
        for (at, serial) in all.into_iter().enumerate() {
            let is_ours = matches!(answers.get(at), Some(Value::Int(_)));
            let Some(held) = self.held.get_mut(&serial) else {
                continue;
            };
            if !is_ours {
                self.lose(serial);
            } else if held.is_open {
                if let Some(length) = length {
                    (held.lease, held.until) = (length, None);
                }
                self.lasts(serial, sent);
            }
        }
        self.resolve_doubts(line.link);
    }

    /// Lets doubtful deliveries start that the server has confirmed.
    fn resolve_doubts(&mut self, link: usize) {
        for serial in std::mem::take(&mut self.links[link].doubtful) {
            if self.held.get(&serial).is_some_and(|held| held.is_open) {
                self.backlog.push_back(serial);
            } else {
                self.forget(serial);
            }
        }
    }

    /// Handles a lost delivery: another worker may have the job. Its handler and the hooks are told.
    pub(super) fn lose(&mut self, serial: Serial) {
        let Some(held) = self.held.get_mut(&serial) else {
            return;
        };
        if !held.is_open {
            return;
        }
        held.is_open = false;
        self.has_lost_backlog |= !held.is_running;
        let of = held.of.clone();
        self.tell_job(serial, CancelReason::Lost);
        self.report_lost(serial, &of);
        self.forget(serial);
    }

    pub(super) fn tell_job(&mut self, serial: Serial, why: CancelReason) {
        let Some(held) = self.held.get_mut(&serial) else {
            return;
        };
        if held.told.is_none() {
            held.told = Some(why);
            if held.is_running {
                self.actions.push_back(Action::Tell(serial, why));
            }
        }
    }

    /// Tells the handlers whose leases have expired, even if the server cannot be reached.
    pub(super) fn expire(&mut self, now: Instant) {
        for link in 0..self.links.len() {
            if self.links[link].schedule.ends.is_none_or(|ends| now < ends) {
                continue;
            }
            for serial in self.open_of(link) {
                if self.is_over(serial, now) {
                    self.lose(serial);
                }
            }
            let ends = self
                .held
                .values()
                .filter(|held| held.link == link && held.is_open)
                .filter_map(|held| held.until);
            let next = ends.min();
            self.links[link].schedule.ends = next;
        }
    }

    pub(super) fn is_over(&self, serial: Serial, now: Instant) -> bool {
        self.held
            .get(&serial)
            .and_then(|held| held.until)
            .is_some_and(|until| until <= now)
    }

    /// Fails the jobs of handlers whose timeout is over; the handlers' places stay taken until they end.
    pub(super) fn time_out(&mut self, now: Instant) {
        if self.next_limit.is_none_or(|next| now < next) {
            return;
        }
        for serial in
            self.chosen(|held| held.is_open && held.limit.is_some_and(|limit| limit <= now))
        {
            let held = &self.held[&serial];
            let limit = held
                .handler
                .and_then(|handler| self.settings.shapes[handler].timeout);
            let reason = format!(
                "timeout after {} s",
                limit.unwrap_or_default().as_secs_f64()
            );
            self.settle(serial, super::End::Failed { reason, wait: None }, now);
            self.tell_job(serial, CancelReason::Timeout);
        }
        self.next_limit = self
            .held
            .values()
            .filter(|held| held.is_open)
            .filter_map(|held| held.limit)
            .min();
    }
}
