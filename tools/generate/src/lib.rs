//! What follows from a table is written by `make generated`, and never by hand: the libraries' options of a job, their
//! records, their lists of errors, and rows of the documents. `tests/house/generated.rs` says when a file is stale.

mod docs;
mod fatal;
mod fields;
mod go;
mod head;
mod java;
pub mod names;
mod node;
mod page;
mod python;
mod reasons;
pub mod row;
mod rust;
mod shape;

use row::{Row, ROWS};
use std::path::Path;
use std::{fs, io};

/// The tables.
#[derive(Clone)]
pub struct Source {
    /// What a job may have.
    pub rows: Vec<Row>,
    /// docs/libraries.md: the fields of a job, and the errors that end a worker.
    pub libraries: String,
    /// docs/commands.md, some rows of which are written.
    pub commands: String,
    /// What has rows by hand: the options of DQ.ADD, and the fields of DQ.GET.
    pub by_hand: Vec<String>,
    /// The names of the libraries.
    pub names: Vec<names::Subject>,
}

impl Source {
    /// Of the files below this folder.
    pub fn read(root: &Path) -> io::Result<Source> {
        Ok(Source {
            rows: ROWS.to_vec(),
            libraries: fs::read_to_string(root.join(docs::LIBRARIES))?,
            commands: fs::read_to_string(root.join(docs::COMMANDS))?,
            by_hand: docs::by_hand(|path| fs::read_to_string(root.join(path)))?,
            names: names::read(root)?,
        })
    }

    /// Each file that is written, by its path, with its text. Panics where a page has a row of nothing.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        docs::check((&self.commands, &self.libraries), &self.rows, &self.by_hand);
        let mut libraries = docs::libraries(&self.libraries, &self.rows);
        names::put(&mut libraries, &self.names);
        let mut files = vec![(docs::COMMANDS, docs::commands(&self.commands, &self.rows))];
        for (path, text) in fields::FILES.iter().chain(&fatal::FILES) {
            files.push((path, text(&libraries)));
        }
        let options = [
            python::FILES,
            node::FILES,
            go::FILES,
            java::FILES,
            rust::FILES,
        ];
        for (path, text) in options.concat() {
            files.push((path, text(&self.rows)));
        }
        files.push((docs::LIBRARIES, libraries));
        files
    }

    /// The files that are not as they would be written.
    pub fn stale(&self, root: &Path) -> Vec<(&'static str, String)> {
        let mut files = self.files();
        files
            .retain(|(path, text)| fs::read_to_string(root.join(path)).ok().as_ref() != Some(text));
        files
    }
}
