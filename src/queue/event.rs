//! Keyspace events, and which of them a command raised.

/// Keyspace events, by the order in which one command raises them.
#[allow(
    missing_docs,
    reason = "called as on the wire: dq.add, dq.timeout, ..."
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Add,
    Timeout,
    Nack,
    Ready,
    Pop,
    Ack,
    Dead,
    /// `Add` and `Ready` of a successor come after the end of the job whose place it takes.
    SuccessorAdd,
    SuccessorReady,
    Del,
    Missed,
    Expired,
}

impl Event {
    /// In the order in which they are sent.
    pub const ALL: [Event; 12] = [
        Event::Add,
        Event::Timeout,
        Event::Nack,
        Event::Ready,
        Event::Pop,
        Event::Ack,
        Event::Dead,
        Event::SuccessorAdd,
        Event::SuccessorReady,
        Event::Del,
        Event::Missed,
        Event::Expired,
    ];

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Which events were raised: each once, however many jobs raised it.
#[derive(Clone, Copy, Default)]
pub struct Events(u16);

impl Events {
    /// An event is sent once, however often it is raised.
    pub fn raise(&mut self, event: Event) {
        self.0 |= event.bit();
    }

    /// None was raised.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The events to send, in order. Those of a successor replace the same events of other jobs.
    pub fn iter(self) -> impl Iterator<Item = Event> {
        let mut left = self.to_send().0;
        // Runs with each command, so it goes through the events that were raised, not through all that exist.
        std::iter::from_fn(move || {
            let event = Event::ALL.get(left.trailing_zeros() as usize);
            left &= left.wrapping_sub(1);
            event.copied()
        })
    }

    fn to_send(self) -> Events {
        let mut events = self;
        for (event, instead) in [
            (Event::Add, Event::SuccessorAdd),
            (Event::Ready, Event::SuccessorReady),
        ] {
            if self.has(instead) {
                events.0 &= !event.bit();
            }
        }
        events
    }

    fn has(self, event: Event) -> bool {
        self.0 & event.bit() != 0
    }
}
