//! What only some jobs have: progress, steps, what they wait for. Each is a [`Note`], a tagged value as those of
//! [`super::tagged`]; steps alone have a tag in common.
//!
//! ```text
//!   notes of a job:   Progress?   Awaits?   Step, Step, ... in the order of first writing   History?   (others by their tags)
//!   a step's value:   name   value, each behind its length
//! ```

use super::bytes::{append, take};
use super::error::QueueError;
use super::history::History;
use super::tagged::{check, parts, push, Lasting, Part, IN_DONE};
use crate::storage::arena::Arena;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::Bytes;

/// Bytes in a step's name, at most; at least one.
pub const STEP_NAME_MAX: usize = 256;
/// Bytes of a PROGRESS that are kept.
pub const PROGRESS_MAX: usize = 1024;

/// An error if a step cannot have the name.
pub fn check_step_name(name: &[u8]) -> Result<(), QueueError> {
    if !(1..=STEP_NAME_MAX).contains(&name.len()) {
        return Err(QueueError::StepNameLength);
    }
    Ok(())
}

/// A note of a job.
#[allow(
    missing_docs,
    reason = "fields are named as in the commands that set them"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note<'a> {
    /// How far its worker has come.
    Progress { text: &'a [u8] },
    /// The step that the job waits for.
    Awaits { name: &'a [u8] },
    /// A step that was done, or a signal. At most one with each name.
    Step { name: &'a [u8], value: &'a [u8] },
    /// Its last attempts that failed.
    Past { history: History<'a> },
    /// Of a newer version.
    Unknown { tag: u32, value: &'a [u8] },
}

const PROGRESS: u32 = 0x01 | IN_DONE;
const AWAITS: u32 = 0x10;
pub(super) const STEP: u32 = 0x22;
const HISTORY: u32 = 0x32 | IN_DONE;
/// Of a newer version, as far as tests are concerned.
#[cfg(feature = "breakable")]
pub const CANARY: u32 = 0x7f2 | IN_DONE;

#[cfg(feature = "breakable")]
pub use super::tagged::CRITICAL_CANARY;

impl<'a> Note<'a> {
    /// Of a tag and its value; none if that is not one.
    fn of(tag: u32, value: &'a [u8]) -> Option<Self> {
        let mut rest = value;
        Some(match tag {
            PROGRESS => Note::Progress { text: value },
            AWAITS => Note::Awaits { name: value },
            HISTORY => Note::Past {
                history: History(value),
            },
            STEP => {
                let (name, value): (&Bytes, &Bytes) = take(&mut rest)?;
                return rest.is_empty().then_some(Note::Step { name, value });
            }
            _ => Note::Unknown { tag, value },
        })
    }

    /// See [`super::tagged`].
    pub fn tag(&self) -> u32 {
        match *self {
            Note::Progress { .. } => PROGRESS,
            Note::Awaits { .. } => AWAITS,
            Note::Step { .. } => STEP,
            Note::Past { .. } => HISTORY,
            Note::Unknown { tag, .. } => tag,
        }
    }

    /// Bytes that count for MAXBYTES.
    pub fn counted(&self) -> u64 {
        match self {
            Note::Step { name, value } => (name.len() + value.len()) as u64,
            Note::Progress { .. }
            | Note::Awaits { .. }
            | Note::Past { .. }
            | Note::Unknown { .. } => 0,
        }
    }

    /// Bytes that it carries.
    pub(super) fn len(&self) -> usize {
        match self {
            Note::Progress { text: value } | Note::Awaits { name: value } => value.len(),
            Note::Step { name, value } => name.len() + value.len(),
            Note::Past { history } => history.0.len(),
            Note::Unknown { value, .. } => value.len(),
        }
    }

    /// Whether it replaces the other note of the same job.
    pub(super) fn replaces(&self, other: &Note<'_>) -> bool {
        match (self, other) {
            (Note::Step { name, .. }, Note::Step { name: other, .. }) => name == other,
            _ => self.tag() == other.tag(),
        }
    }
}

impl Serialize for Note<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let value = match *self {
            Note::Progress { text } => text,
            Note::Awaits { name } => name,
            Note::Past { history } => history.0,
            Note::Unknown { value, .. } => value,
            Note::Step { name, value } => {
                let len = len_behind_its_length(name) + len_behind_its_length(value);
                return (STEP, len, Bytes::new(name), Bytes::new(value)).serialize(to);
            }
        };
        (self.tag(), Bytes::new(value)).serialize(to)
    }
}

fn len_behind_its_length(bytes: &[u8]) -> usize {
    let bits = usize::BITS - bytes.len().leading_zeros();
    bits.max(1).div_ceil(7) as usize + bytes.len()
}

impl<'de: 'a, 'a> Deserialize<'de> for Note<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (tag, value) = <(u32, &Bytes)>::deserialize(from)?;
        let note = Note::of(tag, value);
        note.ok_or(D::Error::custom("a step without its name and its value"))
    }
}

/// All notes of one job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes<'a> {
    small: &'a [u8],
    beside: Beside<'a>,
}

/// Steps that are too long for a job's string, by their numbers in an arena, in the order of first writing. None of
/// that job's are in its string then.
///
/// ```text
///   a step:  8 bytes   name   value          bits 48-55 of the first: the name's length - 1
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "as the picture says")]
pub struct Beside<'a> {
    pub numbers: &'a [u32],
    pub values: Option<&'a Arena>,
}

