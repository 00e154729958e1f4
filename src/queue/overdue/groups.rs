//! Groups, in which overdue jobs count as what they have become. No list is kept by group and deadline, so this reads
//! each overdue job, as long as there are any.

use super::View;
use crate::queue::job::{GroupNumber, Handle};
use crate::queue::settings::GroupSettings;
use crate::queue::state::groups::GroupView;
use crate::queue::state::jobs::Jobs;
use crate::queue::state::position::{Expiry, Fate};
use crate::storage::skiplist::Skiplist;
use std::collections::HashMap;
use std::ops::AddAssign;

/// Overdue jobs that one query goes through, the earliest of each kind first: some milliseconds. The timer carries out
/// more in a tenth of a second.
const WALKED: usize = 100_000;
/// Jobs whose memory is prefetched at once.
const AT_ONCE: usize = 32;

/// How overdue jobs change the counts of a group.
#[derive(Clone, Copy, Default)]
struct Shift {
    /// Leases that have expired.
    leases: usize,
    /// Jobs that wait again, and, in `expired`, jobs that no longer wait.
    back: usize,
    expired: usize,
}

impl AddAssign for Shift {
    fn add_assign(&mut self, other: Shift) {
        self.leases += other.leases;
        self.back += other.back;
        self.expired += other.expired;
    }
}

impl Shift {
    fn of_lease(fate: Fate) -> Shift {
        let is_back = matches!(fate, Fate::Ready | Fate::Undecided);
        Shift {
            leases: 1,
            back: usize::from(is_back),
            expired: 0,
        }
    }

    const EXPIRED: Shift = Shift {
        leases: 0,
        back: 0,
        expired: 1,
    };

    fn apply<'a>(self, group: GroupView<'a>) -> GroupView<'a> {
        GroupView {
            waiting: (group.waiting + self.back).saturating_sub(self.expired),
            reserved: group.reserved.saturating_sub(self.leases),
            ..group
        }
    }
}

/// A group as DQ.GROUPGET shows it.
#[allow(missing_docs, reason = "named as in the reply")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSeen {
    pub own: GroupSettings,
    pub waiting: usize,
    pub reserved: usize,
    pub rate_used: u64,
}

/// The groups of a queue as they are at an instant.
pub struct GroupsAt<'a> {
    view: View<'a>,
    shifts: HashMap<GroupNumber, Shift>,
}

impl GroupsAt<'_> {
    /// One step of a scan over the groups that hold jobs, or over those that are `set`, as [`View::scan`].
    pub fn scan(&self, cursor: u64, set: bool, mut show: impl FnMut(GroupView<'_>)) -> u64 {
        let Some(groups) = self.view.parts.groups() else {
            return 0;
        };
        let now_ms = self.view.at.now.ms();
        groups.scan(cursor, set, |number, group| {
            let shift = self.shifts.get(&number).copied().unwrap_or_default();
            let group = shift.apply(group);
            let is_set = || groups.own(number).is_some_and(|own| own.at(now_ms).any());
            if group.holds_any() && !set || set && is_set() {
                show(group);
            }
        })
    }

    /// How many groups there are: see [`Groups::len`](crate::queue::state::groups::Groups::len).
    pub fn len(&self) -> usize {
        let Some(groups) = self.view.parts.groups() else {
            return 0;
        };
        let is_left = |(&number, shift): (&GroupNumber, &Shift)| {
            let group = groups.view(number);
            group.holds_any() && !shift.apply(group).holds_any()
        };
        let left = self.shifts.iter().filter(|&it| is_left(it)).count();
        groups.len(self.view.jobs).saturating_sub(left)
    }
}

impl<'q> View<'q> {
    /// What DQ.GROUPS shows.
    pub fn groups(self) -> GroupsAt<'q> {
        let mut shifts: HashMap<GroupNumber, Shift> = HashMap::new();
        self.each_shift(|number, shift| {
            *shifts.entry(number).or_default() += shift;
        });
        GroupsAt { view: self, shifts }
    }

    /// How many jobs the group with this name holds.
    pub fn group_len(self, name: &[u8]) -> usize {
        self.group_seen(name)
            .map_or(0, |it| it.waiting + it.reserved)
    }

    /// The group with this name, if it holds jobs or has settings.
    pub fn group_seen(self, name: &[u8]) -> Option<GroupSeen> {
        let groups = self.parts.groups()?;
        let number = groups.named(name, self.jobs)?;
        let (now, group) = (self.at.now, groups.view(number));
        let mut all = Shift::default();
        if group.holds_any() {
            self.each_shift(|of, shift| {
                if of == number {
                    all += shift;
                }
            });
        }
        let group = all.apply(group);
        let own = groups.own(number).unwrap_or_default().at(now.ms());
        (group.holds_any() || own.any()).then(|| GroupSeen {
            own,
            waiting: group.waiting,
            reserved: group.reserved,
            rate_used: self.queue.serving().window_used(Some(number), now),
        })
    }

    fn each_shift(self, mut each: impl FnMut(GroupNumber, Shift)) {
        let (jobs, ended) = (self.jobs, self.at.ended_ms);
        if self.parts.groups().is_none()
            || self.queue.next_event().is_none_or(|first| first > ended)
        {
            return;
        }
        let mut left = WALKED;
        let mut walk = |list: &Skiplist<u64>, shift: Shift| {
            let over = list.iter().take_while(|&(at, _)| at <= ended);
            let over: Vec<Handle> = over.take(left).map(|(_, handle)| handle).collect();
            left -= over.len();
            jobs.each_group_of(&over, |number| each(number, shift));
        };
        for fate in Fate::ALL {
            walk(jobs.reserved().list(fate as usize), Shift::of_lease(fate));
        }
        // A job whose lease expired before its TTL is counted above, too: it waits again by its lease, then expires.
        for expiry in [Expiry::Ready, Expiry::Delayed] {
            walk(jobs.expiring().list(expiry as usize), Shift::EXPIRED);
        }
    }
}

impl Jobs {
    fn each_group_of(&self, handles: &[Handle], mut each: impl FnMut(GroupNumber)) {
        for some in handles.chunks(AT_ONCE) {
            some.iter().for_each(|&job| self.prefetch_slot(job));
            some.iter().for_each(|&job| self.prefetch_job(job));
            let there = some.iter().filter(|&&job| !self.is_purged(job));
            let groups = there.filter_map(|&job| self.job(job).group());
            groups.for_each(&mut each);
        }
    }
}
