//! The bytes of one done job.
//!
//! ```text
//!   byte 0        8
//!     ├───────────┼───────┬─────┬──────────┬─────┬────────┬──────────────┬────────────────┬────┬─────────┬─ ─ ─
//!     │  word 0   │ shared│ seq │ attempts │ ran │ waited │ [result len] │ [notes len]    │ id │ payload │ ...
//!     └───────────┴───────┴─────┴──────────┴─────┴────────┴──────────────┴────────────────┴────┴─────────┴─ ─ ─
//!   word 0: bits 0-41 finished; 42-51 id length - 1; 52 there is a result; 53 there are notes; 58-63 the arena's
//!   ran: finished - started; waited: started - due        numbers behind word 0 are of variable length
//! ```

use super::interned::{Interned, Shared};
use crate::queue::codec::{append, take};
use crate::queue::effect::DoneJob;
use crate::queue::job::{ID_MAX, INSTANT_MAX};
use crate::queue::note::Notes;
use crate::storage::arena::HEAD_BITS;
use crate::storage::broken::there;

const WORD: usize = 8;
const ID_LEN_SHIFT: u32 = 42;
const HAS_RESULT: u64 = 1 << 52;
const HAS_NOTES: u64 = 1 << 53;
const _: () = assert!(HAS_NOTES < HEAD_BITS);
const SHORT: &str = "a done job that is too short";

/// A done job, read from its bytes.
#[derive(Clone, Copy)]
pub struct DoneView<'a> {
    pub id: &'a [u8],
    pub payload: &'a [u8],
    pub result: Option<&'a [u8]>,
    /// Those of a done job, as a string.
    pub notes: &'a [u8],
    pub shared: &'a Shared,
    pub seq: u64,
    pub due: u64,
    pub attempts: u32,
    pub started: u64,
    pub finished: u64,
}

impl<'a> DoneView<'a> {
    /// The instant from which it is gone; 0 means never.
    pub fn until(&self) -> u64 {
        self.shared.stay.map_or(0, |stay| self.finished + stay)
    }

    /// What DONEBYTES counts.
    pub fn bytes(&self) -> u64 {
        let behind = self.result.map_or(0, <[u8]>::len) + Notes::of(self.notes).counted_when_done();
        (self.id.len() + self.payload.len() + behind) as u64
    }

    /// The job as effects carry it.
    pub fn stored(&self) -> DoneJob<'a> {
        DoneJob {
            id: self.id,
            payload: self.payload,
            result: self.result,
            notes: self.notes,
            group: self.shared.group.as_deref(),
            terms: self.shared.terms.borrowed(),
            seq: self.seq,
            due: self.due,
            attempts: self.attempts,
            started: self.started,
            finished: self.finished,
            until: self.until(),
        }
    }
}

/// The bytes before the id.
pub fn head(job: &DoneJob<'_>, shared: u32, bytes: &mut Vec<u8>) {
    let part = |bit, is_there| if is_there { bit } else { 0 };
    let word = job.finished
        | (job.id.len() as u64 - 1) << ID_LEN_SHIFT
        | part(HAS_RESULT, job.result.is_some())
        | part(HAS_NOTES, !job.notes.is_empty());
    bytes.extend_from_slice(&word.to_le_bytes());
    append(&(shared, job.seq, job.attempts), bytes);
    let ran = job.finished as i64 - job.started as i64;
    let waited = job.started as i64 - job.due as i64;
    append(&(ran, waited), bytes);
    let notes = Some(job.notes).filter(|notes| !notes.is_empty());
    for part in [job.result, notes].into_iter().flatten() {
        append(&part.len(), bytes);
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*there(bytes.first_chunk(), SHORT))
}

pub fn finished(bytes: &[u8]) -> u64 {
    word(bytes) & INSTANT_MAX
}

pub fn shared_of(bytes: &[u8]) -> u32 {
    there(take(&mut &bytes[WORD..]), SHORT)
}

pub fn read<'a>(bytes: &'a [u8], interned: &'a Interned) -> DoneView<'a> {
    there(read_checked(bytes, interned), SHORT)
}

fn read_checked<'a>(bytes: &'a [u8], interned: &'a Interned) -> Option<DoneView<'a>> {
    let word = word(bytes);
    let id_len = ((word >> ID_LEN_SHIFT) as usize & (ID_MAX - 1)) + 1;
    let rest = &mut bytes.get(WORD..)?;
    let (shared, seq, attempts): (u32, u64, u32) = take(rest)?;
    let (ran, waited): (i64, i64) = take(rest)?;
    let mut len_of = |bit| match word & bit {
        0 => Some(None),
        _ => take::<usize>(rest).map(Some),
    };
    let (result, notes) = (len_of(HAS_RESULT)?, len_of(HAS_NOTES)?);
    let id = rest.split_off(..id_len)?;
    let behind = result.unwrap_or(0) + notes.unwrap_or(0);
    let payload = rest.split_off(..rest.len().checked_sub(behind)?)?;
    let mut part = |len: Option<usize>| match len {
        Some(len) => rest.split_off(..len).map(Some),
        None => Some(None),
    };
    let (result, notes) = (part(result)?, part(notes)?);
    let finished = word & INSTANT_MAX;
    let started = (finished as i64 - ran) as u64;
    Some(DoneView {
        id,
        payload,
        result,
        notes: notes.unwrap_or_default(),
        shared: interned.get(shared),
        seq,
        due: (started as i64 - waited) as u64,
        attempts,
        started,
        finished,
    })
}

/// Reads the id alone.
pub fn id_of(bytes: &[u8]) -> &[u8] {
    let id = || {
        let word = word(bytes);
        let id_len = ((word >> ID_LEN_SHIFT) as usize & (ID_MAX - 1)) + 1;
        let rest = &mut bytes.get(WORD..)?;
        take::<(u32, u64, u32)>(rest)?;
        take::<(i64, i64)>(rest)?;
        for bit in [HAS_RESULT, HAS_NOTES] {
            if word & bit != 0 {
                take::<usize>(rest)?;
            }
        }
        rest.get(..id_len)
    };
    there(id(), SHORT)
}
