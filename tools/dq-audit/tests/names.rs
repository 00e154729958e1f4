//! The models, dq audit, the crash tests and the simulation have one list of rules: docs/model/README.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dq_audit::rule::Rule;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn ours() -> BTreeSet<String> {
    Rule::ALL.iter().map(ToString::to_string).collect()
}

/// The properties that TLC is told to check.
fn of_configuration(name: &str) -> BTreeSet<String> {
    let text = read(&format!("docs/model/{name}.cfg"));
    let lines = text
        .lines()
        .filter(|line| line.starts_with("INVARIANTS") || line.starts_with("PROPERTIES"));
    lines
        .flat_map(|line| line.split(' ').skip(1))
        .map(str::to_owned)
        .collect()
}

/// The rows of the first table whose head begins with `head`, cell by cell, without backquotes.
fn table(text: &str, head: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip_while(|line| !line.starts_with(head));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace('`', "")).collect()
    })
    .collect()
}

#[test]
fn the_models_check_what_dq_audit_does() {
    let queue = of_configuration("Queue");
    for same in ["One", "More", "Trace"] {
        assert_eq!(of_configuration(same), queue, "{same}");
    }
    assert_eq!(of_configuration("Fifo"), of_configuration("Turns"));
    let both: BTreeSet<_> = queue.union(&of_configuration("Turns")).cloned().collect();
    assert_eq!(both, ours());
}

#[test]
fn the_list_names_where_each_rule_is() {
    let rows = table(&read("docs/model/README.md"), "| Invariant |");
    let names: BTreeSet<String> = rows.iter().map(|row| row[0].clone()).collect();
    assert_eq!(names, ours());
    let checkers =
        ["history/check.rs", "recurring.rs"].map(|file| read(&format!("tests/crash/{file}")));
    for row in rows {
        let [name, model, audit, crash, simulation] = row.try_into().expect("five cells");
        let module = read(&format!("docs/model/{model}.tla"));
        assert!(
            module.contains(&format!("\n{name} ==")),
            "{name} in {model}"
        );
        let source = read(&format!("tools/dq-audit/src/{audit}"));
        assert!(
            source.contains(&format!("Rule::{name}")),
            "{name} in {audit}"
        );
        let fault = format!("\n    {crash},\n");
        let is_checked = checkers.iter().any(|checker| checker.contains(&fault));
        assert!(is_checked, "{crash} of {name}");
        assert!(
            root().join("tests/simulation").join(&simulation).is_file(),
            "{simulation}"
        );
    }
}

#[test]
fn the_page_tells_of_each() {
    let rows = table(&read("docs/audit.md"), "| Rule |");
    let names: BTreeSet<String> = rows.into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(names, ours());
}

/// Lists that differ are told from lists that are equal.
#[test]
fn what_is_missing_shows() {
    let text = "x\n| Rule | b |\n|---|---|\n| `One` | c |\n\n| Rule |\n";
    assert_eq!(table(text, "| Rule |"), [["One", "c"]]);
    let fewer: BTreeSet<String> = ours().into_iter().skip(1).collect();
    assert_ne!(
        fewer,
        of_configuration("Queue")
            .union(&of_configuration("Turns"))
            .cloned()
            .collect()
    );
}
