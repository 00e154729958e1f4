//! The table, and the same as JSON.

use std::fmt::Write;

use super::stats::{least, median, most};

/// What a row has to reach: the least, and the aim.
#[derive(Clone, Copy)]
pub enum Goal {
    /// The other needs this many times as much.
    Better(f64, f64),
    /// Ours needs at most this many times as much as the other. An infinite bound is none.
    AtMost(f64, f64),
    /// Ours needs at most so much more than the other.
    More(f64, f64),
    /// Ours stays below.
    Below(f64, f64),
    /// Not in the list of goals: told for what it is worth.
    Told,
}

impl Goal {
    fn score(self, ours: f64, other: f64) -> f64 {
        match self {
            Goal::Better(..) => other / ours,
            Goal::AtMost(..) | Goal::Told => ours / other,
            Goal::More(..) => ours - other,
            Goal::Below(..) => ours,
        }
    }

    fn bounds(self) -> Option<(f64, f64)> {
        match self {
            Goal::Better(at_least, aim)
            | Goal::AtMost(at_least, aim)
            | Goal::More(at_least, aim)
            | Goal::Below(at_least, aim) => Some((at_least, aim)),
            Goal::Told => None,
        }
    }

    fn is_reached(self, score: f64, bound: f64) -> bool {
        match self {
            Goal::Better(..) => score >= bound,
            _ => score <= bound,
        }
    }

    fn verdict(self, score: f64) -> &'static str {
        match self.bounds() {
            None => "",
            Some((_, aim)) if self.is_reached(score, aim) => "aim",
            Some((at_least, _)) if at_least.is_infinite() => "short of aim",
            Some((at_least, _)) if self.is_reached(score, at_least) => "at least",
            Some(_) => "MISSED",
        }
    }

    /// A bound or a score in words.
    fn text(self, value: f64, unit: &str) -> String {
        match self {
            _ if value.is_infinite() => String::new(),
            Goal::Better(..) => format!("{}x better", short(value)),
            Goal::AtMost(..) | Goal::Told => format!("{}x", short(value)),
            Goal::More(..) => format!("{value:+.3} {unit}"),
            Goal::Below(..) => format!("{} {unit}", short(value)),
        }
    }
}

/// One line of the table. Scores are taken within a round, then the median of all rounds.
pub struct Row {
    what: String,
    other_is: String,
    unit: &'static str,
    goal: Goal,
    ours: Vec<f64>,
    other: Vec<f64>,
    score: f64,
    scores: Vec<f64>,
}

impl Row {
    pub fn paired(
        what: impl Into<String>,
        other_is: impl Into<String>,
        unit: &'static str,
        goal: Goal,
        (ours, other): (&[f64], &[f64]),
    ) -> Row {
        let pairs = ours.iter().zip(other);
        let scores: Vec<f64> = pairs.map(|(&a, &b)| goal.score(a, b)).collect();
        Row {
            what: what.into(),
            other_is: other_is.into(),
            unit,
            goal,
            ours: ours.to_vec(),
            other: other.to_vec(),
            score: median(&scores),
            scores,
        }
    }

    /// Ours alone, against a bound.
    pub fn alone(what: impl Into<String>, unit: &'static str, goal: Goal, ours: &[f64]) -> Row {
        let nothing = vec![f64::NAN; ours.len()];
        Row::paired(what, "", unit, goal, (ours, &nothing))
    }

    /// Counts the least of the rounds instead of the median: for the worst case of each round, to which
    /// whatever else the machine does only adds.
    pub fn least(mut self) -> Row {
        self.score = self.goal.score(least(&self.ours), least(&self.other));
        self
    }

