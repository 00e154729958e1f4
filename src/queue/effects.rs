//! What the rules emit while they decide.

use super::budget::OUT_OF_TURN;
use super::codec::push;
use super::effect::Effect;
use super::event::{Event, Events};
use super::recurring::rule::ZoneOf;
use super::stats::Totals;

/// The effects of one command or of one step of the timer, already encoded, with the events that they raise.
#[derive(Default)]
pub struct Effects {
    bytes: Vec<u8>,
    /// Effects are not encoded, as the bytes would not be read.
    unencoded: bool,
    /// Whether anything happened at all, and whether anything that touches a WATCH.
    any: bool,
    touching: bool,
    events: Events,
    /// What has been applied completely.
    completed: Completed,
    /// Steps taken for overdue expirations: see [`Effects::allow`].
    expired: usize,
    /// Blocked jobs learn of ends only when this command is done.
    holds_back: bool,
    /// How rules find their time zones; `None`: no zone is known.
    zone_of: Option<ZoneOf>,
    /// The name of a zone that was not found.
    missed_zone: Option<Vec<u8>>,
    /// Totals over all effects that went through here: never cleared.
    pub totals: Totals,
}

/// How many bytes have been applied completely, and whether anything happened by then, or touched a WATCH.
#[derive(Clone, Copy, Default)]
struct Completed {
    len: usize,
    any: bool,
    touching: bool,
}

/// The capacity that the buffer keeps: one large payload must not grow it for good.
const BUFFER_KEPT: usize = 64 * 1024;

impl Effects {
    /// Inlined, so that an effect that is not encoded is not even built.
    #[inline]
    pub fn push(&mut self, effect: &Effect<'_>) {
        self.touching = true;
        self.push_quietly(effect);
    }

    /// As [`Effects::push`], for an effect that allocates, or is dropped at a cost: it is made only if it is encoded.
    #[inline]
    pub(super) fn push_made<'e>(&mut self, make: impl FnOnce() -> Effect<'e>) {
        (self.any, self.touching) = (true, true);
        if !self.unencoded {
            self.append(&make());
        }
    }

    /// As [`Effects::push`], for an effect that only frees memory of what has ended: it touches no WATCH.
    #[inline]
    pub(super) fn push_quietly(&mut self, effect: &Effect<'_>) {
        self.any = true;
        if !self.unencoded {
            self.append(effect);
        }
    }

    /// Reserves room for an effect of about `len` bytes: growing to it in steps would copy them several times.
    pub(super) fn expect_bytes(&mut self, len: usize) {
        if !self.unencoded {
            self.bytes.reserve(len);
        }
    }

    fn append(&mut self, effect: &Effect<'_>) {
        push(effect, &mut self.bytes, 0);
    }

    /// All that was pushed so far has been applied.
    #[inline]
    pub(super) fn complete(&mut self) {
        self.completed = Completed {
            len: self.bytes.len(),
            any: self.any,
            touching: self.touching,
        };
    }

    /// Removes effects that were not applied completely, because a broken invariant stopped that.
    pub fn drop_unfinished(&mut self) {
        let Completed { len, any, touching } = self.completed;
        self.bytes.truncate(len);
        (self.any, self.touching) = (any, touching);
    }

    /// How many of the `wanted` steps the command may still take for overdue expirations, however many jobs it
    /// names.
    pub(super) fn allow(&self, wanted: usize) -> usize {
        wanted.min(OUT_OF_TURN.saturating_sub(self.expired))
    }

    pub(super) fn took(&mut self, steps: usize) {
        self.expired += steps;
    }

    /// All that this command ends goes together: what that means to blocked jobs is carried out when it is done.
    pub(super) fn hold_back(&mut self) {
        self.holds_back = true;
    }

    pub(super) fn holds_back(&self) -> bool {
        self.holds_back
    }

    pub(super) fn held_back(&mut self, holds_back: bool) {
        self.holds_back = holds_back;
    }

    /// An event that the command raises.
    pub fn raise(&mut self, event: Event) {
        self.events.raise(event);
    }

    /// Nothing happened.
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// Something happened that touches a WATCH.
    pub fn touches(&self) -> bool {
        self.touching
    }

    /// Sets how rules find their time zones.
    pub fn know_zones(&mut self, zone_of: ZoneOf) {
        self.zone_of = Some(zone_of);
    }

    /// How rules find their time zones.
    pub fn zone_of(&self) -> ZoneOf {
        self.zone_of.unwrap_or(|_| None)
    }

    /// Records the name of a rule's zone that was not found.
    pub(super) fn miss_zone(&mut self, name: Option<&[u8]>) {
        if let Some(name) = name {
            self.missed_zone = Some(name.to_vec());
        }
    }

    /// The last name of a zone that was not found; returned once.
    pub fn take_missed_zone(&mut self) -> Option<Vec<u8>> {
        self.missed_zone.take()
    }

    /// The encoded effects, for [`super::codec::decode`], unless they were left unencoded.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Effects from now on are not encoded, as they will not be read.
    pub fn leave_unencoded(&mut self) {
        self.unencoded = true;
    }

    /// Effects are not encoded.
    pub fn is_unencoded(&self) -> bool {
        self.unencoded
    }

    /// The events, in the order in which they are sent.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.events.iter()
    }

    /// Whether any event was raised.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Clears what belongs to one command, for the next; totals stay.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(BUFFER_KEPT);
        self.unencoded = false;
        self.any = false;
        self.touching = false;
        self.events = Events::default();
        self.expired = 0;
        self.holds_back = false;
        self.completed = Completed::default();
    }
}
