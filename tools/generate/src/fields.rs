//! One table of docs/libraries.md lists the fields of a job. The records of the five libraries are written from it.

use crate::docs::LIBRARIES;
use crate::head::{by, by_for_go, OfPage};
use crate::page::rows;
use crate::shape::{camel, pascal, snake};

struct Field<'a> {
    /// The name that the server uses, such as `max-attempts`.
    name: &'a str,
    kind: &'a str,
    value: String,
}

fn fields(page: &str) -> Vec<Field<'_>> {
    let rows = rows::<3>(page, "## Fields of a job");
    assert!(rows.len() > 25, "{} are not all", rows.len());
    let field = |[name, kind, value]: [_; 3]| Field {
        name: str::trim_matches(name, '`'),
        kind,
        value: format!("{value}."),
    };
    rows.into_iter().map(field).collect()
}

/// A type, and the expression that reads it: `{}` is the field's name in quotes.
type Kind = (&'static str, &'static str);

/// The type of each kind in Python, Node.js, Go, Java, Rust.
#[rustfmt::skip]
const KINDS: [(&str, [Kind; 5]); 20] = [
    ("id", [("str", "id_from(fields[{}])"), ("string", "toText(get({}))"), ("string", "resp.Text(fields[{}])"),
        ("String", "Reply.text(fields.get({}))"), ("String", "it.text({}).unwrap_or_default()")]),
    ("id?", [("Optional[str]", "maybe_id(fields.get({}))"), ("string | null", "maybeId(get({}))"), ("string", "resp.Text(fields[{}])"),
        ("String", "Reply.text(fields.get({}))"), ("Option<String>", "it.text({})")]),
    ("text?", [("Optional[str]", "prose(fields.get({}))"), ("string | null", "maybeText(get({}))"), ("string", "resp.Text(fields[{}])"),
        ("String", "Reply.prose(fields.get({}))"), ("Option<String>", "it.text({})")]),
    ("word?", [("Optional[str]", "prose(fields.get({}))"), ("string | null", "maybeText(get({}))"), ("OnDead", "onDeadOf(fields[{}])"),
        ("String", "Reply.text(fields.get({}))"), ("Option<String>", "it.text({})")]),
    ("bytes", [("bytes", "fields[{}]"), ("Buffer", "get({})"), ("[]byte", "resp.Bytes(fields[{}])"),
        ("byte[]", "(byte[]) fields.get({})"), ("Vec<u8>", "it.bytes({}).unwrap_or_default()")]),
    ("bytes?", [("Optional[bytes]", "fields.get({})"), ("Buffer | null", "get({}) ?? null"), ("[]byte", "resp.Value(fields[{}])"),
        ("byte[]", "(byte[]) fields.get({})"), ("Option<Vec<u8>>", "it.bytes({})")]),
    ("state", [("str", "fields[{}].decode()"), ("State", "String(get({})) as State"), ("State", "State(resp.Text(fields[{}]))"),
        ("State", "State.of(fields.get({}))"), ("State", "it.state({})")]),
    ("number", [("int", "fields[{}]"), ("number", "Number(get({}))"), ("int", "int(resp.Int(fields[{}]))"),
        ("int", "(int) Reply.number(fields.get({}))"), ("i32", "it.int({}) as i32")]),
    ("count", [("int", "fields[{}]"), ("number", "Number(get({}))"), ("int", "int(resp.Int(fields[{}]))"),
        ("int", "(int) Reply.number(fields.get({}))"), ("u32", "it.int({}) as u32")]),
    ("size", [("int", "fields.get({}, 0)"), ("number", "Number(get({}) ?? 0)"), ("int64", "resp.Int(fields[{}])"),
        ("long", "Reply.number(fields.get({}))"), ("u64", "it.int({}) as u64")]),
    ("count=1", [("int", "fields.get({}, 1)"), ("number", "Number(get({}) ?? 1)"), ("int", "int(resp.Int(fields[{}]))"),
        ("int", "fields.containsKey({}) ? (int) Reply.number(fields.get({})) : 1"), ("u32", "it.maybe_int({}).unwrap_or(1) as u32")]),
    ("instant?", [("Optional[datetime]", "maybe_from_ms(fields.get({}))"), ("Date | null", "maybeFromMs(get({}))"),
        ("time.Time", "resp.Time(fields[{}])"), ("Instant", "Reply.instant(fields.get({}))"), ("Option<SystemTime>", "it.instant({})")]),
    ("duration", [("timedelta", "timedelta(milliseconds=fields[{}])"), ("number", "Number(get({}))"),
        ("time.Duration", "resp.Duration(fields[{}])"), ("Duration", "Reply.duration(fields.get({}))"),
        ("Duration", "it.duration({}).unwrap_or_default()")]),
    ("duration?", [("Optional[timedelta]", "maybe_duration(fields.get({}))"), ("number | null", "maybeNumber(get({}))"),
        ("*time.Duration", "resp.MaybeDuration(fields[{}])"), ("Duration", "Reply.duration(fields.get({}))"),
        ("Option<Duration>", "it.duration({})")]),
    ("durations", [("list[timedelta]", "durations(fields[{}])"), ("number[]", "get({}).map(Number)"),
        ("[]time.Duration", "resp.Durations(fields[{}])"), ("List<Duration>", "Reply.ladder(fields.get({}))"),
        ("Vec<Duration>", "it.durations({})")]),
    ("rule?", [("Optional[Rule]", "Rule.read(fields)"), ("Rule | null", "rule(fields)"), ("*Rule", "ruleOf(fields)"),
        ("Rule", "Rule.of(fields)"), ("Option<Rule>", "Rule::of(&it)")]),
    ("ids", [("list[str]", "ids_of(fields.get({}))"), ("string[]", "(get({}) ?? []).map(toText)"), ("[]string", "resp.Texts(fields[{}])"),
        ("List<String>", "Reply.list(fields.get({})).stream().map(Reply::text).toList()"), ("Vec<String>", "it.texts({})")]),
    ("steps", [("Mapping[str, bytes]", "steps_of(fields.get({}))"), ("ReadonlyMap<string, Buffer>", "stepsOf(get({}))"),
        ("map[string][]byte", "stepsOf(fields[{}])"), ("Map<String, byte[]>", "Reply.steps(fields.get({}))"),
        ("BTreeMap<String, Vec<u8>>", "it.steps({})")]),
    ("history", [("list[FailedAttempt]", "history_of(fields.get({}))"), ("FailedAttempt[]", "historyOf(get({}))"),
        ("[]FailedAttempt", "historyOf(fields[{}])"), ("List<FailedAttempt>", "FailedAttempt.all(fields.get({}))"),
        ("Vec<FailedAttempt>", "it.history({})")]),
    ("results", [("list[tuple[str, Optional[str], Optional[bytes]]]", "results_of(fields.get({}))"),
        ("JobResult[]", "results(endedOf(get({}) ?? []), codec)"), ("[]JobResult", "resultsOf(endingsOf(fields[{}]), codec)"),
        ("List<JobResult>", "JobResult.all(fields.get({}), codec)"), ("Vec<JobResult>", "it.results({})")]),
];

