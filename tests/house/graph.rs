//! Which file uses which: an edge (arrow) for each path in the code that begins with `crate::`, `super::` or the name
//! of a child module. Comments, strings and tests are ignored.

use std::collections::{BTreeMap, BTreeSet};

/// Folders in which each file is a room (node) of its own. Any other folder is one room together with the file of its
/// name.
const FLOORS: [&str; 4] = ["storage", "queue", "server", "commands"];

/// A module's path from the crate's root: `server/key`; empty for the root itself.
type Module = String;

pub struct House {
    sources: BTreeMap<Module, String>,
}

/// Pairs of the user and what it uses.
pub type Arrows = BTreeSet<(Module, Module)>;

impl House {
    /// `(path below src, text)` of each file.
    pub fn of(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut sources = BTreeMap::new();
        for (path, text) in files {
            let module = path.trim_end_matches(".rs").trim_end_matches("/mod");
            let is_test = module.split('/').any(|part| part == "tests");
            if !is_test {
                let module = if module == "lib" { "" } else { module };
                sources.insert(module.to_owned(), without_tests(&plain(&text)));
            }
        }
        House { sources }
    }

    pub fn append(&mut self, module: &str, code: &str) {
        let source = self.sources.get_mut(module);
        source.expect("such a module").push_str(code);
    }

    /// Lines of code by floor.
    pub fn lines(&self) -> BTreeMap<String, usize> {
        let mut lines = BTreeMap::new();
        for (module, source) in &self.sources {
            let code = source.lines().filter(|line| !line.trim().is_empty());
            *lines.entry(floor(module).to_owned()).or_default() += code.count();
        }
        lines
    }

    pub fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (module, source) in &self.sources {
            for path in self.paths(module, source) {
                let (from, to) = (room(module), room(&self.resolve(&path)));
                // A floor's re-exports of its own files are followed, and are no arrows themselves.
                let gives_out = FLOORS.contains(&&*from) && floor(&to) == from;
                if from != to && !(gives_out && source.contains("pub use")) {
                    arrows.insert((from, to));
                }
            }
        }
        arrows
    }

    /// All paths in the code that lead to an item of the crate, from its root on.
    fn paths(&self, module: &str, source: &str) -> Vec<Vec<String>> {
        let here: Vec<String> = parts(module);
        let mut paths = Vec::new();
        let words = words(source);
        for (at, word) in words.iter().enumerate() {
            // The middle of a path, or the scope of a visibility.
            let is_no_use = at > 0 && ["::", "in"].contains(&words[at - 1]);
            if is_no_use {
                continue;
            }
            let is_use = at > 0 && words[at - 1] == "use";
            let is_child = || {
                self.sources
                    .contains_key(&[here.clone(), vec![word.to_string()]].concat().join("/"))
            };
            let base = match *word {
                "crate" => Vec::new(),
                "self" if words.get(at + 1) == Some(&"::") => here.clone(),
                "super" => here[..here.len().saturating_sub(1)].to_vec(),
                _ if is_use && is_child() => [here.clone(), vec![word.to_string()]].concat(),
                _ => continue,
            };
            if words.get(at + 1) == Some(&"::") {
                branches(&words, at + 2, base, &mut paths);
            }
        }
        paths
    }

    /// The module in which a path's item is.
    fn resolve(&self, path: &[String]) -> Module {
        let mut module = String::new();
        for part in path {
            let child = if module.is_empty() {
                part.clone()
            } else {
                format!("{module}/{part}")
            };
            if self.sources.contains_key(&child) {
                module = child;
            } else if let Some(given) = self.given_out(&module, part) {
                module = given;
            } else {
                break;
            }
        }
        module
    }

    /// The child module from which a module re-exports that name.
    fn given_out(&self, module: &str, name: &str) -> Option<Module> {
        let words = words(self.sources.get(module)?);
        let mut at = 0;
        while let Some(found) = words[at..].windows(2).position(|w| w == ["pub", "use"]) {
            at += found + 2;
            let mut paths = Vec::new();
            let base = [parts(module), vec![words[at].to_owned()]].concat();
            branches(&words, at + 2, base, &mut paths);
            let named = paths
                .into_iter()
                .find(|path| path.last().is_some_and(|last| last == name));
            if let Some(path) = named {
                return Some(self.resolve(&path[..path.len() - 1]));
            }
        }
        None
    }
}

/// The paths that continue from `base` at that word, including those in braces.
fn branches(
    words: &[&str],
    mut at: usize,
    mut base: Vec<String>,
    paths: &mut Vec<Vec<String>>,
) -> usize {
    loop {
        match words.get(at) {
            Some(&"{") => {
                at += 1;
                while words.get(at).is_some_and(|word| *word != "}") {
                    let before = at;
                    at = branches(words, at, base.clone(), paths);
                    at += usize::from(words.get(at) == Some(&",") || at == before);
                }
                return at + 1;
            }
            Some(&"super") => {
                base.pop();
            }
            Some(&"self" | &"*") => {}
            Some(word) => base.push((*word).to_owned()),
            None => break,
        }
        at += 1;
        if words.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    paths.push(base);
    at
}

fn parts(module: &str) -> Vec<String> {
    module
        .split('/')
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The room of a module.
fn room(module: &str) -> Module {
    let mut parts = module.splitn(3, '/');
    match (parts.next(), parts.next()) {
        (Some(floor), Some(file)) if FLOORS.contains(&floor) => format!("{floor}/{file}"),
        (Some(first), _) => first.to_owned(),
        _ => String::new(),
    }
}

pub fn floor(module: &str) -> &str {
    module.split('/').next().unwrap_or_default()
}

/// Names, `::` and single punctuation characters.
fn words(source: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let len = if is_name(first) {
            rest.find(|c| !is_name(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        words.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    words
}

/// The code without comments and the contents of strings.
fn plain(text: &str) -> String {
    let mut code = String::new();
    for line in text.lines() {
        let mut in_string = false;
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if in_string => {
                    chars.next();
                }
                '"' => in_string = !in_string,
                '/' if !in_string && chars.peek() == Some(&'/') => break,
                _ if in_string => {}
                _ => code.push(c),
            }
        }
        code.push('\n');
    }
    code
}

/// The code without items that are compiled for tests only: those after each `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..at]);
        rest = &rest[at + "#[cfg(test)]".len()..];
        let (mut depth, mut end) = (0, rest.len());
        for (index, c) in rest.char_indices() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if depth == 0 && (c == '}' || c == ';') {
                end = index + 1;
                break;
            }
        }
        rest = &rest[end..];
    }
    kept + rest
}
