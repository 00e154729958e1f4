//! What the queue knows of time zones: spans of time in which the zone's clock has one offset from UTC.

/// Seconds by which a clock is ahead of UTC, or behind it, at most: databases can express less than 26 hours.
pub const OFFSET_MAX_S: i64 = 26 * 3600;

/// From the instant `from` on, up to `to`, which belongs to the next span: unix seconds.
#[allow(missing_docs, reason = "the type's comment describes both ends")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: i64,
    pub to: i64,
    /// How far the clock is ahead of UTC.
    pub offset_s: i32,
}

impl Span {
    /// Whether the instant lies in the span.
    pub fn holds(&self, unix_s: i64) -> bool {
        (self.from..self.to).contains(&unix_s)
    }

    /// What the clock shows, in seconds since 1970 began on it.
    pub(super) fn shown(&self, unix_s: i64) -> i64 {
        unix_s + i64::from(self.offset_s)
    }
}

/// What a zone's clock shows, from the first instant to the last.
pub trait Zone {
    /// The span that holds the instant.
    fn span_at(&self, unix_s: i64) -> Span;
}

/// A clock with a constant offset from UTC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed {
    /// Seconds; negative where it is behind.
    pub offset_s: i32,
}

/// Coordinated universal time.
pub const UTC: Fixed = Fixed { offset_s: 0 };

impl Zone for Fixed {
    fn span_at(&self, _unix_s: i64) -> Span {
        Span {
            from: i64::MIN,
            to: i64::MAX,
            offset_s: self.offset_s,
        }
    }
}
