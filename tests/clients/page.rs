//! docs/clients.md and docs/web.md show lines of the examples: these, and no others.
//!
//! A code block says behind its language whose lines it shows: "```python examples/python/redis_py.py".
//! Each of its lines stands in that file, as it is, in that order; `...` stands for lines left out. `>>` adds to a file
//! of the user's.

use std::fs;

use crate::support::root;

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
        if source.contains(" >> ") {
            continue;
        }
        let Some((_, file)) = source.split_once(' ') else {
            found.push(format!("a block that names no file: {source}"));
            continue;
        };
        let text = read(file);
        let mut rest = text.lines();
        let known =
            |line: &&str| line.is_empty() || *line == "..." || rest.any(|other| other == *line);
        let mut shown = shown.into_iter().skip_while(known);
        found.extend(shown.next().map(|line| format!("{file}: {line}")));
    }
    assert!(blocks > 0, "no code at all");
    found
}

fn read(file: &str) -> String {
    let path = root().join(file);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn all_lines_are_of_the_examples() {
    let mut found = strangers(&read("docs/clients.md"), read);
    found.extend(strangers(&read("docs/web.md"), read));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_strange_line_is_noticed() {
    let file = |_: &str| "first\n  second\nthird".to_owned();
    let page = |block: &str| strangers(&format!("text\n```rust a.rs\n{block}\n```\ntext"), file);
    assert!(page("first\n...\nthird").is_empty());
    assert!(page("  second").is_empty());
    assert_eq!(page("    second"), ["a.rs:     second"]);
    assert_eq!(page("first\nfourth"), ["a.rs: fourth"]);
    assert_eq!(page("third\nfirst"), ["a.rs: first"]);
    assert_eq!(strangers("```rust\nx\n```", file).len(), 1);
}
