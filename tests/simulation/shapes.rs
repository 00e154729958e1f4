//! The kinds of runs.

use crate::generate::Shape;
use crate::model::LAST;

const START: u64 = 1_700_000_000_000;

pub const FEW_IDS: Shape = Shape {
    name: "few ids",
    ids: 6,
    priorities: 3,
    span_ms: 12,
    settings_every: 60,
    purge_every: 150,
    start_ms: START,
    backward_every: 0,
    modelled: true,
    compare_every: 1,
    rules: 0,
    groups: 0,
    adds: 28,
    steps_every: 0,
    afters: 0,
    costs_every: 0,
};

/// RATE and GROUPRATE change often, and windows are wide enough for several jobs.
pub const COSTS: Shape = Shape {
    name: "costs",
    ids: 12,
    groups: 3,
    adds: 40,
    span_ms: 20,
    settings_every: 12,
    purge_every: 400,
    costs_every: 2,
    ..FEW_IDS
};

pub const COSTS_OF_RECURRING: Shape = Shape {
    name: "costs of recurring jobs",
    rules: 40,
    span_ms: 1500,
    ..COSTS
};

pub const COSTS_WILD: Shape = Shape {
    name: "costs on a wild clock",
    groups: 2,
    costs_every: 2,
    settings_every: 12,
    ..WILD_CLOCK
};

pub const STEPS: Shape = Shape {
    name: "steps and signals",
    steps_every: 4,
    ..FEW_IDS
};

pub const RECURRING_STEPS: Shape = Shape {
    name: "steps of recurring jobs",
    steps_every: 4,
    settings_every: 30,
    ..RECURRING
};

pub const STEPS_WILD: Shape = Shape {
    name: "steps on a wild clock",
    groups: 2,
    rules: 10,
    steps_every: 4,
    ..WILD_CLOCK
};

pub const FLOWS: Shape = Shape {
    name: "flows",
    ids: 10,
    adds: 45,
    afters: 55,
    settings_every: 150,
    purge_every: 300,
    ..FEW_IDS
};

pub const FLOWS_OF_GROUPS: Shape = Shape {
    name: "flows of groups",
    groups: 3,
    rules: 3,
    ..FLOWS
};

pub const LARGE_FLOWS: Shape = Shape {
    name: "large flows",
    ids: 300,
    adds: 50,
    groups: 2,
    purge_every: 3000,
    settings_every: 800,
    compare_every: 8,
    span_ms: 60,
    ..FLOWS
};

pub const FLOWS_WILD: Shape = Shape {
    name: "flows on a wild clock",
    ids: 12,
    adds: 40,
    afters: 50,
    groups: 2,
    ..WILD_CLOCK
};

pub const GROUPS: Shape = Shape {
    name: "groups",
    ids: 16,
    groups: 3,
    settings_every: 40,
    adds: 36,
    ..FEW_IDS
};

/// Lines of groups are alternately long and short.
pub const LARGE_GROUPS: Shape = Shape {
    name: "large groups",
    ids: 200,
    span_ms: 60,
    groups: 4,
    settings_every: 300,
    purge_every: 2000,
    compare_every: 16,
    adds: 40,
    ..FEW_IDS
};

/// Almost every job has a group of its own.
pub const MANY_GROUPS: Shape = Shape {
    name: "many groups",
    ids: 150,
    groups: 300,
    settings_every: 100,
    purge_every: 1000,
    compare_every: 16,
    ..LARGE_GROUPS
};

pub const GROUPS_WILD: Shape = Shape {
    name: "groups on a wild clock",
    ids: 16,
    groups: 3,
    rules: 10,
    ..WILD_CLOCK
};

pub const RECURRING_GROUPS: Shape = Shape {
    name: "recurring jobs of groups",
    groups: 2,
    ..RECURRING
};

/// Times are chosen so that occurrences, leases, TTLs and GRACE meet within a few seconds.
pub const RECURRING: Shape = Shape {
    name: "recurring jobs",
    ids: 5,
    span_ms: 1500,
    rules: 60,
    ..FEW_IDS
};

/// What is overdue is expired by whichever operation comes first.
pub const RECURRING_WILD: Shape = Shape {
    name: "recurring jobs on a wild clock",
    rules: 50,
    span_ms: 1500,
    ..WILD_CLOCK
};

pub const TWO_IDS: Shape = Shape {
    name: "two ids",
    ids: 2,
    priorities: 1,
    span_ms: 5,
    settings_every: 200,
    ..FEW_IDS
};

/// Many jobs are acked, added again and kicked.
pub const DONE: Shape = Shape {
    name: "done jobs",
    ids: 8,
    settings_every: 12,
    groups: 2,
    steps_every: 8,
    ..FEW_IDS
};

pub const LIMITS: Shape = Shape {
    name: "settings and limits",
    ids: 10,
    settings_every: 10,
    ..FEW_IDS
};

pub const PRIORITIES: Shape = Shape {
    name: "few priorities",
    ids: 60,
    priorities: 5,
    purge_every: 1000,
    compare_every: 4,
    adds: 40,
    ..FEW_IDS
};

pub const ANY_PRIORITY: Shape = Shape {
    name: "any priority",
    ids: 300,
    priorities: u64::MAX,
    span_ms: 100,
    compare_every: 16,
    ..PRIORITIES
};

pub const STEPS_BACK: Shape = Shape {
    name: "clock that steps back",
    backward_every: 40,
    settings_every: 20,
    ..FEW_IDS
};

pub const WILD_CLOCK: Shape = Shape {
    name: "wild clock",
    backward_every: 10,
    modelled: false,
    settings_every: 20,
    ..FEW_IDS
};

pub const FIRST_INSTANTS: Shape = Shape {
    name: "first instants",
    start_ms: 0,
    ..STEPS_BACK
};

pub const LAST_INSTANTS: Shape = Shape {
    name: "last instants",
    start_ms: LAST - 300,
    ..STEPS_BACK
};

/// Ten thousand jobs and more at a time; times are chosen so that leases and TTLs end in bulk.
pub const MANY_JOBS: Shape = Shape {
    name: "many jobs",
    ids: 30_000,
    priorities: u64::MAX,
    span_ms: 20_000,
    settings_every: 300,
    purge_every: 20_000,
    compare_every: 1500,
    adds: 70,
    ..FEW_IDS
};

/// More leases and TTLs are overdue at once than one command expires.
pub const BACKLOG: Shape = Shape {
    name: "backlog",
    span_ms: 400,
    purge_every: 2000,
    compare_every: 400,
    modelled: false,
    ..MANY_JOBS
};
