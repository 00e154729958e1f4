//! Everything known about one job: its ADD, its deliveries, and all entries that name its id.

use std::collections::{BTreeMap, HashMap};

use super::{
    purges, serial_of, Ack, Add, Bounds, Claim, Delivery, Entry, History, Kick, Nack, Pop, Purge,
    Touch, What,
};

/// One delivery of a job to a client.
#[derive(Clone, Copy)]
pub struct Handed<'a> {
    pub entry: &'a Entry,
    pub pop: &'a Pop,
    pub delivery: &'a Delivery,
    /// The job's place in the answer.
    pub place: usize,
}

impl Handed<'_> {
    /// 0 if the job was removed at delivery (NOACK).
    pub fn token(&self) -> u64 {
        self.delivery.lease.map_or(0, |lease| lease.token)
    }

    /// The server's clock at the delivery: exact with a token, otherwise the earliest possible.
    pub fn now_ms(&self) -> u64 {
        let answered = self.entry.ended.wall_ms();
        match self.delivery.lease {
            Some(lease) => answered.min(lease.token >> 20),
            None => answered,
        }
    }

    /// Whether that entry had ended when this delivery was made.
    pub fn comes_after(&self, entry: &Entry) -> bool {
        let by_the_token = self.token() != 0 && entry.ended.wall_ms() < self.now_ms();
        entry.is_before(self.entry) || by_the_token
    }
}

pub struct Story<'a> {
    pub serial: u64,
    pub entry: &'a Entry,
    pub add: &'a Add,
    /// Deliveries with a lease, ordered by token.
    pub leases: Vec<Handed<'a>>,
    /// Deliveries without a lease: at most one, if there is no fault.
    pub taken: Vec<Handed<'a>>,
    /// Entries that name its id, kicks and purges of its queue, and other ADDs of its id.
    pub others: Vec<&'a Entry>,
    pub is_dead: bool,
    /// Purges after which it was certainly gone.
    pub purged_by: Vec<&'a Entry>,
}

impl<'a> Story<'a> {
    pub fn deliveries(&self) -> impl Iterator<Item = &Handed<'a>> {
        self.leases.iter().chain(&self.taken)
    }

    pub fn acks(&self) -> impl Iterator<Item = (&'a Entry, &'a Ack)> + '_ {
        self.others.iter().filter_map(|entry| match &entry.what {
            What::Ack(ack) => Some((*entry, ack)),
            _ => None,
        })
    }

    /// NACKs that may have had an effect.
    pub fn nacks(&self) -> impl Iterator<Item = (&'a Entry, &'a Nack)> + '_ {
        self.others.iter().filter_map(|entry| match &entry.what {
            What::Nack(nack) if nack.answer != Some(false) => Some((*entry, nack)),
            _ => None,
        })
    }

    /// TOUCHes that may have had an effect.
    pub fn touches(&self) -> impl Iterator<Item = (&'a Entry, &'a Touch)> + '_ {
        self.others.iter().filter_map(|entry| match &entry.what {
            What::Touch(touch) if touch.answer != Some(None) => Some((*entry, touch)),
            _ => None,
        })
    }

    /// KICKs that may have had an effect.
    pub fn kicks(&self) -> impl Iterator<Item = (&'a Entry, &'a Kick)> + '_ {
        self.others.iter().filter_map(|entry| match &entry.what {
            What::Kick(kick) if kick.answer != Some(0) => Some((*entry, kick)),
            _ => None,
        })
    }

    pub fn purges(&self) -> impl Iterator<Item = (&'a Entry, &'a Purge)> + '_ {
        self.others.iter().filter_map(|entry| match &entry.what {
            What::Purge(purge) => Some((*entry, purge)),
            _ => None,
        })
    }

    /// Whether it can ever have been dead. (If not, no kick concerns it.)
    pub fn may_die(&self) -> bool {
        use super::Kind::Fatal;
        self.add.max_attempts != 0 || self.nacks().any(|(_, nack)| nack.kind == Fatal)
    }

    pub fn group(&self) -> Option<&'a str> {
        self.add.group.as_deref()
    }

    pub fn was_added_before(&self, other: &Story<'_>) -> bool {
        let same_unit = self.entry.unit.is_some() && self.entry.unit == other.entry.unit;
        self.entry.is_before(other.entry) || (same_unit && self.serial < other.serial)
    }

    /// Whether it is the only job that ever had its id.
    pub fn is_alone(&self) -> bool {
        let adds = |entry: &&&Entry| matches!(entry.what, What::Add(_));
        self.add.id.is_some() && self.others.iter().filter(adds).count() == 0
    }

    /// Whether this claim means that delivery of the job: by its token, or any delivery.
    pub fn is_meant(&self, claim: &Claim, delivery: &Handed<'_>) -> bool {
        let same_id = claim.id == delivery.delivery.id;
        same_id && claim.token.is_none_or(|token| token == delivery.token())
    }

    /// The leases before a delivery. A POP with NOACK removes the job: a delivery in a later life was made possible by
    /// a crash.
    pub fn leases_before(&self, handed: &Handed<'_>) -> &[Handed<'a>] {
        let end = match handed.token() {
            0 => {
                let later = |lease: &Handed<'_>| lease.entry.life > handed.entry.life;
                self.leases.iter().position(later)
            }
            token => self.leases.iter().position(|lease| lease.token() >= token),
        };
        &self.leases[..end.unwrap_or(self.leases.len())]
    }

    /// All entries about the job, in the order of sending.
    pub fn tell(&self) -> String {
        let handed = self.deliveries().map(|handed| handed.entry);
        let all = handed.chain(self.others.iter().copied());
        let mut entries: Vec<&Entry> = all.chain([self.entry]).collect();
        entries.sort_by_key(|entry| entry.sent.at_us);
        let lines: Vec<String> = entries.iter().map(|it| format!("  {it:?}")).collect();
        lines.join("\n")
    }

    pub fn name(&self) -> String {
        let id = self.add.id.as_deref().unwrap_or("*");
        format!("job {} ({id} of {})", self.serial, self.entry.queue)
    }
}

