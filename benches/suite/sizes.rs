//! What an add costs in queues of all sizes, for rising due times and for random ones.

use super::bench::{Bench, PIPELINE};
use super::jobs::{dq, far_delay_ms, zset, zset_and_hash::remove_data_of, Scripts};
use super::machine::now_ms;
use super::plan::Plan;
use super::report::{Curve, Goal, Part, Row};
use super::stats::median;
use super::wire::encode;

/// Adds measured at one size; few enough for the smallest queue to stay about as small.
const ADDS: usize = 2000;

/// Appends a command that deletes the jobs of these numbers (from, end).
type Delete = fn(&mut Vec<u8>, &[u8], (usize, usize));

#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    add: fn(&Scripts, &mut Vec<u8>, &[u8], usize, u64),
    /// All of them, one after the other.
    deletes: &'static [Delete],
    is_rising: bool,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "DQ.ADD, rising due times",
        add: |_, out, key, number, due| dq::add_at(out, key, number, due),
        deletes: &[dq::delete],
        is_rising: true,
    },
    Kind {
        name: "DQ.ADD, random due times",
        add: |_, out, key, number, due| dq::add_at(out, key, number, due),
        deletes: &[dq::delete],
        is_rising: false,
    },
    Kind {
        name: "ZADD, random scores",
        add: |_, out, key, number, due| zset::add_at(out, key, number, due),
        deletes: &[zset::remove],
        is_rising: false,
    },
    Kind {
        name: "script add, random scores",
        add: Scripts::add_to,
        deletes: &[zset::remove, remove_data_of],
        is_rising: false,
    },
];

impl Kind {
    fn key(self, size: usize) -> Vec<u8> {
        format!("{} {size}", self.name).into_bytes()
    }

    fn due(self, base: u64, number: usize) -> u64 {
        const DAY_MS: u64 = 86_400_000;
        match self.is_rising {
            true => base + DAY_MS + number as u64,
            false => base + far_delay_ms(number),
        }
    }
}

pub fn measure(plan: Plan) -> Part {
    let bench = &mut Bench::start(plan);
    let base = now_ms();
    let spots: Vec<(Kind, usize)> = KINDS
        .into_iter()
        .flat_map(|kind| plan.sizes.iter().map(move |&size| (kind, size)))
        .collect();
    for &(kind, size) in &spots {
        let key = kind.key(size);
        bench.run_scripts((0, size), |scripts, out, n| {
            (kind.add)(scripts, out, &key, n, kind.due(base, n))
        });
    }
    bench.host.wait_until_idle();
    let mut costs = vec![Vec::new(); spots.len()];
    for _ in 0..10 * plan.rounds {
        for (spot, &(kind, size)) in spots.iter().enumerate() {
            costs[spot].push(add_more(bench, kind, size, base));
        }
    }
    let forecasts = forecasts(bench, base);
    let mut part = report(plan, &spots, &costs);
    let what = format!(
        "DQ.FORECAST, 120 parts of an hour, {:.0e} jobs",
        largest(plan) as f64
    );
    let goal = Goal::Below(1000.0, 300.0);
    part.rows.push(Row::alone(what, "us", goal, &forecasts));
    part
}

fn largest(plan: Plan) -> usize {
    plan.sizes[plan.sizes.len() - 1]
}

/// us of the server for each look at an hour of the largest queue with random due times.
fn forecasts(bench: &mut Bench, base: u64) -> Vec<f64> {
    const LOOKS: usize = 100;
    const HOUR_MS: u64 = 3_600_000;
    let rounds = bench.plan.rounds;
    let key = KINDS[1].key(largest(bench.plan));
    let [from, to] = [2, 3].map(|hour| (base + hour * HOUR_MS).to_string());
    let mut look = || {
        bench.cost(LOOKS, 1, |_, out, _| {
            let (from, to) = (from.as_bytes(), to.as_bytes());
            let line: &[&[u8]] = &[
                b"DQ.FORECAST",
                &key,
                b"FROM",
                from,
                b"TO",
                to,
                b"BUCKETS",
                b"120",
            ];
            encode(out, line);
        })
    };
    look();
    (0..rounds).map(|_| look()).collect()
}

/// us per add; afterwards all is as before.
fn add_more(bench: &mut Bench, kind: Kind, size: usize, base: u64) -> f64 {
    const AT_ONCE: usize = 100;
    let (key, clock) = (kind.key(size), bench.host.clock());
    let used = clock.us_during(|| {
        bench.run_scripts((size, size + ADDS), |scripts, out, n| {
            (kind.add)(scripts, out, &key, n, kind.due(base, n))
        });
    });
    for delete in kind.deletes {
        bench.run((0, ADDS / AT_ONCE), |out, batch| {
            let first = size + batch * AT_ONCE;
            delete(out, &key, (first, first + AT_ONCE));
        });
    }
    used / ADDS as f64
}

fn report(plan: Plan, spots: &[(Kind, usize)], costs: &[Vec<f64>]) -> Part {
    let sizes = plan.sizes.len();
    let (least, most) = (plan.sizes[0] as f64, plan.sizes[sizes - 1] as f64);
    let row = |kind: usize, goal| {
        let (small, large) = (&costs[kind * sizes], &costs[kind * sizes + sizes - 1]);
        let what = format!("{}, {most:.0e} jobs", KINDS[kind].name);
        let other = format!("{least:.0e} jobs");
        Row::paired(what, other, "us", goal, (large, small))
    };
    let curve = |kind: usize| Curve {
        name: format!("us per add by jobs: {}", KINDS[kind].name),
        points: (kind * sizes..(kind + 1) * sizes)
            .map(|spot| (spots[spot].1 as f64, median(&costs[spot])))
            .collect(),
    };
    Part {
        rows: vec![
            row(0, Goal::AtMost(1.5, 1.3)),
            row(1, Goal::AtMost(2.5, 2.0)),
            row(2, Goal::Told),
            row(3, Goal::Told),
        ],
        curves: (0..KINDS.len()).map(curve).collect(),
        how: format!(
            "  Queues of {:?} jobs side by side in one server, and to compare sorted sets (the row\n\
             \x20 that says ZADD), and sorted sets with a hash (script). In turn each gets {ADDS} more, pipeline {PIPELINE}, 50 clients: CPU\n\
             \x20 time of the server (its process's clock) / {ADDS}; then, not measured, they are deleted again. Median of {} rounds. All sizes: see the JSON.\n",
            plan.sizes,
            10 * plan.rounds
        ),
    }
}
