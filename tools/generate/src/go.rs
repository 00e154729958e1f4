//! The options of the Go library, and what its probe reads of them.

use crate::head::{by_for_go, OfRows, FROM};
use crate::row::Row;
use crate::shape::{camel, comment, corrections, lines, pascal, Shape};

pub const FILES: &[OfRows] = &[
    ("clients/go/joboptions.go", options),
    ("clients/go/internal/probe/joboptions.go", probe),
];

/// Names of -1, which says 0: what is 0 in Go says nothing.
const ZEROS: [(&str, &str); 2] = [("attempts", "Unlimited"), ("keep", "NotKept")];

fn options(rows: &[Row]) -> String {
    let declared = lines(rows, |row| {
        let zero = ZEROS.iter().find(|(name, _)| *name == row.name());
        let about = match zero {
            Some((_, zero)) => format!("{} Here 0 is {zero}.", row.about),
            None if row.has_zero() => format!("{} Here 0 is -1.", row.about),
            None => row.about.to_owned(),
        };
        let kind = match row.shape() {
            Shape::Duration { .. } => "time.Duration",
            Shape::Number { .. } => "int",
            Shape::Text { .. } => "string",
            Shape::Ladder => "[]time.Duration",
        };
        comment("\t//", &about) + &format!("\t{} {kind}\n", pascal(row.name()))
    });
    let words = lines(rows, |row| {
        let (word, name) = (row.word(), row.name());
        let given = format!("o.{}", pascal(name));
        let value = match row.shape() {
            Shape::Duration { least } => {
                format!("between({name:?}, resp.Ms({given}), \" ms\", {least}, latest)")
            }
            Shape::Number { least, most } if row.has_zero() => {
                format!("between({name:?}, max({least}, int64({given})), \"\", {least}, {most})")
            }
            Shape::Number { least, most } => {
                format!("between({name:?}, int64({given}), \"\", {least}, {most})")
            }
            Shape::Text { most } => format!("bounded({name:?}, {given}, {most})"),
            Shape::Ladder => return format!("\tcall = call.ladder({given})\n"),
        };
        let none = if let Shape::Text { .. } = row.shape() {
            "\"\""
        } else {
            "0"
        };
        format!("\tif {given} != {none} {{\n\t\tcall = append(call, {word:?}, {value})\n\t}}\n")
    });
    let corrected = corrections(rows, |row| {
        let (word, name, arg) = (row.word(), row.name(), camel(row.name()));
        let Shape::Number { least, most } = row.shape() else {
            unimplemented!("{name}: only numbers are corrected so far");
        };
        let method = format!("Set{}", pascal(name));
        let value = format!("{word:?}, between({name:?}, int64({arg}), \"\", {least}, {most})");
        let of_queue = comment("//", &format!("{method} is [Job.{method}] for programs without a worker, and renews the lease. It returns false if the token is not the job's current one."));
        let of_job = comment(
            "//",
            &format!(
                "{method} {} The error is [ErrLost] if another worker may have the job.",
                row.corrects()
            ),
        );
        format!(
            "
{of_queue}func (q *Queue) {method}(ctx context.Context, id, token string, {arg} int) (bool, error) {{
\treturn q.correct(ctx, id, token, {value})
}}

{of_job}func (j *Job) {method}(ctx context.Context, {arg} int) error {{
\treturn j.correct(ctx, {value})
}}
"
        )
    });
    format!(
        "{by}
import (
\t\"context\"
\t\"time\"

\t\"github.com/redis-dq/redis-dq/clients/go/internal/resp\"
)

// JobOptions are the options of a job, for [Queue.Add]. What is not set is decided by the queue's settings or the
// worker's handler.
type JobOptions struct {{
\t// ID is unique in the queue; without one the library makes one, which grows with time.
\tID       string
\tIfExists IfExists
\t// Delay or At says when the job is due; the default is now.
\tDelay time.Duration
\tAt    time.Time
{declared}\t// After blocks the job until these jobs of its queue have ended. AfterGroup: until that group has no jobs left.
\tAfter      []string
\tAfterGroup string
\t// OnDead says what the job does if a job in After dies.
\tOnDead OnDead
\t// Kind chooses the worker's handler.
\tKind    string
\tHeaders map[string]string
}}

// said appends what a job may have.
func (o *JobOptions) said(call words) words {{
{words}\treturn call
}}
{corrected}",
        by = by_for_go(FROM, "dq")
    )
}

fn probe(rows: &[Row]) -> String {
    let widest = rows.iter().map(|row| row.name().len()).max().unwrap_or(0);
    let declared = lines(rows, |row| {
        let kind = match row.shape() {
            Shape::Duration { .. } | Shape::Number { .. } => "*int64",
            Shape::Text { .. } => "string",
            Shape::Ladder => "[]int64",
        };
        format!("\t{:widest$} {kind}\n", pascal(row.name()))
    });
    let read = lines(rows, |row| {
        let name = pascal(row.name());
        let value = match row.shape() {
            Shape::Duration { .. } => format!("duration(*a.{name})"),
            Shape::Number { .. } => format!("int(*a.{name})"),
            Shape::Text { .. } => return format!("\toptions.{name} = a.{name}\n"),
            Shape::Ladder => {
                let add = format!("options.{name} = append(options.{name}, duration(ms))");
                return format!("\tfor _, ms := range a.{name} {{\n\t\t{add}\n\t}}\n");
            }
        };
        let zero = match row.has_zero() {
            true => format!("\t\tif *a.{name} == 0 {{\n\t\t\toptions.{name} = -1\n\t\t}}\n"),
            false => String::new(),
        };
        format!("\tif a.{name} != nil {{\n\t\toptions.{name} = {value}\n{zero}\t}}\n")
    });
    let head = by_for_go(FROM, "main");
    format!(
        "{head}
import dq \"github.com/redis-dq/redis-dq/clients/go\"

type saidArgs struct {{
{declared}}}

func (a saidArgs) say(options *dq.JobOptions) {{
{read}}}
"
    )
}
