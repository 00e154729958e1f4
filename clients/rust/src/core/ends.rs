//! How attempts end.

use super::outcome::Outcome;
use super::settings::Shape;
use super::state::Core;
use super::{CancelReason, End, Serial, Suspension};
use redis::Cmd;
use std::time::Instant;

impl Core {
    pub(super) fn ended(&mut self, ends: Vec<(Serial, End)>, now: Instant) {
        self.at_work -= 1;
        for link in &mut self.links {
            link.is_empty = false;
        }
        for (serial, end) in ends {
            let Some(held) = self.held.get_mut(&serial) else {
                continue;
            };
            held.is_running = false;
            let was_told = held.told == Some(CancelReason::Stopping);
            self.running.end(self.links[held.link].place, &held.of.job);
            let end = match end {
                // Whatever the error: the handler was told to end.
                End::Failed { wait: None, .. } if was_told => End::GivenBack,
                end => end,
            };
            self.settle(serial, end, now);
            self.leave(serial);
            self.forget(serial);
        }
    }

    /// Ends an open delivery, as `end` says, or, if its handler suspended it, as the handler asked.
    pub(super) fn settle(&mut self, serial: Serial, end: End, now: Instant) {
        let Some(held) = self.held.get_mut(&serial) else {
            return;
        };
        let none = Shape::default();
        let shape = held
            .handler
            .map_or(&none, |handler| &self.settings.shapes[handler]);
        let outcome = match held.suspension.take() {
            Some(asked) => Outcome::suspended(serial, &held.of, shape, asked),
            None => Outcome::ended(serial, &held.of, shape, end),
        };
        self.close_with(serial, outcome, now);
    }

    pub(super) fn close_with(&mut self, serial: Serial, outcome: Outcome, now: Instant) {
        let Some(held) = self.held.get_mut(&serial) else {
            return;
        };
        if !held.is_open {
            return;
        }
        held.is_open = false;
        let link = held.link;
        if !held.is_running {
            self.leave(serial);
        }
        self.tell(link, outcome, now);
    }

    /// Suspends a job. Its outcome is sent when the handler has ended.
    pub(super) fn suspend(&mut self, serial: Serial, asked: Suspension) {
        if let Some(held) = self.held.get_mut(&serial) {
            held.suspension = Some(asked);
        }
    }
}

/// One ACK for all of these, which are plain and of one queue.
pub(super) fn ack_all(all: &[Outcome]) -> Option<Cmd> {
    let key = &all.first()?.of.job.key;
    let ids = |outcome: &Outcome| outcome.of.job.id.len() + outcome.of.token.len();
    let bytes = "DQ.ACKWITHTOKENSIDS".len() + key.len() + 8 + all.iter().map(ids).sum::<usize>();
    let mut ack = Cmd::with_capacity(5 + 2 * all.len(), bytes);
    ack.arg("DQ.ACK").arg(&**key).arg("WITHTOKENS");
    ack.arg("IDS").arg(all.len());
    for Outcome { of, .. } in all {
        ack.arg(&*of.job.id).arg(&of.token);
    }
    Some(ack)
}
