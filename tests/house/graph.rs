//! Which file of a Rust crate uses which: an edge (arrow) for each path in the code that begins with `crate::`,
//! `super::`, or the name of a child module or of something imported. Re-exports are followed to what they give out, and
//! are no use themselves. Comments, strings and tests are ignored.

use std::collections::{BTreeMap, BTreeSet};

/// Folders in which each file is a room (node) of its own. Any other folder is one room together with the file of its
/// name.
const FLOORS: [&str; 4] = ["storage", "queue", "server", "commands"];

/// A module's path from the crate's root: `server/key`; empty for the root itself.
type Module = String;

/// From the crate's root on.
type Steps = Vec<String>;

pub struct House {
    sources: BTreeMap<Module, String>,
}

/// Pairs of the user and what it uses.
pub type Arrows = BTreeSet<(Module, Module)>;

impl House {
    /// `(path below src, text)` of each file.
    pub fn of(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let (mut sources, mut tests) = (BTreeMap::new(), Vec::new());
        for (path, text) in files {
            let module = path.trim_end_matches(".rs").trim_end_matches("/mod");
            let module = if module == "lib" { "" } else { module };
            let (code, named) = without_tests(&plain(&text));
            tests.extend(named.into_iter().map(|name| child(module, &name)));
            sources.insert(module.to_owned(), code);
        }
        let is_test = |module: &str| module.split('/').any(|part| part == "tests");
        let is_of = |module: &str, test: &str| module == test || is_below(module, test);
        sources.retain(|at, _| !is_test(at) && !tests.iter().any(|test| is_of(at, test)));
        if !sources.contains_key("") {
            let main = sources.remove("main").unwrap_or_default();
            sources.insert(Module::new(), main);
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

    /// How many methods a type has, by file.
    pub fn methods_of(&self, name: &str) -> BTreeMap<&str, usize> {
        let (of_one, of_any) = (format!("impl {name} {{"), format!("> {name} {{"));
        let begins =
            |line: &&str| line.starts_with("impl") && (**line == of_one || line.ends_with(&of_any));
        let mut methods = BTreeMap::new();
        for (module, source) in &self.sources {
            let mut lines = source.lines();
            while lines.by_ref().find(begins).is_some() {
                let block = lines.by_ref().take_while(|line| *line != "}");
                let heads =
                    block.filter(|line| words(line).contains(&"fn") && !line.starts_with("     "));
                *methods.entry(&**module).or_default() += heads.count();
            }
        }
        methods
    }

    /// Between rooms.
    pub fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (from, to) in self.uses() {
            let (from, to) = (room(&from), room(&to));
            // What a floor has of its own files is no arrow of the floor's.
            let is_within = FLOORS.contains(&&*from) && floor(&to) == from;
            if from != to && !is_within {
                arrows.insert((from, to));
            }
        }
        arrows
    }

    /// Between the parts of a module: each file directly below it is one, with its folder. The module holds them, and is
    /// none of them.
    pub fn arrows_below(&self, module: &str) -> Arrows {
        let part = |file: &str| {
            let below = file.strip_prefix(module)?.strip_prefix('/')?;
            below.split('/').next().map(str::to_owned)
        };
        let uses = self.uses().into_iter();
        let between = uses.filter_map(|(from, to)| Some((part(&from)?, part(&to)?)));
        between.filter(|(from, to)| from != to).collect()
    }

    /// Modules that have parts.
    pub fn holders(&self) -> BTreeSet<&str> {
        let files = self.sources.keys();
        files
            .filter_map(|file| file.rsplit_once('/').map(|(holder, _)| holder))
            .collect()
    }

    /// Between files.
    pub fn uses(&self) -> Arrows {
        let sources = self.sources.iter();
        let words: BTreeMap<&str, Vec<&str>> = sources.map(|(at, it)| (&**at, words(it))).collect();
        let imports = |(module, words): (&&str, &Vec<&str>)| {
            (module.to_string(), self.paths(module, words, &[], true))
        };
        let imports: BTreeMap<Module, Vec<Steps>> = words.iter().map(imports).collect();
        let mut arrows = Arrows::new();
        for (module, words) in &words {
            for path in self.paths(module, words, &imports[*module], false) {
                let used = self.resolve(&path, &imports);
                if used != *module {
                    arrows.insert(((*module).to_owned(), used));
                }
            }
        }
        arrows
    }

    /// All paths in the code that lead to an item of the crate; or those that are imported, whether used or not.
    fn paths(&self, module: &str, words: &[&str], imports: &[Steps], imported: bool) -> Vec<Steps> {
        let here: Steps = parts(module);
        let mut paths = Vec::new();
        for (at, word) in words.iter().enumerate() {
            // The middle of a path, or the scope of a visibility.
            let before = at.checked_sub(1).map_or("", |before| words[before]);
            let is_use = before == "use";
            if ["::", "in"].contains(&before) || imported && !is_use {
                continue;
            }
            let leads_on = words.get(at + 1) == Some(&"::");
            let base = match *word {
                "crate" => Vec::new(),
                "self" if leads_on => here.clone(),
                "super" => here[..here.len().saturating_sub(1)].to_vec(),
                _ if !leads_on => continue,
                _ if self.sources.contains_key(&child(module, word)) => {
                    [here.clone(), vec![word.to_string()]].concat()
                }
                _ if is_use => continue,
                _ => match imports
                    .iter()
                    .find(|path| path.last().is_some_and(|it| it == word))
                {
                    Some(path) => path.clone(),
                    None => continue,
                },
            };
            if leads_on {
                let first = paths.len();
                branches(words, at + 2, base, &mut paths);
                let gives_out = is_use && at > 1 && ["pub", ")"].contains(&words[at - 2]);
                if gives_out && !imported {
                    let is_used = |name: &String| words.iter().filter(|it| *it == name).count() > 1;
                    let used = paths.split_off(first).into_iter();
                    paths.extend(used.filter(|path| path.last().is_some_and(is_used)));
                }
            }
        }
        paths
    }

    /// The module in which a path's item is.
    fn resolve(&self, path: &[String], imports: &BTreeMap<Module, Vec<Steps>>) -> Module {
        let mut module = Module::new();
        for (at, part) in path.iter().enumerate() {
            let below = child(&module, part);
            if self.sources.contains_key(&below) {
                module = below;
                continue;
            }
            let mut given = imports.get(&module).into_iter().flatten();
            let given = given.find(|it| it.last() == Some(part) && it[..] != path[..=at]);
            return match given {
                Some(given) => self.resolve(&[given, &path[at + 1..]].concat(), imports),
                None => module,
            };
        }
        module
    }
}

/// Whether it is a part of that module, or a part of a part.
pub fn is_below(module: &str, of: &str) -> bool {
    let below = module.strip_prefix(of);
    of.is_empty() && !module.is_empty() || below.is_some_and(|rest| rest.starts_with('/'))
}

fn child(module: &str, name: &str) -> Module {
    let slash = if module.is_empty() { "" } else { "/" };
    format!("{module}{slash}{name}")
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
pub fn words(source: &str) -> Vec<&str> {
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
pub fn plain(text: &str) -> String {
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

/// The code without items that are compiled for tests only, those after each `#[cfg(test)]`, and the names of the modules
/// among them.
fn without_tests(code: &str) -> (String, Vec<String>) {
    let (mut kept, mut modules) = (String::new(), Vec::new());
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
        if let [.., "mod", name, ";"] = words(&rest[..end])[..] {
            modules.push(name.to_owned());
        }
        rest = &rest[end..];
    }
    (kept + rest, modules)
}
