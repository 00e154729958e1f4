//! The listeners of a link: for each key, a `DQ.BTOUCH` on a connection of its own, which notices lost jobs at once. It
//! covers jobs that have been in hand for a while, so short jobs cost nothing.

use super::link::Asked;
use super::outcome::ids;
use super::state::{Core, SLACK};
use super::{Action, Line, Name, Said, Serial};
use crate::values::{seconds, server_error};
use redis::{cmd, Value};
use std::time::{Duration, Instant};

/// The age from which a listener covers a job.
pub(super) const OLD: Duration = Duration::from_millis(20);
impl Core {
    pub(super) fn listen(&mut self, link: usize, now: Instant) {
        if self.settings.is_drained || self.links[link].schedule.listener.is_none_or(|at| now < at)
        {
            return;
        }
        self.links[link].schedule.listener = None;
        for at in 0..self.links[link].listeners.len() {
            self.listen_by(link, at, now);
        }
    }

    fn listen_by(&mut self, link: usize, at: usize, now: Instant) {
        let key = self.links[link].fetches.members[at].key.clone();
        if self.links[link].listeners[at].is_off {
            return;
        }
        let all = self.chosen(|held| held.link == link && held.is_open && held.of.job.key == key);
        let (old, young): (Vec<Serial>, Vec<Serial>) = all
            .into_iter()
            .partition(|serial| self.held[serial].since + OLD <= now);
        if let Some(next) = young
            .iter()
            .map(|serial| self.held[serial].since + OLD)
            .min()
        {
            self.check_listeners_at(link, next);
        }
        if old.iter().all(|serial| self.held[serial].is_heard_of) {
            return;
        }
        let listener = &mut self.links[link].listeners[at];
        if !listener.state.asked.is_empty() {
            let again = listener.last.map_or(now, |last| last + OLD);
            listener.unblocks_at.get_or_insert(again.max(now));
        } else if listener.state.is_free(now) {
            self.ask_ear(link, at, old, now);
        } else if let Some(until) = listener.state.rests_until {
            self.check_listeners_at(link, until);
        }
    }

    fn ask_ear(&mut self, link: usize, at: usize, all: Vec<Serial>, now: Instant) {
        let of: Vec<_> = all
            .iter()
            .map(|serial| self.held[serial].of.clone())
            .collect();
        let wait = self.links[link].schedule.interval();
        let mut words = cmd("DQ.BTOUCH");
        words
            .arg(&*self.links[link].fetches.members[at].key)
            .arg(seconds(wait));
        ids(&mut words, &of);
        for serial in &all {
            self.held
                .entry(*serial)
                .and_modify(|held| held.is_heard_of = true);
        }
        let listener = &mut self.links[link].listeners[at];
        listener
            .state
            .asked
            .push_back(Asked::Listen { all, sent: now });
        listener.state.rests_until = None;
        listener.unblocks_at = None;
        let (line, turn) = (
            Line {
                link,
                name: Name::Listener(at),
            },
            listener.state.turn,
        );
        let within = wait + SLACK;
        self.actions.push_back(Action::Send {
            line,
            turn,
            commands: Vec::new(),
            last: Some(words),
            within,
        });
    }

    fn check_listeners_at(&mut self, link: usize, at: Instant) {
        let listener = &mut self.links[link].schedule.listener;
        *listener = Some(listener.map_or(at, |known| known.min(at)));
    }

    pub(super) fn listened(
        &mut self,
        line: Line,
        all: Vec<Serial>,
        reply: Value,
        sent: Instant,
        now: Instant,
    ) {
        self.stop_listening(&all);
        self.check_listeners_at(line.link, now);
        let answers = match reply {
            Value::Array(answers) => answers,
            Value::ServerError(error) => {
                let text = server_error(&error);
                if !text.starts_with("UNBLOCKED") {
                    if let (Name::Listener(at), true) = (
                        line.name,
                        text.starts_with("NOPERM") || text.starts_with("ERR "),
                    ) {
                        self.links[line.link].listeners[at].is_off = true;
                        self.actions
                            .push_back(Action::Say(Said::Unheard(text.clone())));
                    }
                    self.close(line, &text, now);
                }
                return;
            }
            _ => return,
        };
        for (serial, answer) in all.into_iter().zip(answers) {
            match answer {
                Value::Nil => self.lose(serial),
                _ => self.lasts(serial, sent),
            }
        }
    }

    pub(super) fn stop_listening(&mut self, all: &[Serial]) {
        for serial in all {
            self.held
                .entry(*serial)
                .and_modify(|held| held.is_heard_of = false);
        }
    }

    pub(super) fn ears_wake_at(&self, link: usize) -> Option<Instant> {
        let link = &self.links[link];
        link.schedule
            .listener
            .filter(|_| !self.settings.is_drained && !link.listeners.is_empty())
    }
}
