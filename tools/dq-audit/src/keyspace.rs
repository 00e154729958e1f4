//! All queues of a server: which commands create, move and remove them.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use redis_dq::queue::codec::decode;
use redis_dq::queue::effect::Effect;
use redis_dq::slots::slot_of;

use crate::judge::Judge;
use crate::overwrite::overwritten;
use crate::queue::Ledger;
use crate::rdb;
use crate::trace::Trace;

/// Removed queues whose last tokens are remembered, at most.
const GRAVES: usize = 1 << 20;

type Db = HashMap<Vec<u8>, Ledger>;

#[derive(Default)]
pub struct Keyspace {
    dbs: HashMap<u32, Db>,
    selected: u32,
    /// The data before the files is unknown, at least in part.
    pub is_partial: bool,
    /// The last token of each removed queue, by a hash of database and name.
    graves: HashMap<u64, u64>,
    hasher: RandomState,
    pub trace: Option<Trace>,
}

impl Keyspace {
    pub fn queues(&self) -> usize {
        self.dbs.values().map(HashMap::len).sum()
    }

    pub fn jobs(&self) -> usize {
        let queues = self.dbs.values().flat_map(HashMap::values);
        queues.map(Ledger::len).sum()
    }

    /// Judges what is left where the files end.
    pub fn finish(&self, judge: &mut Judge) {
        let mut all: Vec<_> = self.dbs.iter().collect();
        all.sort_unstable_by_key(|(db, _)| **db);
        for (db, queues) in all {
            let mut queues: Vec<_> = queues.iter().collect();
            queues.sort_unstable_by_key(|(key, _)| *key);
            for (key, queue) in queues {
                judge.turn_to(*db, key);
                queue.finish(judge);
            }
        }
    }

    /// A new file begins: as a server that loads it does, starts at database 0.
    pub fn begin_part(&mut self) {
        self.selected = 0;
    }

    /// Carries out a command, if it concerns queues. An error is one that no server would carry out.
    pub fn carry_out(&mut self, command: &[Vec<u8>], judge: &mut Judge) -> Result<(), String> {
        let Some((name, arguments)) = command.split_first() else {
            return Ok(());
        };
        let name = String::from_utf8_lossy(name).to_ascii_uppercase();
        match (name.as_str(), arguments) {
            ("DQ.APPLY", [key, effects]) => return self.apply(self.selected, key, effects, judge),
            ("SELECT", [db]) => self.select(number(db)?),
            ("DEL" | "UNLINK", keys) => keys.iter().for_each(|key| self.delete(self.selected, key)),
            ("RENAME" | "RENAMENX", [from, to]) => {
                self.rename((self.selected, from), (self.selected, to))
            }
            ("MOVE", [key, db]) => self.rename((self.selected, key), (number(db)?, key)),
            ("COPY", [from, to, options @ ..]) => self.copy(from, to, options)?,
            ("SWAPDB", [one, other]) => self.swap(number(one)?, number(other)?),
            ("FLUSHDB", _) => self.flush(self.selected),
            ("FLUSHALL", _) => {
                let dbs: Vec<u32> = self.dbs.keys().copied().collect();
                dbs.into_iter().for_each(|db| self.flush(db));
            }
            ("RESTORE" | "RESTORE-ASKING", [key, _, payload, ..]) => {
                self.delete(self.selected, key);
                self.restore(key, payload, judge)?;
            }
            ("TRIMSLOTS", [_, _, ranges @ ..]) => self.trim(ranges)?,
            ("CLUSTER", [what, slot, ..]) if what.eq_ignore_ascii_case(b"FLUSHSLOT") => {
                self.trim(&[slot.clone(), slot.clone()])?;
            }
            (name, arguments) => {
                for key in overwritten(name, arguments) {
                    self.delete(self.selected, key);
                }
            }
        }
        Ok(())
    }

    /// A server that has started sends SELECT before it writes, even for the same database.
    fn select(&mut self, db: u32) {
        if self.selected == db {
            let queues = self.dbs.values_mut().flat_map(HashMap::values_mut);
            queues.for_each(Ledger::forget_rates);
        }
        self.selected = db;
    }

    /// Applies the effects of a command, or of a chunk of a snapshot.
    pub fn apply(
        &mut self,
        db: u32,
        key: &[u8],
        effects: &[u8],
        judge: &mut Judge,
    ) -> Result<(), String> {
        judge.turn_to(db, key);
        if !self
            .dbs
            .get(&db)
            .is_some_and(|queues| queues.contains_key(key))
        {
            let queue = Ledger::new(!self.is_partial, self.floor(db, key));
            self.dbs.entry(db).or_default().insert(key.to_vec(), queue);
        }
        let queues = self.dbs.entry(db).or_default();
        let Some(queue) = queues.get_mut(key) else {
            return Ok(());
        };
        let mut is_there = true;
        for effect in decode(effects) {
            let effect =
                effect.map_err(|error| format!("DQ.APPLY {}: {error}", key.escape_ascii()))?;
            if let Effect::Minted { .. } = effect {
                judge.tally.effects += 1;
                continue;
            }
            if let Some(trace) = self.trace.as_mut().filter(|it| it.is_of(db, key)) {
                trace.see(&effect, queue, judge);
            }
            is_there &= queue.apply(&effect, judge);
        }
        if !is_there {
            self.bury(db, key);
        }
        Ok(())
    }