/// See [`Beside`].
pub const NAME_LEN_SHIFT: u32 = 48;

impl<'a> Beside<'a> {
    /// The name and the value of one of them.
    pub fn step(self, number: u32) -> Option<(&'a [u8], &'a [u8])> {
        let (head, rest) = self.values?.get(number)?.split_first_chunk()?;
        let name_len = (u64::from_le_bytes(*head) >> NAME_LEN_SHIFT & 0xff) as usize + 1;
        rest.split_at_checked(name_len)
    }

    /// Names and values, in their order.
    pub fn steps(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.numbers.iter().filter_map(move |&it| self.step(it))
    }
}

/// A job without notes equals one without notes: where steps lie is no difference.
impl PartialEq for Notes<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Notes<'_> {}

impl<'a> Notes<'a> {
    /// Of notes that are all in a string.
    pub fn of(small: &'a [u8]) -> Self {
        let beside = Beside::default();
        Notes { small, beside }
    }

    /// With steps that lie beside the string.
    pub(super) fn with(small: &'a [u8], beside: Beside<'a>) -> Self {
        Notes { small, beside }
    }

    /// Most jobs have none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.small.is_empty() && self.beside.numbers.is_empty()
    }

    /// The notes in the order of their tags, wherever they lie.
    pub fn iter(self) -> impl Iterator<Item = Note<'a>> {
        let of = |is_behind| {
            let parts = parts(self.small).filter(move |it| (it.tag > STEP) == is_behind);
            parts.filter_map(|it| Note::of(it.tag, it.value))
        };
        let step = |(name, value)| Note::Step { name, value };
        let steps = self.beside.steps().map(step);
        of(false).chain(steps).chain(of(true))
    }

    /// The notes that are in the string, each with its place there.
    pub(super) fn in_string(self) -> impl Iterator<Item = (Part<'a>, Note<'a>)> {
        parts(self.small).filter_map(|part| Some((part, Note::of(part.tag, part.value)?)))
    }

    fn get(self, wanted: u32) -> Option<&'a [u8]> {
        let mut upto = parts(self.small).take_while(|part| part.tag <= wanted);
        let found = upto.find(|part| part.tag == wanted);
        found.map(|part| part.value)
    }

    /// As DQ.GET shows it.
    pub fn progress(self) -> Option<&'a [u8]> {
        self.get(PROGRESS)
    }

    /// Its last attempts that failed.
    pub fn history(self) -> History<'a> {
        History(self.get(HISTORY).unwrap_or_default())
    }

    /// As the tests' own note is shown.
    #[cfg(feature = "breakable")]
    pub fn canary(self) -> Option<&'a [u8]> {
        self.get(CANARY)
    }

    /// Names and values, in the order of first writing.
    pub fn steps(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let in_string = self.in_string().filter_map(|(_, note)| match note {
            Note::Step { name, value } => Some((name, value)),
            _ => None,
        });
        in_string.chain(self.beside.steps())
    }

    /// How many steps there are.
    pub fn steps_len(self) -> usize {
        let in_string = parts(self.small).filter(|part| part.tag == STEP);
        in_string.count() + self.beside_len()
    }

    /// How many steps lie beside the string.
    pub(super) fn beside_len(self) -> usize {
        self.beside.numbers.len()
    }

    /// The step that the job waits for, or waited for until it was due.
    pub fn awaits(self) -> Option<&'a [u8]> {
        self.get(AWAITS)
    }

    /// Bytes that count for MAXBYTES.
    pub fn counted(self) -> u64 {
        self.iter().map(|note| note.counted()).sum()
    }

    /// What DONEBYTES counts of a done job's.
    pub fn counted_when_done(self) -> usize {
        self.progress().map_or(0, <[u8]>::len) + self.history().reasons_len()
    }

    /// The steps alone, all in one string.
    pub fn steps_as_string(self) -> Vec<u8> {
        let mut string = Vec::new();
        for (name, value) in self.steps() {
            append(&Note::Step { name, value }, &mut string);
        }
        string
    }

    /// The string that a done job has.
    pub(super) fn when_done(self) -> Vec<u8> {
        let mut kept = Vec::new();
        parts(self.small)
            .filter(|part| part.tag & IN_DONE != 0)
            .for_each(|part| push(part.tag, part.value, &mut kept));
        kept
    }

    /// Checks the string of a done job, which may be forged.
    pub(super) fn check_done(self) -> Result<(), QueueError> {
        check(self.small, |part| match part.tag {
            PROGRESS => check_progress(part.value).map(|()| true),
            HISTORY => History(part.value).check().map(|()| true),
            tag if tag & IN_DONE == 0 || Lasting::of(tag) == Lasting::Terms => {
                Err(QueueError::Malformed("a done job with another one's note"))
            }
            _ => Ok(false),
        })
    }
}

/// An error if a progress cannot be this text.
pub(super) fn check_progress(text: &[u8]) -> Result<(), QueueError> {
    match text.len() <= PROGRESS_MAX {
        true => Ok(()),
        false => Err(QueueError::Malformed(
            "progress longer than any that is kept",
        )),
    }
}