/// A language: its column of `KINDS`, its quotation mark, how it names a field, and how it describes one.
struct Language {
    column: usize,
    quote: char,
    name: fn(&str) -> String,
    value: fn(&str) -> String,
}

impl Language {
    /// The line for each field, with `{name}`, `{kind}`, `{read}` and `{value}` replaced.
    fn lines(&self, page: &str, line: &str) -> String {
        let filled = |field: &Field<'_>| {
            let kinds = KINDS.iter().find(|(kind, _)| *kind == field.kind);
            let (_, kinds) = kinds.unwrap_or_else(|| panic!("{}: {}", field.name, field.kind));
            let (kind, read) = kinds[self.column];
            let quoted = format!("{0}{1}{0}", self.quote, field.name);
            line.replace("{name}", &(self.name)(field.name))
                .replace("{kind}", kind)
                .replace("{read}", &read.replace("{}", &quoted))
                .replace("{value}", &(self.value)(&field.value))
        };
        fields(page).iter().map(filled).collect()
    }
}

const PYTHON: Language = Language {
    column: 0,
    quote: '"',
    name: snake,
    value: str::to_owned,
};
const NODE: Language = Language {
    column: 1,
    quote: '\'',
    name: camel,
    ..PYTHON
};
const GO: Language = Language {
    column: 2,
    name: pascal,
    ..PYTHON
};
const JAVA: Language = Language {
    column: 3,
    name: camel,
    value: code_in_java,
    ..PYTHON
};
const RUST: Language = Language {
    column: 4,
    ..PYTHON
};

