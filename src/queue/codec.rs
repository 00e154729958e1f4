//! Effects as bytes: in the replication stream, in an AOF and in snapshots.

pub(super) use super::bytes::{append, take};
use super::effect::Effect;
use super::error::QueueError;

/// The version: the first byte of every encoded sequence of effects. Until 0.1.0 is released it stays 1, whatever changes.
/// From then on a variant keeps its fields, as the encoding names none (`golden.rs` holds the bytes of each).
pub const EFFECTS_VERSION: u8 = 1;

/// The version that a sequence begins with; in builds for tests perhaps one that does not exist yet.
#[inline]
pub fn own_version() -> u8 {
    #[cfg(feature = "breakable")]
    if crate::storage::broken::is_planted("newer") {
        return EFFECTS_VERSION + 1;
    }
    EFFECTS_VERSION
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

/// Appends one effect to the sequence that begins at `start`, or begins it.
#[inline]
pub(super) fn push(effect: &Effect<'_>, bytes: &mut Vec<u8>, start: usize) {
    if bytes.len() == start {
        begin(bytes);
    }
    append(effect, bytes);
}

/// Reads a sequence of effects from its version byte on. The bytes may be forged.
pub fn decode(bytes: &[u8]) -> impl Iterator<Item = Result<Effect<'_>, QueueError>> {
    let (version, mut rest) = match bytes.split_first() {
        Some((&version, rest)) => (Some(version), rest),
        None => (None, bytes),
    };
    let mut refused = match version {
        Some(EFFECTS_VERSION) => None,
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
