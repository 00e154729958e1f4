//! A job at its last allowed attempt whose last lease ended without an answer may have killed its worker. It runs with
//! nothing else in hand, so that it takes no other job along.

use super::held::Held;
use super::link::{Asked, Link};
use super::outcome::Outcome;
use super::settings::Shape;
use super::state::Core;
use super::{Action, Delivered, Line, Said, Serial};
use crate::values::{self, server_error};
use redis::{cmd, Cmd, Value};
use std::time::Instant;

const LEASE_ENDED: &[u8] = b"lease ended";

/// The least of the limits that are said; 0: none is. Deliveries to workers that did not know the job's kind are no attempts
/// of its handler.
pub(crate) fn limit(of: &Delivered, of_handler: u32) -> u32 {
    let of_handler = match of_handler {
        0 => 0,
        attempts => attempts.saturating_add(of.unknown()),
    };
    let said = [of.terms.max_attempts, of_handler].into_iter();
    said.filter(|limit| *limit > 0).min().unwrap_or(0)
}

impl Shape {
    pub(super) fn limit(&self, of: &Delivered) -> u32 {
        limit(of, self.attempts)
    }
}

impl Core {
    /// Asks why the last delivery ended, before the job begins.
    pub(super) fn suspect(&mut self, serial: Serial) {
        self.suspects += 1;
        let link = self.held[&serial].link;
        self.links[link].suspects.push(serial);
    }

    pub(super) fn ask_reasons(&mut self, link: usize, into: &mut Vec<Cmd>) {
        for serial in std::mem::take(&mut self.links[link].suspects) {
            let Some(held) = self.held.get(&serial) else {
                self.suspects -= 1; // it was lost
                continue;
            };
            let mut get = cmd("DQ.GET");
            get.arg(&*held.of.job.key).arg(&*held.of.job.id);
            get.arg("PREFIX").arg(0);
            into.push(get);
            let asked = &mut self.links[link].control.asked;
            asked.push_back(Asked::Reason(serial));
        }
    }

    pub(super) fn reason_heard(&mut self, serial: Serial, reply: Value, now: Instant) {
        self.suspects -= 1;
        let may_kill = match reply {
            Value::ServerError(error) if error.code() == "NOPERM" => {
                self.say_once(Said::NoReasons(server_error(&error)));
                false
            }
            Value::ServerError(_) => true,
            fields => {
                let reason = values::map(fields)
                    .into_iter()
                    .find(|(name, _)| name == "reason");
                reason
                    .and_then(|(_, value)| values::bytes(value))
                    .as_deref()
                    == Some(LEASE_ENDED)
            }
        };
        if !self.held.get(&serial).is_some_and(|held| held.is_open) {
            return;
        }
        if !self.is_working() {
            self.give_back(serial);
        } else if !may_kill {
            self.backlog.push_back(serial);
        } else if self.in_hand() == 1 && self.claimed == 0 {
            self.alone = Some(serial);
        } else {
            self.isolate(serial, now);
        }
    }

    /// How many jobs would be lost if the worker ended now.
    pub(super) fn in_hand(&self) -> usize {
        let is_in_hand = |held: &&Held| held.is_open || held.is_running;
        self.held.values().filter(is_in_hand).count()
    }

    /// Gives back a job that is to run alone, until nothing else is in hand.
    fn isolate(&mut self, serial: Serial, now: Instant) {
        match self.isolation.want(now) {
            Some(wait) => {
                let outcome = Outcome::returned(serial, &self.held[&serial].of, wait);
                self.close_with(serial, outcome, now);
            }
            None => self.give_back(serial),
        }
        self.returning.push(serial);
    }

    /// Whether no job may begin, as it could take along one that is to run alone.
    pub(super) fn is_held(&mut self) -> bool {
        let held = &self.held;
        self.returning.retain(|serial| held.contains_key(serial));
        self.suspects > 0 || !self.returning.is_empty()
    }

