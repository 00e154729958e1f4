//! How a file that is written begins.

use crate::row::Row;

/// A file of a table of docs/libraries.md, and what makes its text of the page.
pub type OfPage = (&'static str, fn(&str) -> String);

/// A file of the libraries' options, and what makes its text.
pub type OfRows = (&'static str, fn(&[Row]) -> String);

/// Where the options come from.
pub const FROM: &str = "src/queue/attr/rows.rs";

/// The head of a file that is written.
pub fn by(from: &str) -> String {
    format!("Written from {from} by `make generated`; DO NOT EDIT.")
}

/// The same head in the form by which Go's tools recognize a generated file.
pub fn by_for_go(from: &str, package: &str) -> String {
    format!(
        "// Code generated from {from} by `make generated`; DO NOT EDIT.\n\npackage {package}\n"
    )
}
