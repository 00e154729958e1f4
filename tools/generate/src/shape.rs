//! What the writers of all languages ask of a row.

use crate::row::{Home, Kind, Row, Unsaid};

/// What a user gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Whole milliseconds on the wire.
    Duration {
        least: i64,
    },
    Number {
        least: i64,
        most: i64,
    },
    Text {
        most: usize,
    },
    Ladder,
}

impl Row {
    pub fn shape(&self) -> Shape {
        match self.kind {
            Kind::Number { unit, least, .. } if unit == c"ms" => Shape::Duration { least },
            Kind::Number { least, most, .. } => Shape::Number { least, most },
            Kind::Text(most) => Shape::Text { most },
            Kind::Ladder => Shape::Ladder,
        }
    }

    /// Whether 0 is something other than nothing said.
    pub fn has_zero(&self) -> bool {
        let is_zero = matches!(self.unsaid, Unsaid::Is(0));
        matches!(self.kind, Kind::Number { least: ..=0, .. }) && !is_zero
    }

    /// Whether DQ.TOUCH sets it, for the current delivery alone.
    pub fn is_corrected(&self) -> bool {
        self.set_by.contains(&"TOUCH")
    }

    /// For the libraries' users, of the method that does.
    pub fn corrects(&self) -> String {
        let about = self.about.split(';').next().unwrap_or_default();
        let (first, rest) = about.trim_end_matches('.').split_at(1);
        format!("sets it for this delivery: {}{rest}.", first.to_lowercase())
    }

    /// Its kind in the table of the fields of a job: see `fields.rs`.
    pub fn field_kind(&self) -> &'static str {
        match (self.shape(), self.home, self.unsaid) {
            (_, Home::Expires, _) => "instant?",
            (Shape::Duration { .. }, _, Unsaid::Nothing(_)) => "duration?",
            (Shape::Duration { .. }, ..) => "duration",
            (Shape::Number { least: ..0, .. }, ..) => "number",
            (Shape::Number { .. }, _, Unsaid::Is(1)) => "count=1",
            (Shape::Number { .. }, ..) => "count",
            (Shape::Text { .. }, ..) => "id?",
            (Shape::Ladder, ..) => "durations",
        }
    }
}

pub fn snake(name: &str) -> String {
    name.replace('-', "_")
}

pub fn pascal(name: &str) -> String {
    match name {
        "id" | "ttr" | "ttl" => name.to_uppercase(),
        _ => name.split('-').map(capital).collect(),
    }
}

pub fn camel(name: &str) -> String {
    let (first, rest) = name.split_at(name.find('-').unwrap_or(name.len()));
    first.to_owned() + &rest.split('-').map(capital).collect::<String>()
}

pub fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_uppercase() + rest
}

/// One line for each row.
pub fn lines(rows: &[Row], line: impl Fn(&Row) -> String) -> String {
    rows.iter().map(line).collect()
}

/// One line for each row that DQ.TOUCH sets.
pub fn corrections(rows: &[Row], line: impl Fn(&Row) -> String) -> String {
    let corrected = rows.iter().filter(|row| row.is_corrected());
    corrected.map(line).collect()
}

/// The text in lines of at most 120 characters, each behind `before`.
pub fn comment(before: &str, text: &str) -> String {
    let mut lines = vec![before.to_owned()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        if lines[last].len() + 1 + word.len() > 120 {
            lines.push(before.to_owned());
        }
        let line = lines.last_mut().expect("there is one");
        line.push(' ');
        line.push_str(word);
    }
    lines.join("\n") + "\n"
}
