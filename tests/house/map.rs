//! docs/architecture.md and CONTRIBUTING.md name only what exists, and the map names every file.

use crate::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 2] = ["docs/architecture.md", "CONTRIBUTING.md"];

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).expect(page)
}

fn is_part_of_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// All text between backquotes, except code blocks.
pub fn quoted(text: &str) -> Vec<String> {
    let mut in_block = false;
    let mut all = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            all.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    all
}

/// The lines of the map in docs/architecture.md.
fn picture(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| !line.starts_with("```text"));
    lines
        .skip(1)
        .take_while(|line| !line.starts_with("```"))
        .collect()
}

/// Whether it is the name of a file or folder, relative to the root or to src.
fn is_path(name: &str) -> bool {
    let is_plain = |char| is_part_of_word(char) || "/.-".contains(char);
    name.chars().all(is_plain)
        && (name.ends_with(".rs") || name.ends_with(".md") || name.contains('/'))
}

fn exists(name: &str) -> bool {
    let in_tests = |file: &str| file.starts_with("target/") || file.contains("NAME");
    let places = [root(), root().join("src")];
    let is_at = |place: &PathBuf| place.join(name).exists();
    in_tests(name) || places.iter().any(is_at) || state().iter().any(|it| it.ends_with(name))
}

/// The files of a queue's state, which the map names without their folder.
fn state() -> Vec<PathBuf> {
    let mut files = Vec::new();
    sources(&root().join("src/queue/state"), &mut files);
    files.retain(|file| {
        !file
            .to_string_lossy()
            .rsplit("src/queue")
            .next()
            .is_some_and(|it| it.contains("/tests"))
    });
    files
}

pub fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else {
            into.push(path);
        }
    }
}

const MAKEFILES: [&str; 3] = ["Makefile", "tests/tests.mk", "benches/bench.mk"];

/// All words of the code with its comments, and of the Makefiles.
fn words_of_code() -> BTreeSet<String> {
    let mut files: Vec<PathBuf> = MAKEFILES.iter().map(|name| root().join(name)).collect();
    files.push(root().join("Cargo.toml"));
    sources(&root().join("src"), &mut files);
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let words = texts.flat_map(|text| {
        let words = text.split(|char| !is_part_of_word(char));
        words.map(str::to_owned).collect::<Vec<_>>()
    });
    words.collect()
}

fn targets() -> BTreeSet<String> {
    let text = MAKEFILES.map(read).concat();
    let rules = text.lines().filter(|line| !line.starts_with(['#', '\t']));
    let names = rules.filter_map(|line| line.split_once(':'));
    let names = names.flat_map(|(names, _)| names.split(' '));
    names.map(str::to_owned).collect()
}

/// Names on a page that do not exist: of files, make's targets, functions and types.
fn missing(text: &str, words: &BTreeSet<String>, targets: &BTreeSet<String>) -> Vec<String> {
    let is_there = |name: &String| {
        if let Some(target) = name.strip_prefix("make ") {
            return targets.contains(target.split(' ').next().unwrap_or_default());
        }
        if is_path(name) {
            return exists(name);
        }
        let is_code = name.contains("::") || name.contains('_');
        let mut parts = name.split(|char| !is_part_of_word(char));
        !is_code || name.contains(' ') || parts.all(|part| part.is_empty() || words.contains(part))
    };
    let names = quoted(text).into_iter();
    names.filter(|name| !is_there(name)).collect()
}

/// Files that the page does not name; those of the map's floors are named without their path.
fn left_out(text: &str) -> Vec<String> {
    let words: BTreeSet<&str> = text.split(|char| !is_part_of_word(char)).collect();
    let mut files = state();
    for floor in ["server", "queue", "storage"] {
        for entry in fs::read_dir(root().join("src").join(floor)).unwrap() {
            files.push(entry.unwrap().path());
        }
    }
    let names = files.iter().filter_map(|file| file.file_stem()?.to_str());
    let names = names.filter(|name| *name != "mod" && !words.contains(name));
    names.map(str::to_owned).collect()
}

/// Modules that the map names on a floor that does not have them.
fn not_in_the_house(text: &str) -> Vec<String> {
    let mut floor = String::new();
    let mut missing = Vec::new();
    for line in picture(text) {
        let line = line.trim();
        let (name, rest) = line.split_once("  ").unwrap_or((line, ""));
        if name.starts_with("src/") {
            floor = name.trim_end_matches('/').to_owned();
            if !root().join(&floor).exists() {
                missing.push(name.to_owned());
            }
        }
        // The names of a line are separated by two spaces or more, or by a plus. Descriptions
        // follow a colon, or are sentences.
        let names = rest.split(": ").next().unwrap_or_default();
        let names = names.split("  ").flat_map(|name| name.split(" + "));
        for name in names.map(str::trim) {
            let is_name = !name.is_empty() && name.chars().all(is_part_of_word);
            let at = root().join(&floor).join(name);
            let is_there = at.with_extension("rs").exists() || at.exists();
            if is_name && rest.trim().contains("  ") && !is_there {
                missing.push(format!("{floor}: {name}"));
            }
        }
    }
    missing
}

#[test]
fn the_map_names_what_is_there() {
    let (words, targets) = (words_of_code(), targets());
    for page in PAGES {
        let text = read(page);
        assert!(quoted(&text).len() > 40, "{page} names nothing");
        assert_eq!(missing(&text, &words, &targets), [""; 0], "{page}");
    }
    let map = read(PAGES[0]);
    assert_eq!(left_out(&map), [""; 0]);
    assert_eq!(not_in_the_house(&map), [""; 0]);
}

#[test]
fn what_a_map_has_wrong_is_noticed() {
    let (words, targets) = (words_of_code(), targets());
    for wrong in [
        "queue/gone.rs",
        "make nothing",
        "Queue::gone_long_ago",
        "src/nowhere",
        "no_such_function",
    ] {
        let page = format!("as `queue/add.rs` and `make test`, but `{wrong}` is not");
        assert_eq!(missing(&page, &words, &targets), [wrong]);
    }
    let map = read(PAGES[0]);
    let without = |word: &str| map.replace(word, "");
    assert_eq!(left_out(&without("relocate")), ["relocate"]);
    let with = map.replace("add  deliver", "add  swallow  deliver");
    assert_eq!(not_in_the_house(&with), ["src/queue: swallow"]);
    let with = map.replace("src/slots.rs", "src/slits.rs");
    assert_eq!(not_in_the_house(&with), ["src/slits.rs"]);
}
