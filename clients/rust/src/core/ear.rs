//! The ears of a link: for each key, a `DQ.BTOUCH` on a connection of its own, which notices lost jobs at once. It
//! covers jobs that have been in hand for a while, so short jobs cost nothing.

use super::link::Asked;
use super::outcome::ids;
use super::state::{Core, SLACK};
use super::{Action, Line, Name, Said, Serial};
use crate::values::{seconds, server_error};
use redis::{cmd, Value};
use std::time::{Duration, Instant};

/// The age from which an ear covers a job.
pub(super) const OLD: Duration = Duration::from_millis(20);
impl Core {
    pub(super) fn listen(&mut self, link: usize, now: Instant) {
        if self.settings.is_drained || self.links[link].schedule.ear.is_none_or(|at| now < at) {
            return;
        }
        self.links[link].schedule.ear = None;
        for at in 0..self.links[link].ears.len() {
            self.listen_by(link, at, now);
        }
    }

    fn listen_by(&mut self, link: usize, at: usize, now: Instant) {
        let key = self.links[link].fetches.members[at].key.clone();
        if self.links[link].ears[at].is_deaf {
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
            self.look_at_ears(link, next);
        }
        if old.iter().all(|serial| self.held[serial].is_heard_of) {
            return;
        }
        let ear = &mut self.links[link].ears[at];
        if !ear.state.asked.is_empty() {
            let again = ear.last.map_or(now, |last| last + OLD);
            ear.unblocks_at.get_or_insert(again.max(now));
        } else if ear.state.is_free(now) {
            self.ask_ear(link, at, old, now);
        } else if let Some(until) = ear.state.rests_until {
            self.look_at_ears(link, until);
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
        let ear = &mut self.links[link].ears[at];
        ear.state.asked.push_back(Asked::Listen { all, sent: now });
        ear.state.rests_until = None;
        ear.unblocks_at = None;
        let (line, turn) = (
            Line {
                link,
                name: Name::Ear(at),
            },
            ear.state.turn,
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

    fn look_at_ears(&mut self, link: usize, at: Instant) {
        let ear = &mut self.links[link].schedule.ear;
        *ear = Some(ear.map_or(at, |known| known.min(at)));
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
        self.look_at_ears(line.link, now);
        let answers = match reply {
            Value::Array(answers) => answers,
            Value::ServerError(error) => {
                let text = server_error(&error);
                if !text.starts_with("UNBLOCKED") {
                    if let (Name::Ear(at), true) = (
                        line.name,
                        text.starts_with("NOPERM") || text.starts_with("ERR "),
                    ) {
                        self.links[line.link].ears[at].is_deaf = true;
                        self.actions
                            .push_back(Action::Say(Said::Deaf(text.clone())));
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
            .ear
            .filter(|_| !self.settings.is_drained && !link.ears.is_empty())
    }
}
