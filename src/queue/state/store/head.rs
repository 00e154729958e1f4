//! The bytes of one job: the two words before its id, and what follows where. The diagram is in `store.rs`.

use crate::queue::job::{Place, ID_MAX, INSTANT_MAX};
use crate::queue::state::terms::{TermsRef, POOL_MAX};
use crate::storage::arena::HEAD_BITS;
use crate::storage::broken::there;

pub(super) const HEADER: usize = 16;
pub(super) const DUE_BITS: u64 = INSTANT_MAX;
pub(super) const ID_LEN_SHIFT: u32 = 42;
const PLACE_SHIFT: u32 = 52;
pub(super) const PLACE_BITS: u64 = 7 << PLACE_SHIFT;
pub(super) const HAS_RARE: u64 = 1 << 55;
/// There is a group: its number, 4 bytes, comes last.
pub(super) const GROUPED: u64 = 1 << 57;
const _: () = assert!(GROUPED < HEAD_BITS);
pub(super) const NO_GROUP: u32 = u32::MAX;
pub(super) const NO_TRAILER: &str = "a job without the number of its group";
pub(super) const SEQ_BITS: u64 = (1 << 47) - 1;
const TERMS_SHIFT: u32 = 48;
/// In the place of a number of shared terms: the rare part has the job's own.
const OWN_TERMS: TermsRef = TermsRef::MAX;
const _: () = assert!(POOL_MAX < OWN_TERMS as usize);

/// Bytes of id and payload of one job.
pub(super) fn content(bytes: &[u8]) -> u64 {
    let apart = match bytes.first_chunk() {
        Some(word0) => HEADER + trailer_of(u64::from_le_bytes(*word0)),
        None => HEADER,
    };
    bytes.len().saturating_sub(apart) as u64
}

/// Bytes behind the payload.
#[inline]
pub(super) fn trailer_of(word0: u64) -> usize {
    if word0 & GROUPED == 0 {
        0
    } else {
        size_of::<u32>()
    }
}

pub(super) fn group_of(bytes: &[u8]) -> Option<u32> {
    bytes.last_chunk().map(|&number| u32::from_le_bytes(number))
}

pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes[at..].first_chunk::<8>();
    u64::from_le_bytes(*there(word, "a job without its head"))
}

pub(super) fn place_of(bytes: &[u8]) -> Place {
    match word(bytes, 0) >> PLACE_SHIFT & 7 {
        0 => Place::Scheduled,
        1 => Place::Reserved,
        2 => Place::Dead,
        3 => Place::Successor,
        _ => Place::Blocked,
    }
}

/// A place, as bits of word 0.
pub(super) fn bits_of(place: Place) -> u64 {
    (place as u64) << PLACE_SHIFT
}

/// The number of the terms that the job shares with others; `None` if it has its own.
#[inline]
pub(super) fn terms_of(bytes: &[u8]) -> Option<TermsRef> {
    let number = (word(bytes, 8) >> TERMS_SHIFT) as TermsRef;
    (number != OWN_TERMS).then_some(number)
}

/// The same, as bits of word 1.
pub(super) fn bits_of_terms(shared: Option<TermsRef>) -> u64 {
    u64::from(shared.unwrap_or(OWN_TERMS)) << TERMS_SHIFT
}

pub(super) fn id_len(bytes: &[u8]) -> usize {
    ((word(bytes, 0) >> ID_LEN_SHIFT) as usize & (ID_MAX - 1)) + 1
}

pub(super) fn id_of(bytes: &[u8]) -> &[u8] {
    &bytes[HEADER..HEADER + id_len(bytes)]
}
