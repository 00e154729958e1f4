//! What groups have of their own: DQ.GROUPSET. Few groups have anything, so it lies beside them, and a group knows by one
//! bit whether there is any.

use super::turns::tie;
use super::{Group, Groups};
use crate::queue::instant::{INSTANT_MAX, NEVER};
use crate::queue::job::GroupNumber;
use crate::queue::settings::{GroupSettings, Rate};
use crate::queue::state::jobs::Jobs;
use crate::queue::state::rate::group::{GroupRates, Rated};
use crate::storage::broken::{must, there};
use crate::storage::relocate::Mover;
use crate::storage::skiplist::Skiplist;
use crate::storage::sparse::Sparse;

/// A bit of `Group::users`: the group has settings. More users than fit below it do not fit into memory.
pub(super) const HAS_OWN: u32 = 1 << 31;

const NO_OWN: &str = "settings of a group that are not there";

/// [`GroupSettings`], in as few bytes as hold all that they may be.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Own {
    /// [`NONE`] is none of its own, of the rate by its window.
    max_reserved: u64,
    max_len: u64,
    count: u32,
    window_ms: Ms,
    paused_until: Ms,
    /// 0: none of its own.
    weight: u16,
}

/// No limit is so large.
const NONE: u64 = u64::MAX;
const _: () = assert!(size_of::<Own>() == 34 && NONE == NEVER);

/// An instant or a time in ms, or [`NEVER`].
#[derive(Clone, Copy)]
struct Ms([u8; 6]);

impl Ms {
    const LARGEST: u64 = (1 << 48) - 1;

    fn of(ms: u64) -> Self {
        let [bytes @ .., _, _] = ms.min(Self::LARGEST).to_le_bytes();
        Ms(bytes)
    }

    fn get(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        match u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) {
            Self::LARGEST => NEVER,
            ms => ms,
        }
    }
}

const _: () = assert!(INSTANT_MAX < Ms::LARGEST);

/// The settings of all groups that have any.
#[derive(Clone)]
pub(super) struct Owns {
    all: Sparse<Own>,
    /// Groups with a RATE of their own.
    rated: usize,
    /// Groups whose pause ends by itself, by when it does.
    pauses: Skiplist<u64>,
}

impl Own {
    fn of(settings: &GroupSettings) -> Self {
        let (count, window_ms) = match settings.rate {
            Some(Some(rate)) => (rate.count, rate.window_ms),
            Some(None) => (0, 0),
            None => (0, NONE),
        };
        Own {
            max_reserved: settings.max_reserved.unwrap_or(NONE),
            max_len: settings.max_len.unwrap_or(NONE),
            count,
            window_ms: Ms::of(window_ms),
            paused_until: Ms::of(settings.paused_until),
            weight: settings.weight.unwrap_or(0) as u16,
        }
    }

    fn settings(self) -> GroupSettings {
        let said = |limit| Some(limit).filter(|&it| it != NONE);
        let rate = |window_ms| Rate {
            count: self.count,
            window_ms,
        };
        GroupSettings {
            weight: Some(self.weight.into()).filter(|&it| it != 0),
            max_reserved: said(self.max_reserved),
            rate: said(self.window_ms.get()).map(|ms| Some(rate(ms)).filter(|_| ms != 0)),
            max_len: said(self.max_len),
            paused_until: self.paused_until.get(),
        }
    }
}

fn is_rated(settings: &GroupSettings) -> usize {
    usize::from(settings.rate.is_some())
}

impl Owns {
    pub fn new() -> Self {
        Owns {
            all: Sparse::new(),
            rated: 0,
            pauses: Skiplist::new(),
        }
    }

    pub fn prefetch(&self, number: GroupNumber) {
        self.all.prefetch(number);
    }

    pub fn free_some(&mut self, count: usize) -> bool {
        self.all.free_some(count) || self.pauses.free_some(count)
    }

    pub fn relocate(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match part {
            0 => self.all.relocate(from, mover),
            _ => self.pauses.relocate(from, mover),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.all.memory_bytes() + self.pauses.memory_bytes()
    }

    /// Notes when a pause ends, instead of when it did before.
    fn pause(&mut self, number: GroupNumber, before: u64, until: u64) {
        let ends = |at: &u64| !matches!(*at, 0 | NEVER);
        if before == until {
            return;
        }
        if let Some(at) = Some(before).filter(ends) {
            must(
                self.pauses.remove(at, number, tie),
                "a pause that is not known",
            );
        }
        if let Some(at) = Some(until).filter(ends) {
            self.pauses.insert(at, number, tie);
        }
    }
}

impl Groups {
    /// What a group has of its own, if it has anything.
    #[inline]
    pub fn own(&self, number: GroupNumber) -> Option<GroupSettings> {
        self.own_of(self.get(number), number)
    }

    #[inline]
    pub(super) fn own_of(&self, group: &Group, number: GroupNumber) -> Option<GroupSettings> {
        match group.users & HAS_OWN {
            0 => None,
            _ => self.known_own(number),
        }
    }

    #[cold]
    fn known_own(&self, number: GroupNumber) -> Option<GroupSettings> {
        Some(there(self.owns.all.get(number), NO_OWN).settings())
    }

    /// How many more jobs the MAXLEN of a group lets in; `None` if it has none.
    pub fn room_in(&self, number: GroupNumber) -> Option<u64> {
        let most = self.own(number)?.max_len.filter(|&most| most != 0)?;
        let (waiting, reserved) = self.counts(number);
        Some(most.saturating_sub((waiting + reserved) as u64))
    }

    /// How many groups have settings.
    pub fn own_len(&self) -> usize {
        self.owns.all.len()
    }

