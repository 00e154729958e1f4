//! What a million jobs that are not due cost a server that has nothing to do.

use std::time::Instant;

use super::bench::PIPELINE;
use super::crowd::Crowd;
use super::host::Host;
use super::jobs::dq;
use super::machine::{now_ms, sleep_ms};
use super::plan::{Plan, MILLION};
use super::report::{Goal, Part, Row};
use super::stats::least;

const WINDOW_MS: u64 = 2000;

pub fn measure(plan: Plan) -> Part {
    let mut hosts = [Host::start(), Host::start(), Host::start()];
    let base = now_ms();
    Crowd::of(&hosts[0]).run((0, MILLION), PIPELINE, |out, number| {
        dq::add_at(out, b"dq", number, far_due(base, number));
    });
    hosts.iter().for_each(Host::wait_until_idle);
    let windows = (0..plan.idle_windows).map(|_| window(&mut hosts));
    let windows: Vec<[f64; 3]> = windows.collect();
    let of = |host: usize| windows.iter().map(|used| used[host]).collect::<Vec<f64>>();
    let (ours, empty, empty_too) = (of(0), of(1), of(2));
    let apart = (least(&empty) - least(&empty_too)).abs();
    Part {
        rows: vec![Row::paired(
            "idle CPU with 1e6 far jobs",
            "empty server",
            "ms/s",
            Goal::More(0.1, apart),
            (&ours, &empty),
        )
        .least()],
        how: format!(
            "  Three idle servers side by side, one with {MILLION} jobs due between 10 minutes and 10 days from now, two empty: CPU time\n\
             \x20 of each main thread (INFO cpu) in windows of {} s, the least of {} (whatever else runs only adds). \"Not to be told apart\" is no\n\
             \x20 more than what the two empty ones differ by.\n",
            WINDOW_MS / 1000,
            plan.idle_windows,
        ),
        ..Part::default()
    }
}

/// Beyond the 36 minutes that a timer of some servers can reckon with, and before.
fn far_due(base: u64, number: usize) -> u64 {
    const MINUTE_MS: u64 = 60_000;
    const SPAN_MINUTES: u64 = 10 * 24 * 60;
    let scattered = super::jobs::scattered(number as u64);
    base + 10 * MINUTE_MS + scattered % (SPAN_MINUTES * MINUTE_MS)
}

/// CPU time of each, in ms per second.
fn window(hosts: &mut [Host; 3]) -> [f64; 3] {
    let mut used = || hosts.each_mut().map(Host::main_thread_us);
    let (start, before) = (Instant::now(), used());
    sleep_ms(WINDOW_MS);
    let (after, seconds) = (used(), start.elapsed().as_secs_f64());
    std::array::from_fn(|host| (after[host] - before[host]) / 1e3 / seconds)
}
