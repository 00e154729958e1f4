//! Time as the queue sees it: always an argument, in microseconds, and rounded so that nothing is
//! early. Also when a job is due, as a client says it, and the ids and tokens that are drawn from it.

use super::error::QueueError;
use super::job::{INSTANT_MAX, TOKEN_MAX, TOKEN_MS_SHIFT, TOKEN_US_SHIFT};

/// One reading of the server's clock, in microseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    us: u64,
}

impl Now {
    /// Microseconds since 1970; not beyond the last instant.
    pub fn from_us(us: u64) -> Self {
        Now {
            us: us.min(INSTANT_MAX * 1000),
        }
    }

    /// Milliseconds since 1970.
    pub fn from_ms(ms: u64) -> Self {
        Self::from_us(ms.saturating_mul(1000))
    }

    /// Microseconds since 1970.
    pub fn us(self) -> u64 {
        self.us
    }

    /// The millisecond that has come: what is due at it is due.
    pub fn ms(self) -> u64 {
        self.us / 1000
    }

    /// The first token that is drawn at this microsecond.
    pub fn first_token(self) -> u64 {
        self.ms() << TOKEN_MS_SHIFT | (self.us % 1000) << TOKEN_US_SHIFT
    }

    /// The instant `ms` from now. A wait counts from the next full millisecond, so that it is never
    /// shorter than asked; a wait of 0 is this millisecond. `None` beyond the last instant.
    pub fn after(self, ms: u64) -> Option<u64> {
        if ms == 0 {
            return Some(self.ms());
        }
        let instant = self.us.div_ceil(1000).checked_add(ms)?;
        (instant <= INSTANT_MAX).then_some(instant)
    }

    /// As [`Now::after`], stopping at the last instant.
    pub fn after_capped(self, ms: u64) -> u64 {
        self.after(ms).unwrap_or(INSTANT_MAX)
    }
}

/// When a job is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// That many ms from now.
    Delay(u64),
    /// That instant.
    At(u64),
}

impl When {
    /// An error if it lies beyond the last instant.
    pub fn instant(self, now: Now) -> Result<u64, QueueError> {
        match self {
            When::Delay(ms) => now.after(ms).ok_or(QueueError::OutOfRange),
            When::At(instant) if instant <= INSTANT_MAX => Ok(instant),
            When::At(_) => Err(QueueError::OutOfRange),
        }
    }
}

/// Draws ids `<unix-ms>-<seq>` and tokens that grow over the whole server, also where the clock
/// steps back: a queue that is deleted and made again must not repeat a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mint {
    id: (u64, u64),
    token: u64,
}

impl Mint {
    /// Before anything was drawn.
    pub const fn new() -> Self {
        Mint {
            id: (0, 0),
            token: 0,
        }
    }

    /// An id larger than all before it, as (ms, number) pairs are ordered.
    pub fn next_id(&mut self, now: Now) -> Vec<u8> {
        let (ms, seq) = self.id;
        self.id = if now.ms() > ms {
            (now.ms(), 0)
        } else {
            (ms, seq + 1)
        };
        format!("{}-{}", self.id.0, self.id.1).into_bytes()
    }

    /// The next token, larger than `floor`, which is the largest that the queue has seen. At
    /// [`TOKEN_MAX`], which only a forged file reaches, tokens stop growing.
    pub fn next_token(&mut self, now: Now, floor: u64) -> u64 {
        self.token = now.first_token().max(self.token + 1);
        self.raise_token(floor.saturating_add(1));
        self.token.max(floor.saturating_add(1)).min(TOKEN_MAX)
    }

    /// The last token drawn, or raised to.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Makes later tokens larger than `floor`, up to three quarters of [`TOKEN_MAX`]: what lies beyond was not
    /// drawn from a clock, and must not affect the tokens of other queues.
    pub fn raise_token(&mut self, floor: u64) {
        self.token = self.token.max(floor.min(TOKEN_MAX / 4 * 3));
    }

    /// The last id drawn, as (unix-ms, seq).
    pub fn id(&self) -> (u64, u64) {
        self.id
    }

    /// Makes later ids larger than this one, unless it lies beyond the last instant: then it was not
    /// drawn from a clock.
    pub fn raise_id(&mut self, (ms, seq): (u64, u64)) {
        if ms <= INSTANT_MAX && seq < u64::MAX / 2 {
            self.id = self.id.max((ms, seq));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_never_shorter_than_asked() {
        let now = Now::from_us(5_000_001);
        assert_eq!(now.ms(), 5000);
        assert_eq!(now.after(0), Some(5000));
        assert_eq!(now.after(1), Some(5002));
        assert_eq!(Now::from_ms(5000).after(1), Some(5001));
        assert_eq!(now.after(INSTANT_MAX), None);
        assert_eq!(now.after(u64::MAX), None);
        assert_eq!(now.after_capped(u64::MAX), INSTANT_MAX);
    }

    #[test]
    fn ids_and_tokens_grow_though_the_clock_steps_back() {
        let mut mint = Mint::default();
        let mut last = (0, 0);
        let mut token = 0;
        for ms in [5000, 5000, 4000, 5001, 5001, 1, 1] {
            mint.next_id(Now::from_ms(ms));
            assert!(mint.id() > last);
            last = mint.id();
            let next = mint.next_token(Now::from_ms(ms), 0);
            assert!(next > token && next >= ms << 20);
            token = next;
        }
        assert!(mint.next_token(Now::from_ms(1), token + 100) > token + 100);
        // A queue whose tokens are at their end does not affect those of others.
        assert_eq!(mint.next_token(Now::from_ms(1), TOKEN_MAX), TOKEN_MAX);
        let after = mint.next_token(Now::from_ms(1), 0);
        assert!(after < TOKEN_MAX && mint.next_token(Now::from_ms(1), 0) == after + 1);
    }
}
