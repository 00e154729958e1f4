//! A queue as a sequence of effects: what RDB, DUMP and a rewritten AOF hold.
//!
//! ```text
//!   chunk 0: version, Floors, Configured, Paused, Group, ..., Rows
//!   chunk 1: version, Rows
//!   chunk 2: version, Rows, Noted, ...
//!   chunk 3: version, Noted, End, Links, Remembered, ...
//!   ...                                   each chunk stands for itself: effects to apply in turn
//! ```
//!
//! Jobs come in the order of their lists, so that reading them appends. A rate window is not kept.

use super::bounds::CONTRADICTION;
use super::groups::{Groups, TurnsSeen};
use super::jobs::Jobs;
use super::parts::Parts;
use super::rows::Rows;
use super::store::NewJob;
use super::Queue;
use crate::queue::codec::{append, push};
use crate::queue::effect::Effect;
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, SEQ_MAX};
use serde::Serialize;

/// A chunk is closed once it is this long. The server compresses each chunk separately: this length is within what its
/// compression can look back on. Longer chunks make it far slower if there is little to compress.
const CHUNK_BYTES: usize = 4 * 1024;
/// How many bytes of chunks lie side by side before their memory is used again. The table of the server's compression
/// is not cleared between chunks: its entries of older chunks at the same place would mislead it.
const LAP_BYTES: usize = 2 * 1024 * 1024;
/// Estimates of the bytes before the rows of a snapshot, and of a row without id and payload.
const HEAD_BYTES: usize = 64;
const ROW_BYTES: usize = 24;
/// How many jobs are prefetched at the same time.
const BATCH: usize = 64;

struct Chunks<'a> {
    /// Written chunks, and from `start` on the one that is not written yet.
    bytes: Vec<u8>,
    start: usize,
    rows: Rows<'a>,
    write: &'a mut dyn FnMut(&[u8]),
}

impl<'a> Chunks<'a> {
    fn push(&mut self, effect: &Effect<'_>) {
        push(effect, &mut self.bytes, self.start);
        if self.bytes.len() - self.start >= CHUNK_BYTES {
            self.flush();
        }
    }

    fn push_job(&mut self, job: &NewJob<'a>, successor: Option<&NewJob<'a>>) {
        self.rows.push(job);
        successor.into_iter().for_each(|next| self.rows.push(next));
        let len = self.bytes.len() - self.start + self.rows.bytes().len();
        if self.rows.is_full() || len >= CHUNK_BYTES {
            self.end_rows();
            self.flush();
        }
    }

    fn end_rows(&mut self) {
        if !self.rows.bytes().is_empty() {
            let rows = self.rows.bytes();
            push(&Effect::Rows { rows }, &mut self.bytes, self.start);
            self.rows.clear();
        }
    }

    fn flush(&mut self) {
        if self.bytes.len() > self.start {
            (self.write)(&self.bytes[self.start..]);
            self.start = self.bytes.len();
        }
        if self.start >= LAP_BYTES {
            self.bytes.clear();
            self.bytes.shrink_to(LAP_BYTES * 2);
            self.start = 0;
        }
    }
}

/// What a digest is made of.
#[derive(Serialize)]
enum Digested<'a> {
    Kept(bool),
    Effect(&'a Effect<'a>),
    Job(&'a NewJob<'a>),
    /// The turn of a group, or of the jobs without one.
    Turn {
        name: Option<&'a [u8]>,
        turn: u64,
    },
}

impl Queue {
    /// Begins to restore a snapshot into an empty queue. Until [`Queue::end_restore`], all effects are those of the
    /// snapshot, and nothing is asked of the queue: whether two rows have the same id is found only at the end.
    pub fn begin_restore(&mut self) {
        self.jobs.leave_unindexed();
    }

    /// Ends restoring. After an error the queue is of no use.
    pub fn end_restore(&mut self) -> Result<(), QueueError> {
        match self.end_load()? {
            true => Err(QueueError::Malformed(CONTRADICTION)),
            false => Ok(()),
        }
    }

