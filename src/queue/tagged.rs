//! A string of tagged values: what a job has, wherever it stands written.
//!
//! ```text
//!   tag  length  value   tag  length  value  ...      tags ascend
//!    │
//!    └ bits 0-1 what it outlives: see [`Lasting`]; 2 a done job has it; 3 critical; 4- a number
//! ```
//!
//! Tags and lengths are numbers of variable length, as in all effects. What a newer version has written is carried on by
//! what its tag says, within bounds; what is critical is refused.

use super::bytes::{append, take};
use super::error::QueueError;

/// Values of one job that this version does not know, and their bytes: a newer one keeps within that.
pub const UNKNOWN_MAX: usize = 16;
/// See [`UNKNOWN_MAX`].
pub const UNKNOWN_BYTES_MAX: usize = 1024;

/// Of a tag: a done job has the value.
pub const IN_DONE: u32 = 1 << 2;
/// Of a tag: who does not know it must not go on.
pub const CRITICAL: u32 = 1 << 3;

/// Critical, and known to the module that tests break.
#[cfg(feature = "breakable")]
pub const CRITICAL_CANARY: u32 = 0x802 | CRITICAL;

/// What a value outlives. That is said nowhere but in its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lasting {
    /// TOUCH and a new priority: it is gone once the job leaves its place.
    Place,
    /// All but KICK and the end of the occurrence.
    Run,
    /// All but the end of the occurrence.
    Occurrence,
    /// All: it is part of the job's terms.
    Terms,
}

impl Lasting {
    /// Of the value with this tag.
    #[inline]
    pub const fn of(tag: u32) -> Self {
        match tag & 3 {
            0 => Lasting::Place,
            1 => Lasting::Run,
            2 => Lasting::Occurrence,
            _ => Lasting::Terms,
        }
    }
}

/// A value with its tag, where it stands.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "`start` to `end` are the bytes of all of it")]
pub struct Part<'a> {
    pub start: usize,
    pub end: usize,
    pub tag: u32,
    pub value: &'a [u8],
}

/// The values of a string, up to what is not one.
pub fn parts(all: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut rest = all;
    std::iter::from_fn(move || {
        let start = all.len() - rest.len();
        let tag = take(&mut rest)?;
        let len: usize = take(&mut rest)?;
        let value = rest.split_off(..len)?;
        let end = all.len() - rest.len();
        Some(Part {
            start,
            end,
            tag,
            value,
        })
    })
}

/// Appends a value.
pub fn push(tag: u32, value: &[u8], to: &mut Vec<u8>) {
    append(&(tag, serde_bytes::Bytes::new(value)), to);
}

/// Checks a string as it may be forged: tags ascend, none comes twice, each value passes `check`, where it says whether it
/// is known.
pub fn check(
    all: &[u8],
    mut check: impl FnMut(&Part<'_>) -> Result<bool, QueueError>,
) -> Result<(), QueueError> {
    let (mut end, mut least, mut unknown) = (0, 0, Unknown::default());
    for part in parts(all) {
        if u64::from(part.tag) < least {
            return Err(QueueError::Malformed("values in another order than theirs"));
        }
        if !check(&part)? {
            unknown.add(part.tag, part.value.len())?;
        }
        (end, least) = (part.end, u64::from(part.tag) + 1);
    }
    match end == all.len() {
        true => Ok(()),
        false => Err(QueueError::Malformed("values that do not decode")),
    }
}

/// Counts the values of one job that this version does not know.
#[derive(Debug, Default)]
pub struct Unknown {
    count: usize,
    bytes: usize,
}

impl Unknown {
    /// An error if it must not be carried on.
    pub fn add(&mut self, tag: u32, len: usize) -> Result<(), QueueError> {
        #[cfg(feature = "breakable")]
        let tag = match tag {
            CRITICAL_CANARY => tag & !CRITICAL,
            _ => tag,
        };
        if tag & CRITICAL != 0 {
            return Err(QueueError::Newer);
        }
        self.count += 1;
        self.bytes += len;
        match self.count <= UNKNOWN_MAX && self.bytes <= UNKNOWN_BYTES_MAX {
            true => Ok(()),
            false => Err(QueueError::Malformed(
                "more of a newer version than any has",
            )),
        }
    }
}