/// Converts words in backquotes.
fn code_in_java(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => part.to_owned(),
        _ => format!("{{@code {part}}}"),
    };
    parts.map(part).collect()
}

const ABOUT: &str = "A job as DQ.GET shows it.";
const REST: &str =
    "All fields as the server gave them, also those that this library does not know.";

fn python(page: &str) -> String {
    let declared = PYTHON.lines(page, "    {name}: {kind}\n    \"\"\"{value}\"\"\"\n");
    let read = PYTHON.lines(page, "            {name}={read},\n");
    format!(
        r#""""What DQ.GET shows.

{by}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Optional

from ._reading import FailedAttempt, Said, durations, history_of, ids_of, maybe_id, prose, results_of, steps_of
from ._rule import Rule
from .codec import Codec, id_from
from .times import maybe_duration, maybe_from_ms


@dataclass(frozen=True)
class JobInfo(Said):
    """{ABOUT} Its ``data``, ``kind`` and ``headers`` are those of the payload."""

{declared}    fields: Mapping[str, Any] = field(repr=False)
    """{REST}"""
    _codec: Codec = field(repr=False, compare=False)

    @staticmethod
    def read(reply: Optional[dict[bytes, Any]], codec: Codec) -> Optional[JobInfo]:
        if reply is None:
            return None
        fields = {{name.decode(): value for name, value in reply.items()}}
        return JobInfo(
{read}            fields=fields,
            _codec=codec,
        )
"#,
        by = by(LIBRARIES),
    )
}

fn node(page: &str) -> String {
    let declared = NODE.lines(page, "  /** {value} */\n  {name}: {kind};\n");
    let read = NODE.lines(page, "    {name}: {read},\n");
    format!(
        "// {by}

import {{ type Codec, type Decoded, withDecoded }} from './codec';
import {{ type FailedAttempt, historyOf, maybeId, maybeNumber, maybeText, stepsOf }} from './reading';
import {{ endedOf, type JobResult, results }} from './results';
import {{ type Rule, rule }} from './rule';
import {{ toText }} from './text';
import {{ maybeFromMs }} from './times';

export type State = 'delayed' | 'ready' | 'reserved' | 'dead' | 'blocked' | 'done';

/** {ABOUT} Durations are milliseconds. */
export interface JobInfo extends Decoded {{
{declared}  /** {REST} */
  fields: ReadonlyMap<string, unknown>;
}}

export function jobInfo(fields: Map<string, unknown> | null, codec: Codec): JobInfo | null {{
  if (!fields) return null;
  const get = (name: string): any => fields.get(name);
  const read: Omit<JobInfo, keyof Decoded> = {{
{read}    fields,
  }};
  return withDecoded(read, codec);
}}
",
        by = by(LIBRARIES),
    )
}