    /// Whether any group has a RATE of its own.
    pub fn has_rated(&self) -> bool {
        self.owns.rated > 0
    }

    /// The first instant at which a pause ends, or [`NEVER`].
    pub fn first_pause_end(&self) -> u64 {
        self.owns.pauses.first().map_or(NEVER, |(at, _)| at)
    }

    /// The first group whose pause has ended by then.
    pub fn first_resumed(&self, now_ms: u64) -> Option<GroupNumber> {
        let first = self.owns.pauses.first().filter(|&(at, _)| at <= now_ms);
        first.map(|(_, number)| number)
    }

    /// Takes away the pause of a group.
    pub fn end_pause(&mut self, number: GroupNumber, jobs: &Jobs, rates: Option<&GroupRates>) {
        let own = self.own(number).unwrap_or_default();
        self.give_own(number, own.at(NEVER), jobs, rates);
    }

    /// Groups whose pause ends by itself, by when it does.
    pub(super) fn paused(&self) -> &Skiplist<u64> {
        &self.owns.pauses
    }

    /// How many deliveries the turn of a group lasts.
    pub(super) fn weight(&self, number: GroupNumber) -> u32 {
        self.own(number).and_then(|own| own.weight).unwrap_or(1)
    }

    /// Whose window it is.
    pub fn rated(&self, number: GroupNumber) -> Rated<'_> {
        self.rated_by(number, self.own(number))
    }

    pub(super) fn rated_by(&self, number: GroupNumber, own: Option<GroupSettings>) -> Rated<'_> {
        Rated {
            name: &self.get(number).name,
            own: own.and_then(|own| own.rate),
        }
    }

    /// Gives a group other settings. It begins with the first of them, and ends with the last if no job has it.
    pub fn set_own(
        &mut self,
        name: &[u8],
        settings: GroupSettings,
        jobs: &Jobs,
        rates: Option<&GroupRates>,
    ) {
        let sought = self.seek(jobs.hashed(name));
        let number = match sought.number {
            Some(number) => number,
            None if !settings.any() => return,
            None => self.begin(sought, 0),
        };
        self.give_own(number, settings, jobs, rates);
    }

    fn give_own(
        &mut self,
        number: GroupNumber,
        settings: GroupSettings,
        jobs: &Jobs,
        rates: Option<&GroupRates>,
    ) {
        let before = self.own(number);
        let paused_before = before.map_or(0, |own| own.paused_until);
        self.owns
            .pause(number, paused_before, settings.paused_until);
        self.owns.rated += is_rated(&settings);
        self.owns.rated -= before.as_ref().map_or(0, is_rated);
        if settings.any() {
            self.owns.all.insert(number, Own::of(&settings));
            self.get_mut(number).users |= HAS_OWN;
        } else if before.is_some() {
            there(self.owns.all.remove(number), NO_OWN);
            self.get_mut(number).users &= !HAS_OWN;
        }
        self.reconsider(number, jobs, rates);
        if self.get(number).users == 0 {
            self.end(number, &**jobs.hasher());
        }
    }

    /// One step of a scan over the groups that have settings.
    pub(super) fn scan_own(&self, cursor: u64, show: impl FnMut(GroupNumber)) -> u64 {
        self.owns.all.scan(cursor, show)
    }

    /// All groups that have settings, by name.
    pub fn owned(&self) -> impl Iterator<Item = (&[u8], GroupSettings)> {
        let all = self.owns.all.iter();
        all.map(|(number, own)| (self.name(number), own.settings()))
    }

    /// For tests: whether each group with settings knows of them.
    pub(super) fn check_own(&self) -> Result<(), String> {
        let has = |group: &Group| group.users & HAS_OWN != 0;
        let known = self.numbers().filter(|&it| has(self.get(it))).count();
        let all = || (self.owns.all.iter()).map(|(number, own)| (number, own.settings()));
        let rated: usize = all().map(|(_, own)| is_rated(&own)).sum();
        let fits = all().all(|(number, own)| has(self.get(number)) && own.any());
        self.owns.pauses.check_invariants(tie)?;
        let mut pauses: Vec<_> = all()
            .map(|(number, own)| (own.paused_until, number))
            .collect();
        pauses.retain(|&(until, _)| !matches!(until, 0 | NEVER));
        pauses.sort_unstable();
        let fits = fits && self.owns.pauses.iter().eq(pauses);
        if known != self.owns.all.len() || rated != self.owns.rated || !fits {
            return Err(format!(
                "{known} groups with settings, that are not so many"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::settings::WEIGHT_MAX;

    #[test]
    fn whatever_settings_are_allowed_come_back() {
        let rate = |count, window_ms| Some(Some(Rate { count, window_ms }));
        let limits = [
            None,
            Some(0),
            Some(1),
            Some(u32::MAX.into()),
            Some(1 << 32),
            Some(i64::MAX as u64),
        ];
        let rates = [
            None,
            Some(None),
            rate(1, 1),
            rate(u32::MAX, INSTANT_MAX),
            rate(1, 1 << 32),
        ];
        let pauses = [0, 1, 1 << 32, INSTANT_MAX, NEVER];
        for weight in [None, Some(1), Some(256), Some(WEIGHT_MAX)] {
            for (max_reserved, max_len) in limits.iter().flat_map(|&a| limits.map(|b| (a, b))) {
                for (rate, paused_until) in rates.iter().flat_map(|&a| pauses.map(|b| (a, b))) {
                    let own = GroupSettings {
                        weight,
                        max_reserved,
                        rate,
                        max_len,
                        paused_until,
                    };
                    assert_eq!(own.check(), Ok(()));
                    assert_eq!(Own::of(&own).settings(), own);
                }
            }
        }
    }
}
