//! What happened to the items of a pass: counts, with a few names of each kind.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::entry::{Entry, Seen};
use crate::output::line;

pub const SAME_ID: &str = "left: another job of the source has the same id";

#[derive(Default)]
pub struct Tally(BTreeMap<String, (u64, Vec<String>)>);

impl Tally {
    pub fn add(&mut self, what: impl Into<String>, name: &[u8]) {
        const EXAMPLES: usize = 3;
        const LONGEST: usize = 60;
        let (count, examples) = self.0.entry(what.into()).or_default();
        *count += 1;
        if examples.len() < EXAMPLES {
            let shown = &name[..name.len().min(LONGEST)];
            examples.push(shown.escape_ascii().to_string());
        }
    }

    pub fn count(&self, what: &str) -> u64 {
        self.0.get(what).map_or(0, |(count, _)| *count)
    }

    pub fn print(&self, title: &str) -> Result<()> {
        line(format_args!("{title}:"))?;
        if self.0.is_empty() {
            line("  nothing")?;
        }
        for (what, (count, examples)) in &self.0 {
            let examples = examples.join(", ");
            line(format_args!("  {count:>9}  {what}, such as {examples}"))?;
        }
        Ok(())
    }
}

/// The ids of a pass. If two jobs of the source have one id, one of them is imported and the other one stays: that is
/// not a change of the first.
#[derive(Default)]
pub struct Ids {
    met: Seen,
    changed: Vec<Vec<u8>>,
}

impl Ids {
    pub fn is_first(&mut self, entry: &Entry) -> bool {
        self.met.insert(&entry.id)
    }

    pub fn changed(&mut self, entry: &Entry) {
        self.changed.push(entry.id.clone());
    }

    /// Counts what has changed, once all ids are met.
    pub fn tell(self, changed: &str, tally: &mut Tally) {
        for id in self.changed {
            let is_other = self.met.contains(&id);
            tally.add(if is_other { SAME_ID } else { changed }, &id);
        }
    }
}