    /// Starts the job that runs alone, as soon as the server has been told all ends.
    pub(super) fn start_alone(&mut self, now: Instant) {
        let Some(serial) = self.alone else { return };
        let (is_open, is_running) = match self.held.get(&serial) {
            Some(held) => (held.is_open, held.is_running),
            None => (false, false),
        };
        // A delivery that went back at once is not held, but reserved until the server has answered that.
        if is_running || is_open && !self.has_told_all() {
            return;
        }
        let handler = self.held.get(&serial).and_then(|held| held.handler);
        match handler {
            Some(handler) if is_open && self.is_working() && self.begin(serial, now) => {
                let held = &self.held[&serial];
                let jobs = vec![(serial, held.link, held.of.clone())];
                self.at_work += 1;
                self.actions.push_back(Action::Start { handler, jobs });
            }
            _ => self.alone = None,
        }
    }

    pub(super) fn say_once(&mut self, said: Said) {
        let kind = std::mem::discriminant(&said);
        if !self.said_once.contains(&kind) {
            self.said_once.push(kind);
            self.actions.push_back(Action::Say(said));
        }
    }

    // --- Ending waits

    /// Whether a wait on this link is to be ended now.
    pub(super) fn wants_unblock(&self, link: usize, now: Instant) -> bool {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let link = &self.links[link];
        link.waiting.is_fetching() && (link.is_recalled || self.withdraws(link, now))
            || link
                .listeners
                .iter()
                .any(|listener| is_due(listener.unblocks_at))
    }

    /// Whether the fetch that waits is to be ended, as the worker stops: now, or again.
    fn withdraws(&self, link: &Link, now: Instant) -> bool {
        !self.is_working() && link.unblocks_at.is_none_or(|at| at <= now)
    }

    pub(super) fn unblock(&mut self, link: usize, now: Instant, into: &mut Vec<Cmd>) {
        let withdraws = self.withdraws(&self.links[link], now);
        let of = &mut self.links[link];
        let is_recalled = std::mem::take(&mut of.is_recalled);
        if of.waiting.is_fetching() && (is_recalled || withdraws) {
            of.unblocks_at = Some(now + super::control::UNBLOCK_AGAIN);
            self.end_wait(
                Line {
                    link,
                    name: super::Name::Waiting,
                },
                now,
                into,
            );
        }
        for at in 0..self.links[link].listeners.len() {
            let of = &mut self.links[link];
            if of.listeners[at].takes_unblock(now) && of.is_recallable {
                self.end_wait(
                    Line {
                        link,
                        name: super::Name::Listener(at),
                    },
                    now,
                    into,
                );
            }
        }
    }

    /// Ends what waits on a connection by `DQ.UNBLOCK`, on the server that numbered it. Elsewhere the number may be
    /// another client's: the connection is closed instead, and so it is if it has no number and the worker stops.
    fn end_wait(&mut self, line: Line, now: Instant, into: &mut Vec<Cmd>) {
        let state = self.links[line.link].state(line.name);
        let (number, server) = (state.number, state.server.clone());
        let control = &mut self.links[line.link].control;
        match number {
            Some(number) if control.server == server => {
                let mut unblock = cmd("DQ.UNBLOCK");
                unblock.arg(number);
                into.push(unblock);
                control.asked.push_back(Asked::Unblock);
            }
            None if self.is_working() => {}
            _ => self.close(line, "withdrawn", now),
        }
    }

    /// If `DQ.UNBLOCK` is refused, the connection is closed instead when the worker stops.
    pub(super) fn unblocked(&mut self, link: usize, reply: &Value, now: Instant) {
        let Value::ServerError(error) = reply else {
            return;
        };
        if error.code() == "NOPERM" {
            self.links[link].is_recallable = false;
            self.say_once(Said::NoUnblock(server_error(error)));
        }
        if !self.is_working() && self.links[link].waiting.is_fetching() {
            self.close(
                Line {
                    link,
                    name: super::Name::Waiting,
                },
                "withdrawn",
                now,
            );
        }
    }
}
