//! Rules for the libraries of clients/: files have no circular imports, none is too long, and those that decide do no
//! I/O.
//!
//! Go's compiler refuses circular packages. Classes of one Java package refer to each other, as a class and its builder
//! do: so for Java the packages must have no circle.

use crate::graph::{Arrows, House};
use crate::{circle, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

const MOST_LINES: usize = 400;

/// Sources by their path from the root.
pub type Files = BTreeMap<String, String>;

pub fn files(folder: &str, ending: &str) -> Files {
    const PASSED_OVER: [&str; 4] = ["node_modules", "target", "dist", "build"];
    let (mut all, mut folders) = (Files::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|_| panic!("{folder:?}")) {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && !PASSED_OVER.contains(&&*name) && !name.starts_with('.') {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == ending) {
                let name = path.strip_prefix(root()).expect("below the root");
                let name = name.to_string_lossy().into_owned();
                all.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    all
}

/// The code without its comments.
pub fn code(text: &str, comment: &str) -> String {
    let mut kept = String::new();
    let mut is_in_block = false;
    for line in text.lines() {
        let begins = comment == "//" && line.trim_start().starts_with("/*");
        is_in_block |= begins;
        if !is_in_block {
            kept.push_str(line.split(comment).next().unwrap_or_default());
        }
        is_in_block &= !line.contains("*/");
        kept.push('\n');
    }
    kept
}

/// The path with its `..` resolved.
fn plain(path: &Path) -> String {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = parts.pop(),
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts.to_string_lossy().into_owned()
}

// --- Imports

fn of_typescript(files: &Files) -> Arrows {
    let mut arrows = Arrows::new();
    for (file, text) in files {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        for said in code(text, "//").split(['\'', '"']).skip(1).step_by(2) {
            let path = plain(&folder.join(said.trim_end_matches(".js")));
            let is_own = said.starts_with("./") || said.starts_with("../");
            if is_own && files.contains_key(&format!("{path}.ts")) {
                arrows.insert((file.clone(), format!("{path}.ts")));
            }
        }
    }
    arrows
}

/// Relative imports; those of types alone count, too.
fn of_python(files: &Files) -> Arrows {
    let mut arrows = Arrows::new();
    for (file, text) in files {
        let code = code(text, "#");
        for import in code.split("from .").skip(1) {
            let Some((module, names)) = import.split_once(" import ") else {
                continue;
            };
            let up = module.len() - module.trim_start_matches('.').len();
            let module = module.trim_start_matches('.').replace('.', "/");
            let folder = Path::new(file).ancestors().nth(1 + up);
            let base = folder.expect("a folder").join(module);
            let names = match names.strip_prefix('(') {
                Some(names) => names.split(')').next(),
                None => names.lines().next(),
            };
            for name in names.unwrap_or_default().split(',') {
                let name = name.split_whitespace().next().unwrap_or_default();
                let places = [
                    base.join(format!("{name}.py")),
                    base.join(name).join("__init__.py"),
                    base.with_extension("py"),
                    base.join("__init__.py"),
                ];
                let places = places.map(|place| place.to_string_lossy().into_owned());
                if let Some(used) = places.into_iter().find(|place| files.contains_key(place)) {
                    arrows.insert((file.clone(), used));
                }
            }
        }
    }
    arrows.retain(|(from, to)| from != to);
    arrows
}

fn of_java_packages(files: &Files) -> Arrows {
    let mut arrows = Arrows::new();
    let package = |line: &str, word: &str| {
        let path = line.strip_prefix(word)?.trim_end_matches(';');
        let path = path.trim_start_matches("static ");
        let names = path.split('.');
        let lower = names.take_while(|name| name.starts_with(char::is_lowercase));
        Some(lower.collect::<Vec<_>>().join("."))
    };
    for text in files.values() {
        let lines: Vec<&str> = text.lines().collect();
        let own = lines.iter().find_map(|line| package(line, "package "));
        for used in lines.iter().filter_map(|line| package(line, "import ")) {
            if used.contains("redisdq") && own.as_ref() != Some(&used) {
                arrows.insert((own.clone().unwrap_or_default(), used));
            }
        }
    }
    arrows
}

fn of_rust(files: &Files) -> Arrows {
    let below = |file: &str| file.split_once("/src/").expect("in src").1.to_owned();
    House::of(files.iter().map(|(file, text)| (below(file), text.clone()))).arrows()
}

/// A library's sources, the function that finds its imports, and the least number of imports.
type Library = (Files, fn(&Files) -> Arrows, usize);

fn libraries() -> Vec<Library> {
    let python = |folder| files(folder, "py");
    vec![
        (files("clients/node/src", "ts"), of_typescript, 150),
        (python("clients/python/src"), of_python, 100),
        (python("clients/celery/src"), of_python, 5),
        (python("clients/dramatiq/src"), of_python, 1),
        (python("clients/taskiq/src"), of_python, 3),
        (files("clients/java/src/main", "java"), of_java_packages, 2),
        (files("clients/rust/src", "rs"), of_rust, 80),
    ]
}

#[test]
fn no_library_imports_in_a_circle() {
    for (files, arrows_of, least) in libraries() {
        let arrows = arrows_of(&files);
        let first = files.keys().next().expect("files");
        assert!(arrows.len() >= least, "{} of {first} ...", arrows.len());
        assert_eq!(circle(&arrows), None);
    }
}

#[test]
fn circles_of_libraries_are_noticed() {
    let more = [
        (
            "clients/node/src/limits.ts",
            "import { x } from './core.js';",
        ),
        (
            "clients/python/src/dq/times.py",
            "if T:\n    from . import (\n        _core as it,\n    )",
        ),
        ("clients/celery/src/dq_celery/options.py", ""),
        ("clients/dramatiq/src", ""),
        ("clients/taskiq/src/dq_taskiq/__init__.py", ""),
        (
            "clients/java/src/main/java/io/github/redisdq/Ids.java",
            "import io.github.redisdq.testing.DqServer;",
        ),
        ("clients/rust/src/values.rs", "use crate::{keys, rim::Rim};"),
    ];
    for ((mut files, arrows_of, _), (file, added)) in libraries().into_iter().zip(more) {
        if !added.is_empty() {
            let text = files.get_mut(file).expect(file);
            text.push('\n');
            text.push_str(added);
            assert!(circle(&arrows_of(&files)).is_some(), "{file}");
        }
    }
}

// --- Length of files

fn too_long(files: &Files) -> Vec<&str> {
    let long = files
        .iter()
        .filter(|(_, text)| text.lines().count() > MOST_LINES);
    long.map(|(file, _)| file.as_str()).collect()
}

#[test]
fn no_file_of_a_library_is_too_long() {
    let mut all = Files::new();
    for ending in ["py", "ts", "go", "java", "rs"] {
        all.extend(files("clients", ending));
    }
    all.retain(|file, _| !file.contains("/tests") && !file.contains("/test/"));
    all.retain(|file, _| !file.contains("/scenarios/") && !file.ends_with("_test.go"));
    assert!(all.len() > 300, "{} are not all", all.len());
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
        &["outcome.go", "verdict.go", "trouble.go"],
        &["Now", "sync", "redis", "net", "go", "chan", "select"],
    ),
    (
        "clients/java/src/main/java/io/github/redisdq",
        &[
            "Outcome.java",
            "Ends.java",
            "EarPlan.java",
            "Fetches.java",
            "Leases.java",
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
            "crew.rs",
            "ear.rs",
            "fetch.rs",
            "leases.rs",
            "link.rs",
            "outcome.rs",
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
