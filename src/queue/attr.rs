//! What a job may have beside its id, payload and place, as one string of tagged values: the same in memory, in
//! snapshots, in done jobs and in effects.
//!
//! ```text
//!   attributes of a job:   tag  length  value   tag  length  value  ...      tags ascend, none twice
//!                           │
//!                           └ bits 0-1 what it outlives: see [`Life`]; 2 a done job has it; 3 critical; 4- a number
//! ```
//!
//! Tags and lengths are numbers of variable length, as in all effects.

use super::bytes::{append, take};
use super::error::QueueError;
use super::instant::INSTANT_MAX;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;

/// What one delivery may count in RATE and GROUPRATE, at most.
pub const COST_MAX: u32 = 1_000_000;
/// Delays in a backoff ladder, at most.
pub const LADDER_MAX: usize = 1024;

/// What a delivery counts in RATE and GROUPRATE; a cost of 1 is not said.
pub const COST: u32 = 0x07;
/// How long the job is kept once it is done.
pub const KEEP: u32 = 0x17;
/// The delays before the second, third, ... delivery. None at all are said, too: then the queue's do not apply.
pub const BACKOFF: u32 = 0x27;

/// See the picture above. Empty for most jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attrs<'a>(#[serde(with = "serde_bytes", borrow)] Cow<'a, [u8]>);

impl<'a> Attrs<'a> {
    /// Without any.
    pub const NONE: Attrs<'static> = Attrs(Cow::Borrowed(&[]));

    /// Of bytes that may be anything: see [`Attrs::check`].
    pub const fn of(bytes: &'a [u8]) -> Self {
        Attrs(Cow::Borrowed(bytes))
    }

    /// Most jobs have none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As encoded.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Copied.
    pub fn into_owned(self) -> Attrs<'static> {
        Attrs(Cow::Owned(self.0.into_owned()))
    }

    /// As an effect that owns what it holds reads them.
    pub(super) fn read_owned<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Attrs<'static>, D::Error> {
        Attrs::deserialize(from).map(Attrs::into_owned)
    }

    /// Not copied.
    pub fn borrowed(&self) -> Attrs<'_> {
        Attrs(Cow::Borrowed(&self.0))
    }

    /// Tags and values, in their order, up to what is not one.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.parts().map(|(_, tag, value)| (tag, value))
    }

    /// Each value with its tag, and the bytes behind it.
    fn parts(&self) -> impl Iterator<Item = (&[u8], u32, &[u8])> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let tag = take(&mut rest)?;
            let len: usize = take(&mut rest)?;
            let value = rest.split_off(..len)?;
            Some((rest, tag, value))
        })
    }

    fn get(&self, wanted: u32) -> Option<&[u8]> {
        let mut upto = self.iter().skip_while(|&(tag, _)| tag < wanted);
        let found = upto.next().filter(|&(tag, _)| tag == wanted);
        found.map(|(_, value)| value)
    }

    /// Puts a value in its place, or takes it away.
    fn put(&mut self, wanted: u32, value: Option<&[u8]>) {
        let (mut start, mut end) = (0, 0);
        for (behind, tag, _) in self.parts().take_while(|&(_, tag, _)| tag <= wanted) {
            end = self.0.len() - behind.len();
            if tag < wanted {
                start = end;
            }
        }
        let mut new = self.0[..start].to_vec();
        if let Some(value) = value {
            append(&wanted, &mut new);
            append(&serde_bytes::Bytes::new(value), &mut new);
        }
        new.extend_from_slice(&self.0[end..]);
        self.0 = Cow::Owned(new);
    }

    fn with_number(mut self, tag: u32, number: Option<u64>) -> Self {
        let mut value = Vec::new();
        number.iter().for_each(|number| append(number, &mut value));
        self.put(tag, number.map(|_| &value[..]));
        self
    }

    fn number(&self, tag: u32) -> Option<u64> {
        take(&mut self.get(tag)?)
    }

    /// With the delays of a BACKOFF.
    pub fn with_backoff(mut self, delays: &[u64]) -> Self {
        let mut value = Vec::new();
        delays.iter().for_each(|ms| append(ms, &mut value));
        self.put(BACKOFF, Some(&value));
        self
    }

    /// With a KEEP.
    pub fn with_keep(self, ms: u64) -> Self {
        self.with_number(KEEP, Some(ms))
    }

    /// With a COST.
    pub fn with_cost(self, units: u32) -> Self {
        self.with_number(COST, (units != 1).then_some(units.into()))
    }

    /// The delays of BACKOFF.
    pub fn backoff(&self) -> Ladder<'_> {
        Ladder(self.get(BACKOFF).unwrap_or_default())
    }

    /// KEEP of DQ.ADD.
    pub fn keep_ms(&self) -> Option<u64> {
        self.number(KEEP)
    }

    /// COST of DQ.ADD.
    pub fn cost(&self) -> u32 {
        self.number(COST).map_or(1, |units| units as u32)
    }

    /// These, and of the others those that these do not say.
    pub fn or<'s>(&'s self, others: &'s Attrs<'_>) -> Attrs<'s> {
        if self.is_empty() || others.is_empty() {
            let all = if self.is_empty() { others } else { self };
            return all.borrowed();
        }
        let mut all = self.borrowed();
        for (tag, value) in others.iter().filter(|&(tag, _)| self.get(tag).is_none()) {
            all.put(tag, Some(value));
        }
        all
    }

    /// Checks the bounds, which hold wherever the string came from.
    #[inline]
    pub fn check(&self) -> Result<(), QueueError> {
        if self.is_empty() {
            return Ok(());
        }
        self.check_each()
    }

    #[inline(never)]
    fn check_each(&self) -> Result<(), QueueError> {
        let (mut behind, mut least) = (&*self.0, 0);
        for (rest, tag, value) in self.parts() {
            if u64::from(tag) < least {
                return Err(QueueError::Malformed(
                    "attributes in another order than theirs",
                ));
            }
            check_value(tag, value)?;
            (behind, least) = (rest, u64::from(tag) + 1);
        }
        match behind {
            [] => Ok(()),
            _ => Err(QueueError::Malformed("attributes that do not decode")),
        }
    }
}

