//! What only some jobs have: progress, steps, what they wait for. Each is a [`Note`]; all notes of a job are encoded
//! back to back in a string of bytes, [`Notes`].
//!
//! ```text
//!   notes of a job:   Progress?   Step, Step, ... in the order of first writing   Awaits?
//! ```

use super::error::QueueError;
use serde::{Deserialize, Serialize};

/// Bytes in a step's name, at most; at least one.
pub const STEP_NAME_MAX: usize = 256;

/// An error if a step cannot have the name.
pub fn check_step_name(name: &[u8]) -> Result<(), QueueError> {
    if !(1..=STEP_NAME_MAX).contains(&name.len()) {
        return Err(QueueError::StepNameLength);
    }
    Ok(())
}

/// A note of a job. Variants are only ever appended; [`Note::kind`] is the order in which a job's notes are encoded.
#[allow(
    missing_docs,
    reason = "fields are named as in the commands that set them"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note<'a> {
    /// How far its worker has come.
    Progress {
        #[serde(with = "serde_bytes")]
        text: &'a [u8],
    },
    /// A step that was done, or a signal. At most one with each name.
    Step {
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        #[serde(with = "serde_bytes")]
        value: &'a [u8],
    },
    /// The step that the job waits for.
    Awaits {
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
    },
}

impl Note<'_> {
    /// Bytes that count for MAXBYTES.
    pub fn counted(&self) -> u64 {
        match self {
            Note::Step { name, value } => (name.len() + value.len()) as u64,
            Note::Progress { .. } | Note::Awaits { .. } => 0,
        }
    }

    /// Its place in the order of a job's notes.
    pub(super) fn kind(&self) -> u8 {
        match self {
            Note::Progress { .. } => 0,
            Note::Step { .. } => 1,
            Note::Awaits { .. } => 2,
        }
    }

    /// Whether it replaces the other note of the same job.
    pub(super) fn replaces(&self, other: &Note<'_>) -> bool {
        match (self, other) {
            (Note::Step { name, .. }, Note::Step { name: other, .. }) => name == other,
            _ => self.kind() == other.kind(),
        }
    }
}

/// All notes of one job, encoded one behind the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes<'a>(&'a [u8]);

impl<'a> Notes<'a> {
    /// Of notes that are encoded back to back.
    pub fn of(bytes: &'a [u8]) -> Self {
        Notes(bytes)
    }

    /// The notes as encoded.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Most jobs have none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The notes, in the order in which they are encoded.
    pub fn iter(self) -> impl Iterator<Item = Note<'a>> {
        self.parts().map(|(_, note)| note)
    }

    /// Each note, with the bytes behind it.
    pub(super) fn parts(self) -> impl Iterator<Item = (&'a [u8], Note<'a>)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (note, behind) = postcard::take_from_bytes(rest).ok()?;
            rest = behind;
            Some((behind, note))
        })
    }

    /// As DQ.GET shows it.
    pub fn progress(self) -> Option<&'a [u8]> {
        self.iter().find_map(|note| match note {
            Note::Progress { text } => Some(text),
            _ => None,
        })
    }

    /// Names and values, in the order of first writing.
    pub fn steps(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.iter().filter_map(|note| match note {
            Note::Step { name, value } => Some((name, value)),
            _ => None,
        })
    }

    /// The value of a step.
    pub fn step(self, wanted: &[u8]) -> Option<&'a [u8]> {
        let mut steps = self.steps();
        steps
            .find(|&(name, _)| name == wanted)
            .map(|(_, value)| value)
    }

    /// The step that the job waits for, or waited for until it was due.
    pub fn awaits(self) -> Option<&'a [u8]> {
        self.iter().find_map(|note| match note {
            Note::Awaits { name } => Some(name),
            _ => None,
        })
    }

    /// Bytes that count for MAXBYTES.
    pub fn counted(self) -> u64 {
        self.iter().map(|note| note.counted()).sum()
    }
}
