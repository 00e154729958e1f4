//! What became of the items of a pass: counted, with a few names of each kind.

use std::collections::BTreeMap;

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

    pub fn print(&self, title: &str) {
        println!("{title}:");
        if self.0.is_empty() {
            println!("  nothing");
        }
        for (what, (count, examples)) in &self.0 {
            println!("  {count:>9}  {what}, such as {}", examples.join(", "));
        }
    }
}
