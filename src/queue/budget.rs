//! How much work one command does at most, mostly for overdue expirations.

/// Overdue expirations that a command carries out first: enough for those of a millisecond, and few enough to keep
/// it short. The timer does the rest.
pub const EXPIRE_BUDGET: usize = 1000;
/// Overdue expirations that a command carries out for each id that it names, as it may name many.
pub const EXPIRE_BUDGET_OF_ID: usize = 100;
/// So many bytes count a step more where they are freed: an allocator takes about as long for them, a quarter of a millisecond
/// for a megabyte, as a lease's end takes.
pub const STEP_BYTES: usize = 4096;

/// What the freeing of so many bytes counts, beside what they belong to.
pub const fn steps_of_bytes(bytes: u64) -> usize {
    bytes as usize / STEP_BYTES
}

/// What the end of an occurrence counts, in ends of leases: the next instant must be computed, and with JITTER it is
/// anywhere in the schedule.
pub const STEPS_OF_OCCURRENCE: usize = 4;
/// What the end of a group's pause counts, in ends of leases: the group is anywhere in the order of turns.
pub const STEPS_OF_RESUME: usize = 2;
/// Overdue expirations that a command carries out, at most, of jobs that it does nothing else with: three to five
/// milliseconds' worth, and only after a standstill.
pub const OUT_OF_TURN: usize = 10_000;
/// What it takes of [`OUT_OF_TURN`] to pass over a group whose window has no room for the weight of its first job.
pub const STEPS_OF_GROUP: usize = OUT_OF_TURN / 1000;
/// A command delivers or shows no more jobs after this many bytes of payloads, whatever COUNT says: copying them into the
/// reply takes a few milliseconds.
pub const DELIVERED_BYTES: usize = 16 * 1024 * 1024;
/// Work that a command does, at most, for jobs that were after those that it ended, counted in ends of leases. The
/// timer does the rest.
pub const FOLLOWED: usize = 512;