    fn cells(&self) -> [String; 9] {
        let bounds = self.goal.bounds();
        let bound = |value| self.goal.text(value, self.unit);
        let figure = |values: &[f64]| match median(values) {
            value if value.is_nan() => String::new(),
            value => format!("{} {}", short(value), self.unit),
        };
        let score = |value: f64| match value {
            value if value.is_nan() => String::new(),
            value => bound(value),
        };
        let (from, to) = (least(&self.scores), most(&self.scores));
        [
            self.what.clone(),
            figure(&self.ours),
            self.other_is.clone(),
            figure(&self.other),
            score(self.score),
            bounds.map_or(String::new(), |(at_least, _)| bound(at_least)),
            bounds.map_or(String::new(), |(_, aim)| bound(aim)),
            self.goal.verdict(self.score).to_owned(),
            match from.is_finite() {
                true => format!("{} .. {}", short(from), short(to)),
                false => format!(
                    "{} .. {}",
                    short(least(&self.ours)),
                    short(most(&self.ours))
                ),
            },
        ]
    }

    fn json(&self) -> String {
        let (at_least, aim) = self.goal.bounds().unwrap_or((f64::NAN, f64::NAN));
        format!(
            "{{\"what\": {}, \"unit\": {}, \"other_is\": {}, \"ours\": {}, \"other\": {}, \
             \"score\": {}, \"at_least\": {}, \"aim\": {}, \"verdict\": {}, \"cells\": [{}]}}",
            quoted(&self.what),
            quoted(self.unit),
            quoted(&self.other_is),
            numbers(&self.ours),
            numbers(&self.other),
            number(self.score),
            number(at_least),
            number(aim),
            quoted(self.goal.verdict(self.score)),
            self.cells().map(|cell| quoted(&cell)).join(", "),
        )
    }
}

/// Figures for a plot.
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// What one subject found out.
#[derive(Default)]
pub struct Part {
    pub rows: Vec<Row>,
    pub curves: Vec<Curve>,
    /// How it was measured.
    pub how: String,
}

const HEAD: [&str; 9] = [
    "what",
    "ours",
    "the other",
    "",
    "ratio",
    "at least",
    "aim",
    "verdict",
    "spread",
];

/// The table of all parts, by their names, and below it how each was measured.
pub fn table(parts: &[(&str, Part)]) -> String {
    let cells: Vec<[String; 9]> = std::iter::once(HEAD.map(str::to_owned))
        .chain(
            parts
                .iter()
                .flat_map(|(_, part)| part.rows.iter().map(Row::cells)),
        )
        .collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 9] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for (number, row) in cells.iter().enumerate() {
        let padded = |(cell, width): (&String, usize)| format!("{cell:width$}");
        let line: Vec<String> = row.iter().zip(widths).map(padded).collect();
        let _ = writeln!(text, "{}", line.join("  ").trim_end());
        if number == 0 {
            let _ = writeln!(text, "{}", "-".repeat(widths.iter().sum::<usize>() + 16));
        }
    }
    for (name, part) in parts {
        let _ = write!(text, "\n{name} (make bench ONLY={name})\n{}", part.how);
    }
    text
}

pub fn json(about: &[(&str, String)], parts: &[(&str, Part)]) -> String {
    let about: Vec<String> = about
        .iter()
        .map(|(name, value)| format!("{}: {},\n", quoted(name), quoted(value)))
        .collect();
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, part)| {
            let rows: Vec<String> = part.rows.iter().map(Row::json).collect();
            let curves: Vec<String> = part.curves.iter().map(Curve::json).collect();
            format!(
                "{}: {{\"how\": {},\n\"rows\": [\n{}],\n\"curves\": {{{}}}}}",
                quoted(name),
                quoted(&part.how),
                rows.join(",\n"),
                curves.join(",\n")
            )
        })
        .collect();
    format!(
        "{{\n{}\"parts\": {{\n{}}}}}\n",
        about.concat(),
        parts.join(",\n")
    )
}

impl Curve {
    fn json(&self) -> String {
        let pair = |&(x, y): &(f64, f64)| numbers(&[x, y]);
        let points: Vec<String> = self.points.iter().map(pair).collect();
        format!("{}: [{}]", quoted(&self.name), points.join(", "))
    }
}

fn numbers(values: &[f64]) -> String {
    let values: Vec<String> = values.iter().map(|&value| number(value)).collect();
    format!("[{}]", values.join(", "))
}

fn number(value: f64) -> String {
    match value.is_finite() {
        true => value.to_string(),
        false => "null".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}

/// Three digits that count.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