    fn floor(&self, db: u32, key: &[u8]) -> u64 {
        let hash = self.hasher.hash_one((db, key));
        self.graves.get(&hash).copied().unwrap_or(0)
    }

    /// Removes a queue that goes by something else than its effects.
    fn take(&mut self, db: u32, key: &[u8]) -> Option<Ledger> {
        let queue = self.bury(db, key)?;
        if let Some(trace) = self.trace.as_mut().filter(|it| it.is_of(db, key)) {
            trace.end();
        }
        Some(queue)
    }

    fn bury(&mut self, db: u32, key: &[u8]) -> Option<Ledger> {
        let queue = self.dbs.get_mut(&db)?.remove(key)?;
        if self.graves.len() >= GRAVES {
            self.graves.clear();
        }
        let hash = self.hasher.hash_one((db, key));
        self.graves.insert(hash, queue.token());
        Some(queue)
    }

    fn put(&mut self, db: u32, key: &[u8], mut queue: Ledger) {
        self.delete(db, key);
        queue.raise_token(self.floor(db, key));
        queue.forget_rates();
        self.dbs.entry(db).or_default().insert(key.to_vec(), queue);
    }

    fn delete(&mut self, db: u32, key: &[u8]) {
        self.take(db, key);
    }

    fn rename(&mut self, (from_db, from): (u32, &[u8]), (to_db, to): (u32, &[u8])) {
        match self.take(from_db, from) {
            Some(queue) => self.put(to_db, to, queue),
            // The key moved is no queue, but it may replace one.
            None => self.delete(to_db, to),
        }
    }

    fn copy(&mut self, from: &[u8], to: &[u8], options: &[Vec<u8>]) -> Result<(), String> {
        let at = options.iter().position(|it| it.eq_ignore_ascii_case(b"DB"));
        let db = match at.and_then(|at| options.get(at + 1)) {
            Some(db) => number(db)?,
            None => self.selected,
        };
        let queue = self.dbs.get(&self.selected).and_then(|db| db.get(from));
        match queue.cloned() {
            Some(queue) => self.put(db, to, queue),
            None => self.delete(db, to),
        }
        Ok(())
    }

    fn swap(&mut self, one: u32, other: u32) {
        let of_one = self.dbs.remove(&one).unwrap_or_default();
        let of_other = self.dbs.insert(other, of_one).unwrap_or_default();
        self.dbs.insert(one, of_other);
        if let Some(trace) = &mut self.trace {
            trace.end();
        }
    }

    fn flush(&mut self, db: u32) {
        let keys: Vec<Vec<u8>> = self
            .dbs
            .get(&db)
            .into_iter()
            .flat_map(HashMap::keys)
            .cloned()
            .collect();
        keys.iter().for_each(|key| self.delete(db, key));
    }

    /// Removes the queues of slots that have moved to another server.
    fn trim(&mut self, ranges: &[Vec<u8>]) -> Result<(), String> {
        for range in ranges.chunks_exact(2) {
            let slots = number(&range[0])?..=number(&range[1])?;
            let queues = self.dbs.get(&0).into_iter().flat_map(HashMap::keys);
            let going = queues.filter(|key| slots.contains(&u32::from(slot_of(key))));
            let going: Vec<Vec<u8>> = going.cloned().collect();
            going.iter().for_each(|key| self.delete(0, key));
        }
        Ok(())
    }

    fn restore(&mut self, key: &[u8], payload: &[u8], judge: &mut Judge) -> Result<(), String> {
        let mut chunks = Vec::new();
        let read = rdb::of_dump(payload, &mut |chunk| chunks.push(chunk.to_vec()));
        if let Err(error) = read {
            return Err(format!("RESTORE {}: {error:?}", key.escape_ascii()));
        }
        let db = self.selected;
        chunks
            .iter()
            .try_for_each(|chunk| self.apply(db, key, chunk, judge))
    }

    /// Part of the data cannot be read: from now on an effect on an unknown job is no fault.
    pub fn is_known_in_part(&mut self) {
        self.is_partial = true;
        let queues = self.dbs.values_mut().flat_map(HashMap::values_mut);
        queues.for_each(Ledger::is_known_in_part);
    }
}

fn number(digits: &[u8]) -> Result<u32, String> {
    let text = std::str::from_utf8(digits).ok();
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("not a number: {}", digits.escape_ascii()))
}
