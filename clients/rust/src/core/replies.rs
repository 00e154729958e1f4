//! What replies mean, and the ends of connections.

use super::control;
use super::idle::held_back;
use super::link::Asked;
use super::outcome::Outcome;
use super::state::{Core, Phase};
use super::trouble::{fatal, is_elsewhere, trouble_wait};
use super::{Action, Delivered, Event, Line, Name, Said, Sent, Serial};
use crate::values::{lossy, server_error};
use redis::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

impl Core {
    pub fn on(&mut self, event: Event, now: Instant) {
        match event {
            Event::Replies(line, turn, values) => {
                for value in values {
                    if self.links[line.link].state(line.name).turn == turn {
                        self.hear(line, value, now);
                    }
                }
            }
            Event::Opened(line, turn, number, server) => {
                let state = self.links[line.link].state(line.name);
                if state.turn == turn {
                    (state.number, state.server) = (number, Some(server));
                    if matches!(state.asked.front(), Some(Asked::Opening)) {
                        state.asked.pop_front();
                    }
                }
            }
            Event::Broken(line, turn, text, sent) => {
                if self.links[line.link].state(line.name).turn == turn {
                    self.broken(line, &text, sent, now);
                }
            }
            Event::Ended(all) => all.into_iter().for_each(|ends| self.ended(ends, now)),
            Event::Suspended(serial, asked) => self.suspend(serial, asked),
            Event::Progress(serial, text) => self.progress(serial, text, now),
            Event::Gone(serial) => self.lose(serial),
            Event::Unfit(error) if self.is_working() => self.fail(error, now),
            Event::Unfit(_) => {}
            Event::Stop => self.stop(now),
        }
    }

    fn hear(&mut self, line: Line, value: Value, now: Instant) {
        let Some(asked) = self.links[line.link].state(line.name).asked.pop_front() else {
            return;
        };
        match asked {
            Asked::Part => self.part_answered(&value),
            Asked::Opening => {}
            Asked::Reason(serial) => self.reason_heard(serial, value, now),
            Asked::Explained(key) => self.explained(line.link, &key, value),
            Asked::Outcome(outcome) => self.answered(line, outcome, &value, now),
            Asked::Acks(all) => self.acked(line, all, value, now),
            Asked::Fetch { claim } => self.fetched(line, claim, value, now),
            Asked::Touch { all, sent, length } => self.touched(line, all, value, sent, length, now),
            Asked::GiveBack(all) => self.given_back(line, all, &value, now),
            Asked::Progress(serial) => self.progress_heard(serial),
            Asked::Unblock => self.unblocked(line.link, &value, now),
            Asked::Listen { all, sent } => self.listened(line, all, value, sent, now),
        }
        let state = self.links[line.link].state(line.name);
        if state.asked.is_empty() && state.rests_until.is_none() {
            state.troubles = 0;
        }
    }

    /// Says why jobs that are ready do not come.
    fn explained(&mut self, link: usize, key: &[u8], reply: Value) {
        if let Value::ServerError(error) = &reply {
            if error.code() == "NOPERM" {
                self.links[link].idle.is_forbidden = true;
                self.say_once(Said::Unexplained(server_error(error)));
            }
            return;
        }
        let why = held_back(reply);
        if !why.is_empty() {
            self.links[link].idle.is_said = true;
            let queue = lossy(key.to_vec());
            self.actions
                .push_back(Action::Say(Said::Idle { queue, why }));
        }
    }

    // --- Outcomes

    fn part_answered(&mut self, reply: &Value) {
        match reply {
            Value::ServerError(error) if error.code() == "NOPERM" => {
                self.say_once(Said::Uncounted(server_error(error)));
            }
            _ => {}
        }
    }

    pub(super) fn tell(&mut self, link: usize, mut outcome: Outcome, now: Instant) {
        if let Some(held) = self.held.get_mut(&outcome.serial) {
            held.is_unanswered = true;
            let progress = &mut held.progress;
            if let Some(text) = progress.text.take().or(progress.on_its_way.take()) {
                let first = control::progress(&outcome.of, &text);
                outcome.preceded_by(first);
            }
        }
        let link = &mut self.links[link];
        link.outcomes.push_back(outcome);
        link.gathers_until.get_or_insert(now + control::GATHER_FOR);
    }

    /// Takes up to `most` outcomes that may be sent now.
    pub(super) fn take_outcomes(&mut self, link: usize, most: usize, now: Instant) -> Vec<Outcome> {
        let waiting = std::mem::take(&mut self.links[link].outcomes);
        let mut taken = Vec::with_capacity(waiting.len().min(most));
        let mut left = VecDeque::new();
        for outcome in waiting {
            if taken.len() < most && outcome.not_before.is_none_or(|at| at <= now) {
                taken.push(outcome);
            } else {
                left.push_back(outcome);
            }
        }
        let link = &mut self.links[link];
        link.gathers_until = if left.is_empty() {
            None
        } else {
            link.gathers_until
        };
        link.outcomes = left;
        taken
    }

    /// The reply to an ACK of several has one for each, or is an error for all.
    fn acked(&mut self, line: Line, all: Vec<Outcome>, reply: Value, now: Instant) {
        let turn = self.links[line.link].state(line.name).turn;
        let mut each = match reply {
            Value::Array(each) => each,
            error => vec![error; all.len()],
        }
        .into_iter();
        for outcome in all {
            if self.links[line.link].state(line.name).turn == turn {
                self.answered(line, outcome, &each.next().unwrap_or(Value::Nil), now);
            } else {
                self.links[line.link].outcomes.push_back(outcome); // closed, as the server is another now
            }
        }
    }

