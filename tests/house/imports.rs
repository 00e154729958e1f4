//! Which file uses which, in each language, as far as the text says: imports, and the names of a package's other files.
//! What a method is called on is not followed.

use crate::graph::{self, plain as without_strings, words, Arrows, House};
use crate::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

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

/// TypeScript and the browser's JavaScript: relative paths in quotes; those of types alone count, too.
fn of_javascript(files: &Files) -> Arrows {
    let mut arrows = Arrows::new();
    for (file, text) in files {
        let ending = file.rsplit('.').next().unwrap_or_default();
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        for said in code(text, "//").split(['\'', '"']).skip(1).step_by(2) {
            let path = plain(&folder.join(said.trim_end_matches(".js")));
            let is_own = said.starts_with("./") || said.starts_with("../");
            if is_own && files.contains_key(&format!("{path}.{ending}")) {
                arrows.insert((file.clone(), format!("{path}.{ending}")));
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

/// An import, or a class's name where it is no member; a class within the file goes before one of the package.
fn of_java(files: &Files) -> Arrows {
    let mut arrows = Arrows::new();
    for (file, text) in files {
        let code = without_strings(&code(text, "//"));
        let folder = file.rsplit_once('/').expect("a folder").0;
        let package = code.lines().find_map(|line| line.strip_prefix("package "));
        let package = package.unwrap_or_default().trim_end_matches(';');
        let sources = folder.trim_end_matches(&package.replace('.', "/"));
        for line in code.lines() {
            let Some(path) = line.strip_prefix("import ") else {
                continue;
            };
            let path = path.trim_start_matches("static ").replace(['.', ';'], "/");
            let ends = path.match_indices('/').map(|(end, _)| &path[..end]);
            let classes = ends.map(|class| format!("{sources}{class}.java"));
            arrows.extend(classes.map(|class| (file.clone(), class)));
        }
        // A sealed class only lists its parts there, as Rust's `mod` does.
        let mut parts = code.split(" permits ");
        let first = parts.next().unwrap_or_default().to_owned();
        let code = parts
            .filter_map(|part| part.split_once('{'))
            .fold(first, |code, it| code + it.1);
        let words = words(&code);
        let declares = |kind: &str| ["class", "interface", "enum", "record"].contains(&kind);
        let pairs = words.windows(2).filter(|pair| declares(pair[0]));
        let own: BTreeSet<&str> = pairs.map(|pair| pair[1]).collect();
        for (before, word) in words.iter().zip(&words[1..]) {
            if *before != "." && !own.contains(word) {
                arrows.insert((file.clone(), format!("{folder}/{word}.java")));
            }
        }
    }
    arrows.retain(|(from, to)| from != to && files.contains_key(to));
    arrows
}

/// A name that another file of the package declares at its top; but not a member, a field's key, or a variable of the
/// function.
fn of_go(files: &Files) -> Arrows {
    let code = |text| code(text, "//").split('`').step_by(2).collect::<String>();
    let codes = files
        .iter()
        .map(|(file, text)| (file, without_strings(&code(text))));
    let codes: Vec<(&String, String)> = codes.collect();
    let folder = |file: &str| file.rsplit_once('/').expect("a folder").0.to_owned();
    let mut declared = BTreeMap::new();
    for (file, code) in &codes {
        let names = tops(code).into_iter().flat_map(declared_at_top);
        declared.extend(names.map(|name| ((folder(file), name), *file)));
    }
    let mut arrows = Arrows::new();
    for (file, code) in &codes {
        for name in tops(code).into_iter().flat_map(used_names) {
            if let Some(used) = declared.get(&(folder(file), name)) {
                arrows.insert(((*file).clone(), (*used).clone()));
            }
        }
    }
    arrows.retain(|(from, to)| from != to);
    arrows
}

/// What stands at a Go file's top: functions, types, variables; a line that is not indented begins one, unless it closes.
fn tops(code: &str) -> Vec<&str> {
    let is_begun = |at: &usize| code[*at..].starts_with(char::is_alphabetic);
    let lines = code.match_indices('\n').map(|(at, _)| at + 1);
    let is_begun = |at: &usize| is_begun(at) && !code[*at..].starts_with("package ");
    let begins: Vec<usize> = lines.filter(is_begun).chain([code.len()]).collect();
    begins
        .windows(2)
        .map(|pair| &code[pair[0]..pair[1]])
        .collect()
}

fn declared_at_top(top: &str) -> Vec<&str> {
    match words(top)[..] {
        ["func", "(", ..] | ["package" | "import", ..] => Vec::new(),
        ["var" | "const" | "type", "(", ..] => {
            let lines = top.lines().filter_map(|line| line.strip_prefix('\t'));
            let lines = lines.filter(|line| line.starts_with(char::is_alphabetic));
            let names = lines.map(|line| line.split_once('=').map_or(line, |it| it.0));
            names
                .flat_map(|names| {
                    names
                        .split(", ")
                        .filter_map(|it| words(it).first().copied())
                })
                .collect()
        }
        [_, name, ..] => vec![name],
        _ => Vec::new(),
    }
}

fn used_names(top: &str) -> BTreeSet<&str> {
    let (mut names, mut variables) = (BTreeSet::new(), BTreeSet::from(["_"]));
    let is_type = top.starts_with("type ");
    for line in top.lines() {
        let words = words(line);
        let at = |at: usize| words.get(at).copied().unwrap_or_default();
        for (place, word) in words.iter().enumerate() {
            let before = place.checked_sub(1).map_or("", at);
            let is_key = at(place + 1) == ":" && ["", "{", ","].contains(&before);
            let is_field =
                is_type && line.starts_with('\t') && ["", ","].contains(&before) && words.len() > 1;
            let is_method = before == ")" && at(place + 1) == "(" && line.starts_with("func (");
            if before == "var" {
                variables.insert(*word);
            } else if before != "." && !is_key && !is_field && !is_method {
                names.insert(*word);
            }
        }
        if let Some((left, _)) = line.split_once(":=") {
            variables.extend(graph::words(
                left.rsplit(['{', ';']).next().unwrap_or_default(),
            ));
        }
        let signature = line.split_once("func").map_or("", |(_, rest)| rest);
        let signature = signature.split(" {").next().unwrap_or_default();
        for group in signature.split(['(', ')']) {
            if group.trim().contains(' ') {
                let parts = group
                    .split(',')
                    .filter_map(|part| graph::words(part).first().copied());
                variables.extend(parts);
            }
        }
    }
    &names - &variables
}

// --- All

/// By room, which is the whole of src, or a program, or a language's libraries; and by ending. Without tests and examples.
pub fn all() -> BTreeMap<(String, &'static str), Files> {
    let mut all: BTreeMap<_, Files> = BTreeMap::new();
    for ending in ["rs", "go", "java", "ts", "js", "py"] {
        let read = ["src", "tools", "clients"].map(|folder| files(folder, ending));
        for (file, text) in read.into_iter().flatten() {
            let is_test = |part: &str| ["tests", "test", "example"].contains(&part);
            if file.ends_with("_test.go") || file.split('/').any(is_test) {
                continue;
            }
            let parts = if file.starts_with("src/") { 1 } else { 2 };
            let room: Vec<&str> = file.split('/').take(parts).collect();
            let room = all.entry((room.join("/"), ending)).or_default();
            room.insert(file, text);
        }
    }
    all
}

pub fn arrows(ending: &str, files: &Files) -> Arrows {
    match ending {
        "rs" => of_rust(files),
        "go" => of_go(files),
        "java" => of_java(files),
        "py" => of_python(files),
        _ => of_javascript(files),
    }
}

/// Crate by crate: what is below one `src`.
fn of_rust(files: &Files) -> Arrows {
    let mut crates: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for (file, text) in files {
        if let Some(at) = file.find("src/") {
            let (folder, below) = file.split_at(at + "src/".len());
            let of = crates.entry(folder).or_default();
            of.push((below.to_owned(), text.clone()));
        }
    }
    let mut arrows = Arrows::new();
    for (folder, sources) in crates {
        let file = |module: String| {
            let names = ["MODULE.rs", "MODULE/mod.rs", "lib.rs", "main.rs"];
            let places = names.map(|name| name.replace("MODULE", &module));
            let mut places = places.map(|place| format!("{folder}{place}")).into_iter();
            places
                .find(|place| files.contains_key(place))
                .expect("a module's file")
        };
        let uses = House::of(sources).uses().into_iter();
        arrows.extend(uses.map(|(from, to)| (file(from), file(to))));
    }
    arrows
}
