//! Effects as bytes: in the replication stream, in an AOF and in snapshots.

use super::effect::{Effect, OfDone};
use super::error::QueueError;
use super::job::State;
use super::note::Note;
use serde::{Deserialize, Serialize};

/// The newest version: the first byte of every encoded sequence of effects. Only variants are ever appended. With one
/// more field in a variant, or in a struct inside, older effects would be misread (`golden.rs` holds the bytes of
/// each). What cannot be expressed so gets the next version, and the older ones stay readable.
/// Each version knows more variants than the one before, and is read in the same way.
pub const EFFECTS_VERSION: u8 = 6;
/// The version of a sequence that contains nothing newer: modules of that version can read it.
pub const BASE_VERSION: u8 = 4;
/// The first version that knows notes, done jobs, and jobs that are after others.
pub const NOTES_VERSION: u8 = 5;
/// The first version that knows costs, and windows that allow more than [`OLD_RATE_MAX`] or [`OLD_GROUP_RATE_MAX`].
const COSTS_VERSION: u8 = 6;
const OLDEST_VERSION: u8 = 1;

/// Appends to a Vec directly, instead of through an iterator of bytes.
struct Append<'a>(&'a mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Append<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// The version that a sequence begins with; in builds for tests perhaps one that does not exist yet.
#[inline]
pub fn own_version() -> u8 {
    #[cfg(feature = "breakable")]
    if crate::storage::broken::is_planted("newer") {
        return EFFECTS_VERSION + 1;
    }
    BASE_VERSION
}

/// Begins a sequence of effects.
#[inline]
pub fn begin(bytes: &mut Vec<u8>) {
    bytes.push(own_version());
}

/// Appends one effect to a sequence whose version has been written already.
pub fn encode(effect: &Effect<'_>, bytes: &mut Vec<u8>) {
    append(effect, bytes);
}

/// Appends one effect to the sequence that begins at `start`, or begins it. The sequence's version becomes one that
/// knows the effect.
#[inline]
pub(super) fn push(effect: &Effect<'_>, bytes: &mut Vec<u8>, start: usize) {
    if bytes.len() == start {
        begin(bytes);
    }
    append(effect, bytes);
    if is_newer(effect) {
        require(version_of(effect), &mut bytes[start]);
    }
}

/// Raises the first byte of a sequence to `version`, so that older modules refuse all of it.
pub(super) fn require(version: u8, first: &mut u8) {
    *first = version.max(*first);
}

/// Whether modules that read only [`BASE_VERSION`] do not know the effect.
#[inline]
fn is_newer(effect: &Effect<'_>) -> bool {
    matches!(
        effect,
        Effect::Noted { .. }
            | Effect::PurgedOverdue { .. }
            | Effect::Done(_)
            | Effect::AddedTogether { .. }
            | Effect::Purged {
                state: Some(State::Blocked),
                ..
            }
    ) || effect.is_of_flows()
        || lets_more_go(effect)
}

/// The most that the windows of RATE and GROUPRATE allow in modules that do not know costs.
const OLD_RATE_MAX: u32 = 100_000;
const OLD_GROUP_RATE_MAX: u32 = 1000;

/// Whether it sets a window that allows more than [`OLD_RATE_MAX`] or [`OLD_GROUP_RATE_MAX`].
#[inline]
fn lets_more_go(effect: &Effect<'_>) -> bool {
    let (rate, most) = match effect {
        Effect::Configured(settings) => (settings.rate, OLD_RATE_MAX),
        Effect::GroupLimits(limits) => (limits.rate, OLD_GROUP_RATE_MAX),
        _ => return false,
    };
    rate.is_some_and(|rate| rate.count > most)
}

/// The first version that knows an effect that [`is_newer`].
fn version_of(effect: &Effect<'_>) -> u8 {
    match effect {
        Effect::Noted { note, .. } => version_of_note(note),
        Effect::AddedTogether { notes, .. } => {
            let versions = notes.iter().map(version_of_note);
            versions.fold(NOTES_VERSION, u8::max)
        }
        Effect::Done(of_done) => version_of_done(of_done),
        other if lets_more_go(other) => COSTS_VERSION,
        _ => NOTES_VERSION,
    }
}

// Without a wildcard in either: whoever appends a variant must say its version.

fn version_of_note(note: &Note<'_>) -> u8 {
    match note {
        Note::Progress { .. } | Note::Keep { .. } | Note::Step { .. } | Note::Awaits { .. } => {
            NOTES_VERSION
        }
        Note::Cost { .. } => COSTS_VERSION,
    }
}

fn version_of_done(of_done: &OfDone<'_>) -> u8 {
    match of_done {
        OfDone::Kept { .. }
        | OfDone::OccurrenceKept { .. }
        | OfDone::Stored(_)
        | OfDone::Gone { .. }
        | OfDone::Deleted { .. }
        | OfDone::Trimmed { .. }
        | OfDone::Purged
        | OfDone::Kicked { .. }
        | OfDone::Limits(_) => NOTES_VERSION,
        OfDone::StoredCosting { .. } => COSTS_VERSION,
    }
}

pub(super) fn append<T: Serialize>(value: &T, bytes: &mut Vec<u8>) {
    let encoded = postcard::serialize_with_flavor(value, Append(bytes));
    debug_assert!(encoded.is_ok(), "a Vec takes everything");
}

/// Takes one value off the front; `None` if the bytes are not one.
pub(super) fn take<'a, T: Deserialize<'a>>(bytes: &mut &'a [u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    *bytes = rest;
    Some(value)
}

/// Reads a sequence of effects from its version byte on. The bytes may be forged.
pub fn decode(bytes: &[u8]) -> impl Iterator<Item = Result<Effect<'_>, QueueError>> {
    let (version, mut rest) = match bytes.split_first() {
        Some((&version, rest)) => (Some(version), rest),
        None => (None, bytes),
    };
    let mut refused = match version {
        Some(OLDEST_VERSION..=EFFECTS_VERSION) => None,
        Some(0) => Some(QueueError::Malformed("effects of no version")),
        Some(_) => Some(QueueError::Newer),
        None => Some(QueueError::Malformed("no effects at all")),
    };
    let mut broken = false;
    std::iter::from_fn(move || {
        if broken {
            return None;
        }
        if let Some(why) = refused.take() {
            broken = true;
            return Some(Err(why));
        }
        if rest.is_empty() {
            return None;
        }
        match postcard::take_from_bytes::<Effect<'_>>(rest) {
            Ok((effect, behind)) => {
                rest = behind;
                Some(Ok(effect))
            }
            Err(_) => {
                broken = true;
                Some(Err(QueueError::Malformed("an effect that does not decode")))
            }
        }
    })
}

#[cfg(test)]
mod golden;
#[cfg(test)]
pub mod tests;
