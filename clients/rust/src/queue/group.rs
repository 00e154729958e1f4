//! One group of a queue, such as a tenant: what it has of its own, its pause and its figures.

use super::reading::Fields;
use super::settings::{rate_of, say_rate};
use super::{Queue, Rate, Stats};
use crate::bounds;
use crate::error::Error;
use crate::guard::log;
use crate::values;
use redis::{Cmd, Value};
use std::sync::PoisonError;
use std::time::{Duration, SystemTime};

/// What a group has of its own, instead of the queue's. For [`QueueGroup::set`], a field that is `None` stays as it is;
/// in [`GroupStats`], the queue's setting holds. 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSettings {
    /// How many deliveries its turn lasts, 1 to 1000.
    pub weight: Option<u64>,
    /// How many of its jobs may run at a time.
    pub max: Option<u64>,
    /// How many may begin in a window.
    pub rate: Option<Rate>,
    /// How many jobs it may have.
    pub maxlen: Option<u64>,
}

/// Settings and figures of a group.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GroupStats {
    /// What it has of its own; of a sharded queue, in the first shard that has the group.
    pub settings: GroupSettings,
    /// Whether it is passed over.
    pub paused: bool,
    /// When the pause ends; `None` while paused: until it is resumed.
    pub paused_until: Option<SystemTime>,
    /// Jobs that are delayed or ready.
    pub waiting: u64,
    /// Jobs that are reserved.
    pub reserved: u64,
    /// The cost of the deliveries in the current window of its rate.
    pub rate_used: u64,
}

/// One group of a queue, on each of the queue's shards, by [`Queue::group`].
///
/// What changes it returns false where the server's ACL denies this user the command, which is logged once.
#[derive(Clone, Debug)]
pub struct QueueGroup {
    queue: Queue,
    name: String,
}

impl Queue {
    /// One group of this queue, such as a tenant. It sends nothing.
    pub fn group(&self, name: impl Into<String>) -> QueueGroup {
        QueueGroup {
            queue: self.clone(),
            name: name.into(),
        }
    }
}

impl QueueGroup {
    /// Gives the group the settings that are not `None`.
    pub async fn set(&self, settings: GroupSettings) -> Result<bool, Error> {
        if settings == GroupSettings::default() {
            return Err(Error::usage("set needs a weight, max, rate or maxlen"));
        }
        bounds::number("weight", settings.weight, 1, 1000)?;
        bounds::lengths([("rate", settings.rate.map(|rate| rate.window), 0)])?;
        let numbers = [
            ("WEIGHT", settings.weight),
            ("MAX", settings.max),
            ("MAXLEN", settings.maxlen),
        ];
        self.change("DQ.GROUPSET", |words| {
            words.arg(&self.name);
            for (name, value) in numbers {
                if let Some(value) = value {
                    words.arg(name).arg(value);
                }
            }
            say_rate(words, "RATE", settings.rate);
        })
        .await
    }

    /// Takes its settings and its pause away: the queue's settings hold.
    pub async fn clear(&self) -> Result<bool, Error> {
        self.change("DQ.GROUPSET", |words| {
            words.arg(&self.name).arg("CLEAR");
        })
        .await
    }

    /// Passes the group over for a duration, or until [`QueueGroup::resume`].
    pub async fn pause(&self, duration: impl Into<Option<Duration>>) -> Result<bool, Error> {
        let duration = duration.into();
        bounds::lengths([("a pause", duration, 1)])?;
        self.change("DQ.PAUSE", |words| {
            duration
                .iter()
                .for_each(|length| _ = words.arg(values::ms(*length)));
            words.arg("GROUP").arg(&self.name);
        })
        .await
    }

    /// Ends its pause.
    pub async fn resume(&self) -> Result<bool, Error> {
        self.change("DQ.RESUME", |words| {
            words.arg("GROUP").arg(&self.name);
        })
        .await
    }

    /// Its settings and figures; `None` if it has neither settings nor jobs.
    pub async fn stats(&self) -> Result<Option<GroupStats>, Error> {
        bounds::name("group", Some(&self.name))?;
        let name = |words: &mut Cmd| _ = words.arg(&self.name);
        let replies = self.queue.each("DQ.GROUPGET", name).await?;
        let there = replies.into_iter().filter(|reply| *reply != Value::Nil);
        Ok(GroupStats::of(there.map(Fields::of).collect()))
    }

    async fn change(&self, command: &'static str, say: impl Fn(&mut Cmd)) -> Result<bool, Error> {
        bounds::name("group", Some(&self.name))?;
        match self.queue.each(command, say).await {
            Err(Error::Refused(why)) if why.code == "NOPERM" => {
                let denied = &self.queue.0.denied;
                let mut denied = denied.lock().unwrap_or_else(PoisonError::into_inner);
                if denied.insert(command) {
                    let queue = self.queue.name();
                    log!(
                        warn,
                        queue,
                        %why,
                        "the server refuses {command} of a group: nothing is changed"
                    );
                }
                Ok(false)
            }
            replies => replies.map(|_| true),
        }
    }
}

impl GroupStats {
    fn of(shards: Vec<Fields>) -> Option<Self> {
        let first = shards.first()?;
        let given = |name: &str| first.maybe_int(name).map(|value| value.max(0) as u64);
        let settings = GroupSettings {
            weight: given("weight"),
            max: given("max"),
            rate: first.0.get("rate").cloned().and_then(rate_of),
            maxlen: given("maxlen"),
        };
        let sum = |name: &str| {
            shards
                .iter()
                .map(|shard| shard.int(name).max(0) as u64)
                .sum()
        };
        let mut pause = Stats::default();
        shards
            .iter()
            .for_each(|shard| pause.add_pause(shard.int("paused")));
        Some(GroupStats {
            settings,
            paused: pause.paused,
            paused_until: pause.paused_until,
            waiting: sum("waiting"),
            reserved: sum("reserved"),
            rate_used: sum("rate-used"),
        })
    }
}