pub struct Stories<'a> {
    pub history: &'a History,
    pub jobs: BTreeMap<u64, Story<'a>>,
    /// Deliveries of jobs that nobody added.
    pub strangers: Vec<Handed<'a>>,
    /// POPs and BPOPs that were never answered: each may have delivered jobs.
    pub unknown_pops: Vec<(&'a Entry, &'a Pop)>,
    pub end_wall_ms: u64,
}

pub fn deliveries(entry: &Entry) -> impl Iterator<Item = Handed<'_>> {
    let pop = match &entry.what {
        What::Pop(pop) => Some(pop),
        _ => None,
    };
    pop.into_iter().flat_map(move |pop| {
        let all = pop.answer.iter().flatten().enumerate();
        all.map(move |(place, delivery)| Handed {
            entry,
            pop,
            delivery,
            place,
        })
    })
}

impl<'a> Stories<'a> {
    pub fn of(history: &'a History) -> Stories<'a> {
        let mut stories = Stories {
            history,
            jobs: BTreeMap::new(),
            strangers: Vec::new(),
            unknown_pops: Vec::new(),
            end_wall_ms: 0,
        };
        for entry in &history.entries {
            stories.end_wall_ms = stories.end_wall_ms.max(entry.ended.wall_ms());
            match &entry.what {
                What::Add(add) => stories.add(entry, add),
                What::Pop(pop) if pop.answer.is_none() => stories.unknown_pops.push((entry, pop)),
                _ => {}
            }
        }
        stories.hand_out();
        stories.name_ids();
        let sure = |story| purges::sure(&stories, story);
        let sure: Vec<Vec<&Entry>> = stories.jobs.values().map(sure).collect();
        for (story, sure) in stories.jobs.values_mut().zip(sure) {
            story.purged_by = sure;
        }
        stories
    }

    pub fn bounds_of(&self, queue: &str) -> Bounds {
        self.history.bounds.get(queue).copied().unwrap_or_default()
    }

    pub fn by_queue(&self) -> HashMap<&str, Vec<&Story<'a>>> {
        let mut queues: HashMap<&str, Vec<&Story<'a>>> = HashMap::new();
        for story in self.jobs.values() {
            queues.entry(&story.entry.queue).or_default().push(story);
        }
        queues
    }

