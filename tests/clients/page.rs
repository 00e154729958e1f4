//! docs/clients.md shows lines of the examples: these, and no others.
//!
//! A code block says behind its language whose lines it shows: "```python examples/python/redis_py.py".
//! Each of its lines stands in that file, in that order; `...` stands for lines left out.

use std::fs;
use std::path::Path;

/// The lines that are not in the file they name, or not in that order.
fn strangers(page: &str, read: impl Fn(&str) -> String) -> Vec<String> {
    let mut found = Vec::new();
    let mut blocks = 0;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(source) = line.strip_prefix("```") else {
            continue;
        };
        blocks += 1;
        let shown: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let Some((_, file)) = source.split_once(' ') else {
            found.push(format!("a block that names no file: {source}"));
            continue;
        };
        let text = read(file);
        let mut rest = text.lines().map(str::trim);
        let known = |line: &&str| {
            let line = line.trim();
            line.is_empty() || line == "..." || rest.any(|other| other == line)
        };
        let mut shown = shown.into_iter().skip_while(known);
        found.extend(shown.next().map(|line| format!("{file}: {line}")));
    }
    assert!(blocks > 0, "no code at all");
    found
}

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn all_lines_are_of_the_examples() {
    let strangers = strangers(&read("docs/clients.md"), read);
    assert!(strangers.is_empty(), "{}", strangers.join("\n"));
}

#[test]
fn a_strange_line_is_noticed() {
    let file = |_: &str| "first\n  second\nthird".to_owned();
    let page = |block: &str| strangers(&format!("text\n```rust a.rs\n{block}\n```\ntext"), file);
    assert!(page("first\n...\nthird").is_empty());
    assert!(page("    second").is_empty());
    assert_eq!(page("first\nfourth"), ["a.rs: fourth"]);
    assert_eq!(page("third\nfirst"), ["a.rs: first"]);
    assert_eq!(strangers("```rust\nx\n```", file).len(), 1);
}
