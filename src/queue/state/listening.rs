//! Noting departures while clients wait for them, and what else is known of an end.

use super::departures::{Departures, Listened};
use super::jobs::Jobs;
use super::Queue;
use crate::queue::job::Place;
use crate::queue::outcome::{Departure, JobEnd, Known, Outcome};

impl Queue {
    /// Notes departures from now on, until they are taken.
    pub fn listen(&mut self, listened: Listened) {
        self.parts.cold.make().departures = Some(Box::new(Departures::new(listened)));
    }

    /// Takes what was noted, and ends noting.
    #[inline]
    pub fn take_departures(&mut self) -> Option<Box<Departures>> {
        self.parts.cold.made()?.departures.take()
    }

    /// What a master or its replica knows of this job.
    pub fn known_of(&self, id: &[u8]) -> Known {
        let id = self.jobs.hashed(id);
        if let Some(handle) = self.jobs.find(id) {
            let job = self.jobs.job(handle);
            let life = job.life();
            if job.place() != Place::Dead {
                return Known::Lives;
            }
            let reason = job.failure().and_then(|failure| failure.reason);
            return Known::Ended(JobEnd {
                outcome: Outcome::Dead,
                value: reason.map(<[u8]>::to_vec),
                at: Some(life.at),
                attempts: life.attempts,
            });
        }
        let Some(handle) = self.done().find(id) else {
            return Known::Nothing;
        };
        let job = self.parts.done.get(handle);
        Known::Ended(JobEnd {
            outcome: Outcome::Done,
            value: job.result.map(<[u8]>::to_vec),
            at: Some(job.finished),
            attempts: job.attempts,
        })
    }

    /// Sets the value of the job that ended last, if its end itself does not say it.
    pub(in crate::queue) fn note_value(&mut self, value: Option<&[u8]>) {
        if let Some(end) = self.last_departure().and_then(|it| it.end.as_mut()) {
            end.value = value.map(<[u8]>::to_vec);
        }
    }

    /// Says of the delivery that ended last whether its own worker ended it.
    pub(in crate::queue) fn note_claimed(&mut self, is_claimed: bool) {
        if let Some(departure) = self.last_departure() {
            departure.is_claimed = is_claimed;
        }
    }

    #[inline]
    fn last_departure(&mut self) -> Option<&mut Departure> {
        self.parts.departures()?.last()
    }

    /// Removes many jobs at once, by `remove`. Those that clients wait for are looked up before and after.
    pub(super) fn noting_removed(&mut self, remove: impl FnOnce(&mut Self)) {
        let departures = self.parts.cold.departures.as_ref();
        let going = departures.map(|it| it.about_to_go(&self.jobs));
        remove(self);
        if let Some((departures, going)) = self.parts.departures().zip(going) {
            departures.gone(going, &self.jobs);
        }
    }
}

impl Jobs {
    /// When the lease with this token ends.
    pub fn held_until(&self, id: &[u8], token: u64) -> Option<u64> {
        let job = self.job(self.find(self.hashed(id))?);
        let life = job.life();
        (job.place() == Place::Reserved && life.token == token).then_some(life.at)
    }
}
