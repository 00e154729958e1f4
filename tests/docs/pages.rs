//! docs/llms.txt names every page, as llmstxt.org says, and the libraries' READMEs have one outline.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const LANGUAGES: [&str; 5] = ["python", "node", "go", "java", "rust"];
/// Each has these, in this order; those between them are the language's own.
const COMMON: [&str; 8] = [
    "Install",
    "Add, move and cancel jobs",
    "What a handler may say",
    "Results",
    "Steps and signals",
    "More",
    "Tests of programs that use it",
    "What was taken from others, and what was left",
];

fn docs() -> PathBuf {
    crate::support::root().join("docs")
}

fn guide(language: &str) -> String {
    format!("../clients/{language}/README.md")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages below a folder, as links from docs/.
fn pages(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            pages(&path, into);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            let name = path.strip_prefix(docs()).expect("below docs");
            into.insert(name.to_str().expect("UTF-8").to_owned());
        }
    }
}

/// What a line `- [title](link): what it says` links to.
fn entry(line: &str) -> Option<&str> {
    let (title, rest) = line.strip_prefix("- [")?.split_once("](")?;
    let (link, what) = rest.split_once("): ")?;
    (!title.is_empty() && !what.is_empty()).then_some(link)
}

/// What is wrong with an index: its form, links to nothing or twice, and pages that are not in it.
fn faults(index: &str, pages: &BTreeSet<String>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines = index.lines().filter(|line| !line.is_empty());
    let mut found = Vec::new();
    if !lines.next().is_some_and(|line| line.starts_with("# ")) {
        found.push("no title".into());
    }
    if !lines.next().is_some_and(|line| line.starts_with("> ")) {
        found.push("no summary".into());
    }
    let mut linked = BTreeSet::new();
    for line in lines.skip_while(|line| !line.starts_with("## ")) {
        match entry(line) {
            Some(link) if !exists(link) => found.push(format!("there is no {link}")),
            Some(link) if !linked.insert(link.to_owned()) => found.push(format!("{link} twice")),
            None if !line.starts_with("## ") => found.push(format!("no entry: {line}")),
            _ => {}
        }
    }
    found.extend(
        pages
            .difference(&linked)
            .map(|page| format!("without {page}")),
    );
    found
}

#[test]
fn the_index_has_every_page() {
    let mut all = BTreeSet::from(["../README.md".to_owned(), "../CHANGELOG.md".to_owned()]);
    all.extend(LANGUAGES.map(guide));
    pages(&docs(), &mut all);
    assert!(all.len() > 30, "{all:?}");
    let found = faults(&read(&docs().join("llms.txt")), &all, |link| {
        docs().join(link).exists()
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_wrong_index_is_noticed() {
    let all = BTreeSet::from(["a.md".to_owned(), "b.md".to_owned()]);
    let check = |index: &str| faults(index, &all, |link| link.ends_with(".md"));
    let right = "# dq\n\n> A queue.\n\nMore.\n\n## Use\n\n- [A](a.md): this\n- [B](b.md): that\n";
    assert!(check(right).is_empty());
    for (before, after) in [
        ("# dq", "dq"),
        ("> A", "A"),
        ("(a.md)", "(a.html)"),
        ("(a.md)", "(b.md)"),
        ("- [B](b.md): that", ""),
        ("- [B](b.md): that", "- [B](b.md)"),
        ("- [B](b.md): that", "B is in b.md"),
    ] {
        assert!(
            !check(&right.replacen(before, after, 1)).is_empty(),
            "{after}"
        );
    }
}

fn outline(page: &str) -> Vec<&str> {
    let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    headings.filter(|each| COMMON.contains(each)).collect()
}

#[test]
fn the_guides_are_alike_in_all_languages() {
    let pages = LANGUAGES.map(|name| read(&docs().join(guide(name))));
    for page in &pages {
        assert!(page.starts_with("# dq for "), "{page:.40}");
        assert_eq!(outline(page), COMMON);
    }
    let shorter = pages[0].replacen("\n## Results\n", "\n", 1);
    assert_ne!(outline(&shorter), COMMON, "a heading is missed");
}
