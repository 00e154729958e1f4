//! The libraries of clients/ have the names that docs/clients.md lists, and know all fields and options of the server.

use crate::imports::{code, files, Files};
use crate::root;
use std::collections::BTreeSet;
use std::fs;

/// A language's sources, their file ending, and the words before a defined name; in the order of the columns of
/// docs/clients.md.
const COLUMNS: [(&str, &str, &[&str]); 5] = [
    ("clients/python/src", "py", &["def", "class"]),
    (
        "clients/node/src",
        "ts",
        &["class", "function", "async", "readonly", "get"],
    ),
    ("clients/go", "go", &["func", "type"]),
    (
        "clients/java/src/main",
        "java",
        &["class", "record", "interface"],
    ),
    ("clients/rust/src", "rs", &["fn", "struct", "enum"]),
];

/// Names that a language's code defines: after one of these words, before a parenthesis or a colon, or at the beginning
/// of a line.
fn defined(files: &Files, behind: &[&str]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let is_of_word = |char: char| char.is_alphanumeric() || char == '_';
    for (file, text) in files {
        let comment = if file.ends_with(".py") { "#" } else { "//" };
        for line in code(text, comment).lines() {
            let mut rest = line.trim_start();
            let mut before = "";
            while let Some(begin) = rest.find(is_of_word) {
                let is_first = before.is_empty() && begin == 0;
                rest = &rest[begin..];
                let end = rest.find(|char| !is_of_word(char)).unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                let is_called =
                    after.starts_with(['(', ':', '<', '?']) || after.starts_with(" func");
                if is_first || is_called || behind.contains(&before) {
                    names.insert(name.to_owned());
                }
                (before, rest) = (name, after);
            }
        }
    }
    names
}

/// The names in a cell of the table: of `raise Retry(60)` it is Retry.
fn named(cell: &str) -> Vec<&str> {
    const NO_NAMES: [&str; 9] = [
        "dq", "job", "raise", "throw", "new", "Error", "node", "npx", "python",
    ];
    let quoted = cell.split('`').skip(1).step_by(2);
    let is_of_word = |char: char| char.is_alphanumeric() || char == '_';
    quoted
        .flat_map(|part| part.split(move |char| !is_of_word(char)))
        .filter(|word| word.starts_with(char::is_alphabetic) && !NO_NAMES.contains(word))
        .collect()
}

/// The rows of the table of the libraries, without those of the command line.
fn table(page: &str) -> Vec<Vec<&str>> {
    let lines = page
        .lines()
        .skip_while(|line| !line.starts_with("| queue, worker"));
    let rows =
        lines.take_while(|line| line.starts_with("| ") && !line.starts_with("| command line"));
    rows.map(|row| row.split(" | ").skip(1).collect()).collect()
}

/// Names of the page that the code does not define, and how many names there are.
fn unknown(page: &str) -> (Vec<String>, usize) {
    let (mut unknown, mut count) = (Vec::new(), 0);
    for (column, (folder, ending, behind)) in COLUMNS.into_iter().enumerate() {
        let known = defined(&files(folder, ending), behind);
        for row in table(page) {
            let names = named(
                row.get(column)
                    .unwrap_or_else(|| panic!("{row:?} is too short")),
            );
            count += names.len();
            let missing = names.into_iter().filter(|name| !known.contains(*name));
            unknown.extend(missing.map(|name| format!("{ending}: {name}")));
        }
    }
    (unknown, count)
}

#[test]
fn the_libraries_have_the_names_of_the_page() {
    let page = fs::read_to_string(root().join("docs/clients.md")).unwrap();
    let (missing, count) = unknown(&page);
    assert_eq!(missing, [""; 0]);
    assert!(count > 150, "{count} are not all");
    let wrong = page.replace("`add`, `addMany`, `chain`", "`add`, `addSeveral`, `chain`");
    let wrong = wrong.replace("`dq.WaitSignal`", "`dq.AwaitSignal`");
    assert_eq!(
        unknown(&wrong).0,
        ["ts: addSeveral", "go: AwaitSignal", "java: addSeveral"]
    );
}

/// The names of the fields of DQ.GET, from the module's code. Those of the table of what a job may have are generated.
fn fields() -> Vec<String> {
    let text = fs::read_to_string(root().join("src/commands/get.rs")).unwrap();
    let quoted = text.split('"').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

/// The options of DQ.ADD, from the module's code. NX is the default, and left out.
fn options() -> Vec<String> {
    let text = fs::read_to_string(root().join("src/commands/add.rs")).unwrap();
    let (_, rest) = text.split_once("options! { ADD: ").expect("the options");
    let (words, _) = rest.split_once(" }").expect("their end");
    let words = words
        .split(' ')
        .filter(|word| !["NX", "[SAID]"].contains(word));
    words.map(str::to_owned).collect()
}

/// Names that the sources do not contain, in quotes or among other words of a text.
fn unnamed(names: &[String], files: &Files) -> Vec<String> {
    let is_of_word = |char: char| char.is_alphanumeric() || char == '_' || char == '-';
    let known: BTreeSet<&str> = files
        .values()
        .flat_map(|text| text.split(|char| !is_of_word(char)))
        .collect();
    let unknown = names.iter().filter(|name| !known.contains(name.as_str()));
    unknown.cloned().collect()
}

#[test]
fn the_libraries_know_each_field_and_option() {
    let (fields, options) = (fields(), options());
    assert!(fields.len() > 30 && options.len() > 10);
    for (folder, ending, _) in COLUMNS {
        let files = files(folder, ending);
        let missing = [unnamed(&fields, &files), unnamed(&options, &files)].concat();
        assert_eq!(missing, [""; 0], "{folder}");
        let wrong = ["on-death".to_owned(), "AFTERWARDS".to_owned()];
        assert_eq!(unnamed(&wrong, &files), wrong, "{folder}");
    }
}

/// Parts that the Lua scripts of all libraries have in common, by their first words and the line after them: a step
/// with the wait after it; whether a script of `once` has ended; and what removes a rule that was not said again.
const SCRIPTS: [(&str, &str); 3] = [
    ("local at, reply", "return reply"),
    ("local job = redis.call('DQ.GET', KEYS[1]", "end"),
    ("local rule = redis.call('DQ.GET', KEYS[1]", "return 0"),
];

/// The lines of such a part, for each file that has it.
fn scripts(files: &Files, (first, last): (&str, &str)) -> Vec<Vec<String>> {
    let of_file = |text: &String| {
        let lines = text.lines().map(|line| line.trim().to_owned());
        let script = lines.skip_while(|line| !line.starts_with(first));
        script.take_while(|line| line != last).collect()
    };
    let all = files.values().map(of_file);
    all.filter(|script: &Vec<String>| !script.is_empty())
        .collect()
}

/// Files in five languages cannot be shared, so equal scripts are checked.
#[test]
fn the_libraries_send_one_script() {
    for script in SCRIPTS {
        let all =
            COLUMNS.map(|(folder, ending, _)| (folder, scripts(&files(folder, ending), script)));
        let (_, first) = &all[0];
        for (folder, scripts) in &all {
            assert_eq!(scripts.len(), 1, "{folder}");
            assert!(scripts[0].len() > 4, "{folder}: {scripts:?}");
            assert_eq!(scripts, first, "{folder}");
        }
        let mut changed = files(COLUMNS[0].0, COLUMNS[0].1);
        let other = |text: &mut String| *text = text.replace("ARGV", "KEYS");
        changed.values_mut().for_each(other);
        assert_ne!(&scripts(&changed, script), first);
    }
}
