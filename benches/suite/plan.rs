//! How much of everything is measured.

/// The size that "a million jobs" means, below the 2^20 at which the server's own tables grow.
pub const MILLION: usize = 1_000_000;

#[derive(Clone, Copy)]
pub struct Plan {
    pub rounds: usize,
    /// Commands of a round at a million jobs, and one at a time.
    pub commands: usize,
    pub dues_a_round: usize,
    pub timeouts_a_round: usize,
    pub wakes_a_round: usize,
    /// Rounds of what takes seconds.
    pub slow_rounds: usize,
    pub snapshot_rounds: usize,
    pub stall_rounds: usize,
    pub also_leases: bool,
    pub idle_windows: usize,
    pub grow_to: usize,
    pub growth_runs: usize,
    pub queues: usize,
    /// PINGs of a round beside a steady load.
    pub ping_ticks: usize,
    pub sizes: &'static [usize],
}

pub const FULL: Plan = Plan {
    rounds: 7,
    commands: 40_000,
    dues_a_round: 500,
    timeouts_a_round: 50,
    wakes_a_round: 200,
    slow_rounds: 5,
    snapshot_rounds: 5,
    stall_rounds: 3,
    also_leases: true,
    idle_windows: 15,
    grow_to: 10_000_000,
    growth_runs: 3,
    queues: 100_000,
    ping_ticks: 40_000,
    sizes: &[10_000, 100_000, 1_000_000, 10_000_000],
};

pub const QUICK: Plan = Plan {
    rounds: 3,
    commands: 20_000,
    dues_a_round: 170,
    timeouts_a_round: 12,
    wakes_a_round: 60,
    slow_rounds: 2,
    snapshot_rounds: 1,
    stall_rounds: 2,
    also_leases: false,
    idle_windows: 3,
    grow_to: 1_000_000,
    growth_runs: 2,
    queues: 20_000,
    ping_ticks: 10_000,
    sizes: &[10_000, 100_000, 500_000],
};
