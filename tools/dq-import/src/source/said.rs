//! What is said of a job when it is added, by the module's own table.

#[allow(dead_code, reason = "not all columns are of use here")]
#[path = "../../../../src/queue/attr/row.rs"]
mod row;

use row::{Home, Kind, Unsaid, ROWS};

/// Word and field of those that are told as they are, and the number that is not told. Terms are counted on by the
/// deliveries so far, and a TTL by the time.
pub fn told_alike() -> impl Iterator<Item = (&'static str, &'static str, Option<u64>)> {
    let alike = ROWS
        .iter()
        .filter(|row| matches!(row.home, Home::Tag(_) | Home::Group) && row.kind != Kind::Ladder);
    alike.map(|row| {
        let unsaid = match row.unsaid {
            Unsaid::Is(number) => Some(number),
            _ => None,
        };
        (row.word(), row.field(), unsaid)
    })
}
