//! The rules of DQ.CFGSET, DQ.PAUSE and DQ.RESUME.

use super::budget::EXPIRE_BUDGET;
use super::clock::Now;
use super::effect::{Effect, FOREVER};
use super::effects::Effects;
use super::error::QueueError;
use super::job::check_group_name;
use super::settings::{GroupSettings, SettingsChange};
use super::Queue;

/// Dead jobs beyond a new DEADLEN that are removed at once, at most; the timer removes the rest.
const TRIM_BUDGET: usize = 1000;

/// What a command does to a group.
#[derive(Clone, Copy, Debug)]
pub enum GroupChange {
    /// Gives it the settings that are named.
    Set(GroupSettings),
    /// Takes away all that it has of its own.
    Clear,
    /// Pauses it for so many milliseconds, or until it is resumed.
    Pause(Option<u64>),
    /// Ends its pause, if there is one.
    Resume,
}

impl GroupChange {
    fn applied_to(self, before: GroupSettings, now: Now) -> Result<GroupSettings, QueueError> {
        Ok(match self {
            GroupChange::Set(new) => before.changed_by(new),
            GroupChange::Clear => GroupSettings::default(),
            GroupChange::Pause(ms) => GroupSettings {
                paused_until: end_of_pause(ms, now)?,
                ..before
            },
            GroupChange::Resume if before.paused_until > now.ms() => before.at(FOREVER),
            GroupChange::Resume => before,
        })
    }
}

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
        let forgets = settings.dedupe_ms == 0 && self.parts().dedupe.len() > 0;
        if settings != **self.settings() || forgets || !self.is_kept() {
            self.commit(&Effect::Configured(settings), out);
            self.trim_dead_after(now.ms(), TRIM_BUDGET, now, out);
            self.trim_done_now(out);
        }
        Ok(())
    }

    /// Changes what a group has of its own. The queue stays until DEL from now on, if the group has anything then.
    pub fn change_group(
        &mut self,
        name: &[u8],
        change: GroupChange,
        now: Now,
        out: &mut Effects,
    ) -> Result<(), QueueError> {
        let before = self.parts().group_settings(self.jobs(), name);
        let own = change.applied_to(before, now)?;
        if matches!(change, GroupChange::Set(_) | GroupChange::Pause(_)) {
            check_group_name(name)?;
            own.check()?;
        }
        if own != before {
            self.commit(&Effect::Group { name, own }, out);
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
        let until = end_of_pause(ms, now)?;
        if !self.is_kept() || self.paused_until() != until {
            self.commit(&Effect::Paused { until }, out);
        }
        Ok(())
    }

    /// Ends the pause, if there is one.
    pub fn resume(&mut self, now: Now, out: &mut Effects) {
        if self.serving().is_paused(now) {
            self.commit(&Effect::Paused { until: 0 }, out);
        }
    }
}

fn end_of_pause(ms: Option<u64>, now: Now) -> Result<u64, QueueError> {
    match ms {
        Some(ms) => now.after(ms).ok_or(QueueError::OutOfRange),
        None => Ok(FOREVER),
    }
}

/// 0 if there is no pause, -1 if there is one until resumed, otherwise the instant at which it ends.
pub fn paused_shown(until: u64, now: Now) -> i64 {
    match until {
        FOREVER => -1,
        _ if until <= now.ms() => 0,
        until => until as i64,
    }
}
