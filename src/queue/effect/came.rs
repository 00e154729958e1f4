//! A job that came.

use crate::queue::after::After;
use crate::queue::event::Event;
use crate::queue::job::Terms;
use crate::queue::recurring::rule::{Next, Rule};
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::Bytes;
use std::fmt;

/// A job that came, in place of one with the same id if there was one.
///
/// ```text
///   head   id   payload   Terms   [group]   [due   [expires]]   [After]   [Rule   [Next]]
///    └ bits 0-2 how, 3 it has a group, 4 it expires
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "fields are named as in the commands that set them"
)]
pub struct Came<'a> {
    pub id: &'a [u8],
    pub payload: &'a [u8],
    pub terms: Terms<'a>,
    pub group: Option<&'a [u8]>,
    pub how: How<'a>,
}

/// How a job came. `expires` is 0 for never.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "fields are named as in the commands that set them"
)]
pub enum How<'a> {
    New {
        due: u64,
        expires: u64,
    },
    /// As the successor of the job with its id, in place of an earlier successor if there was one.
    Behind {
        due: u64,
        expires: u64,
    },
    /// After others. `due` is an instant, or a delay: see [`After::is_timed`].
    After {
        due: u64,
        expires: u64,
        after: After<'a>,
    },
    /// With a rule, and its first occurrence.
    Recurs {
        rule: Rule<'a>,
        first: Next,
    },
    /// With a rule of the same pattern as the job that it replaces: the current occurrence stays as it is.
    Renewed {
        rule: Rule<'a>,
    },
}

const NEW: u8 = 0;
const BEHIND: u8 = 1;
const AFTER: u8 = 2;
const RECURS: u8 = 3;
const RENEWED: u8 = 4;
const HOW: u8 = 7;
const GROUP: u8 = 1 << 3;
const EXPIRES: u8 = 1 << 4;

impl Came<'_> {
    pub(in crate::queue) fn events(&self) -> &'static [Event] {
        match &self.how {
            How::New { .. } | How::Recurs { .. } | How::Renewed { .. } => &[Event::Add],
            How::After { after, .. } if after.dies => &[Event::Add, Event::Dead],
            How::After { .. } => &[Event::Add],
            How::Behind { .. } => &[],
        }
    }
}

impl Serialize for Came<'_> {
    #[inline]
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (how, instants) = match self.how {
            How::New { due, expires } => (NEW, Some((due, expires))),
            How::Behind { due, expires } => (BEHIND, Some((due, expires))),
            How::After { due, expires, .. } => (AFTER, Some((due, expires))),
            How::Recurs { .. } => (RECURS, None),
            How::Renewed { .. } => (RENEWED, None),
        };
        let (_, expires) = instants.unwrap_or_default();
        let bit = |bit, is_there| if is_there { bit } else { 0 };
        let head = how | bit(GROUP, self.group.is_some()) | bit(EXPIRES, expires != 0);
        let mut to = to.serialize_tuple(0)?;
        to.serialize_element(&head)?;
        to.serialize_element(Bytes::new(self.id))?;
        to.serialize_element(Bytes::new(self.payload))?;
        to.serialize_element(&self.terms)?;
        if let Some(group) = self.group {
            to.serialize_element(Bytes::new(group))?;
        }
        if let Some((due, _)) = instants {
            to.serialize_element(&due)?;
        }
        if expires != 0 {
            to.serialize_element(&expires)?;
        }
        match &self.how {
            How::New { .. } | How::Behind { .. } => {}
            How::After { after, .. } => to.serialize_element(after)?,
            How::Recurs { rule, first } => to.serialize_element(&(rule, first))?,
            How::Renewed { rule } => to.serialize_element(rule)?,
        }
        to.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Came<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // No job has more parts.
        from.deserialize_tuple(8, Parts)
    }
}

struct Parts;

fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(parts: &mut A) -> Result<T, A::Error> {
    let part = parts.next_element()?;
    part.ok_or_else(|| A::Error::custom("a job without one of its parts"))
}

impl<'de> Visitor<'de> for Parts {
    type Value = Came<'de>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a job that came")
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Came<'de>, A::Error> {
        let parts = &mut parts;
        let head: u8 = next(parts)?;
        let bytes = |bytes: &'de Bytes| -> &'de [u8] { bytes };
        let (id, payload) = (bytes(next(parts)?), bytes(next(parts)?));
        let terms = next(parts)?;
        let group = match head & GROUP {
            0 => None,
            _ => Some(bytes(next(parts)?)),
        };
        let (due, expires) = match head & HOW {
            NEW | BEHIND | AFTER if head & EXPIRES != 0 => (next(parts)?, next(parts)?),
            NEW | BEHIND | AFTER => (next(parts)?, 0),
            _ => (0, 0),
        };
        let how = match head & !GROUP & !EXPIRES {
            NEW => How::New { due, expires },
            BEHIND => How::Behind { due, expires },
            AFTER => How::After {
                due,
                expires,
                after: next(parts)?,
            },
            RECURS => {
                let (rule, first) = next(parts)?;
                How::Recurs { rule, first }
            }
            RENEWED => How::Renewed { rule: next(parts)? },
            _ => return Err(A::Error::custom("a job that came in another way")),
        };
        Ok(Came {
            id,
            payload,
            terms,
            group,
            how,
        })
    }
}
