//! The rules of DQ.CFGSET, DQ.PAUSE and DQ.RESUME.

use super::budget::EXPIRE_BUDGET;
use super::clock::Now;
use super::effect::{Effect, OfDone, FOREVER};
use super::effects::Effects;
use super::error::QueueError;
use super::settings::{Settings, SettingsChange};
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
        let max_bytes = settings.max_bytes;
        let bounds = max_bytes != self.settings().max_bytes;
        let done = settings.done_limits;
        let limits = settings.group_limits;
        let limits = (limits != self.settings().group_limits).then_some(limits);
        let others = Settings {
            max_bytes: self.settings().max_bytes,
            group_limits: self.settings().group_limits,
            done_limits: self.settings().done_limits,
            ..settings
        };
        if others != *self.settings() || forgets {
            self.commit(&Effect::Configured(others), out);
            self.trim_dead_after(now.ms(), TRIM_BUDGET, now, out);
        }
        if let Some(limits) = limits {
            self.commit(&Effect::GroupLimits(limits), out);
        }
        if done != self.settings().done_limits {
            self.commit(&Effect::Done(OfDone::Limits(done)), out);
            self.trim_done_now(out);
        }
        if bounds {
            self.commit(&Effect::Bounded { max_bytes }, out);
        } else if !self.is_kept() {
            self.commit(&Effect::Kept, out);
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
            self.commit(&Effect::Resumed, out);
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
