//! The last instant that can be represented.

/// The last instant, unix-ms: the year 2109.
pub const INSTANT_MAX: u64 = (1 << 42) - 1;
