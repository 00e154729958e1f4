//! The rules of DQ.CFGSET, DQ.PAUSE and DQ.RESUME.

use super::budget::EXPIRE_BUDGET;
use super::clock::Now;
use super::effect::{Effect, FOREVER};
use super::effects::Effects;
use super::error::QueueError;
use super::settings::SettingsChange;
use super::Queue;

/// Dead jobs beyond a new DEADLEN that are removed at once, at most; the timer removes the rest.
const TRIM_BUDGET: usize = 1000;

impl Queue {
    /// Changes settings. The queue stays until DEL from now on, also without jobs.
    pub fn configure_with(
        &mut self,
        change: &SettingsChange,
        now: Now,
        out: &mut Effects,
    ) -> Result<(), QueueError> {
        let settings = change.applied_to(self.settings());
        settings.check()?;
        self.expire_overdue(now, EXPIRE_BUDGET, out);
        let forgets = settings.dedupe_ms == 0 && self.dedupe().len() > 0;
        if settings != *self.settings() || forgets || !self.is_kept() {
            self.commit(&Effect::Configured(settings), out);
            self.trim_dead_after(now.ms(), TRIM_BUDGET, now, out);
            self.trim_done_now(out);
        }
        Ok(())
    }

    /// Pauses the queue for `ms`, or until it is resumed.
    pub fn pause(
        &mut self,
        ms: Option<u64>,
        now: Now,
        out: &mut Effects,
    ) -> Result<(), QueueError> {
        let until = match ms {
            Some(ms) => now.after(ms).ok_or(QueueError::OutOfRange)?,
            None => FOREVER,
        };
        if !self.is_kept() || self.paused_until() != until {
            self.commit(&Effect::Paused { until }, out);
        }
        Ok(())
    }

    /// Ends the pause, if there is one.
    pub fn resume(&mut self, now: Now, out: &mut Effects) {
        if self.is_paused(now) {
            self.commit(&Effect::Paused { until: 0 }, out);
        }
    }

    /// 0 if it is not paused, -1 if it is until resumed, otherwise the instant at which the pause ends.
    pub fn paused(&self, now: Now) -> i64 {
        match self.paused_until() {
            FOREVER => -1,
            _ if !self.is_paused(now) => 0,
            until => until as i64,
        }
    }
}
