//! Two parts of one source, one after the other: the delayed jobs, and those already due.

use anyhow::Result;

use super::{Pass, Source};
use crate::entry::{Entry, Item};

pub struct Both {
    delayed: Box<dyn Source>,
    due: Box<dyn Source>,
    /// Whether the latest page came from `due`.
    in_due: bool,
}

impl Both {
    pub fn new(delayed: Box<dyn Source>, due: Box<dyn Source>) -> Both {
        Both {
            delayed,
            due,
            in_due: false,
        }
    }
}

impl Source for Both {
    fn title(&self) -> String {
        format!("{} and {}", self.delayed.title(), self.due.title())
    }

    fn exists(&mut self) -> Result<bool> {
        Ok(self.delayed.exists()? || self.due.exists()?)
    }

    fn size(&mut self) -> Result<u64> {
        Ok(self.delayed.size()? + self.due.size()?)
    }

    fn begin(&mut self, pass: Pass) -> Result<()> {
        self.in_due = false;
        self.delayed.begin(pass)?;
        self.due.begin(pass)
    }

    fn next_page(&mut self) -> Result<Option<Vec<Item>>> {
        if !self.in_due {
            if let Some(page) = self.delayed.next_page()? {
                return Ok(Some(page));
            }
            self.in_due = true;
        }
        self.due.next_page()
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        match self.in_due {
            true => self.due.delete(entries),
            false => self.delayed.delete(entries),
        }
    }

    /// The remark of `delayed` would call the jobs that are due left behind.
    fn remark(&mut self) -> Result<Option<String>> {
        self.due.remark()
    }
}
