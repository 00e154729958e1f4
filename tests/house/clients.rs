//! Rules for the libraries of clients/: no file is too long, those that decide do no I/O, and none has a ladder of its own,
//! which is the server's to have. (Circles: circles.rs.)

use crate::imports::{code, files, Files};
use crate::root;
use std::collections::BTreeSet;
use std::fs;

const MOST_LINES: usize = 400;

// --- Length of files

fn too_long(files: &Files) -> Vec<&str> {
    let long = files
        .iter()
        .filter(|(_, text)| text.lines().count() > MOST_LINES);
    long.map(|(file, _)| file.as_str()).collect()
}

/// The files of all libraries but their tests.
fn libraries() -> Files {
    let mut all = Files::new();
    for ending in ["py", "ts", "go", "java", "rs"] {
        all.extend(files("clients", ending));
    }
    all.retain(|file, _| !file.contains("/tests") && !file.contains("/test/"));
    all.retain(|file, _| !file.contains("/scenarios/") && !file.ends_with("_test.go"));
    assert!(all.len() > 300, "{} are not all", all.len());
    all
}

#[test]
fn no_file_of_a_library_is_too_long() {
    let mut all = libraries();
    assert_eq!(too_long(&all), [""; 0]);
    all.insert("long".into(), "\n".repeat(MOST_LINES + 1));
    assert_eq!(too_long(&all), ["long"]);
}

// --- Files that decide

/// Files, as docs/libraries.md names them, and words of I/O, threads and clocks.
const CORES: [(&str, &[&str], &[&str]); 5] = [
    (
        "clients/python/src/dq",
        &[
            "_core.py",
            "_leases.py",
            "_ends.py",
            "_delivery.py",
            "_steps.py",
            "_waits.py",
            "_many.py",
        ],
        &[
            "asyncio",
            "threading",
            "socket",
            "time",
            "select",
            "async",
            "await",
        ],
    ),
    (
        "clients/node/src",
        &[
            "core.ts",
            "leases.ts",
            "attempt.ts",
            "results.ts",
            "delivery.ts",
            "fatal.ts",
            "commands.ts",
            "progress.ts",
        ],
        &[
            "setTimeout",
            "setInterval",
            "Date",
            "performance",
            "node",
            "ioredis",
            "async",
            "await",
        ],
    ),
    (
        "clients/go",
        &["outcome.go", "verdict.go", "internal/trouble/trouble.go"],
        &["Now", "sync", "redis", "net", "go", "chan", "select"],
    ),
    (
        "clients/java/src/main/java/io/github/redisdq",
        &[
            "Outcome.java",
            "Ends.java",
            "Fetches.java",
            "Leases.java",
            "Listening.java",
            "Steps.java",
            "Trouble.java",
        ],
        &[
            "Thread",
            "nanoTime",
            "currentTimeMillis",
            "net",
            "nio",
            "Executor",
            "Lock",
        ],
    ),
    (
        "clients/rust/src/core",
        &[
            "control.rs",
            "events.rs",
            "fetch.rs",
            "held.rs",
            "idle.rs",
            "leases.rs",
            "link.rs",
            "listener.rs",
            "outcome.rs",
            "pool.rs",
            "replies.rs",
            "state.rs",
            "stop.rs",
            "trouble.rs",
        ],
        &[
            "tokio",
            "SystemTime",
            "thread",
            "async",
            "await",
            "net",
            "io",
        ],
    ),
];

/// The words of a file's code, except those in strings.
fn words(text: &str, name: &str) -> BTreeSet<String> {
    let comment = if name.ends_with(".py") { "#" } else { "//" };
    let quote = if name.ends_with(".ts") { '\'' } else { '"' };
    let code = code(text, comment);
    let outside = code.lines().flat_map(|line| line.split(quote).step_by(2));
    let is_of_word = |char: char| char.is_alphanumeric() || char == '_';
    outside
        .flat_map(|part| part.split(move |char| !is_of_word(char)))
        .map(str::to_owned)
        .collect()
}

fn input_and_output(text: &str, name: &str, forbidden: &[&'static str]) -> Vec<&'static str> {
    let words = words(text, name);
    let found = forbidden.iter().filter(|word| words.contains(**word));
    found.copied().collect()
}

#[test]
fn what_decides_does_no_io() {
    for (folder, names, forbidden) in CORES {
        for name in names {
            let text = fs::read_to_string(root().join(folder).join(name)).expect(name);
            let found = input_and_output(&text, name, forbidden);
            assert_eq!(found, [""; 0], "{folder}/{name}");
            let worse = format!("{text}\nx = {}(1)", forbidden[0]);
            assert_eq!(input_and_output(&worse, name, forbidden), [forbidden[0]]);
        }
    }
}

// --- Ladders

/// Whether code has a wait that grows with the attempts, or one by default.
fn has_ladder(code: &str) -> bool {
    let code = code.to_lowercase();
    let is_operand = |char: char| char.is_alphabetic() || "()".contains(char);
    let grows = |operator: &str| {
        code.match_indices(operator).any(|(at, _)| {
            let (before, after) = (code[..at].trim_end(), &code[at + operator.len()..]);
            before.ends_with(|char| is_operand(char) || "0123456789.".contains(char))
                && after.trim_start().starts_with(is_operand)
        })
    };
    let is_grown =
        code.contains("exponential") || code.contains("pow") || grows("**") || grows("<<");
    let names = ["delay", "backoff", "ladder"].map(|name| format!("default{name}"));
    let words = code.replace('_', "");
    code.contains("attempt") && is_grown || names.iter().any(|name| words.contains(name))
}

/// The places in a file where one begins.
fn ladders(file: &str, text: &str) -> Vec<String> {
    let code = code(text, if file.ends_with(".py") { "#" } else { "//" });
    let lines: Vec<_> = code.lines().collect();
    let found = lines.windows(3).enumerate();
    let found = found.filter(|(_, lines)| has_ladder(&lines.concat()));
    found.map(|(at, _)| format!("{file}:{}", at + 1)).collect()
}

#[test]
fn no_library_has_a_ladder_of_its_own() {
    let mut all = libraries();
    all.extend(files("tools/dq-push/src", "rs"));
    let found: Vec<_> = all
        .iter()
        .flat_map(|(file, text)| ladders(file, text))
        .collect();
    assert_eq!(found, [""; 0]);
    for (file, worse) in [
        (
            "clients/python/src/dq/_ends.py",
            "wait_s = 2.0 ** min(attempt - 1, 62)",
        ),
        (
            "clients/node/src/core.ts",
            "const delay = defaultDelayMs(attempt);",
        ),
        (
            "clients/go/outcome.go",
            "o.wait = trouble.Exponential(o.of.attempt, first, last)",
        ),
        (
            "clients/java/src/main/java/io/github/redisdq/Handler.java",
            "delay = Math.pow(2, attempt)",
        ),
        (
            "clients/rust/src/core/outcome.rs",
            "let last = exponential(\n    of.attempt);",
        ),
        (
            "tools/dq-push/src/queue/tell.rs",
            "let doublings = attempt;\nlet wait = FIRST << doublings;",
        ),
    ] {
        let worse = format!("{}\n{worse}\n\n", all[file]);
        assert!(!ladders(file, &worse).is_empty(), "{file}");
    }
}