fn check_value(tag: u32, value: &[u8]) -> Result<(), QueueError> {
    let one = |bounds: std::ops::RangeInclusive<u64>| {
        let mut rest = value;
        let number = take(&mut rest).filter(|_| rest.is_empty());
        let number = number.ok_or(QueueError::Malformed("a number of another length"))?;
        bounds
            .contains(&number)
            .then_some(())
            .ok_or(QueueError::OutOfRange)
    };
    match tag {
        COST => one(2..=COST_MAX.into()),
        KEEP => one(0..=INSTANT_MAX),
        BACKOFF => Ladder(value).check(),
        _ => Err(QueueError::Malformed("an attribute that no job has")),
    }
}

/// Delays before the second, third, ... delivery, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ladder<'a>(&'a [u8]);

impl<'a> Ladder<'a> {
    /// Most have none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// How many delays.
    pub fn len(self) -> usize {
        // The last byte of a number is less than 128.
        self.0.iter().filter(|&&byte| byte < 128).count()
    }

    /// The delays.
    pub fn iter(self) -> impl Iterator<Item = u64> + Clone + 'a {
        let mut rest = self.0;
        std::iter::from_fn(move || take(&mut rest))
    }

    /// The delay after the `attempts`-th delivery failed; the last one repeats.
    pub fn after(self, attempts: u32) -> u64 {
        let steps = attempts.max(1) as usize;
        self.iter().take(steps).last().unwrap_or(0)
    }

    fn check(self) -> Result<(), QueueError> {
        if self.len() > LADDER_MAX {
            return Err(QueueError::LadderLength);
        }
        let (mut rest, fits) = (self.0, |ms: &u64| (1..=INSTANT_MAX).contains(ms));
        while !rest.is_empty() {
            let ms =
                take(&mut rest).ok_or(QueueError::Malformed("a ladder that does not decode"))?;
            if !fits(&ms) {
                return Err(QueueError::OutOfRange);
            }
        }
        Ok(())
    }
}
