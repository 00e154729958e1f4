//! Jobs of a snapshot, many in one effect: each row tells how its job differs from the one before.
//!
//! ```text
//!   row:   head   due, seq   [id length] [payload length] [Terms] [Life] [more]   id   payload
//!           │      │
//!           │      └ less those of the row before
//!           └ bits 0-1 place, 2-6 which of the bracketed parts are there, 7 blocked, if the place says successor
//!
//!   more:  a byte, whose bits say what follows: bit 0 a Failure; bit 1 an Occurrence, so that it recurs, and
//!          bit 2 before that a Rule, else it is that of the row before; bit 3 the name of its group, or bit 4
//!          that of the last row that has one; bit 5 the turn of its group, or of the jobs without one: where
//!          some have, the first live row of each tells it
//!
//!   not there:  the lengths and Terms of the row before; a Life of zeros
//! ```
//!
//! A successor stands behind the job that it follows.
//!
//! Numbers are of variable length, as in all effects. The row before the first one is zeros, without Terms.

use super::store::NewJob;
use crate::queue::codec::{append, take};
use crate::queue::error::QueueError;
use crate::queue::job::{Failure, Life, Place, Terms};
use crate::queue::recurring::rule::{Occurrence, Rule};

/// Rows in one effect, at most: a reader holds them at once.
pub const ROWS_MAX: usize = 1024;

const ID_LEN: u8 = 1 << 2;
const PAYLOAD_LEN: u8 = 1 << 3;
const TERMS: u8 = 1 << 4;
const LIFE: u8 = 1 << 5;
const PLACE: u8 = 3;
const MORE: u8 = 1 << 6;
const BLOCKED: u8 = 1 << 7;

/// In the byte behind MORE.
const FAILURE: u8 = 1;
const OCCURRENCE: u8 = 1 << 1;
const RULE: u8 = 1 << 2;
const GROUP: u8 = 1 << 3;
const SAME_GROUP: u8 = 1 << 4;
const TURN: u8 = 1 << 5;

/// Terms that take more bytes are written in each row: a short payload must not become many long ladders.
const REST_SHARED: usize = 64;

/// The values of the row before, which a row may leave out.
struct Before<'a, T, R> {
    due: u64,
    seq: u64,
    id_len: usize,
    payload_len: usize,
    terms: Option<T>,
    rule: Option<R>,
    group: Option<&'a [u8]>,
}

impl<T, R> Default for Before<'_, T, R> {
    fn default() -> Self {
        Before {
            due: 0,
            seq: 0,
            id_len: 0,
            payload_len: 0,
            terms: None,
            rule: None,
            group: None,
        }
    }
}

/// Rows to be written.
#[derive(Default)]
pub struct Rows<'a> {
    bytes: Vec<u8>,
    count: usize,
    before: Before<'a, &'a Terms<'a>, Rule<'a>>,
}

impl<'a> Rows<'a> {
    /// None yet, with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Rows {
            bytes: Vec::with_capacity(bytes),
            ..Rows::default()
        }
    }

    /// Appends a job, which is not checked.
    pub fn push(&mut self, job: &NewJob<'a>) {
        let Rows { bytes, before, .. } = self;
        let shared =
            |terms: &&Terms<'_>| terms.rest.bytes().len() <= REST_SHARED && terms.equals(job.terms);
        let part = |bit, is_there| if is_there { bit } else { 0 };
        let place = match job.place {
            Place::Blocked => Place::Successor as u8 | BLOCKED,
            place => place as u8,
        };
        let head = place
            | part(ID_LEN, job.id.len() != before.id_len)
            | part(PAYLOAD_LEN, job.payload.len() != before.payload_len)
            | part(TERMS, !before.terms.as_ref().is_some_and(shared))
            | part(LIFE, job.life != Life::default())
            | part(MORE, has_more(job));
        bytes.push(head);
        append(&difference(job.due, before.due), bytes);
        append(&difference(job.seq, before.seq), bytes);
        if head & ID_LEN != 0 {
            append(&job.id.len(), bytes);
        }
        if head & PAYLOAD_LEN != 0 {
            append(&job.payload.len(), bytes);
        }
        if head & TERMS != 0 {
            append(job.terms, bytes);
        }
        if head & LIFE != 0 {
            append(&job.life, bytes);
        }
        if head & MORE != 0 {
            push_more(job, before, bytes);
        }
        bytes.extend_from_slice(job.id);
        bytes.extend_from_slice(job.payload);
        self.count += 1;
        *before = Before {
            due: job.due,
            seq: job.seq,
            id_len: job.id.len(),
            payload_len: job.payload.len(),
            terms: Some(job.terms),
            rule: before.rule.take(),
            group: before.group,
        };
    }

    /// What [`Effect::Rows`](crate::queue::effect::Effect::Rows) carries.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether there may be no room for another job with its successor.
    pub fn is_full(&self) -> bool {
        self.count + 1 >= ROWS_MAX
    }

    /// A buffer that one large payload has grown is not kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(64 * 1024);
        self.count = 0;
        self.before = Before::default();
    }
}