    /// As [`Queue::end_restore`], for a file of this server, or of its master. Jobs that would stay blocked for ever
    /// have come from an AOF that was changed, and were saved before the timer found them. They are left to the timer;
    /// true if there are any.
    pub fn end_load(&mut self) -> Result<bool, QueueError> {
        let only_rows = self.jobs.is_unindexed();
        self.parts.index(&mut self.jobs)?;
        self.parts.check_turns(&self.jobs, only_rows)?;
        let is_stuck = !self.parts.take_stuck(&self.jobs).is_empty();
        if let Some(flows) = self.parts.flows.as_mut().filter(|_| is_stuck) {
            flows.check_later();
        }
        if self.jobs.order_floor() > SEQ_MAX / 2 {
            self.parts.number_anew(&mut self.jobs);
        }
        Ok(is_stuck)
    }

    /// Whether each job has numbers of its own in the orders of adding and of dying. In a forged payload
    /// two may share one: their order is then by chance, and not the same on a replica.
    pub fn has_distinct_numbers(&self) -> bool {
        let seqs = self.parts.seqs(&self.jobs).collect();
        let dead = self.jobs.dead().iter();
        let deaths = dead.map(|(_, h)| self.jobs.job(h).life().death).collect();
        [seqs, deaths].into_iter().all(|mut numbers: Vec<u64>| {
            numbers.sort_unstable();
            numbers.is_sorted_by(|a, b| a < b)
        })
    }

    /// Hands the queue to `write`, chunk by chunk; at least one.
    pub fn snapshot<'a>(&'a self, write: &'a mut dyn FnMut(&[u8])) {
        let most = self.snapshot_len().min(CHUNK_BYTES);
        let mut chunks = Chunks {
            bytes: Vec::with_capacity(most),
            start: 0,
            rows: Rows::with_capacity(most),
            write,
        };
        chunks.push(&Effect::Floors {
            seq: self.jobs.numbers.seq,
            death: self.jobs.numbers.deaths,
            token: self.jobs.numbers.token,
        });
        self.snapshot_settings(&mut chunks);
        let batch = Vec::with_capacity(BATCH.min(self.jobs.len()));
        let (mut batch, mut seen) = (batch, TurnsSeen::default());
        self.jobs.in_order().for_each(|handle| {
            batch.push(handle);
            if batch.len() == BATCH {
                self.parts
                    .snapshot_jobs(&self.jobs, &batch, &mut seen, &mut chunks);
                batch.clear();
            }
        });
        self.parts
            .snapshot_jobs(&self.jobs, &batch, &mut seen, &mut chunks);
        chunks.end_rows();
        self.jobs.each_note(&mut |noted| chunks.push(noted));
        self.parts
            .done
            .effects(|seq| seq)
            .for_each(|job| chunks.push(&job));
        if let Some(flows) = self.parts.flows() {
            let name_of = |it| self.parts.name_of(it);
            flows.snapshot(&self.jobs, name_of, &mut |effect| chunks.push(effect));
        }
        for (id, until) in self.parts.dedupe.iter() {
            chunks.push(&Effect::Remembered { id, until });
        }
        chunks.flush();
    }

    /// About how long a snapshot is, without what few queues and jobs have.
    pub(super) fn snapshot_len(&self) -> usize {
        let jobs = self.jobs.len() * ROW_BYTES + self.jobs.content_bytes() as usize;
        HEAD_BYTES + jobs + self.parts.done.len() * ROW_BYTES + self.parts.done.bytes() as usize
    }

    fn snapshot_settings(&self, chunks: &mut Chunks<'_>) {
        if self.kept {
            chunks.push(&Effect::Configured((*self.settings).clone()));
        }
        if self.paused_until != 0 {
            chunks.push(&Effect::Paused {
                until: self.paused_until,
            });
        }
        let owned = self.parts.groups().into_iter().flat_map(Groups::owned);
        owned.for_each(|(name, own)| chunks.push(&Effect::Group { name, own }));
    }

    /// All data in a fixed order: what DEBUG DIGEST compares. Numbers that only order (seq, order
    /// of dying) count by the order they make.
    pub fn digest(&self, add: &mut dyn FnMut(&[u8])) {
        let mut bytes = Vec::new();
        let mut digest = |part: &Digested<'_>| {
            bytes.clear();
            append(part, &mut bytes);
            add(&bytes);
        };
        let mut effect = |effect: &Effect<'_>| digest(&Digested::Effect(effect));
        effect(&Effect::Configured((*self.settings).clone()));
        effect(&Effect::Paused {
            until: self.paused_until,
        });
        let mut owned: Vec<_> = self
            .parts
            .groups()
            .into_iter()
            .flat_map(Groups::owned)
            .collect();
        owned.sort_unstable_by_key(|&(name, _)| name);
        owned
            .into_iter()
            .for_each(|(name, own)| effect(&Effect::Group { name, own }));
        digest(&Digested::Kept(self.kept));
        self.parts.digest_jobs(&self.jobs, &mut digest);
        if let Some(flows) = self.parts.flows() {
            let push = &mut |of_flow: &Effect<'_>| digest(&Digested::Effect(of_flow));
            flows.digest(&self.jobs, |it| self.parts.name_of(it), push);
        }
        let in_turn = self.parts.groups().map(|it| it.in_turn(&self.jobs));
        for (turn, (_, name)) in (1..).zip(in_turn.unwrap_or_default()) {
            digest(&Digested::Turn { name, turn });
        }
        let mut memory: Vec<_> = self.parts.dedupe.iter().collect();
        memory.sort_unstable();
        for (id, until) in memory {
            digest(&Digested::Effect(&Effect::Remembered { id, until }));
        }
    }
}