    fn answered(&mut self, line: Line, mut outcome: Outcome, reply: &Value, now: Instant) {
        let Value::ServerError(error) = reply else {
            if outcome.is_lost(reply) {
                self.report_lost(outcome.serial, &outcome.of);
            }
            if outcome.may_be_dead(reply) {
                self.actions
                    .push_back(Action::Died(line.link, outcome.of.clone()));
            }
            return self.heard_of(outcome.serial);
        };
        let text = server_error(error);
        let ended = fatal(&text);
        if outcome.is_refused_by(&text) && (ended.is_none() || outcome.is_wait()) {
            return self.refused(line.link, outcome, &text);
        }
        outcome.troubles += 1;
        outcome.not_before = Some(now + trouble_wait(outcome.troubles, self.rng.unit()));
        let link = &mut self.links[line.link];
        link.has_finished |= ended.is_some() && matches!(self.phase, Phase::Finishing { .. });
        link.outcomes.push_back(outcome);
        if line.name == Name::Control && is_elsewhere(&text) {
            return self.close(line, &text, now);
        }
        self.trouble(&text, now);
    }

    /// Handles an outcome that the server refuses for good: it is logged once, and sent again with less.
    fn refused(&mut self, link: usize, mut outcome: Outcome, text: &str) {
        if !outcome.is_said {
            self.actions.push_back(Action::Say(Said::Refused {
                job: outcome.of.clone(),
                error: text.to_owned(),
                is_wait: outcome.is_wait(),
            }));
        }
        outcome.is_said = true;
        if outcome.refused(text) {
            self.links[link].outcomes.push_front(outcome);
        } else {
            self.heard_of(outcome.serial);
        }
    }

    fn heard_of(&mut self, serial: Serial) {
        if let Some(held) = self.held.get_mut(&serial) {
            held.is_unanswered = false;
        }
        self.forget(serial);
    }

    pub(super) fn report_lost(&mut self, serial: Serial, of: &Arc<Delivered>) {
        self.actions.push_back(Action::Lost(serial, of.clone()));
    }

    // --- Trouble

    /// Handles a lost connection: what has no reply is sent again. An ACK is safe to send twice.
    pub(super) fn broken(&mut self, line: Line, text: &str, sent: Sent, now: Instant) {
        let jitter = self.rng.unit();
        let state = self.links[line.link].state(line.name);
        let asked = std::mem::take(&mut state.asked);
        (state.number, state.server) = (None, None);
        state.turn += 1;
        state.troubles += 1;
        let wait = trouble_wait(state.troubles, jitter);
        let patience = self.links[line.link].schedule.patience();
        let rests = match line.name {
            Name::Control => wait.min(patience), // heartbeats must not wait for long
            _ => wait,
        };
        self.links[line.link].state(line.name).rests_until = Some(now + rests);
        for each in asked.into_iter().rev() {
            match each {
                Asked::Outcome(outcome) => self.unheard(line, outcome, text, sent, now),
                Asked::Acks(all) => {
                    for outcome in all.into_iter().rev() {
                        self.unheard(line, outcome, text, sent, now);
                    }
                }
                Asked::Fetch { claim } => {
                    self.claimed -= claim;
                    self.fetch_over(line.link, false, now);
                }
                Asked::Touch { all, length, .. } => {
                    if let Some(length) = length {
                        let relets = all.iter().map(|serial| (*serial, length));
                        self.links[line.link].relets.extend(relets);
                    }
                }
                Asked::Listen { all, .. } => self.stop_listening(&all),
                Asked::GiveBack(all) => self.links[line.link].returns.extend(all),
                Asked::Progress(serial) => self.progress_again(serial, now),
                Asked::Reason(serial) => self.links[line.link].suspects.push(serial),
                Asked::Part | Asked::Unblock | Asked::Opening | Asked::Explained(_) => {}
            }
        }
        // A heartbeat at once: the server then says which jobs are still ours.
        self.links[line.link].schedule.is_asked = true;
        if !matches!(line.name, Name::Listener(_)) {
            self.trouble(text, now);
        }
    }

    fn unheard(&mut self, line: Line, mut outcome: Outcome, text: &str, sent: Sent, now: Instant) {
        outcome.was_sent |= sent != Sent::Nothing;
        let cut = (sent == Sent::Cut).then(|| outcome.broke()).flatten();
        if let Some(size) = cut {
            let why =
                format!("{size} bytes cannot be sent: they cut the connection twice ({text})");
            self.refused(line.link, outcome, &why);
        } else {
            self.links[line.link].outcomes.push_front(outcome);
        }
        self.links[line.link].gathers_until.get_or_insert(now);
    }

    /// Closes a connection on which the server replied an error; it is opened again after a while.
    pub(super) fn close(&mut self, line: Line, text: &str, now: Instant) {
        self.actions.push_back(Action::Close(line));
        self.broken(line, text, Sent::Closed, now);
    }

    pub(super) fn trouble(&mut self, text: &str, now: Instant) {
        if let (Some(ended), true) = (fatal(text), self.is_working()) {
            return self.fail(ended, now);
        }
        if self.is_working() && self.said != text {
            self.said = text.to_owned();
            self.actions
                .push_back(Action::Say(Said::Trouble(text.to_owned())));
        }
    }
}
