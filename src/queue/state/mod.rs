//! What a queue is made of. Fields are private to this folder: the rules read them through methods, and change them
//! only by committing effects, which [`apply`] carries out.

pub(in crate::queue) mod after;
mod apply;
mod aside;
pub mod asleep;
mod bounds;
pub(in crate::queue) mod commit;
mod dedupe;
mod defrag;
pub mod departures;
pub(in crate::queue) mod done;
pub mod figures;
mod fits;
pub(in crate::queue) mod flows;
mod followed;
mod gather;
mod grouped;
pub(in crate::queue) mod groups;
pub(in crate::queue) mod jobs;
mod kept;
pub(in crate::queue) mod moves;
pub(in crate::queue) mod notes;
pub mod parts;
pub(in crate::queue) mod position;
mod purge;
pub(in crate::queue) mod purged;
mod rate;
mod recurring;
mod restore;
mod rows;
pub(in crate::queue) mod schedule;
pub(in crate::queue) mod serving;
mod snapshot;
pub(in crate::queue) mod split;
pub(in crate::queue) mod store;
mod terms;
pub(in crate::queue) mod together;

use crate::queue::budget::steps_of_bytes;
use crate::queue::job::Handle;
use crate::queue::outcome::Departure;
use crate::queue::settings::{GroupSettings, Settings};
use crate::queue::stats::Totals;
use ahash::RandomState;
use departures::{Departures, Listened};
use jobs::Jobs;
use moves::Known;
use parts::{Garbage, Parts};
use rate::RateWindow;
use std::sync::Arc;

pub(in crate::queue) use recurring::id_of_occurrence;
pub use rows::{each_job, Rows};
pub use store::NewJob;

/// Seeds the hashing of ids, which come from users: a server draws it once, at random.
#[derive(Clone, Debug)]
pub struct HashSeed(Arc<RandomState>);

impl HashSeed {
    /// From random numbers.
    pub fn new(seed: [u64; 4]) -> Self {
        let [a, b, c, d] = seed;
        HashSeed(Arc::new(RandomState::with_seeds(a, b, c, d)))
    }
}

/// All that one key holds.
pub struct Queue {
    jobs: Jobs,
    parts: Parts,
    settings: Arc<Settings>,
    /// When a pause ends: 0, an instant, or FOREVER.
    paused_until: u64,
    /// The key stays without jobs.
    kept: bool,
    /// Its settings keep done jobs.
    keeps_done: bool,
    totals: Totals,
}

impl Queue {
    /// Without jobs, settings or totals.
    pub fn new(seed: &HashSeed) -> Self {
        Queue {
            jobs: Jobs::new(seed.0.clone()),
            parts: Parts::default(),
            settings: Settings::unconfigured(),
            paused_until: 0,
            kept: false,
            keeps_done: false,
            totals: Totals::default(),
        }
    }

    /// The seed by which it hashes ids.
    pub fn seed(&self) -> HashSeed {
        HashSeed(self.jobs.hasher().clone())
    }

    /// What COPY makes: the same data, with totals that begin at 0. Purged jobs are left out.
    pub fn copied(&self) -> Self {
        let mut copy = Queue {
            jobs: Jobs::new(self.jobs.hasher().clone()),
            parts: Parts {
                dedupe: self.parts.dedupe.clone(),
                done: self.parts.done.clone(),
                ..Parts::default()
            },
            settings: Arc::clone(&self.settings),
            paused_until: self.paused_until,
            kept: self.kept,
            keeps_done: self.keeps_done,
            totals: Totals::default(),
        };
        if self.settings.rate.is_some() {
            copy.parts.cold.make().rate = Some(Box::new(RateWindow::new(self.jobs.numbers.token)));
        }
        if self.jobs.has_purged() {
            copy.adopt_jobs(self);
        } else {
            copy.jobs = self.jobs.copied();
            copy.parts.groups = self.parts.groups.clone();
            copy.parts.groups.iter_mut().for_each(|it| it.end_turn());
            copy.parts.flows = self.parts.flows.clone();
        }
        copy.jobs.numbers = self.jobs.numbers;
        let limits = &copy.settings.group_limits;
        copy.parts.set_group_rates_aside(limits.rate, &copy.jobs);
        if self.parts.group_rates.is_some() {
            copy.parts.regroup(limits, &copy.jobs);
        }
        copy
    }

    /// One by one, as purged jobs lie between them.
    fn adopt_jobs(&mut self, other: &Queue) {
        let owned = other.parts.groups().into_iter().flat_map(|it| it.owned());
        owned.for_each(|(name, settings)| {
            let limits = &self.settings.group_limits;
            let own = (GroupSettings::default(), settings);
            self.parts.set_own(name, own, limits, &self.jobs);
        });
        for handle in other.jobs.in_order() {
            let copied = self.adopt_job(other, handle);
            if let Some(successor) = other.jobs.successor(handle) {
                let successor = self.adopt_job(other, successor);
                self.jobs.set_successor(copied, successor);
            }
        }
        if let (Some(groups), Some(others)) = (&mut self.parts.groups, &other.parts.groups) {
            groups.adopt_turns(&self.jobs, others, &other.jobs);
        }
        self.adopt_flows(other);
    }

    fn adopt_job(&mut self, other: &Queue, handle: Handle) -> Handle {
        let job = other.parts.as_new(&other.jobs, handle);
        let copied = self.insert(&job, self.jobs.hashed(job.id), Known::default());
        self.jobs
            .copy_notes(copied, other.jobs.notes(handle), |_| true);
        copied
    }