impl Parts {
    pub(super) fn index(&mut self, jobs: &mut Jobs) -> Result<(), QueueError> {
        if !jobs.index() {
            return Err(QueueError::Malformed(CONTRADICTION));
        }
        self.done.check_apart(jobs)
    }

    /// Prefetches all jobs of a batch before it writes the first: they lie anywhere, and so their memory is fetched at
    /// the same time, not one after the other.
    fn snapshot_jobs<'a>(
        &'a self,
        jobs: &'a Jobs,
        batch: &[Handle],
        seen: &mut TurnsSeen,
        chunks: &mut Chunks<'a>,
    ) {
        batch.iter().for_each(|&handle| jobs.prefetch_slot(handle));
        batch.iter().for_each(|&handle| jobs.prefetch_job(handle));
        for &handle in batch {
            let successor = jobs.successor(handle);
            let successor = successor.map(|next| self.as_new(jobs, next));
            let job = NewJob {
                turn: (self.groups()).and_then(|it| it.turn_to_write(handle, seen, jobs)),
                ..self.as_new(jobs, handle)
            };
            chunks.push_job(&job, successor.as_ref());
        }
    }

    pub(super) fn seqs<'a>(&'a self, jobs: &'a Jobs) -> impl Iterator<Item = u64> + 'a {
        let of_job = jobs.in_order().flat_map(|handle| {
            let successor = jobs.successor(handle);
            successor.into_iter().chain([handle])
        });
        let of_done = self.done.iter().map(|it| self.done.get(it).seq);
        of_job.map(|handle| jobs.job(handle).seq()).chain(of_done)
    }

    fn digest_jobs(&self, jobs: &Jobs, digest: &mut dyn FnMut(&Digested<'_>)) {
        // The order of adding matters across the lists, too, as jobs of several may meet in one later.
        let mut seqs: Vec<u64> = self.seqs(jobs).collect();
        seqs.sort_unstable();
        let rank = |seq: u64| seqs.partition_point(|other| *other < seq) as u64;
        for handle in jobs.in_order() {
            for handle in [Some(handle), jobs.successor(handle)].into_iter().flatten() {
                let mut job = self.as_new(jobs, handle);
                (job.seq, job.life.death) = (rank(job.seq), 0);
                digest(&Digested::Job(&job));
            }
            jobs.each_note_of(handle, &mut |noted| digest(&Digested::Effect(noted)));
        }
        self.done
            .effects(rank)
            .for_each(|job| digest(&Digested::Effect(&job)));
    }
}
