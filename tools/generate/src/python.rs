//! The options of the Python library.

use crate::head::{by, OfRows, FROM};
use crate::row::Row;
use crate::shape::{capital, corrections, lines, snake, Shape};

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
    let corrected = corrections(rows, |row| {
        let (name, kind, about) = (name(row), kind(row), capital(&row.corrects()));
        let given = format!("{{{name:?}: {name}}}");
        let called = format!("    set_{name}.__qualname__ = \"Job.set_{name}\"  # Python's own errors begin with it\n\n");
        format!("    def set_{name}(self, {name}: {kind}) -> R:\n        \"\"\"{about}\"\"\"\n        return self._correct({given})\n\n{called}")
    });
    format!(
        r#""""What a job may have.

{by}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar

from ._arguments import Ladder, ladder, ms, number, text

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from .times import Duration

    class JobOptions(TypedDict, total=False):
{declared}

R = TypeVar("R")

ABOUT = {{
{about}}}
"""The options, and what each of them says."""


def job_options(given: Mapping[str, Any]) -> list[Any]:
    get = given.get
    return [
{words}    ]


class Corrections(Generic[R]):
    """What a handler sets anew for its delivery. R: None, or what is awaited."""

    __slots__ = ()

{corrected}    def _correct(self, given: Mapping[str, Any]) -> R:
        raise NotImplementedError
"#,
        by = by(FROM)
    )
}
