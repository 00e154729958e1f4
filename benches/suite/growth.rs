//! The worst single add while a queue grows: no table that is copied, no memory that is moved.

use super::host::Host;
use super::jobs::dq;
use super::plan::Plan;
use super::report::{Curve, Goal, Part, Row};
use super::stats::most;

/// Adds sent together, and so measured together: none of them is worse than all.
const TOGETHER: usize = 64;
/// Points of the curve.
const POINTS: usize = 500;

pub fn measure(plan: Plan) -> Part {
    let mut host = Host::start();
    let first = grow(&mut host, plan.grow_to);
    let (mut least, mut worst) = (first.clone(), vec![most(&first)]);
    for _ in 1..plan.growth_runs {
        let run = grow(&mut host, plan.grow_to);
        worst.push(most(&run));
        least.iter_mut().zip(run).for_each(|(a, b)| *a = a.min(b));
    }
    let jobs = format!("{:.0e} jobs", plan.grow_to as f64);
    let what = format!("worst DQ.ADD while growing to {jobs}");
    Part {
        rows: vec![
            Row::alone(what, "ms", Goal::Below(1.0, 0.3), &[most(&least)]),
            Row::alone("the worst of each run, noise included", "ms", Goal::Told, &worst),
        ],
        curves: vec![curve(&least)],
        how: format!(
            "  One client grows a queue, {TOGETHER} adds (far) at a time, each such batch measured by the CPU time of the server from its\n\
             \x20 sending to its last reply: a bound for the worst add in it. {} runs, the very same on the same server, between them\n\
             \x20 FLUSHALL and MEMORY PURGE: what the queue itself does comes at the same add each time, what else the machine does\n\
             \x20 does not. So of each batch the least of all runs counts, and of these the worst.\n",
            plan.growth_runs
        ),
    }
}

/// ms of each batch.
fn grow(host: &mut Host, jobs: usize) -> Vec<f64> {
    host.flush();
    host.call(&[b"MEMORY", b"PURGE"]);
    let (mut client, clock) = (host.connect(), host.clock());
    let mut bytes = Vec::new();
    let mut measure = |start| {
        bytes.clear();
        (start..start + TOGETHER).for_each(|number| dq::add_far(&mut bytes, number));
        let used = clock.us_during(|| {
            client.send(&bytes);
            client.receive_done(TOGETHER);
        });
        used / 1e3
    };
    (0..jobs).step_by(TOGETHER).map(&mut measure).collect()
}

fn curve(batches: &[f64]) -> Curve {
    let together = batches.len().div_ceil(POINTS);
    let points = batches.chunks(together).enumerate();
    let jobs = |point: usize| (point * together * TOGETHER) as f64;
    Curve {
        name: format!("worst batch of {TOGETHER} adds, ms by jobs"),
        points: points
            .map(|(point, batches)| (jobs(point), most(batches)))
            .collect(),
    }
}
