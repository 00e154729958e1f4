//! What follows from a table is as `make generated` writes it, and follows from each row.

use crate::root;
use dq_generate::row::CANARY;
use dq_generate::Source;
use std::fs;
use std::panic::catch_unwind;

/// The files that are not as they would be written.
fn stale(source: &Source) -> Vec<&'static str> {
    let stale = source.stale(&root());
    stale.into_iter().map(|(path, _)| path).collect()
}

/// Those of one folder.
fn of<'a>(folder: &str, files: &[&'a str]) -> Vec<&'a str> {
    let files = files.iter().copied();
    files.filter(|file| file.starts_with(folder)).collect()
}

#[test]
fn nothing_is_stale() {
    let source = Source::read(&root()).unwrap();
    assert_eq!(stale(&source), [""; 0], "`make generated` writes them");
    let marked = fs::read_to_string(root().join(".gitattributes")).unwrap();
    for (path, _) in source.files() {
        let is_marked = marked.contains(&format!("\n{path} linguist-generated"));
        assert_eq!(is_marked, !path.starts_with("docs/"), "{path}");
    }
}

/// An option that no release has is in all that is written, and gone with its row.
#[test]
fn a_made_up_option_comes_and_goes() {
    let mut source = Source::read(&root()).unwrap();
    let before = source.files();
    source.rows.push(CANARY);
    for (path, text) in source.files() {
        let has = text.to_lowercase().contains("canary");
        assert_eq!(has, !path.to_lowercase().contains("fatalit"), "{path}");
    }
    let languages = ["python", "node", "go", "java", "rust"];
    for language in languages {
        let folder = format!("clients/{language}/");
        let files = of(&folder, &stale(&source)).len();
        assert!(files >= 2, "{language}: {files}");
    }
    source.rows.pop();
    assert_eq!(source.files(), before);
    // Rows that are left of one that is gone are noticed, on each page.
    source.rows.pop();
    let why = catch_unwind(|| source.files()).unwrap_err();
    let why = why.downcast::<String>().unwrap();
    assert!(why.starts_with("docs/commands.md: `LABEL` "), "{why}");
    let without = |page: &str| -> String {
        let page = page.replace(" [LABEL label]", "");
        let lines = page.lines();
        let kept = lines.filter(|line| !line.to_lowercase().starts_with("| `label"));
        kept.map(|line| format!("{line}\n")).collect()
    };
    source.commands = without(&source.commands);
    let why = catch_unwind(|| source.files()).unwrap_err();
    let why = why.downcast::<String>().unwrap();
    assert!(why.starts_with("docs/libraries.md: `label` "), "{why}");
    source.libraries = without(&source.libraries);
    assert_ne!(source.files(), before);
}

/// Each change of a table of docs/libraries.md is noticed in all five libraries.
#[test]
fn other_words_are_noticed() {
    let source = Source::read(&root()).unwrap();
    let changes = [
        ("| `awaits` |", "| `every` |"),
        ("The current one", "It"),
        ("| `next` | bytes? |", "| `next` | bytes |"),
        ("| `WRONGTYPE` | first |", "| `WRONGTYPE` | anywhere |"),
        ("upgrade the module", "upgrade it"),
    ];
    for (word, other) in changes {
        let libraries = source.libraries.replace(word, other);
        assert_ne!(libraries, source.libraries, "{word}");
        let changed = Source {
            libraries,
            ..source.clone()
        };
        let count = of("clients/", &stale(&changed)).len();
        assert!([4, 5].contains(&count), "{other}: {count}");
    }
}

/// A name that one library has alone needs a reason.
#[test]
fn a_made_up_name_is_noticed() {
    let mut source = Source::read(&root()).unwrap();
    let names = source.names.iter().flat_map(|subject| &subject.names);
    let counts: Vec<usize> = names.map(|names| names.len()).collect();
    assert!(counts.iter().all(|count| *count > 2), "{counts:?}");
    for language in 0..5 {
        source.names[0].names[language].insert("canary".to_owned(), "canary".to_owned());
        let is_everywhere = language == 4;
        assert_eq!(catch_unwind(|| source.files()).is_ok(), is_everywhere);
    }
    assert_eq!(stale(&source), ["docs/libraries.md"]);
}
