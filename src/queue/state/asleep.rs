//! A small idle queue, as bytes. Many use a queue per user or per order, and most of these are idle.
//!
//! ```text
//!   Totals   Lateness?   Clients   chunk 0   chunk 1   ...      each chunk of its snapshot behind its length
//! ```
//!
//! Clients: to which each lease was delivered, by its token, as far as that is known here.
//!
//! Nothing is decided here: a caller that needs more than figures wakes the queue, and gets it as it was. The bytes
//! never leave the process, so they need no version of their own.

use super::figures::Figures;
use super::jobs::Jobs;
use super::rows;
use super::Queue;
use crate::queue::clock::Now;
use crate::queue::codec::{append, decode, own_version, take, EFFECTS_VERSION};
use crate::queue::effect::Effect;
use crate::queue::job::{Handle, Place, SEQ_MAX};
use crate::queue::stats::{Lateness, Totals};
use crate::queue::HashSeed;
use crate::storage::allocated::allocated;
use crate::storage::relocate::{move_boxed, Mover};

/// How many jobs a queue that sleeps may have: waking it takes no longer than a few commands.
const JOBS_MAX: usize = 64;
/// Bytes that its jobs may take while it is awake: ids, payloads, ladders, reasons and all.
const BYTES_MAX: usize = 24 * 1024;

/// (token, client)
type Clients = Vec<(u64, u64)>;

/// See the picture above; by default no queue.
#[derive(Clone, Debug, Default)]
pub struct Asleep(Box<[u8]>);

impl Queue {
    /// The queue as bytes; none if it is large, or has what a snapshot does not contain.
    pub fn asleep(&self) -> Option<Asleep> {
        if !self.may_sleep() {
            return None;
        }
        let mut bytes = Vec::with_capacity(self.snapshot_len());
        append(&self.totals.named().map(|(_, count)| count), &mut bytes);
        let lateness = (self.totals.lateness.count > 0).then_some(*self.totals.lateness);
        append(&lateness, &mut bytes);
        append(&self.jobs.clients(), &mut bytes);
        self.snapshot(&mut |chunk| append(&serde_bytes::Bytes::new(chunk), &mut bytes));
        Some(Asleep(bytes.into_boxed_slice()))
    }

    /// Rules would be compiled anew, windows of rates are in no snapshot, and each group has many parts.
    fn may_sleep(&self) -> bool {
        self.jobs.len() + self.parts.done.len() <= JOBS_MAX
            && self.jobs.recurring_len() == 0
            && self.parts.dedupe.len() == 0
            && self.parts.groups.is_none()
            && self.parts.flows.is_none()
            && self.parts.group_rates.is_none()
            && self.parts.cold.rate.is_none()
            && self.parts.cold.garbage.is_empty()
            && !self.has_leftovers()
            && self.jobs.order_floor() <= SEQ_MAX / 2
            && self.jobs.memory_bytes() + self.parts.done.bytes() as usize <= BYTES_MAX
            // What is written can be read.
            && own_version() <= EFFECTS_VERSION
    }
}

impl Jobs {
    /// The leases whose clients are known, by their tokens.
    fn clients(&self) -> Clients {
        let leases = self.leases_from(0);
        let known = leases.filter_map(|(_, it)| Some((self.token_of(it), self.client_of(it)?)));
        known.collect()
    }

    fn set_clients(&mut self, clients: &Clients) {
        let leases: Vec<Handle> = self.leases_from(0).map(|(_, it)| it).collect();
        for lease in leases {
            let token = self.token_of(lease);
            if let Some(&(_, client)) = clients.iter().find(|&&(of, _)| of == token) {
                self.set_client(lease, client);
            }
        }
    }

    fn token_of(&self, lease: Handle) -> u64 {
        self.job(lease).life().token
    }
}

impl Asleep {
    /// The queue as it was; none only if the bytes are not what [`Queue::asleep`] wrote.
    pub fn awake(&self, seed: &HashSeed) -> Option<Queue> {
        let mut queue = Queue::new(seed);
        let rest = &mut &*self.0;
        queue.totals = totals(rest)?;
        let clients = clients(rest)?;
        while let Some(chunk) = next_chunk(rest) {
            decode(chunk)
                .try_for_each(|effect| queue.apply(&effect?))
                .ok()?;
        }
        if !clients.is_empty() {
            queue.jobs.set_clients(&clients);
        }
        Some(queue)
    }

    /// As [`Queue::figures`].
    pub fn figures(&self, now: Now) -> (Figures, u64) {
        let (mut figures, mut until) = (Figures::default(), u64::MAX);
        let rest = &mut &*self.0;
        totals(rest);
        clients(rest);
        while let Some(chunk) = next_chunk(rest) {
            for effect in decode(chunk).flatten() {
                match effect {
                    Effect::Rows { rows } => count(rows, now, &mut figures, &mut until),
                    Effect::Noted { note, .. } => figures.bytes += note.counted(),
                    Effect::Done(of_done) => {
                        if let Some(job) = of_done.stored() {
                            figures.done += 1;
                            figures.done_bytes += job.bytes();
                        }
                    }
                    _ => {}
                }
            }
        }
        (figures, until)
    }

    /// As [`Queue::snapshot`].
    pub fn snapshot(&self, write: &mut dyn FnMut(&[u8])) {
        let rest = &mut &*self.0;
        totals(rest);
        clients(rest);
        while let Some(chunk) = next_chunk(rest) {
            write(chunk);
        }
    }

    /// With its bytes moved: see [`crate::storage::relocate`].
    pub fn moved(mut self, mover: &mut impl Mover) -> Self {
        move_boxed(&mut self.0, mover);
        self
    }

    /// Bytes that the allocator gives for it.
    pub fn memory_bytes(&self) -> usize {
        allocated(self.0.len())
    }
}

fn count(rows: &[u8], now: Now, figures: &mut Figures, until: &mut u64) {
    let Ok(all) = rows::read(rows) else {
        return;
    };
    for row in &all.rows {
        figures.bytes += (row.id.len() + row.payload.len()) as u64;
        match row.place {
            Place::Scheduled => {
                let least = figures.first_due.unwrap_or(u64::MAX);
                figures.first_due = Some(least.min(row.due));
                if row.due <= now.ms() {
                    figures.ready += 1;
                } else {
                    figures.delayed += 1;
                    *until = row.due.min(*until);
                }
            }
            Place::Reserved => figures.reserved += 1,
            Place::Dead => figures.dead += 1,
            Place::Successor | Place::Blocked => {}
        }
    }
}

fn totals(bytes: &mut &[u8]) -> Option<Totals> {
    let [added, delivered, acked, nacked, timed_out, died, deleted, expired, missed] = take(bytes)?;
    let mut totals = Totals {
        added,
        delivered,
        acked,
        nacked,
        timed_out,
        died,
        deleted,
        expired,
        missed,
        ..Totals::default()
    };
    let lateness: Option<Lateness> = take(bytes)?;
    if let Some(lateness) = lateness {
        *totals.lateness.make() = lateness;
    }
    Some(totals)
}

fn clients(bytes: &mut &[u8]) -> Option<Clients> {
    take(bytes)
}

fn next_chunk<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    take::<&serde_bytes::Bytes>(bytes).map(|chunk| &**chunk)
}