    /// All jobs, to be read.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Whether neither a part of the queue, but for groups if the job is `grouped`, nor its settings have a say in whether
    /// a plain job is added, and how.
    #[inline(always)]
    pub(in crate::queue) fn admits_plain(&self, grouped: bool) -> bool {
        let are_plain = match grouped {
            true => self.parts.are_groups(),
            false => self.parts.are_unused(),
        };
        let settings = &*self.settings;
        let is_limited = settings.max_len | settings.max_bytes != 0;
        are_plain && self.jobs.are_plain() && !is_limited && settings.rest.is_empty()
    }

    /// What few queues have beside their jobs, to be read.
    #[inline(always)]
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// When a pause ends: 0, an instant, or FOREVER.
    pub fn paused_until(&self) -> u64 {
        self.paused_until
    }

    /// Whether the key stays without jobs.
    pub(in crate::queue) fn is_kept(&self) -> bool {
        self.kept
    }

    /// As CFGSET left them. A rule that changes the queue while it reads them shares them: cheap, but not free.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// The totals of this queue.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Whether nothing in it needs the key to stay.
    pub fn is_disposable(&self) -> bool {
        !self.kept
            && self.jobs.schedule().len() == 0
            && self.jobs.listed_len() == 0
            && self.parts.done.len() == 0
    }

    /// Bytes of all ids, payloads and steps, of dead jobs and successors too: what MAXBYTES limits. After a purge of
    /// very many jobs, some of them count until they are freed.
    pub fn bytes(&self) -> u64 {
        let values = self.parts.flows().map_or(0, |it| it.value_bytes());
        self.jobs.bytes() + self.parts.groups().map_or(0, |it| it.name_bytes()) + values
    }

    pub(in crate::queue) fn surplus_dead(&self) -> usize {
        match self.settings.dead_len {
            0 => 0,
            kept => (self.jobs.dead().len() as u64).saturating_sub(kept) as usize,
        }
    }

    /// How many steps it takes to free the queue, about.
    pub fn free_effort(&self) -> usize {
        let groups = self.parts.groups().map_or(0, |groups| groups.own_len());
        let bytes = self.bytes() + self.jobs.purged_bytes() + self.parts.done.bytes();
        let things = self.jobs.len() + self.parts.dedupe.len() + self.parts.done.len() + groups;
        things + steps_of_bytes(bytes)
    }

    /// Heap bytes and those of the structure itself.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.totals.lateness.memory_bytes()
            + self.jobs.memory_bytes()
            + self.parts.memory_bytes()
            + self.settings.memory_bytes()
    }

    /// Notes departures from now on, until they are taken.
    pub fn listen(&mut self, listened: Listened) {
        self.parts.cold.make().departures = Some(Box::new(Departures::new(listened)));
    }

    /// Takes what was noted, and ends noting.
    #[inline]
    pub fn take_departures(&mut self) -> Option<Box<Departures>> {
        self.parts.cold.made()?.departures.take()
    }

    /// The delivery that ended last, if departures are noted.
    #[inline]
    pub(in crate::queue) fn last_departure(&mut self) -> Option<&mut Departure> {
        self.parts.departures()?.last()
    }

    /// Whether anything may have been set aside, or departures are noted.
    #[inline]
    pub fn has_set_aside(&self) -> bool {
        self.parts.cold.is_made()
    }

    /// What was set aside since the last call, to be freed in steps.
    pub fn take_garbage(&mut self) -> Option<Vec<Garbage>> {
        let garbage = self.parts.take_garbage();
        (!garbage.is_empty()).then_some(garbage)
    }

    /// For tests: everything that must hold between any two calls.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.jobs.check_invariants()?;
        self.parts.check(&self.jobs)?;
        let (done, limits) = (&self.parts.done, self.settings.done_limits);
        let next = done.wakes_at(limits);
        if (next, limits.any()) != (done.wakes, self.keeps_done) {
            return Err(format!(
                "done jobs are to go at {next}, not at {}",
                done.wakes
            ));
        }
        Ok(())
    }

    /// For tests: breaks what must hold.
    #[cfg(any(test, feature = "breakable"))]
    pub fn lose_job(&mut self, id: &[u8]) {
        if let Some(handle) = self.jobs.find(self.jobs.hashed(id)) {
            self.jobs.lose(handle);
        }
    }

    /// For tests: sets a note as a newer version might.
    #[cfg(feature = "breakable")]
    pub fn note_as_newer(
        &mut self,
        id: &[u8],
        (tag, value): (u32, &[u8]),
        out: &mut crate::queue::effects::Effects,
    ) {
        use crate::queue::note::Note;
        if let Some(handle) = self.jobs.find(self.jobs.hashed(id)) {
            self.commit_noted(handle, Note::Unknown { tag, value }, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::add::Add;
    use crate::queue::clock::{Mint, Now, When};
    use crate::queue::effects::Effects;

    /// Many use a queue per user: a small queue must not pay for what few queues have.
    #[test]
    fn small_queues_take_little() {
        let queue = |jobs: u64| {
            let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
            let (mut mint, mut out) = (Mint::new(), Effects::default());
            for number in 0..jobs {
                let id = format!("{number:016}");
                let add = Add {
                    when: When::Delay(1000 + number * 7919 % 1000),
                    ..Add::new(Some(id.as_bytes()), &[b'p'; 64])
                };
                let now = Now::from_ms(1_000_000);
                queue.add(&add, now, &mut mint, &mut out).unwrap();
            }
            queue
        };
        println!("the queue itself: {} bytes", size_of::<Queue>());
        for (jobs, most) in [(1, 968), (2, 1088), (5, 1638), (20, 4038), (64, 9718)] {
            let bytes = queue(jobs).memory_bytes();
            println!("{jobs} jobs: {bytes} bytes");
            assert!(bytes <= most, "{bytes} bytes for {jobs} jobs");
        }
    }
}
