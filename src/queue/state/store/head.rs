//! The bytes of one job: the two words before its id, and what follows where. The diagram is in `store.rs`.

use crate::queue::job::{Place, ID_MAX, INSTANT_MAX};
use crate::storage::arena::HEAD_BITS;
use crate::storage::broken::there;

pub(super) const HEADER: usize = 16;
pub(super) const DUE_BITS: u64 = INSTANT_MAX;
pub(super) const ID_LEN_SHIFT: u32 = 42;
const PLACE_SHIFT: u32 = 52;
/// The bits of the place; all set, they are the last place, which stands for two.
pub(super) const LAST_PLACE: u64 = 3 << PLACE_SHIFT;
pub(super) const HAS_RARE: u64 = 1 << 54;
pub(super) const OWN_TERMS: u64 = 1 << 55;
/// There is a group: its number, 4 bytes, comes last.
pub(super) const GROUPED: u64 = 1 << 57;
const _: () = assert!(GROUPED < HEAD_BITS);
pub(super) const NO_GROUP: u32 = u32::MAX;
pub(super) const NO_TRAILER: &str = "a job without the number of its group";
pub(super) const SEQ_BITS: u64 = (1 << 47) - 1;
/// In word 1, for the last place: which of the two it is.
pub(super) const BLOCKED: u64 = 1 << 47;
pub(super) const TERMS_SHIFT: u32 = 48;

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
    let place = match word(bytes, 0) >> PLACE_SHIFT & 3 {
        0 => Place::Scheduled,
        1 => Place::Reserved,
        2 => Place::Dead,
        _ => Place::Successor,
    };
    match place {
        Place::Successor => last_place(bytes),
        place => place,
    }
}

/// Few jobs have this place. Kept apart, and without an assertion, so that it costs nothing where the place is not used.
#[cold]
#[inline(never)]
fn last_place(bytes: &[u8]) -> Place {
    let word1 = bytes.get(8..).and_then(<[u8]>::first_chunk::<8>);
    match word1.map(|word| u64::from_le_bytes(*word) & BLOCKED) {
        None | Some(0) => Place::Successor,
        Some(_) => Place::Blocked,
    }
}

/// A place, as bits of both words.
pub(super) fn bits_of(place: Place) -> (u64, u64) {
    match place {
        Place::Blocked => (LAST_PLACE, BLOCKED),
        _ => ((place as u64) << PLACE_SHIFT, 0),
    }
}

pub(super) fn id_len(bytes: &[u8]) -> usize {
    ((word(bytes, 0) >> ID_LEN_SHIFT) as usize & (ID_MAX - 1)) + 1
}

pub(super) fn id_of(bytes: &[u8]) -> &[u8] {
    &bytes[HEADER..HEADER + id_len(bytes)]
}
