//! The errors that end a worker stand in one table of docs/libraries.md. The five libraries' tables are written from it.

use crate::root;
use std::fs;
use std::path::PathBuf;

const PAGE: &str = "docs/libraries.md";
const BY: &str = "Written from docs/libraries.md by tests/house/fatal.rs; DO NOT EDIT.";

/// An error of the server, and what to do.
struct Fatality<'a> {
    said: &'a str,
    is_first: bool,
    what: &'a str,
}

fn fatalities(page: &str) -> Vec<Fatality<'_>> {
    let (_, section) = page
        .split_once("## Errors that end a worker")
        .expect("the section");
    let lines = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = lines.skip(1).take_while(|line| line.starts_with("| "));
    rows.flat_map(|row| {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let [said, place, what] = cells[..] else {
            panic!("not three cells: {row}");
        };
        assert!(["first", "anywhere"].contains(&place), "{row}");
        assert!(!what.contains(['"', '\\']), "to be escaped: {row}");
        let is_first = place == "first";
        let words = said.split('`').skip(1).step_by(2);
        words.map(move |said| Fatality {
            said,
            is_first,
            what,
        })
    })
    .collect()
}

/// A language's file: its name, and what stands before the rows, in a row, and behind them.
struct Written {
    file: &'static str,
    head: &'static str,
    row: fn(&Fatality<'_>) -> String,
    foot: &'static str,
}

/// Formatted as each language's own tool does.
const LANGUAGES: [Written; 5] = [
    Written {
        file: "clients/python/src/dq/_fatalities.py",
        head: "\"\"\"What waiting does not mend: what the server's error says, whether it begins with it, and what to do.\n\n\
            {BY}\n\"\"\"\n\nFATALITIES = (\n",
        row: |it| {
            let is_first = if it.is_first { "True" } else { "False" };
            format!("    (\n        {:?},\n        {is_first},\n        {:?},\n    )", it.said, it.what)
        },
        foot: ",\n)\n",
    },
    Written {
        file: "clients/node/src/fatalities.ts",
        head: "// {BY}\n\n\
            /** What waiting does not mend: what the server's error says, whether it begins with it, and what to do. */\n\
            export const FATALITIES: readonly { said: string; isFirst: boolean; what: string }[] = [\n",
        row: |it| {
            let what = format!("{:?}", it.what);
            let what = if it.what.contains('\'') { what } else { what.replace('"', "'") };
            format!("  {{\n    said: '{}',\n    isFirst: {},\n    what: {what},\n  }}", it.said, it.is_first)
        },
        foot: ",\n];\n",
    },
    Written {
        file: "clients/go/fatalities.go",
        // The words by which Go's tools know such a file.
        head: "// Code generated from docs/libraries.md by tests/house/fatal.rs; DO NOT EDIT.\n\npackage dq\n\n\
            var fatalities = []fatality{\n",
        row: |it| format!("\t{{{:?}, {}, {:?}}}", it.said, it.is_first, it.what),
        foot: ",\n}\n",
    },
    Written {
        file: "clients/java/src/main/java/io/github/redisdq/Fatality.java",
        head: "package io.github.redisdq;\n\n// {BY}\n\nimport java.util.List;\n\n\
            /** What waiting does not mend: what the server's error says, whether it begins with it, and what to do. */\n\
            record Fatality(String said, boolean isFirst, String what) {\n    \
            static final List<Fatality> ALL = List.of(\n",
        row: |it| {
            format!("            new Fatality(\n                    {:?},\n                    {},\n                    {:?})",
                it.said, it.is_first, it.what)
        },
        foot: ");\n}\n",
    },
    Written {
        file: "clients/rust/src/core/fatalities.rs",
        head: "//! {BY}\n\n\
            /// What waiting does not mend: what the server's error says, whether it begins with it, and what to do.\n\
            #[rustfmt::skip]\npub(super) const FATALITIES: &[(&str, bool, &str)] = &[\n",
        row: |it| format!("    ({:?}, {}, {:?})", it.said, it.is_first, it.what),
        foot: ",\n];\n",
    },
];

impl Written {
    fn text(&self, fatalities: &[Fatality<'_>]) -> String {
        let rows: Vec<String> = fatalities.iter().map(self.row).collect();
        [
            &self.head.replace("{BY}", BY),
            &*rows.join(",\n"),
            self.foot,
        ]
        .concat()
    }

    fn path(&self) -> PathBuf {
        root().join(self.file)
    }
}

/// Files that are not as the page says.
fn stale(page: &str) -> Vec<&'static str> {
    let fatalities = fatalities(page);
    assert!(fatalities.len() > 10, "{} are not all", fatalities.len());
    let is_stale =
        |it: &&Written| fs::read_to_string(it.path()).unwrap_or_default() != it.text(&fatalities);
    let stale = LANGUAGES.iter().filter(is_stale);
    stale.map(|it| it.file).collect()
}

/// `DQ_WRITE=1` writes them first.
#[test]
fn the_libraries_have_the_fatal_errors_of_the_page() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    if std::env::var_os("DQ_WRITE").is_some() {
        for it in &LANGUAGES {
            fs::write(it.path(), it.text(&fatalities(&page))).unwrap();
        }
    }
    assert_eq!(stale(&page), [""; 0], "DQ_WRITE=1 writes them");
    let wrong = page.replace("| `WRONGTYPE` | first |", "| `WRONGTYPE` | anywhere |");
    assert_eq!(stale(&wrong), LANGUAGES.map(|it| it.file));
    let wrong = page.replace("upgrade the module", "upgrade it");
    assert_eq!(stale(&wrong), LANGUAGES.map(|it| it.file));
}
