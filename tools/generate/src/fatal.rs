//! One table of docs/libraries.md lists the errors that end a worker. The tables of the five libraries are written from
//! it.

use crate::docs::LIBRARIES;
use crate::head::{by, by_for_go, OfPage};
use crate::page::rows;

/// An error of the server, and what the user should do.
struct Fatality<'a> {
    said: &'a str,
    is_first: bool,
    what: &'a str,
}

fn fatalities(page: &str) -> Vec<Fatality<'_>> {
    let rows = rows::<3>(page, "## Errors that end a worker");
    let fatalities = rows.into_iter().flat_map(|[said, place, what]| {
        assert!(["first", "anywhere"].contains(&place), "{said}: {place}");
        let words = said.split('`').skip(1).step_by(2);
        words.map(move |said| Fatality {
            said,
            is_first: place == "first",
            what,
        })
    });
    let fatalities: Vec<_> = fatalities.collect();
    assert!(fatalities.len() > 10, "{} are not all", fatalities.len());
    fatalities
}

/// The text of a file: a head, a row for each error, and a foot.
fn text(page: &str, head: &str, row: fn(&Fatality<'_>) -> String, foot: &str) -> String {
    let rows: Vec<String> = fatalities(page).iter().map(row).collect();
    [head, &*rows.join(",\n"), foot].concat()
}

const ABOUT: &str = "What waiting does not mend: what the server's error says, whether it begins with it, and what to do.";

fn python(page: &str) -> String {
    let head = format!(
        "\"\"\"{ABOUT}\n\n{}\n\"\"\"\n\nFATALITIES = (\n",
        by(LIBRARIES)
    );
    let row = |it: &Fatality<'_>| {
        let is_first = if it.is_first { "True" } else { "False" };
        format!(
            "    (\n        {:?},\n        {is_first},\n        {:?},\n    )",
            it.said, it.what
        )
    };
    text(page, &head, row, ",\n)\n")
}

fn node(page: &str) -> String {
    let fields = "readonly { said: string; isFirst: boolean; what: string }[]";
    let head = format!(
        "// {}\n\n/** {ABOUT} */\nexport const FATALITIES: {fields} = [\n",
        by(LIBRARIES)
    );
    let row = |it: &Fatality<'_>| {
        let what = format!("{:?}", it.what);
        let what = if it.what.contains('\'') {
            what
        } else {
            what.replace('"', "'")
        };
        format!(
            "  {{\n    said: '{}',\n    isFirst: {},\n    what: {what},\n  }}",
            it.said, it.is_first
        )
    };
    text(page, &head, row, ",\n];\n")
}

fn go(page: &str) -> String {
    let head = format!(
        "{}\nvar fatalities = []fatality{{\n",
        by_for_go(LIBRARIES, "trouble")
    );
    let row = |it: &Fatality<'_>| format!("\t{{{:?}, {}, {:?}}}", it.said, it.is_first, it.what);
    text(page, &head, row, ",\n}\n")
}

fn java(page: &str) -> String {
    let record = "record Fatality(String said, boolean isFirst, String what) {\n    static final List<Fatality> ALL = List.of(\n";
    let head = format!(
        "package io.github.redisdq;\n\n// {}\n\nimport java.util.List;\n\n/** {ABOUT} */\n{record}",
        by(LIBRARIES)
    );
    let row = |it: &Fatality<'_>| {
        let words = format!(
            "{:?},\n                    {},\n                    {:?}",
            it.said, it.is_first, it.what
        );
        format!("            new Fatality(\n                    {words})")
    };
    text(page, &head, row, ");\n}\n")
}

fn rust(page: &str) -> String {
    let constant = "#[rustfmt::skip]\npub(super) const FATALITIES: &[(&str, bool, &str)] = &[\n";
    let head = format!("//! {}\n\n/// {ABOUT}\n{constant}", by(LIBRARIES));
    let row = |it: &Fatality<'_>| format!("    ({:?}, {}, {:?})", it.said, it.is_first, it.what);
    text(page, &head, row, ",\n];\n")
}

/// A file, and what makes its text of the page.
pub const FILES: [OfPage; 5] = [
    ("clients/python/src/dq/_fatalities.py", python),
    ("clients/node/src/fatalities.ts", node),
    ("clients/go/internal/trouble/fatalities.go", go),
    (
        "clients/java/src/main/java/io/github/redisdq/Fatality.java",
        java,
    ),
    ("clients/rust/src/core/fatalities.rs", rust),
];
