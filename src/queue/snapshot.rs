//! A queue as a sequence of effects: what RDB, DUMP and a rewritten AOF hold.
//!
//! ```text
//!   chunk 0: version, Floors, Configured | Kept, Paused, Stored, Stored, ...
//!   chunk 1: version, Stored, Stored, ..., Remembered, ...
//!   ...                                   each chunk stands for itself: effects to apply in turn
//! ```
//!
//! Jobs come in the order of their lists, so that reading them appends. A rate window is not kept.

use super::effect::{encode, Effect, EFFECTS_VERSION};
use super::job::Handle;
use super::store::Course;
use super::Queue;

/// A chunk is closed once it is this long.
const CHUNK_BYTES: usize = 64 * 1024;

struct Chunks<'a> {
    bytes: Vec<u8>,
    write: &'a mut dyn FnMut(&[u8]),
}

impl Chunks<'_> {
    fn push(&mut self, effect: &Effect<'_>) {
        if self.bytes.is_empty() {
            self.bytes.push(EFFECTS_VERSION);
        }
        encode(effect, &mut self.bytes);
        if self.bytes.len() >= CHUNK_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.bytes.is_empty() {
            (self.write)(&self.bytes);
            self.bytes.clear();
            self.bytes.shrink_to(CHUNK_BYTES * 2);
        }
    }
}

impl Queue {
    /// Hands the queue to `write`, chunk by chunk; at least one.
    pub fn snapshot(&self, write: &mut dyn FnMut(&[u8])) {
        let mut chunks = Chunks {
            bytes: Vec::new(),
            write,
        };
        chunks.push(&Effect::Floors {
            seq: self.seq,
            death: self.deaths,
            token: self.token,
        });
        self.snapshot_settings(&mut chunks);
        for handle in self.handles() {
            chunks.push(&self.stored(handle));
        }
        for (id, until) in self.memory.iter() {
            chunks.push(&Effect::Remembered { id, until });
        }
        chunks.flush();
    }

    fn snapshot_settings(&self, chunks: &mut Chunks<'_>) {
        if *self.settings != Default::default() {
            chunks.push(&Effect::Configured((*self.settings).clone()));
        }
        if self.paused_until != 0 {
            chunks.push(&Effect::Paused {
                until: self.paused_until,
            });
        }
        if self.kept {
            chunks.push(&Effect::Kept);
        }
    }

    fn stored(&self, handle: Handle) -> Effect<'_> {
        let job = self.jobs.job(handle);
        let Course { place, due, life } = job.course();
        Effect::Stored {
            id: job.id(),
            payload: job.payload(),
            seq: job.seq(),
            due,
            place,
            life,
            terms: job.terms().borrowed(),
        }
    }

    /// Whether each job has numbers of its own in the orders of adding and of dying. In a forged payload
    /// two may share one: their order is then by chance, and not the same on a replica.
    pub fn has_distinct_numbers(&self) -> bool {
        let seqs = self.handles().map(|h| self.jobs.job(h).seq()).collect();
        let dead = self.dead.iter();
        let deaths = dead.map(|(_, h)| self.jobs.job(h).life().death).collect();
        [seqs, deaths].into_iter().all(|mut numbers: Vec<u64>| {
            numbers.sort_unstable();
            numbers.is_sorted_by(|a, b| a < b)
        })
    }

    /// All data in a fixed order: what DEBUG DIGEST compares. Numbers that only order (seq, order
    /// of dying) count by the order they make.
    pub fn digest(&self, add: &mut dyn FnMut(&[u8])) {
        let mut bytes = Vec::new();
        let mut effect = |effect: &Effect<'_>| {
            bytes.clear();
            encode(effect, &mut bytes);
            add(&bytes);
        };
        effect(&Effect::Configured((*self.settings).clone()));
        effect(&Effect::Paused {
            until: self.paused_until,
        });
        if self.kept {
            effect(&Effect::Kept);
        }
        // The order of adding decides across the lists, too, once their jobs meet in one.
        let mut seqs: Vec<u64> = self.handles().map(|h| self.jobs.job(h).seq()).collect();
        seqs.sort_unstable();
        for handle in self.handles() {
            let mut stored = self.stored(handle);
            if let Effect::Stored { seq, life, .. } = &mut stored {
                let rank = seqs.partition_point(|other| *other < *seq);
                (*seq, life.death) = (rank as u64, 0);
            }
            effect(&stored);
        }
        let mut memory: Vec<_> = self.memory.iter().collect();
        memory.sort_unstable();
        for (id, until) in memory {
            effect(&Effect::Remembered { id, until });
        }
    }
}
