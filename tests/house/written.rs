//! Writes files from a table of a page.

use crate::root;
use std::fs;

const PAGE: &str = "docs/libraries.md";

/// The head of a file that a test of this folder writes from the page.
pub fn by(test: &str) -> String {
    format!("Written from {PAGE} by tests/house/{test}.rs; DO NOT EDIT.")
}

/// The same head in the form by which Go's tools recognize a generated file.
pub fn by_for_go(test: &str, package: &str) -> String {
    format!("// Code generated from {PAGE} by tests/house/{test}.rs; DO NOT EDIT.\n\npackage {package}\n")
}

/// The rows of the table below a heading.
pub fn rows<'a, const CELLS: usize>(page: &'a str, heading: &str) -> Vec<[&'a str; CELLS]> {
    let (_, section) = page.split_once(heading).expect(heading);
    let lines = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = lines.skip(1).take_while(|line| line.starts_with("| "));
    rows.map(|row| {
        assert!(!row.contains(['"', '\\']), "to be escaped: {row}");
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        cells
            .try_into()
            .unwrap_or_else(|_| panic!("not {CELLS} cells: {row}"))
    })
    .collect()
}

/// A file's name in clients/, and the function that makes its text from the page.
pub type File = (&'static str, fn(&str) -> String);

fn stale(page: &str, files: &[File]) -> Vec<&'static str> {
    let is = |name: &str| fs::read_to_string(root().join("clients").join(name));
    let stale = files
        .iter()
        .filter(|(name, text)| is(name).unwrap_or_default() != text(page));
    stale.map(|(name, _)| *name).collect()
}

/// Checks that the files match the page, and that a change of the page is noticed in all of them. `DQ_WRITE=1` writes
/// them first.
pub fn check(files: &[File], other_words: &[(&str, &str)]) {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    if std::env::var_os("DQ_WRITE").is_some() {
        for (name, text) in files {
            fs::write(root().join("clients").join(name), text(&page)).unwrap();
        }
    }
    assert_eq!(stale(&page, files), [""; 0], "DQ_WRITE=1 writes them");
    let all: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    for (word, other) in other_words {
        assert_eq!(stale(&page.replace(word, other), files), all, "{other}");
    }
}
