//! The passes over a source: count, copy, check, delete.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};

use crate::entry::{now_ms, Entry, Item, Seen};
use crate::options::Options;
use crate::output::line;
use crate::progress::Progress;
use crate::source::{Pass, Source};
use crate::tally::{Ids, Tally, SAME_ID};
use crate::target::{Found, Target, Written};

const LONGEST_ID: usize = 1024;
const TOO_SOON: &str = "left: due before --due-after";
const BEFORE: &str = "imported before";
const CHANGED: &str = "imported before, changed in the source since";
const GONE: &str =
    "imported, but GONE from the source since (an old worker took it, or it was cancelled)";
const TAKEN: &str = "taken or changed by another client just now";
const DELETED_BEFORE: &str = "deleted from the source before";

pub struct Import<'a> {
    options: &'a Options,
    source: Box<dyn Source>,
    target: Target,
    /// Jobs due earlier stay with the old workers. All passes of a run use the same instant.
    due_from_ms: u64,
}

impl Import<'_> {
    pub fn new(options: &Options, source: Box<dyn Source>, target: Target) -> Import<'_> {
        let margin = options.jobs.due_after;
        Import {
            due_from_ms: margin.map_or(0, |margin| now_ms() + margin),
            options,
            source,
            target,
        }
    }

    /// Counts what would be imported, and writes nothing.
    pub fn look(&mut self) -> Result<()> {
        let mut tally = Tally::default();
        let (mut first, mut last, mut bytes) = (u64::MAX, 0, 0);
        let mut ids = Ids::default();
        self.pass(
            "looking",
            Pass::Read,
            &mut tally,
            |import, tally, entries| {
                for (entry, found) in entries.iter().zip(import.target.find(&entries)?) {
                    let what = match found {
                        Found::ChangedInSource => {
                            ids.changed(entry);
                            continue;
                        }
                        Found::Missing if import.is_too_soon(entry) => TOO_SOON,
                        Found::Duplicate => "were duplicates",
                        _ if !ids.is_first(entry) => SAME_ID,
                        Found::Missing => "would be imported",
                        Found::There | Found::Finished | Found::Differs => "were imported before",
                    };
                    tally.add(what, &entry.id);
                    if entry.due_ms > 0 {
                        first = first.min(entry.due_ms);
                        last = last.max(entry.due_ms);
                    }
                    bytes += entry.payload.len() as u64;
                }
                Ok(())
            },
        )?;
        ids.tell("were imported, but have changed in the source", &mut tally);
        tally.print(&format!("{}, dry run", self.source.title()))?;
        if last > 0 {
            line(format_args!(
                "  due times from {first} to {last}, payloads of {bytes} bytes"
            ))?;
        }
        self.print_remark()
    }

    pub fn copy(&mut self) -> Result<()> {
        let settings = self.source.settings()?;
        if !settings.is_empty() && self.target.configure(&settings)? {
            line("The queue's settings come along, its pause too.")?;
        }
        let mut tally = Tally::default();
        let mut ids = Ids::default();
        self.pass(
            "importing",
            Pass::Read,
            &mut tally,
            |import, tally, entries| {
                let (soon, entries): (Vec<_>, Vec<_>) = entries
                    .into_iter()
                    .partition(|entry| import.is_too_soon(entry));
                for (entry, found) in soon.iter().zip(import.target.find(&soon)?) {
                    let what = match found {
                        Found::ChangedInSource => {
                            ids.changed(entry);
                            continue;
                        }
                        Found::Missing => TOO_SOON,
                        Found::Duplicate => outcome(found),
                        _ if !ids.is_first(entry) => SAME_ID,
                        Found::There | Found::Finished | Found::Differs => BEFORE,
                    };
                    tally.add(what, &entry.id);
                }
                for (entry, written) in entries.iter().zip(import.target.add(&entries)?) {
                    let what = match written {
                        Written::Changed => {
                            ids.changed(entry);
                            continue;
                        }
                        Written::Duplicate => outcome(Found::Duplicate),
                        Written::Added if ids.is_first(entry) => "imported",
                        Written::Before if ids.is_first(entry) => BEFORE,
                        Written::Added | Written::Before => SAME_ID,
                        Written::Refused(why) => {
                            tally.add(format!("REFUSED by the server: {why}"), &entry.id);
                            continue;
                        }
                    };
                    tally.add(what, &entry.id);
                }
                Ok(())
            },
        )?;
        ids.tell(CHANGED, &mut tally);
        let (from, to) = (self.source.title(), self.target.title());
        tally.print(&format!("{from} to {to}"))
    }

    /// Whether everything in the source was imported or stays there for a reason.
    pub fn check(&mut self) -> Result<bool> {
        let mut tally = Tally::default();
        let mut known = Seen::default();
        let mut ids = Ids::default();
        self.pass(
            "checking",
            Pass::Read,
            &mut tally,
            |import, tally, entries| {
                for (entry, found) in entries.iter().zip(import.target.find(&entries)?) {
                    known.insert(&entry.id);
                    let what = match found {
                        Found::ChangedInSource => {
                            ids.changed(entry);
                            continue;
                        }
                        Found::Missing if import.is_too_soon(entry) => TOO_SOON,
                        Found::Missing | Found::Duplicate => outcome(found),
                        _ if !ids.is_first(entry) => SAME_ID,
                        _ => outcome(found),
                    };
                    tally.add(what, &entry.id);
                }
                Ok(())
            },
        )?;
        ids.tell(outcome(Found::ChangedInSource), &mut tally);
        for (id, deleting) in self.target.imported_but(&known)? {
            tally.add(if deleting { DELETED_BEFORE } else { GONE }, &id);
        }
        tally.print(&format!("check of {}", self.source.title()))?;
        self.print_remark()?;
        self.in_order(&tally)
    }

    fn in_order(&self, tally: &Tally) -> Result<bool> {
        let mut wrong = Vec::new();
        let mut fails = |found: Found, hint: &'static str| {
            if tally.count(outcome(found)) > 0 {
                wrong.push(hint);
            }
        };
        fails(
            Found::Missing,
            "Jobs were refused (see above), or added to the source meanwhile. Stop the old producers and run this again.",
        );
        fails(
            Found::ChangedInSource,
            "Jobs were changed in the source after their import: delete them from the queue (DQ.DEL) and from \
             the ledger (HDEL), or from the source, then run this again.",
        );
        fails(
            Found::Differs,
            "Jobs in the queue differ from what was imported: another client writes to it.",
        );
        if !self.options.mode.finished_ok {
            fails(
                Found::Finished,
                "Jobs that were imported are no longer in the queue. If workers have finished them, say \
                 --finished-ok.",
            );
        }
        line(match wrong.is_empty() {
            true => "In order.",
            false => "NOT in order.",
        })?;
        for hint in &wrong {
            line(format_args!("  {hint}"))?;
        }
        Ok(wrong.is_empty())
    }

    /// Deletes from the source the jobs that are unchanged since the import. Returns whether all were deleted.
    pub fn delete(&mut self) -> Result<bool> {
        let mut tally = Tally::default();
        let mut known = Seen::default();
        let mut ids = Ids::default();
        self.pass(
            "deleting",
            Pass::Delete,
            &mut tally,
            |import, tally, entries| {
                let found = import.target.find(&entries)?;
                let (settled, others): (Vec<_>, Vec<_>) =
                    entries.into_iter().zip(found).partition(|(entry, found)| {
                        matches!(found, Found::There | Found::Finished) && ids.is_first(entry)
                    });
                for (entry, _) in others {
                    known.insert(&entry.id);
                    tally.add("left: not imported, or changed since", &entry.id);
                }
                let settled = settled.into_iter().map(|(entry, _)| entry).collect();
                import.delete_some(settled, tally)
            },
        )?;
        self.settle_gone(&known, &mut tally)?;
        tally.print(&format!("{}, deleted", self.source.title()))?;
        Ok(tally.count(TAKEN) == 0 && tally.count(GONE) == 0)
    }

    fn delete_some(&mut self, entries: Vec<Entry>, tally: &mut Tally) -> Result<()> {
        self.target.note_deleting(&entries, true)?;
        let gone = self.source.delete(&entries)?;
        let (gone, stayed): (Vec<_>, Vec<_>) =
            entries.into_iter().zip(gone).partition(|(_, gone)| *gone);
        let names = |some: Vec<(Entry, bool)>| some.into_iter().map(|(entry, _)| entry).collect();
        let (gone, stayed): (Vec<Entry>, Vec<Entry>) = (names(gone), names(stayed));
        self.target.strike(gone.iter().map(|entry| &entry.id))?;
        self.target.note_deleting(&stayed, false)?;
        for entry in gone {
            tally.add("deleted from the source", &entry.id);
        }
        for entry in stayed {
            tally.add(TAKEN, &entry.id);
        }
        Ok(())
    }

    /// Settles jobs that were imported and have disappeared from the source, though this run did not delete them.
    fn settle_gone(&mut self, known: &Seen, tally: &mut Tally) -> Result<()> {
        for (id, deleting) in self.target.imported_but(known)? {
            if deleting {
                tally.add(DELETED_BEFORE, &id);
            } else if !self.options.mode.cancel_gone {
                tally.add(GONE, &id);
                continue;
            } else if self.target.cancel(&id)? {
                tally.add("gone from the source since: cancelled in the queue", &id);
            } else {
                tally.add(
                    "gone from the source and from the queue: possibly done twice",
                    &id,
                );
            }
            self.target.strike([&id])?;
        }
        Ok(())
    }

    /// One pass: pages from the source, each item once, in batches, at a limited rate.
    fn pass(
        &mut self,
        what: &'static str,
        pass: Pass,
        tally: &mut Tally,
        mut work: impl FnMut(&mut Self, &mut Tally, Vec<Entry>) -> Result<()>,
    ) -> Result<()> {
        let size = self.source.size();
        let size = size.with_context(|| self.source.title())?;
        let mut progress = Progress::new(what, size);
        let mut seen = Seen::default();
        let mut pace = Pace::new(self.options.pace.rate);
        self.source.begin(pass)?;
        while let Some(page) = self.source.next_page()? {
            let shown = page.len() as u64;
            let mut entries = self.wanted(seen.keep_new(page), tally)?;
            while !entries.is_empty() {
                let rest = entries.split_off(self.batch_of(&entries));
                pace.wait_for(entries.len());
                work(self, tally, entries)?;
                entries = rest;
            }
            progress.advance(shown);
        }
        Ok(())
    }

    /// How many entries make a batch: as configured, but the arguments of one script must not grow without bound.
    fn batch_of(&self, entries: &[Entry]) -> usize {
        const LARGEST: usize = 8 << 20;
        let mut bytes = 0;
        let fit = entries.iter().take_while(|entry| {
            bytes += entry.payload.len();
            bytes <= LARGEST
        });
        let count = fit.count().min(self.options.pace.batch as usize);
        count.max(1)
    }

    /// The jobs among the items, as they will be in the queue.
    fn wanted(&self, items: Vec<Item>, tally: &mut Tally) -> Result<Vec<Entry>> {
        let jobs = &self.options.jobs;
        let mut entries = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::Left { name, why } => tally.add(format!("left: {why}"), &name),
                Item::Job(mut entry) => {
                    entry.id.splice(0..0, jobs.id_prefix.bytes());
                    if entry.id.is_empty() || entry.id.len() > LONGEST_ID {
                        bail!("an id of {} bytes: ids have 1 to 1024", entry.id.len());
                    }
                    entry.options.ttr_ms = jobs.ttr.or(entry.options.ttr_ms);
                    entry.options.attempts = jobs.attempts.or(entry.options.attempts);
                    entries.push(entry);
                }
            }
        }
        Ok(entries)
    }

    fn is_too_soon(&self, entry: &Entry) -> bool {
        entry.options.rule.is_none() && entry.due_ms < self.due_from_ms
    }

    fn print_remark(&mut self) -> Result<()> {
        if let Some(remark) = self.source.remark()? {
            line(format_args!("  {remark}"))?;
        }
        Ok(())
    }
}

fn outcome(found: Found) -> &'static str {
    match found {
        Found::There => "in the queue",
        Found::Finished => "imported, but no longer in the queue",
        Found::Duplicate => "duplicates: the queue already had a job with that id",
        Found::ChangedInSource => "CHANGED in the source since their import",
        Found::Differs => "DIFFERENT in the queue",
        Found::Missing => "MISSING: never imported",
    }
}

/// Keeps to a number of jobs a second.
struct Pace {
    per_second: u32,
    next: Instant,
}

impl Pace {
    fn new(per_second: u32) -> Pace {
        Pace {
            per_second,
            next: Instant::now(),
        }
    }

    fn wait_for(&mut self, jobs: usize) {
        if self.per_second == 0 {
            return;
        }
        let now = Instant::now();
        thread::sleep(self.next.saturating_duration_since(now));
        let takes = Duration::from_secs_f64(jobs as f64 / f64::from(self.per_second));
        self.next = self.next.max(now) + takes;
    }
}
