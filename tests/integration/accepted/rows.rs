//! Forged rows of a snapshot: jobs with failures, rules and successors, encoded as src/queue/state/rows.rs describes,
//! and without any check.

use dq::queue::job::{Failure, Life, Place, Terms};
use dq::queue::recurring::rule::{Occurrence, Rule};
use serde::Serialize;

#[derive(Debug)]
pub struct Row {
    pub id: Vec<u8>,
    pub place: Place,
    pub seq: u64,
    pub due: u64,
    pub life: Life,
    pub terms: Terms<'static>,
    pub failure: Option<Failure<'static>>,
    pub recurring: Option<(Rule<'static>, Occurrence)>,
}

/// Encodes each row completely, without leaving out what the row before has.
pub fn written(rows: &[Row]) -> Vec<u8> {
    const ALL_PARTS: u8 = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5;
    let mut bytes = Vec::new();
    let mut before = (0u64, 0u64);
    for row in rows {
        let has_more = row.failure.is_some() || row.recurring.is_some();
        bytes.push(row.place as u8 | ALL_PARTS | (u8::from(has_more) << 6));
        append(&(row.due.wrapping_sub(before.0) as i64), &mut bytes);
        append(&(row.seq.wrapping_sub(before.1) as i64), &mut bytes);
        append(&row.id.len(), &mut bytes);
        append(&1usize, &mut bytes);
        append(&row.terms, &mut bytes);
        append(&row.life, &mut bytes);
        if has_more {
            bytes.push(u8::from(row.failure.is_some()) | (6 * u8::from(row.recurring.is_some())));
        }
        row.failure.iter().for_each(|it| append(it, &mut bytes));
        if let Some((rule, occurrence)) = &row.recurring {
            append(rule, &mut bytes);
            append(occurrence, &mut bytes);
        }
        bytes.extend(&row.id);
        bytes.push(b'x');
        before = (row.due, row.seq);
    }
    bytes
}

fn append(value: &impl Serialize, bytes: &mut Vec<u8>) {
    let mut room = [0; 16_384];
    let written = postcard::to_slice(value, &mut room).expect("room enough");
    bytes.extend_from_slice(written);
}
