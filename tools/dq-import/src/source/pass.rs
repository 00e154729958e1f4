//! What each structure can do that jobs are read from.

use anyhow::Result;

use crate::entry::{Entry, Item};

/// What a pass over the source is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pass {
    /// Shows everything that exists during the whole pass, perhaps twice.
    Read,
    /// As `Read`, in the order in which the source deletes cheaply.
    Delete,
}

/// A command without its key, and its words.
pub type Setting = (&'static str, Vec<Vec<u8>>);

pub trait Source {
    /// The source's name in messages.
    fn title(&self) -> String;

    /// Whether the old queue exists; it may be empty.
    fn exists(&mut self) -> Result<bool>;

    /// About how many items a pass will show.
    fn size(&mut self) -> Result<u64>;

    /// Begins a pass.
    fn begin(&mut self, pass: Pass) -> Result<()>;

    /// The next items of the pass, None at its end. A page before that may be empty.
    fn next_page(&mut self) -> Result<Option<Vec<Item>>>;

    /// Deletes the entries that are unchanged since they were read, each entirely or not at all. Returns for each
    /// whether it was deleted.
    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>>;

    /// Commands that give the target's queue its settings, without their key.
    fn settings(&mut self) -> Result<Vec<Setting>> {
        Ok(Vec::new())
    }

    /// What the user should know about the jobs that stay, if anything.
    fn remark(&mut self) -> Result<Option<String>> {
        Ok(None)
    }
}
