//! What a queue is made of. Fields are private to this folder: the rules read them through methods, and change them
//! only by committing effects, which [`apply`] carries out.

mod apply;
pub mod asleep;
mod check;
pub(in crate::queue) mod commit;
mod dedupe;
mod defrag;
pub mod departures;
pub(in crate::queue) mod done;
pub mod figures;
pub mod flows;
mod followed;
pub mod garbage;
mod gather;
pub mod groups;
mod instants;
mod moves;
pub(in crate::queue) mod notes;
mod numbers;
pub(in crate::queue) mod position;
mod purge;
pub(in crate::queue) mod purged;
mod rate;
mod recurring;
mod restore;
mod rows;
pub(in crate::queue) mod schedule;
mod snapshot;
pub(in crate::queue) mod split;
pub(in crate::queue) mod store;
mod successor;
mod terms;
pub(in crate::queue) mod together;
pub mod wake;

use crate::queue::clock::Now;
use crate::queue::job::{Handle, Place};
use crate::queue::settings::Settings;
use crate::queue::stats::Totals;
use crate::storage::lazy::{Lazy, Unused};
use crate::storage::skiplist::Skiplist;
use ahash::RandomState;
use dedupe::DedupeWindow;
use departures::Departures;
use done::Done;
use flows::Flows;
use followed::Followed;
use garbage::Garbage;
use groups::Groups;
use purged::PurgedJobs;
use rate::group::GroupRates;
use rate::RateWindow;
use schedule::{Schedule, Standing};
use split::Split;
use std::sync::Arc;
use store::Store;

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
    jobs: Store,
    /// Delayed and ready jobs.
    schedule: Schedule,
    /// By (deadline, order of adding), a list for each [`position::Fate`].
    reserved: Split<3>,
    /// By (instant of death, order of dying).
    dead: Lazy<Skiplist<u64>>,
    /// Jobs that expire by TTL, and occurrences that end by TTL or GRACE, by that instant: a list for each
    /// [`position::Ending`]. A reserved job ends its lease first; one that expires with its lease is on none of them.
    expiring: Split<4>,
    dedupe: Lazy<DedupeWindow>,
    cold: Lazy<Cold>,
    done: Lazy<Done>,
    settings: Arc<Settings>,
    /// Only if a job has a group.
    groups: Option<Box<Groups>>,
    group_rates: Option<Box<GroupRates>>,
    /// Only if a job is after others, or was.
    flows: Option<Box<Flows>>,
    /// When a pause ends: 0, an instant, or FOREVER.
    paused_until: u64,
    /// The key stays without jobs.
    kept: bool,
    /// Its settings keep done jobs.
    keeps_done: bool,
    /// The last numbers: in the order of adding, in the order of dying, and the largest token.
    seq: u64,
    deaths: u64,
    token: u64,
    totals: Totals,
}

/// What few queues have.
#[derive(Default)]
struct Cold {
    followed: Followed,
    rate: Option<Box<RateWindow>>,
    /// Purged, and not yet freed.
    purged_jobs: Vec<PurgedJobs>,
    /// Bytes of the ids and payloads of purged jobs, as far as they were counted.
    purged_bytes: u64,
    /// Set aside, to be freed by the owner of the queue.
    garbage: Vec<Garbage>,
    /// Jobs whose TTL expires before they are due, by their due times.
    late: Skiplist<u64>,
    /// Made while the queue is changed, if a client waits for jobs to end.
    departures: Option<Box<Departures>>,
}

impl Unused for Cold {
    const UNUSED: &'static Self = &Cold {
        followed: Followed::new(),
        rate: None,
        purged_jobs: Vec::new(),
        purged_bytes: 0,
        garbage: Vec::new(),
        late: Skiplist::new(),
        departures: None,
    };
}

impl Queue {
    /// Without jobs, settings or totals.
    pub fn new(seed: &HashSeed) -> Self {
        Queue {
            jobs: Store::new(seed.0.clone()),
            schedule: Schedule::default(),
            reserved: Split::new(),
            dead: Lazy::new(),
            expiring: Split::new(),
            dedupe: Lazy::new(),
            cold: Lazy::new(),
            done: Lazy::new(),
            settings: Settings::unconfigured(),
            groups: None,
            group_rates: None,
            flows: None,
            paused_until: 0,
            kept: false,
            keeps_done: false,
            seq: 0,
            deaths: 0,
            token: 0,
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
            jobs: Store::new(self.jobs.hasher().clone()),
            schedule: Schedule::default(),
            reserved: Split::new(),
            dead: Lazy::new(),
            expiring: Split::new(),
            dedupe: self.dedupe.clone(),
            cold: Lazy::new(),
            done: self.done.clone(),
            settings: Arc::clone(&self.settings),
            groups: None,
            group_rates: None,
            flows: None,
            paused_until: self.paused_until,
            kept: self.kept,
            keeps_done: self.keeps_done,
            seq: self.seq,
            deaths: self.deaths,
            token: self.token,
            totals: Totals::default(),
        };
        if self.settings.rate.is_some() {
            copy.cold.make().rate = Some(Box::new(RateWindow::new(self.token)));
        }
        match self.has_purged() {
            true => copy.adopt_jobs(self),
            false => copy.adopt_lists(self),
        }
        copy.set_group_rates_aside();
        if self.group_rates.is_some() {
            copy.regroup();
        }
        copy
    }