fn has_more(job: &NewJob<'_>) -> bool {
    job.failure.is_some() || job.recurring.is_some() || job.group.is_some() || job.turn.is_some()
}

fn push_more<'a, T>(job: &NewJob<'a>, last: &mut Before<'a, T, Rule<'a>>, bytes: &mut Vec<u8>) {
    let rule = job.recurring.as_ref().map(|(rule, _)| rule);
    let is_new = rule.is_some() && rule != last.rule.as_ref();
    let is_same_group = job.group.is_some() && job.group == last.group;
    let part = |bit, is_there| if is_there { bit } else { 0 };
    bytes.push(
        part(FAILURE, job.failure.is_some())
            | part(OCCURRENCE, rule.is_some())
            | part(RULE, is_new)
            | part(GROUP, job.group.is_some() && !is_same_group)
            | part(SAME_GROUP, is_same_group)
            | part(TURN, job.turn.is_some()),
    );
    if let Some(failure) = job.failure {
        append(&failure, bytes);
    }
    if let Some((rule, occurrence)) = &job.recurring {
        if is_new {
            append(rule, bytes);
            last.rule = Some(rule.clone());
        }
        append(occurrence, bytes);
    }
    if let Some(name) = job.group {
        if !is_same_group {
            append(&serde_bytes::Bytes::new(name), bytes);
        }
        last.group = Some(name);
    }
    if let Some(turn) = job.turn {
        append(&turn, bytes);
    }
}

fn difference(number: u64, before: u64) -> i64 {
    number.wrapping_sub(before) as i64
}

/// A row as it was read: its numbers are not checked yet.
pub struct Row<'a> {
    pub id: &'a [u8],
    pub payload: &'a [u8],
    pub seq: u64,
    pub due: u64,
    pub place: Place,
    pub life: Life,
    pub failure: Option<Failure<'a>>,
    /// The number of its rule in the list beside the rows, if it has one, and how far the job has come with it.
    occurrence: Option<(usize, Occurrence)>,
    group: Option<&'a [u8]>,
    turn: Option<u64>,
    /// The number of its terms in the list beside the rows.
    terms: usize,
}

impl<'a> Row<'a> {
    pub fn job(&self, terms: &'a [Terms<'a>], rules: &'a [Rule<'static>]) -> NewJob<'a> {
        let rule =
            |(number, occurrence): (usize, Occurrence)| (rules[number].borrowed(), occurrence);
        NewJob {
            id: self.id,
            payload: self.payload,
            seq: self.seq,
            due: self.due,
            place: self.place,
            terms: &terms[self.terms],
            life: self.life,
            failure: self.failure,
            recurring: self.occurrence.map(rule),
            group: self.group,
            turn: self.turn,
        }
    }
}

/// Rows with the terms and the rules that they have.
#[derive(Default)]
pub struct Read<'a> {
    pub rows: Vec<Row<'a>>,
    pub terms: Vec<Terms<'a>>,
    pub rules: Vec<Rule<'static>>,
    /// Whether any row has a group or a turn.
    pub has_groups: bool,
}

impl Read<'_> {
    pub fn jobs(&self) -> impl Iterator<Item = NewJob<'_>> {
        self.rows
            .iter()
            .map(|row| row.job(&self.terms, &self.rules))
    }
}

