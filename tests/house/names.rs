//! Files that pages and comments name exist, with their whole path or the end of it.

use crate::map::{quoted, sources};
use crate::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folders that are not part of the project, or made by others.
const PASSED_OVER: [&str; 4] = ["target", ".git", "node_modules", "data"];

/// All files, relative to the root.
fn files() -> BTreeSet<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if PASSED_OVER.contains(&&*name) {
            continue;
        }
        if path.is_dir() {
            sources(&path, &mut all);
        } else {
            all.push(path);
        }
    }
    all.iter().map(|path| shown(path)).collect()
}

fn shown(path: &Path) -> String {
    let path = path.strip_prefix(root()).expect("below the root");
    path.to_string_lossy().into_owned()
}

/// The names of files among these words.
fn named<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let is_of_name = |char: char| char.is_alphanumeric() || "_./-".contains(char);
    let words = texts.flat_map(|text| text.split(move |char| !is_of_name(char)));
    let words = words.map(|word| word.trim_end_matches('.').trim_start_matches("./"));
    let is_file = |word: &&str| {
        let stem = word.strip_suffix(".rs").or(word.strip_suffix(".md"));
        // A placeholder is in capitals.
        stem.is_some_and(|it| it.ends_with(char::is_alphanumeric)) && !word.contains("NAME")
    };
    words.filter(is_file).map(str::to_owned).collect()
}

fn in_page(text: &str) -> Vec<String> {
    named(quoted(text).iter().map(String::as_str))
}

fn in_comments(code: &str) -> Vec<String> {
    named(
        code.lines()
            .filter_map(|line| Some(line.split_once("//")?.1)),
    )
}

/// Names that match no file.
fn missing(names: Vec<String>, files: &BTreeSet<String>) -> Vec<String> {
    let is_there = |name: &String| {
        let end = format!("/{name}");
        let is_it = |file: &String| file == name || file.ends_with(&end);
        name.starts_with("target/") || files.iter().any(is_it)
    };
    names.into_iter().filter(|name| !is_there(name)).collect()
}

#[test]
fn files_that_are_named_are_there() {
    let files = files();
    let of = |folder: &str, ending: &str| -> Vec<String> {
        let is_of = |file: &&String| file.starts_with(folder) && file.ends_with(ending);
        files.iter().filter(is_of).cloned().collect()
    };
    let mut pages = of("docs/", ".md");
    pages.extend(["README.md".to_owned(), "CONTRIBUTING.md".to_owned()]);
    let code = ["src/", "tests/", "benches/", "tools/", "fuzz/"].map(|folder| of(folder, ".rs"));
    let mut found = 0;
    for file in pages.iter().chain(code.iter().flatten()) {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let names = if file.ends_with(".md") {
            in_page(&text)
        } else {
            in_comments(&text)
        };
        found += names.len();
        assert_eq!(missing(names, &files), [""; 0], "{file}");
    }
    assert!(found > 150, "{found} are not all");
}

#[test]
fn files_that_are_gone_are_noticed() {
    let files = files();
    let page = "`ghosts.rs` and `queue/add.rs`, see `docs/nowhere.md`; gone.rs is no name";
    assert_eq!(
        missing(in_page(page), &files),
        ["ghosts.rs", "docs/nowhere.md"]
    );
    // Written so that the check does not find it in this file's own comments.
    let slashes = "/".repeat(2);
    let code = format!(
        "let x = 1; {slashes} as in settle.rs, expire.rs.\n{slashes}/ See `queue/gone.rs`.\nf(\"lost.rs\");"
    );
    assert_eq!(
        missing(in_comments(&code), &files),
        ["settle.rs", "queue/gone.rs"]
    );
}
