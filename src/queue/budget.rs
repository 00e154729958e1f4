//! How many overdue expirations one command processes at most.

/// How many of them one command carries out first: enough for what falls due in a millisecond, little
/// enough not to be felt. More is left to the timer.
pub const EXPIRE_BUDGET: usize = 1000;
/// The same for each id of a command, which may name many.
pub const EXPIRE_BUDGET_OF_ID: usize = 100;
/// The end of a recurring job's occurrence counts as so many ends of leases: the next instant is looked for, and
/// with JITTER it stands anywhere in the schedule.
pub const STEPS_OF_OCCURRENCE: usize = 4;
/// What a command carries out at most for jobs that it does nothing else with: three to five milliseconds'
/// worth, and only after a standstill.
pub const OUT_OF_TURN: usize = 10_000;
/// A group whose window has no room for what its first job costs counts as so many, where others are looked for.
pub const STEPS_OF_GROUP: usize = OUT_OF_TURN / 1000;
/// Once so many bytes of payloads are delivered, no more jobs are, whatever COUNT says: copying them into the
/// reply takes a few milliseconds.
pub const DELIVERED_BYTES: usize = 16 * 1024 * 1024;
/// What ends mean to jobs that are after them, as far as the command carries it out that brought them about: more is
/// left to the timer.
pub const FOLLOWED: usize = 512;
