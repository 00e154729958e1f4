//! What the rules emit while they decide.

use super::budget::OUT_OF_TURN;
use super::codec::push;
use super::effect::Effect;
use super::event::{Event, Events};
use super::recurring::rule::ZoneOf;
use super::stats::Totals;

/// The effects of one command or of one step of the timer, already encoded, with what they raise.
#[derive(Default)]
pub struct Effects {
    bytes: Vec<u8>,
    /// Nobody reads the bytes, and there are none.
    unencoded: bool,
    /// Whether anything happened at all; whether something did that a WATCH is touched by.
    any: bool,
    touching: bool,
    events: Events,
    /// What was carried out to its end.
    completed: Completed,
    /// Steps taken for overdue expirations: see [`Effects::allow`].
    expired: usize,
    /// Ends that this command has brought about are carried out when it is done.
    holds_back: bool,
    /// Where rules find their zones; none is known without.
    zone_of: Option<ZoneOf>,
    /// One that was not known.
    missed_zone: Option<Vec<u8>>,
    /// Over all that went through here: never cleared.
    pub totals: Totals,
}

/// So many bytes, and whether anything; whether anything that a WATCH is touched by.
#[derive(Clone, Copy, Default)]
struct Completed {
    len: usize,
    any: bool,
    touching: bool,
}

/// A buffer that one large payload has grown is not kept.
const BUFFER_KEPT: usize = 64 * 1024;

impl Effects {
    /// Inlined, so that an effect that nobody needs is not even built.
    #[inline]
    pub fn push(&mut self, effect: &Effect<'_>) {
        self.touching = true;
        self.push_quietly(effect);
    }

    /// The same for one that takes memory of its own.
    pub(super) fn push_made<'e>(&mut self, make: impl FnOnce() -> Effect<'e>) {
        (self.any, self.touching) = (true, true);
        if !self.unencoded {
            self.append(&make());
        }
    }

    /// The same for what only frees memory of what has ended: no change to those who watch the key.
    #[inline]
    pub(super) fn push_quietly(&mut self, effect: &Effect<'_>) {
        self.any = true;
        if !self.unencoded {
            self.append(effect);
        }
    }

    /// An effect of about so many bytes comes: growing to it in steps would copy them several times.
    pub(super) fn expect_bytes(&mut self, len: usize) {
        if !self.unencoded {
            self.bytes.reserve(len);
        }
    }

    fn append(&mut self, effect: &Effect<'_>) {
        push(effect, &mut self.bytes, 0);
    }

    /// All that was pushed has been carried out.
    #[inline]
    pub(super) fn complete(&mut self) {
        self.completed = Completed {
            len: self.bytes.len(),
            any: self.any,
            touching: self.touching,
        };
    }

    /// Leaves out what was not carried out to its end: a broken invariant stopped it.
    pub fn drop_unfinished(&mut self) {
        let Completed { len, any, touching } = self.completed;
        self.bytes.truncate(len);
        (self.any, self.touching) = (any, touching);
    }

    /// How many steps of those wanted one command may yet take for what is overdue, whatever number of jobs
    /// it names.
    pub(super) fn allow(&self, wanted: usize) -> usize {
        wanted.min(OUT_OF_TURN.saturating_sub(self.expired))
    }

    pub(super) fn took(&mut self, steps: usize) {
        self.expired += steps;
    }

    /// What this command has ended is gone together: what that means to others comes when it is done.
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

    /// From here on rules find their zones so.
    pub fn know_zones(&mut self, zone_of: ZoneOf) {
        self.zone_of = Some(zone_of);
    }

    /// How rules find their zones.
    pub fn zone_of(&self) -> ZoneOf {
        self.zone_of.unwrap_or(|_| None)
    }

    /// Notes the name of an unknown zone that a rule has.
    pub(super) fn miss_zone(&mut self, name: Option<&[u8]>) {
        if let Some(name) = name {
            self.missed_zone = Some(name.to_vec());
        }
    }

    /// The last name of an unknown zone, once.
    pub fn take_missed_zone(&mut self) -> Option<Vec<u8>> {
        self.missed_zone.take()
    }

    /// Readable by [`super::codec::decode`], unless nobody was to read them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Those that follow need not be encoded: nobody will read them.
    pub fn leave_unencoded(&mut self) {
        self.unencoded = true;
    }

    /// Nobody will read the bytes.
    pub fn is_unencoded(&self) -> bool {
        self.unencoded
    }

    /// In the order in which they are sent.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.events.iter()
    }

    /// Whether any was raised.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// For the next command; totals stay.
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
