//! What DQ.CFGSET can change: defaults for jobs added later, and limits on the queue.

use super::attr::{Attr, Attrs};
use super::bytes::{append, take};
use super::error::QueueError;
use super::history::HISTORY_MAX;
use super::instant::NEVER;
use super::job::{Terms, INSTANT_MAX};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::{Arc, LazyLock};

/// A limit of 0 is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `None`: the server's default at the time when a job is added.
    pub ttr_ms: Option<u64>,
    /// ATTEMPTS of jobs that name none.
    pub max_attempts: u32,
    /// What jobs have that do not say it themselves: BACKOFF.
    pub rest: Attrs<'static>,
    /// Delayed, ready and reserved jobs together.
    pub max_len: u64,
    /// How many dead jobs are kept, the youngest.
    pub dead_len: u64,
    /// How long the id of a finished job is refused by NX.
    pub dedupe_ms: u64,
    /// Reserved jobs at a time.
    pub max_reserved: u64,
    /// RATE.
    pub rate: Option<Rate>,
    /// Bytes of the ids and payloads of all jobs.
    pub max_bytes: u64,
    /// What holds for each group.
    pub group_limits: GroupLimits,
    /// Which done jobs are kept.
    pub done_limits: DoneLimits,
    /// Attempts that failed, of which each job keeps so many.
    pub history: u64,
    /// Settings of a newer version, encoded: they are carried on.
    pub unknown: Vec<u8>,
}

/// How settings are encoded: a string of those that are not at their default, each as its tag, the length of its value,
/// and its value, by ascending tags. A newer version may have more; one that changes what this version does is odd.
macro_rules! tagged {
    ($($tag:literal $($field:ident).+ $read:ident,)+) => {
        impl Settings {
            fn encoded(&self) -> Vec<u8> {
                let (mut bytes, default) = (Vec::new(), Settings::unconfigured());
                $(if self.$($field).+ != default.$($field).+ {
                    let mut value = Vec::new();
                    append(&self.$($field).+, &mut value);
                    append(&$tag, &mut bytes);
                    append(&serde_bytes::Bytes::new(&value), &mut bytes);
                })+
                bytes.extend_from_slice(&self.unknown);
                bytes
            }

            fn decoded(mut bytes: &[u8]) -> Option<Self> {
                let (mut all, mut last) = (Settings::default(), 0);
                while !bytes.is_empty() {
                    let before = bytes;
                    let tag: u64 = take(&mut bytes)?;
                    let mut value: &[u8] = take::<&serde_bytes::Bytes>(&mut bytes)?;
                    if tag <= last {
                        return None;
                    }
                    last = tag;
                    match tag {
                        $($tag => all.$($field).+ = $read(&mut value)?,)+
                        // What is new comes last.
                        _ if tag < NEW => return None,
                        _ => {
                            all.unknown.extend_from_slice(&before[..before.len() - bytes.len()]);
                            value = &[];
                        }
                    }
                    if !value.is_empty() {
                        return None;
                    }
                }
                Some(all)
            }
        }
    };
}

/// From here on the tags are unknown.
const NEW: u64 = 33;

fn owned(value: &mut &[u8]) -> Option<Attrs<'static>> {
    take(value).map(Attrs::into_owned)
}

tagged! {
    2_u64 ttr_ms take,
    4_u64 max_attempts take,
    6_u64 rest owned,
    8_u64 max_len take,
    10_u64 dead_len take,
    12_u64 dedupe_ms take,
    14_u64 max_reserved take,
    16_u64 rate take,
    18_u64 max_bytes take,
    20_u64 group_limits.max_reserved take,
    22_u64 group_limits.rate take,
    24_u64 group_limits.is_fifo take,
    26_u64 done_limits.len take,
    28_u64 done_limits.ttl_ms take,
    30_u64 done_limits.bytes take,
    32_u64 history take,
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.encoded())
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = <&serde_bytes::Bytes>::deserialize(from)?;
        Settings::decoded(bytes).ok_or_else(|| D::Error::custom("settings that do not decode"))
    }
}

/// Which done jobs are kept: none where all are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneLimits {
    /// How many are kept, the youngest.
    pub len: u64,
    /// How long they are kept after their end.
    pub ttl_ms: u64,
    /// Bytes of their ids, payloads, results and progress.
    pub bytes: u64,
}

impl DoneLimits {
    /// Checks the bounds, which hold wherever the limits came from.
    pub fn check(&self) -> Result<(), QueueError> {
        if self.ttl_ms > INSTANT_MAX {
            return Err(QueueError::OutOfRange);
        }
        Ok(())
    }