    /// Whether an unanswered POP or BPOP of its queue may have delivered it before `at` was answered.
    pub fn may_be_in_unanswered_pop(&self, story: &Story<'_>, at: &Entry) -> bool {
        let mut pops = self.unanswered_pops(story);
        pops.any(|(entry, _)| !at.is_before(entry))
    }

    /// Unanswered POPs with NOACK, which may have removed it.
    pub fn unanswered_noacks<'s>(
        &'s self,
        story: &'s Story<'_>,
    ) -> impl Iterator<Item = (&'a Entry, &'a Pop)> + 's {
        let pops = self.unanswered_pops(story);
        pops.filter(|(_, pop)| pop.noack)
    }

    fn unanswered_pops<'s>(
        &'s self,
        story: &'s Story<'_>,
    ) -> impl Iterator<Item = (&'a Entry, &'a Pop)> + 's {
        let pops = self.unknown_pops.iter().copied();
        pops.filter(|(entry, pop)| {
            let of_queue = pop.queues.contains(&story.entry.queue);
            of_queue && !entry.is_before(story.entry)
        })
    }

    fn add(&mut self, entry: &'a Entry, add: &'a Add) {
        let story = Story {
            serial: add.serial,
            entry,
            add,
            leases: Vec::new(),
            taken: Vec::new(),
            others: Vec::new(),
            is_dead: false,
            purged_by: Vec::new(),
        };
        self.jobs.insert(add.serial, story);
    }

    fn hand_out(&mut self) {
        for handed in self.history.entries.iter().flat_map(deliveries) {
            let serial = serial_of(&handed.delivery.payload);
            match serial.and_then(|serial| self.jobs.get_mut(&serial)) {
                Some(story) if handed.delivery.lease.is_some() => story.leases.push(handed),
                Some(story) => story.taken.push(handed),
                None => self.strangers.push(handed),
            }
        }
        for story in self.jobs.values_mut() {
            story.leases.sort_by_key(Handed::token);
        }
        for entry in &self.history.entries {
            let What::Dead(corpses) = &entry.what else {
                continue;
            };
            let serials = corpses.iter().filter_map(|dead| serial_of(&dead.payload));
            for serial in serials {
                if let Some(story) = self.jobs.get_mut(&serial) {
                    story.is_dead = true;
                }
            }
        }
    }

    fn name_ids(&mut self) {
        let mut named: HashMap<(&str, &str), Vec<&Entry>> = HashMap::new();
        let mut of_queue: HashMap<&str, Vec<&Entry>> = HashMap::new();
        for entry in &self.history.entries {
            let mut name = |id: &'a str| named.entry((&entry.queue, id)).or_default().push(entry);
            match &entry.what {
                What::Add(add) => add.id.iter().for_each(|id| name(id)),
                What::Ack(ack) => ack.claims.iter().for_each(|claim| name(&claim.id)),
                What::Nack(nack) => name(&nack.claim.id),
                What::Touch(touch) => name(&touch.claim.id),
                What::Reschedule(all) => all.ids.iter().for_each(|id| name(id)),
                What::Del(del) => del.ids.iter().for_each(|id| name(id)),
                What::Kick(Kick { ids: Some(ids), .. }) => ids.iter().for_each(|id| name(id)),
                What::Kick(_) | What::Purge(_) => {
                    of_queue.entry(&entry.queue).or_default().push(entry)
                }
                What::Pop(_) | What::Set(_) | What::Own(..) | What::Dead(_) => {}
            }
        }
        for story in self.jobs.values_mut() {
            let told = story.leases.first().or(story.taken.first());
            let id = story.add.id.as_deref();
            let id = id.or(told.map(|handed| handed.delivery.id.as_str()));
            let of_id = id.and_then(|id| named.get(&(story.entry.queue.as_str(), id)));
            let all = of_id.into_iter().flatten().copied();
            let is_self = |entry: &&Entry| std::ptr::eq(*entry, story.entry);
            let mut others: Vec<&Entry> = all.filter(|entry| !is_self(entry)).collect();
            let queue = story.entry.queue.as_str();
            others.extend(of_queue.get(queue).into_iter().flatten());
            others.sort_by_key(|entry| entry.sent.at_us);
            story.others = others;
        }
    }
}