    /// One by one, as purged jobs lie between them.
    fn adopt_jobs(&mut self, other: &Queue) {
        for handle in other.handles() {
            let copied = self.adopt_job(other, handle);
            if let Some(successor) = other.jobs.successor(handle) {
                let successor = self.adopt_job(other, successor);
                self.set_successor(copied, successor);
            }
        }
        self.adopt_turns(other);
        self.adopt_flows(other);
    }

    fn adopt_job(&mut self, other: &Queue, handle: Handle) -> Handle {
        let job = other.as_new(handle);
        let copied = self.insert(&job, self.jobs.hashed(job.id), None);
        self.jobs
            .copy_notes(copied, other.jobs.notes(handle), |_| true);
        copied
    }

    fn adopt_lists(&mut self, other: &Queue) {
        self.jobs = other.jobs.clone();
        self.groups = other.groups.clone();
        self.flows = other.flows.clone();
        self.schedule = other.schedule.clone();
        self.reserved = other.reserved.clone();
        self.dead = other.dead.clone();
        self.expiring = other.expiring.clone();
        if !other.cold.late.is_empty() {
            self.cold.make().late = other.cold.late.clone();
        }
        if other.followed().len() > 0 {
            self.cold.make().followed = other.followed().clone();
        }
    }

    /// All jobs except successors, list by list in their orders.
    fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        let scheduled = self
            .schedule
            .by_due(0, |handle| self.jobs.job(handle).seq());
        let lists = scheduled
            .chain(self.leases_from(0))
            .chain(self.dead.iter())
            .chain(self.flows.iter().flat_map(|flows| flows.blocked().iter()));
        lists.map(|(_, handle)| handle)
    }

    pub(in crate::queue) fn jobs(&self) -> &Store {
        &self.jobs
    }

    pub(in crate::queue) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub(in crate::queue) fn reserved(&self) -> &Split<3> {
        &self.reserved
    }

    /// Leases by (deadline, order of adding), from the instant `from` on.
    pub(in crate::queue) fn leases_from(
        &self,
        from: u64,
    ) -> impl Iterator<Item = (u64, Handle)> + '_ {
        let seq = |handle| self.jobs.job(handle).seq();
        self.reserved.iter_from(from, seq)
    }

    pub(in crate::queue) fn first_lease(&self) -> Option<(u64, Handle)> {
        self.reserved.first(|handle| self.jobs.job(handle).seq())
    }

    pub(in crate::queue) fn first_ttl(&self) -> Option<(u64, Handle)> {
        self.expiring.first(|handle| self.jobs.job(handle).seq())
    }

    pub(in crate::queue) fn dead(&self) -> &Skiplist<u64> {
        &self.dead
    }

    pub(in crate::queue) fn expiring(&self) -> &Split<4> {
        &self.expiring
    }

    /// Jobs whose TTL expires before they are due, by their due times.
    pub(in crate::queue) fn late(&self) -> &Skiplist<u64> {
        &self.cold.late
    }

    pub(in crate::queue) fn followed(&self) -> &Followed {
        &self.cold.followed
    }

    pub(in crate::queue) fn dedupe(&self) -> &DedupeWindow {
        &self.dedupe
    }

    /// The instant until which NX refuses the id. Hashes it only if the dedupe window has any id.
    pub(in crate::queue) fn remembered_until(&self, id: &[u8]) -> Option<u64> {
        (self.dedupe.len() > 0).then(|| self.dedupe.until(self.jobs.hashed(id)))?
    }

    /// For rules that change the queue while they read its settings: cheap, but not free.
    pub(in crate::queue) fn shared_settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings)
    }

    /// When a pause ends: 0, an instant, or FOREVER.
    pub(in crate::queue) fn paused_until(&self) -> u64 {
        self.paused_until
    }

    /// Whether the key stays without jobs.
    pub(in crate::queue) fn is_kept(&self) -> bool {
        self.kept
    }

    /// As CFGSET left them.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The totals of this queue.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The largest token that this queue has seen.
    pub fn token_floor(&self) -> u64 {
        self.token
    }

    /// The largest number in the orders of adding and of dying.
    pub fn order_floor(&self) -> u64 {
        self.seq.max(self.deaths)
    }

    /// Whether nothing in it needs the key to stay.
    pub fn is_disposable(&self) -> bool {
        !self.kept && self.schedule.len() == 0 && self.is_drained()
    }

    fn is_drained(&self) -> bool {
        self.live_len() + self.dead.len() == 0 && self.done.len() == 0
    }

    /// Blocked, delayed, ready and reserved jobs: what MAXLEN limits.
    pub fn live_len(&self) -> usize {
        self.schedule.len() + self.reserved.len() + self.blocked_len()
    }

    /// Bytes of all ids, payloads and steps, of dead jobs and successors too: what MAXBYTES limits. After a purge of
    /// very many jobs, some of them count until they are freed.
    pub fn bytes(&self) -> u64 {
        let content = self.jobs.content_bytes();
        let values = self.flows.as_ref().map_or(0, |flows| flows.value_bytes());
        content.saturating_sub(self.cold.purged_bytes) + self.group_bytes() + values
    }

    pub(in crate::queue) fn is_paused(&self, now: Now) -> bool {
        self.paused_until > now.ms()
    }

    fn standing(&self, handle: Handle) -> (Standing, bool) {
        let job = self.jobs.job(handle);
        let standing = Standing {
            priority: job.terms().priority,
            due: job.due(),
        };
        (standing, job.group().is_some())
    }

    pub(in crate::queue) fn is_ready(&self, handle: Handle, now: Now) -> bool {
        let job = self.jobs.job(handle);
        job.place() == Place::Scheduled && job.due() <= now.ms()
    }

    pub(in crate::queue) fn reserved_is_full(&self) -> bool {
        let limit = self.settings.max_reserved;
        limit != 0 && self.reserved.len() as u64 >= limit
    }

    pub(in crate::queue) fn surplus_dead(&self) -> usize {
        match self.settings.dead_len {
            0 => 0,
            kept => (self.dead.len() as u64).saturating_sub(kept) as usize,
        }
    }

    /// How many jobs and ids there are to free.
    pub fn free_effort(&self) -> usize {
        self.jobs.len() + self.dedupe.len() + self.done.len()
    }

    /// Heap bytes and those of the structure itself.
    pub fn memory_bytes(&self) -> usize {
        let rate = self
            .cold
            .rate
            .as_ref()
            .map_or(0, |w| w.memory_bytes() + size_of::<RateWindow>());
        size_of::<Self>()
            + self.totals.lateness.memory_bytes()
            + self.jobs.memory_bytes()
            + self.schedule.memory_bytes()
            + self.reserved.memory_bytes()
            + list_bytes(&self.dead)
            + self.expiring.memory_bytes()
            + self.cold.late.memory_bytes()
            + self.dedupe.memory_bytes()
            + DedupeWindow::memory_bytes(&self.dedupe)
            + self.done.memory_bytes()
            + Done::memory_bytes(&self.done)
            + self.cold.memory_bytes()
            + self.cold.followed.memory_bytes()
            + self
                .cold
                .purged_jobs
                .iter()
                .map(PurgedJobs::memory_bytes)
                .sum::<usize>()
            + self.settings.memory_bytes()
            + rate
            + self.groups.as_ref().map_or(0, |it| it.memory_bytes())
            + self.group_rates.as_ref().map_or(0, |it| it.memory_bytes())
            + self.flows.as_ref().map_or(0, |it| it.memory_bytes())
    }

    /// For tests: breaks what must hold.
    #[cfg(any(test, feature = "breakable"))]
    pub fn lose_job(&mut self, id: &[u8]) {
        if let Some(handle) = self.find(self.jobs.hashed(id)) {
            self.jobs.lose(handle);
        }
    }

    /// For tests: sets a note as a newer version might.
    #[cfg(feature = "breakable")]
    pub fn note_as_newer(
        &mut self,
        id: &[u8],
        value: &[u8],
        out: &mut crate::queue::effects::Effects,
    ) {
        use crate::queue::note::{Note, CANARY};
        if let Some(handle) = self.find(self.jobs.hashed(id)) {
            self.commit_noted(handle, Note::Unknown { tag: CANARY, value }, out);
        }
    }
}

fn list_bytes(list: &Lazy<Skiplist<u64>>) -> usize {
    list.memory_bytes() + Skiplist::memory_bytes(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::add::Add;
    use crate::queue::clock::Mint;
    use crate::queue::effects::Effects;
    use crate::queue::when::When;

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
        for (jobs, most) in [(1, 960), (2, 1080), (5, 1630), (20, 4030), (64, 9710)] {
            let bytes = queue(jobs).memory_bytes();
            println!("{jobs} jobs: {bytes} bytes");
            assert!(bytes <= most, "{bytes} bytes for {jobs} jobs");
        }
    }
}