    /// Whether any limit is set, so that done jobs are kept.
    pub fn any(&self) -> bool {
        *self != DoneLimits::default()
    }
}

/// Limits that hold for each group by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupLimits {
    /// Reserved jobs of a group.
    pub max_reserved: u64,
    /// Deliveries of a group.
    pub rate: Option<Rate>,
    /// In the order of adding, one at a time.
    pub is_fifo: bool,
}

impl GroupLimits {
    /// Checks the bounds, which hold wherever the limits came from.
    pub fn check(&self) -> Result<(), QueueError> {
        if !self.rate.is_none_or(|rate| rate.fits()) {
            return Err(QueueError::OutOfRange);
        }
        Ok(())
    }
}

/// What a group has of its own; of what is `None`, it has the queue's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSettings {
    /// WEIGHT: how many deliveries its turn lasts.
    pub weight: Option<u32>,
    /// MAX; 0 is no limit.
    pub max_reserved: Option<u64>,
    /// RATE; `Some(None)`: none.
    pub rate: Option<Option<Rate>>,
    /// MAXLEN; 0 is no limit.
    pub max_len: Option<u64>,
    /// When its pause ends: 0, an instant, or [`NEVER`].
    pub paused_until: u64,
}

/// The largest WEIGHT.
pub const WEIGHT_MAX: u32 = 1000;

impl GroupSettings {
    /// These settings, changed by those that `new` names; the pause stays.
    pub fn changed_by(self, new: GroupSettings) -> Self {
        GroupSettings {
            weight: new.weight.or(self.weight),
            max_reserved: new.max_reserved.or(self.max_reserved),
            rate: new.rate.or(self.rate),
            max_len: new.max_len.or(self.max_len),
            paused_until: self.paused_until,
        }
    }

    /// What of them holds at an instant: a pause that has ended is none.
    pub fn at(self, now_ms: u64) -> Self {
        let is_paused = self.paused_until > now_ms;
        GroupSettings {
            paused_until: if is_paused { self.paused_until } else { 0 },
            ..self
        }
    }

    /// Whether the group has anything of its own.
    pub fn any(&self) -> bool {
        *self != GroupSettings::default()
    }

    /// Checks the bounds, which hold wherever the settings came from.
    pub fn check(&self) -> Result<(), QueueError> {
        let is_limit = |limit: Option<u64>| limit.is_none_or(|it| i64::try_from(it).is_ok());
        let rate_fits = self.rate.flatten().is_none_or(|rate| rate.fits());
        let weight_fits = self.weight.is_none_or(|it| (1..=WEIGHT_MAX).contains(&it));
        let pause_fits = self.paused_until <= INSTANT_MAX || self.paused_until == NEVER;
        let limits_fit = is_limit(self.max_reserved) && is_limit(self.max_len);
        match rate_fits && weight_fits && pause_fits && limits_fit {
            true => Ok(()),
            false => Err(QueueError::OutOfRange),
        }
    }
}

/// Deliveries that weigh at most `count` together in any `window_ms` milliseconds.
#[allow(missing_docs, reason = "the type's comment describes them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    pub count: u32,
    pub window_ms: u64,
}

impl Rate {
    /// The length of its window, in microseconds.
    pub fn window_us(&self) -> u64 {
        self.window_ms.saturating_mul(1000)
    }

    fn fits(&self) -> bool {
        self.count != 0 && (1..=INSTANT_MAX).contains(&self.window_ms)
    }
}

/// Bytes of the settings that are of a newer version.
const UNKNOWN_MAX: usize = 1024;

/// The server's default lease, unless it is set to another.
pub const TTR_DEFAULT_MS: u64 = 60_000;

/// The settings that one DQ.CFGSET names.
#[allow(missing_docs, reason = "as in [`Settings`]; `None` leaves it as it is")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    pub ttr_ms: Option<u64>,
    pub max_attempts: Option<u32>,
    /// `Some(None)`: the server's hold.
    pub backoff_ms: Option<Option<Vec<u64>>>,
    pub max_len: Option<u64>,
    pub dead_len: Option<u64>,
    pub dedupe_ms: Option<u64>,
    pub max_reserved: Option<u64>,
    /// `Some(None)` turns the rate off.
    pub rate: Option<Option<Rate>>,
    pub max_bytes: Option<u64>,
    pub group_max: Option<u64>,
    /// `Some(None)` turns the group's rate off.
    pub group_rate: Option<Option<Rate>>,
    pub group_fifo: Option<bool>,
    pub done_len: Option<u64>,
    pub done_ttl_ms: Option<u64>,
    pub done_bytes: Option<u64>,
    pub history: Option<u64>,
}

