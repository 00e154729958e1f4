//! What the control connection of a link sends. Heartbeats go first, so that no command that the server refuses keeps
//! leases from being renewed.

use super::link::{Asked, Link};
use super::outcome::{for_all, parting, Outcome};
use super::state::Core;
use super::{Action, Delivered, Line, Name, Serial};
use crate::values::ms;
use redis::{cmd, Cmd, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long outcomes wait, so that a fetch may take them along.
pub(super) const GATHER_FOR: Duration = Duration::from_millis(1);
const GATHER_UP_TO: usize = 100;
/// Outcomes in one write, after which a heartbeat may be due.
const TELL_AT_ONCE: usize = 500;
pub(super) const UNBLOCK_AGAIN: Duration = Duration::from_millis(50);
/// How much a worker that stops writes at last to a server that does not answer.
const LAST_BYTES: usize = 1 << 20;
const PROGRESS_EACH: Duration = Duration::from_secs(1);

pub(super) fn progress(of: &Delivered, text: &str) -> Cmd {
    let mut touch = cmd("DQ.TOUCH");
    touch
        .arg(&*of.job.key)
        .arg(&*of.job.id)
        .arg("TOKEN")
        .arg(&of.token)
        .arg("PROGRESS")
        .arg(text);
    touch
}

impl Core {
    pub(super) fn control(&mut self, link: usize, now: Instant) {
        if !self.links[link].control.is_free(now) {
            return;
        }
        let is_closed = self.links[link].control.server.is_none();
        if is_closed && (self.keeps_open() || self.wants_unblock(link, now)) {
            return self.open_control(link);
        }
        let mut commands = Vec::new();
        let beats = self.due_for_beat(link, now);
        self.touch(link, beats, None, now, &mut commands);
        self.relet(link, now, &mut commands);
        self.unblock(link, now, &mut commands);
        self.ask_reasons(link, &mut commands);
        self.return_all(link, &mut commands);
        if self.may_tell(link, now) {
            let outcomes = self.take_outcomes(link, TELL_AT_ONCE, now);
            self.ask_outcomes(link, Name::Control, outcomes, &mut commands);
        }
        self.send_progress(link, now, &mut commands);
        if !commands.is_empty() {
            self.send_control(link, commands);
        }
    }

    /// Before it is needed: a server that stands still connects nobody, but later reads what was written.
    fn keeps_open(&self) -> bool {
        self.is_working() && !self.settings.is_drained
    }

    /// Opens the connection, as it must be known to which server it leads.
    fn open_control(&mut self, link: usize) {
        let asked = &mut self.links[link].control.asked;
        asked.push_back(Asked::Opening);
        self.send_control(link, Vec::new());
    }

    fn send_control(&mut self, link: usize, commands: Vec<Cmd>) {
        let link_of = &mut self.links[link];
        link_of.control.rests_until = None;
        let line = Line {
            link,
            name: Name::Control,
        };
        let (turn, within) = (link_of.control.turn, link_of.schedule.patience());
        self.actions.push_back(Action::Send {
            line,
            turn,
            commands,
            last: None,
            within,
        });
    }

    fn may_tell(&self, link: usize, now: Instant) -> bool {
        let link = &self.links[link];
        let is_gathered = link.gathers_until.is_none_or(|until| until <= now);
        is_gathered || link.outcomes.len() >= GATHER_UP_TO || !self.is_working()
    }

    /// Renews leases: one `DQ.TOUCH` for each key.
    fn touch(
        &mut self,
        link: usize,
        all: Vec<Serial>,
        length: Option<Duration>,
        now: Instant,
        into: &mut Vec<Cmd>,
    ) {
        for (key, all) in self.by_key(all) {
            let of: Vec<_> = all
                .iter()
                .map(|serial| self.held[serial].of.clone())
                .collect();
            let mut words = for_all("DQ.TOUCH", &key, &of, &[]);
            if let Some(length) = length {
                words.arg("TTR").arg(ms(length));
            }
            into.push(words);
            self.links[link].control.asked.push_back(Asked::Touch {
                all,
                sent: now,
                length,
            });
        }
    }

    fn by_key(&self, all: Vec<Serial>) -> Vec<(Arc<[u8]>, Vec<Serial>)> {
        let mut groups: Vec<(Arc<[u8]>, Vec<Serial>)> = Vec::new();
        for serial in all {
            let Some(held) = self.held.get(&serial) else {
                continue;
            };
            match groups.iter_mut().find(|(key, _)| *key == held.of.job.key) {
                Some((_, group)) => group.push(serial),
                None => groups.push((held.of.job.key.clone(), vec![serial])),
            }
        }
        groups
    }

    /// Changes leases that are to have another length.
    fn relet(&mut self, link: usize, now: Instant, into: &mut Vec<Cmd>) {
        let mut relets = std::mem::take(&mut self.links[link].relets);
        relets.retain(|(serial, _)| self.held.get(serial).is_some_and(|held| held.is_open));
        while let Some((_, length)) = relets.first().copied() {
            let (same, rest) = relets.into_iter().partition(|(_, other)| *other == length);
            let same: Vec<(Serial, Duration)> = same;
            self.touch(
                link,
                same.into_iter().map(|(serial, _)| serial).collect(),
                Some(length),
                now,
                into,
            );
            relets = rest;
        }
    }

    // --- Giving back

    pub(super) fn give_back(&mut self, serial: Serial) {
        let Some(held) = self.held.get_mut(&serial) else {
            return;
        };
        if held.is_open {
            held.is_open = false;
            held.is_unanswered = true;
            self.gave_back += 1;
            self.links[held.link].returns.push(serial);
        }
    }

    fn return_all(&mut self, link: usize, into: &mut Vec<Cmd>) {
        let returns = std::mem::take(&mut self.links[link].returns);
        for (key, all) in self.by_key(returns) {
            let of: Vec<_> = all
                .iter()
                .map(|serial| self.held[serial].of.clone())
                .collect();
            into.push(for_all("DQ.NACK", &key, &of, &["SILENT"]));
            self.links[link]
                .control
                .asked
                .push_back(Asked::GiveBack(all));
        }
    }

    pub(super) fn given_back(&mut self, line: Line, all: Vec<Serial>, reply: &Value, now: Instant) {
        if let Value::ServerError(error) = reply {
            let text = crate::values::server_error(error);
            if super::trouble::fatal(&text).is_none() {
                self.links[line.link].returns.extend(all);
                return self.close(line, &text, now);
            }
            self.links[line.link].has_finished = true;
        }
        for serial in all {
            if let Some(held) = self.held.get_mut(&serial) {
                held.is_unanswered = false;
            }
            self.forget(serial);
        }
    }

    /// What the server is to know after all when it answers again, the smallest first. Each of it may be sent twice.
    pub(super) fn last_words(&mut self, link: usize) {
        let mut commands = Vec::new();
        let of = &mut self.links[link];
        let mut outcomes = Vec::new();
        let asked = of.waiting.asked.drain(..).chain(of.control.asked.drain(..));
        for each in asked {
            match each {
                Asked::Outcome(outcome) => outcomes.push(outcome),
                Asked::Acks(all) => outcomes.extend(all),
                Asked::GiveBack(all) => of.returns.extend(all),
                _ => {}
            }
        }
        outcomes.append(&mut of.outcomes.drain(..).collect());
        outcomes.sort_by_key(Outcome::size);
        self.return_all(link, &mut commands);
        let mut bytes = 0;
        for outcome in outcomes {
            bytes += outcome.size();
            if bytes <= LAST_BYTES {
                outcome.write(&mut commands);
            }
        }
        commands.iter_mut().for_each(parting);
        if !commands.is_empty() {
            let name = Name::Control;
            self.actions
                .push_back(Action::Last(Line { link, name }, commands));
        }
    }

    // --- Progress

    pub(super) fn progress(&mut self, serial: Serial, text: String, now: Instant) {
        let Some(held) = self.held.get_mut(&serial) else {
            return;
        };
        if held.is_open {
            held.progress.text = Some(text);
            let at = held.progress.sent.map_or(now, |sent| sent + PROGRESS_EACH);
            let next = &mut self.links[held.link].schedule.progress;
            *next = Some(next.map_or(at, |next| next.min(at)));
        }
    }

    pub(super) fn progress_heard(&mut self, serial: Serial) {
        if let Some(held) = self.held.get_mut(&serial) {
            held.progress.on_its_way = None;
        }
    }

    /// Sends a report again whose connection was lost before the reply.
    pub(super) fn progress_again(&mut self, serial: Serial, now: Instant) {
        let Some(held) = self.held.get_mut(&serial) else {
            return;
        };
        let text = held.progress.on_its_way.take();
        if let Some(text) = held.progress.text.take().or(text) {
            self.progress(serial, text, now);
        }
    }

    fn send_progress(&mut self, link: usize, now: Instant, into: &mut Vec<Cmd>) {
        let Link {
            schedule, control, ..
        } = &mut self.links[link];
        if schedule.progress.is_none_or(|next| now < next) {
            return;
        }
        schedule.progress = None;
        for (serial, held) in self
            .held
            .iter_mut()
            .filter(|(_, held)| held.is_open && held.link == link)
        {
            let at = held.progress.sent.map_or(now, |sent| sent + PROGRESS_EACH);
            let Some(text) = held.progress.text.take() else {
                continue;
            };
            if at <= now {
                held.progress.sent = Some(now);
                into.push(progress(&held.of, &text));
                held.progress.on_its_way = Some(text);
                control.asked.push_back(Asked::Progress(*serial));
            } else {
                held.progress.text = Some(text);
                schedule.progress = Some(schedule.progress.map_or(at, |next| next.min(at)));
            }
        }
    }

    // --- When to look again

    /// When `advance` next has something to do, even if no event comes in.
    pub fn wakes_at(&self, now: Instant) -> Option<Instant> {
        let links = 0..self.links.len();
        let mut all: Vec<Option<Instant>> = links
            .flat_map(|link| self.link_wakes_at(link, now))
            .collect();
        let turn = self
            .scheduler
            .look_at(now, |link| self.may_fetch(link, now));
        let isolated = self.isolation.look_at(now);
        all.extend([self.next_limit, self.phase_wakes_at(), turn, isolated]);
        all.into_iter().flatten().min()
    }

    fn link_wakes_at(&self, at: usize, now: Instant) -> [Option<Instant>; 4] {
        let link = &self.links[at];
        let control = if link.control.asked.is_empty() {
            let beat = if link.schedule.is_asked {
                Some(now)
            } else {
                link.schedule.beat
            };
            let ready =
                |outcome: &Outcome| outcome.not_before.max(link.gathers_until).unwrap_or(now);
            let outcome = link.outcomes.iter().map(ready).min();
            let withdraws = !self.is_working() && link.waiting.is_fetching();
            let unblock = link.unblocks_at.filter(|_| withdraws);
            let listeners = link
                .listeners
                .iter()
                .filter_map(|listener| listener.unblocks_at)
                .min();
            let has_more =
                !(link.relets.is_empty() && link.returns.is_empty() && link.suspects.is_empty());
            let opens = link.control.server.is_none() && self.keeps_open();
            let at_once = (link.is_recalled || has_more || opens).then_some(now);
            let first = [
                beat,
                outcome,
                unblock,
                listeners,
                at_once,
                link.schedule.progress,
            ]
            .into_iter()
            .flatten()
            .min();
            first.map(|at| link.control.rests_until.map_or(at, |until| until.max(at)))
        } else {
            None
        };
        let waiting = match link.waiting.asked.is_empty() {
            true if self.is_working() => link.waiting.rests_until.filter(|until| now < *until),
            true => None,
            false => Some(self.awake + link.schedule.pulse(self.lease.given(super::SERVER_TTR))),
        };
        [control, waiting, link.schedule.ends, self.ears_wake_at(at)]
    }
}