pub fn read(mut bytes: &[u8]) -> Result<Read<'_>, QueueError> {
    let mut all = Read::default();
    let mut before = Before::default();
    while !bytes.is_empty() {
        if all.rows.len() == ROWS_MAX {
            return Err(QueueError::Malformed("more rows than are ever written"));
        }
        let row = read_row(&mut bytes, &mut before, &mut all.terms, &mut all.rules);
        let row = row.ok_or(QueueError::Malformed("a row that does not decode"))?;
        all.has_groups |= row.group.is_some() || row.turn.is_some();
        all.rows.push(row);
    }
    Ok(all)
}

/// Shows each job of encoded rows, in turn, to a caller that reads a file and carries nothing out.
pub fn each_job(rows: &[u8], mut see: impl FnMut(&NewJob<'_>)) -> Result<(), QueueError> {
    read(rows)?.jobs().for_each(|job| see(&job));
    Ok(())
}

fn read_row<'a>(
    bytes: &mut &'a [u8],
    before: &mut Before<'a, usize, usize>,
    terms: &mut Vec<Terms<'a>>,
    rules: &mut Vec<Rule<'static>>,
) -> Option<Row<'a>> {
    let head = *bytes.split_off_first()?;
    let place = match head & PLACE {
        place if head & BLOCKED != 0 => match place == Place::Successor as u8 {
            true => Place::Blocked,
            false => return None,
        },
        place if place == Place::Scheduled as u8 => Place::Scheduled,
        place if place == Place::Reserved as u8 => Place::Reserved,
        place if place == Place::Dead as u8 => Place::Dead,
        _ => Place::Successor,
    };
    before.due = before.due.wrapping_add_signed(take(bytes)?);
    before.seq = before.seq.wrapping_add_signed(take(bytes)?);
    if head & ID_LEN != 0 {
        before.id_len = take(bytes)?;
    }
    if head & PAYLOAD_LEN != 0 {
        before.payload_len = take(bytes)?;
    }
    if head & TERMS != 0 {
        before.terms = Some(terms.len());
        terms.push(take(bytes)?);
    } else if terms.last()?.rest.bytes().len() > REST_SHARED {
        return None;
    }
    let life = if head & LIFE != 0 {
        take(bytes)?
    } else {
        Life::default()
    };
    let more = match head & MORE {
        0 => More::default(),
        _ => read_more(bytes, before, rules)?,
    };
    Some(Row {
        id: bytes.split_off(..before.id_len)?,
        payload: bytes.split_off(..before.payload_len)?,
        seq: before.seq,
        due: before.due,
        place,
        life,
        failure: more.failure,
        occurrence: more.occurrence,
        group: more.group,
        turn: more.turn,
        terms: before.terms?,
    })
}

/// What few rows have.
#[derive(Default)]
struct More<'a> {
    failure: Option<Failure<'a>>,
    occurrence: Option<(usize, Occurrence)>,
    group: Option<&'a [u8]>,
    turn: Option<u64>,
}

fn read_more<'a>(
    bytes: &mut &'a [u8],
    before: &mut Before<'a, usize, usize>,
    rules: &mut Vec<Rule<'static>>,
) -> Option<More<'a>> {
    let more = *bytes.split_off_first()?;
    // At least one bit, and no unknown one; no rule without its occurrence; and one group at most.
    let groups = GROUP | SAME_GROUP;
    let fits = more <= (FAILURE | OCCURRENCE | RULE | groups | TURN)
        && more != 0
        && more & (OCCURRENCE | RULE) != RULE
        && more & groups != groups;
    if !fits {
        return None;
    }
    let failure = match more & FAILURE {
        0 => None,
        _ => Some(take(bytes)?),
    };
    if more & RULE != 0 {
        before.rule = Some(rules.len());
        rules.push(take::<Rule<'_>>(bytes)?.into_owned());
    }
    let occurrence = match more & OCCURRENCE {
        0 => None,
        _ => Some((before.rule?, take(bytes)?)),
    };
    if more & GROUP != 0 {
        before.group = Some(take::<&serde_bytes::Bytes>(bytes)?);
    }
    let group = match more & groups {
        0 => None,
        _ => Some(before.group?),
    };
    let turn = match more & TURN {
        0 => None,
        _ => Some(take(bytes)?),
    };
    Some(More {
        failure,
        occurrence,
        group,
        turn,
    })
}

#[cfg(test)]
mod tests;