impl SettingsChange {
    /// The `old` settings with this change.
    pub fn applied_to(&self, old: &Settings) -> Settings {
        let new = self.clone();
        Settings {
            ttr_ms: new.ttr_ms.or(old.ttr_ms),
            max_attempts: new.max_attempts.unwrap_or(old.max_attempts),
            rest: match new.backoff_ms {
                Some(Some(ladder)) => old.rest.clone().with_backoff(&ladder),
                Some(None) => old.rest.clone().without(Attr::Backoff),
                None => old.rest.clone(),
            },
            max_len: new.max_len.unwrap_or(old.max_len),
            dead_len: new.dead_len.unwrap_or(old.dead_len),
            dedupe_ms: new.dedupe_ms.unwrap_or(old.dedupe_ms),
            max_reserved: new.max_reserved.unwrap_or(old.max_reserved),
            rate: new.rate.unwrap_or(old.rate),
            max_bytes: new.max_bytes.unwrap_or(old.max_bytes),
            group_limits: GroupLimits {
                max_reserved: new.group_max.unwrap_or(old.group_limits.max_reserved),
                rate: new.group_rate.unwrap_or(old.group_limits.rate),
                is_fifo: new.group_fifo.unwrap_or(old.group_limits.is_fifo),
            },
            done_limits: DoneLimits {
                len: new.done_len.unwrap_or(old.done_limits.len),
                ttl_ms: new.done_ttl_ms.unwrap_or(old.done_limits.ttl_ms),
                bytes: new.done_bytes.unwrap_or(old.done_limits.bytes),
            },
            history: new.history.unwrap_or(old.history),
            unknown: old.unknown.clone(),
        }
    }
}

/// The settings of queues that were never configured, shared by all of them.
static UNCONFIGURED: LazyLock<Arc<Settings>> = LazyLock::new(Arc::default);

impl Settings {
    /// Nothing is limited, and jobs get the server's defaults.
    pub fn unconfigured() -> Arc<Settings> {
        Arc::clone(&UNCONFIGURED)
    }

    /// The terms of a job that names none of its own.
    pub fn terms(&self, server_ttr_ms: u64) -> Terms<'_> {
        Terms {
            priority: 0,
            ttr_ms: self.ttr_ms.unwrap_or(server_ttr_ms),
            max_attempts: self.max_attempts,
            rest: self.rest.borrowed(),
        }
    }

    /// Checks the bounds that hold for every queue, wherever its settings came from.
    pub fn check(&self) -> Result<(), QueueError> {
        self.check_unknown()?;
        check_terms(&self.terms(TTR_DEFAULT_MS))?;
        self.group_limits.check()?;
        self.done_limits.check()?;
        let rate_fits = self.rate.is_none_or(|rate| rate.fits());
        if !rate_fits || self.dedupe_ms > INSTANT_MAX || self.history > HISTORY_MAX {
            return Err(QueueError::OutOfRange);
        }
        Ok(())
    }

    /// Settings of a newer version are carried on, unless this one would do something else than a server that has them.
    fn check_unknown(&self) -> Result<(), QueueError> {
        let mut bytes = &self.unknown[..];
        if bytes.len() > UNKNOWN_MAX {
            return Err(QueueError::Newer);
        }
        while let Some(tag) = take::<u64>(&mut bytes) {
            if tag % 2 == 1 || take::<&serde_bytes::Bytes>(&mut bytes).is_none() {
                return Err(QueueError::Newer);
            }
        }
        Ok(())
    }

    /// Whether DQ.CFGSET, whose integers are signed, could have set these limits.
    pub fn is_expressible(&self) -> bool {
        [
            self.max_len,
            self.max_bytes,
            self.dead_len,
            self.max_reserved,
            self.group_limits.max_reserved,
            self.done_limits.len,
            self.done_limits.bytes,
        ]
        .iter()
        .all(|&limit| i64::try_from(limit).is_ok())
    }

    /// Heap bytes that are the queue's own.
    pub fn memory_bytes(self: &Arc<Self>) -> usize {
        if Arc::ptr_eq(self, &UNCONFIGURED) {
            return 0;
        }
        size_of::<Self>() + self.rest.bytes().len() + self.unknown.capacity()
    }
}

/// Checks the bounds that hold for every job, wherever it came from.
pub fn check_terms(terms: &Terms<'_>) -> Result<(), QueueError> {
    terms.rest.check()?;
    if !(1..=INSTANT_MAX).contains(&terms.ttr_ms) {
        return Err(QueueError::OutOfRange);
    }
    Ok(())
}
