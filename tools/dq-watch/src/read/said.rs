//! What was said of a job when it was added, by the module's own table: a new option of `DQ.ADD` is shown, and goes along
//! when a job is added once more, as soon as it stands there.

#[allow(dead_code, reason = "not all columns are of use here")]
#[path = "../../../../src/queue/attr/row.rs"]
mod row;

use row::{Home, Kind, Row, Unsaid, ROWS};

/// A field of DQ.GET that is not what jobs have that do not say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// As in DQ.GET.
    pub name: &'static str,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    Millis(u64),
    Text(Vec<u8>),
}

/// Those that stand with a job's tagged values; the others have fields of their own. BACKOFF is among its terms.
fn tagged() -> impl Iterator<Item = &'static Row> {
    let is_tagged = |row: &&Row| matches!(row.home, Home::Tag(_)) && row.kind != Kind::Ladder;
    ROWS.iter().filter(is_tagged)
}

/// What a job says, given how its fields are read.
pub fn of(
    number: impl Fn(&str) -> Option<u64>,
    text: impl Fn(&str) -> Option<Vec<u8>>,
) -> Vec<Said> {
    let value = |row: &Row| match (row.kind, row.unsaid) {
        (Kind::Text(_), _) => text(row.field()).map(Value::Text),
        (Kind::Number { unit, .. }, _) if unit == c"ms" => number(row.field()).map(Value::Millis),
        (_, Unsaid::Is(unsaid)) => number(row.field())
            .filter(|&it| it != unsaid)
            .map(Value::Number),
        _ => number(row.field()).map(Value::Number),
    };
    let said = tagged().filter_map(|row| {
        let name = row.field();
        Some(Said {
            name,
            value: value(row)?,
        })
    });
    said.collect()
}

/// The names for the script that adds a job once more.
pub fn names() -> String {
    let names = tagged().map(|row| format!("'{}', ", row.field()));
    names.collect()
}
