//! The options of the Rust library, and what its probe reads of them.

use crate::head::{by, OfRows, FROM};
use crate::row::Row;
use crate::shape::{capital, comment, corrections, lines, snake, Shape};

pub const FILES: &[OfRows] = &[
    ("clients/rust/src/queue/said.rs", options),
    ("clients/rust/probe/src/said.rs", probe),
];

fn kind(row: &Row) -> &'static str {
    match row.shape() {
        Shape::Duration { .. } => "Duration",
        Shape::Number { least: ..0, .. } => "i32",
        Shape::Number { most, .. } if most <= i64::from(u32::MAX) => "u32",
        Shape::Number { .. } => "u64",
        Shape::Text { .. } => "String",
        Shape::Ladder => "Vec<Duration>",
    }
}

fn options(rows: &[Row]) -> String {
    let name = |row: &Row| snake(row.name());
    let methods = lines(rows, |row| {
        let name = name(row);
        let (kind, value) = match row.shape() {
            Shape::Text { .. } => ("impl Into<String>", format!("{name}.into()")),
            Shape::Ladder => {
                let kind = "impl IntoIterator<Item = Duration>";
                (kind, format!("{name}.into_iter().collect()"))
            }
            _ => (kind(row), name.clone()),
        };
        let about = comment("        ///", row.about);
        format!(
            "{about}        pub fn {name}(self, {name}: {kind}) -> Self {{
            let value = {value};
            self.with(|o| o.said.{name} = Some(value))
        }}
"
        )
    });
    let fields = lines(rows, |row| {
        format!("    pub {}: Option<{}>,\n", name(row), kind(row))
    });
    let words = lines(rows, |row| {
        let (word, value) = match row.shape() {
            Shape::Ladder => {
                return format!("        ladder(to, self.{}.as_deref());\n", name(row));
            }
            Shape::Duration { .. } => (row.word(), format!("self.{}.map(ms)", name(row))),
            Shape::Text { .. } => (row.word(), format!("self.{}.as_deref()", name(row))),
            Shape::Number { .. } => (row.word(), format!("self.{}", name(row))),
        };
        format!("        value(to, {word:?}, {value});\n")
    });
    let checks = lines(rows, |row| {
        let given = format!("self.{}", name(row));
        match row.shape() {
            Shape::Duration { least } => {
                format!(
                    "        bounds::lengths([({:?}, {given}, {least})])?;\n",
                    row.name()
                )
            }
            // Its type bounds it.
            Shape::Number { least: ..0, .. } => String::new(),
            Shape::Number { least: 0, most } if most == i64::from(u32::MAX) => String::new(),
            Shape::Number { least, most } => format!(
                "        bounds::number({:?}, {given}.map(u64::from), {least}, {most})?;\n",
                row.name()
            ),
            Shape::Text { most } => {
                format!(
                    "        bounds::text({:?}, {given}.as_ref(), {most})?;\n",
                    row.name()
                )
            }
            Shape::Ladder => format!("        bounds::backoff({given}.as_ref())?;\n"),
        }
    });
    let corrected = |args: &str, made: &str, call: &str| {
        corrections(rows, |row| {
            let (name, kind, about) = (name(row), kind(row), capital(&row.corrects()));
            let about = comment("        ///", &about);
            let said = format!("Said {{ {name}: Some({name}), ..Said::default() }}");
            format!("{about}        pub async fn set_{name}(&self, {args}{name}: {kind}) -> Result<{made}, Error> {{\n            self.correct({call}{said}).await\n        }}\n")
        })
    };
    let of_queue = corrected(
        "id: impl AsRef<[u8]>, token: &str, ",
        "bool",
        "id.as_ref(), token, ",
    );
    let of_job = corrected("", "()", "");
    format!(
        "//! What a job may have.
//!
//! {by}

use crate::bounds;
use crate::error::Error;
use crate::values::ms;
use redis::{{Cmd, ToRedisArgs}};
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Said {{
{fields}}}

fn value(to: &mut Cmd, word: &str, value: Option<impl ToRedisArgs>) {{
    if let Some(value) = value {{
        to.arg(word).arg(value);
    }}
}}

fn ladder(to: &mut Cmd, steps: Option<&[Duration]>) {{
    if let Some(steps) = steps {{
        to.arg(\"BACKOFF\").arg(steps.len());
        steps.iter().for_each(|step| _ = to.arg(ms(*step)));
    }}
}}

#[rustfmt::skip]
impl Said {{
    pub(crate) fn words(&self, to: &mut Cmd) {{
{words}    }}

    pub(crate) fn check(&self) -> Result<(), Error> {{
{checks}        Ok(())
    }}
}}

/// The methods that set something for one delivery. A queue's renew the lease, and return false if the token is not the
/// job's current one.
#[rustfmt::skip]
macro_rules! corrected {{
    (queue) => {{
{of_queue}    }};
    (job) => {{
{of_job}    }};
}}
pub(crate) use corrected;

/// The methods, for each type that holds options.
#[rustfmt::skip]
macro_rules! said {{
    () => {{
{methods}    }};
}}
pub(super) use said;
",
        by = by(FROM)
    )
}

fn probe(rows: &[Row]) -> String {
    let said = lines(rows, |row| {
        let name = snake(row.name());
        let value = match row.shape() {
            Shape::Duration { .. } => format!("$args.length({name:?})"),
            Shape::Ladder => format!("$args.lengths({name:?})"),
            Shape::Text { .. } => format!("$args.get({name:?}).map(|_| $args.text({name:?}))"),
            Shape::Number { .. } => {
                format!("$args.integer({name:?}).map(|it| it as {})", kind(row))
            }
        };
        format!("        if let Some(value) = {value} {{\n            $job = $job.{name}(value);\n        }}\n")
    });
    format!(
        "//! {by}

/// Says of a job what the arguments do.
#[rustfmt::skip]
macro_rules! said {{
    ($job:ident, $args:ident) => {{
{said}    }};
}}
pub(crate) use said;
",
        by = by(FROM)
    )
}