fn go(page: &str) -> String {
    let declared = GO.lines(page, "\t// {value}\n\t{name} {kind}\n");
    let read = GO.lines(page, "\tinfo.{name} = {read}\n");
    format!(
        "{by}
import (
	\"time\"

	\"github.com/redis-dq/redis-dq/clients/go/internal/resp\"
)

// JobInfo is a job as DQ.GET shows it. An instant that is not there is the zero time, a text \"\". See also its Kind, Headers
// and Decode.
type JobInfo struct {{
{declared}\t// Fields are all as the server gave them, also those that this library does not know.
\tFields map[string]any

\tcodec Codec
}}

func jobInfoOf(fields map[string]any, codec Codec) *JobInfo {{
\tinfo := &JobInfo{{Fields: fields, codec: codec}}
{read}\treturn info
}}
",
        by = by_for_go(LIBRARIES, "dq"),
    )
}

fn java(page: &str) -> String {
    let told = JAVA.lines(page, " * @param {name} {value}\n");
    let declared = JAVA.lines(page, "        {kind} {name},\n");
    let read = JAVA.lines(page, "                {read},\n");
    format!(
        "package io.github.redisdq;

// {by}

import java.lang.reflect.Type;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * {ABOUT} What it does not have is null. Its {{@link #data}}, {{@link #kind}} and {{@link #headers}} are those of the payload.
 *
{told} * @param fields {REST}
 * @param codec The queue's, by which {{@link #data}} is decoded.
 */
public record JobInfo(
{declared}        Map<String, Object> fields,
        Codec codec) {{
    /** The kind that it was added with, or null. */
    public String kind() {{
        Envelope envelope = Envelope.read(payload);
        return envelope == null ? null : envelope.kind();
    }}

    /** The headers that it was added with. */
    public Map<String, String> headers() {{
        Envelope envelope = Envelope.read(payload);
        return envelope == null ? Map.of() : envelope.headers();
    }}

    /** What it was added with, decoded as {{@link Job#data(Class)}} is. */
    public <T> T data(Class<T> type) {{
        return data((Type) type);
    }}

    /** As {{@link #data(Class)}}, for a type with parameters. */
    public <T> T data(Type type) {{
        return Envelope.data(codec, payload, Envelope.read(payload), type);
    }}

    static JobInfo of(Map<String, Object> fields, Codec codec) {{
        if (fields == null) {{
            return null;
        }}
        return new JobInfo(
{read}                fields,
                codec);
    }}
}}
",
        by = by(LIBRARIES),
    )
}

fn rust(page: &str) -> String {
    let declared = RUST.lines(page, "    /// {value}\n    pub {name}: {kind},\n");
    let read = RUST.lines(page, "            {name}: {read},\n");
    format!(
        "//! {by}

use super::reading::Fields;
use super::records::{{FailedAttempt, State}};
use super::rule::Rule;
use crate::error::Outcome;
use crate::result::JobResult;
use redis::Value;
use std::collections::BTreeMap;
use std::time::{{Duration, SystemTime}};

/// A job as `DQ.GET` shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[rustfmt::skip]
pub struct JobInfo {{
{declared}    /// {REST}
    pub fields: BTreeMap<String, Value>,
}}

#[rustfmt::skip]
impl JobInfo {{
    pub(super) fn of(reply: Value) -> Self {{
        let it = Fields::of(reply);
        JobInfo {{
{read}            fields: it.0,
        }}
    }}

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<Outcome> {{
        match self.state {{
            State::Done => Some(Outcome::Done),
            State::Dead => Some(Outcome::Dead),
            _ => None,
        }}
    }}
}}
",
        by = by(LIBRARIES),
    )
}

/// A file, and what makes its text of the page.
pub const FILES: [OfPage; 5] = [
    ("clients/python/src/dq/_job_info.py", python),
    ("clients/node/src/jobinfo.ts", node),
    ("clients/go/jobinfo.go", go),
    (
        "clients/java/src/main/java/io/github/redisdq/JobInfo.java",
        java,
    ),
    ("clients/rust/src/queue/job_info.rs", rust),
];
