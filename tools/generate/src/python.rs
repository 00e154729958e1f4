//! The options of the Python library.

use crate::head::{by, OfRows, FROM};
use crate::row::Row;
use crate::shape::{lines, snake, Shape};

pub const FILES: &[OfRows] = &[("clients/python/src/dq/_job_options.py", options)];

fn options(rows: &[Row]) -> String {
    let name = |row: &Row| snake(row.name());
    let kind = |row: &Row| match row.shape() {
        Shape::Duration { .. } => "Duration",
        Shape::Number { .. } => "int",
        Shape::Text { .. } => "str",
        Shape::Ladder => "Ladder",
    };
    let declared = lines(rows, |row| {
        format!(
            "        {}: Optional[{}]\n        \"\"\"{}\"\"\"\n",
            name(row),
            kind(row),
            row.about
        )
    });
    let about = lines(rows, |row| {
        format!("    {:?}: {:?},\n", name(row), row.about)
    });
    let words = lines(rows, |row| {
        let given = format!("{:?}, get({:?})", row.word(), name(row));
        let words = match row.shape() {
            Shape::Duration { least } => format!("ms({given}, {least})"),
            Shape::Number { least, most } => format!("number({given}, {least}, {most})"),
            Shape::Text { most } => format!("text({given}, {most})"),
            Shape::Ladder => format!("ladder(get({:?}))", name(row)),
        };
        format!("        *{words},\n")
    });
    format!(
        r#""""What a job may have.

{by}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

from ._arguments import Ladder, ladder, ms, number, text

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from .times import Duration

    class JobOptions(TypedDict, total=False):
{declared}

ABOUT = {{
{about}}}
"""The options, and what each of them says."""


def job_options(given: Mapping[str, Any]) -> list[Any]:
    get = given.get
    return [
{words}    ]
"#,
        by = by(FROM)
    )
}
