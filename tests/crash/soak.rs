//! `DQ_SOAK_SECONDS`: runs everything repeatedly with new seeds, and reports the results.

use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::cut::{self, Cuts};
use crate::cycles::{self, Setting};
use crate::failover::{self, Way};
use crate::report::{from_env, Report};

#[test]
fn soak() {
    let Some(seconds) = from_env("DQ_SOAK_SECONDS") else {
        return;
    };
    let start = Instant::now();
    let first = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut seed = first.map_or(1, |since| since.as_secs());
    let mut settings = Setting::ALL.map(|setting| (setting, Report::default()));
    let mut ways = Way::ALL.map(|way| (way, Report::default()));
    let mut cuts = Cuts::default();
    let mut told = start;
    let mut first_round = true;
    // Everything once, and then until the time is over.
    let goes_on = |first_round: bool| first_round || start.elapsed().as_secs() < seconds;
    while goes_on(first_round) {
        for (setting, report) in &mut settings {
            const CYCLES: u64 = 10;
            if goes_on(first_round) {
                report.add(CYCLES, &cycles::run(*setting, seed, CYCLES));
            }
        }
        for (way, report) in &mut ways {
            const CYCLES: u64 = 4;
            if goes_on(first_round) {
                report.add(CYCLES, &failover::run(*way, seed, CYCLES));
            }
        }
        if goes_on(first_round) {
            cuts.add(&cut::run(seed, 100));
        }
        seed += 1;
        first_round = false;
        if told.elapsed() > Duration::from_secs(120) {
            told = Instant::now();
            tell(&settings, &ways, cuts, start.elapsed());
        }
    }
    tell(&settings, &ways, cuts, start.elapsed());
}

type Reports<'a, T> = &'a [(T, Report)];

/// Written to the stream itself: the test harness shows printed text only when a test fails.
fn tell(settings: Reports<'_, Setting>, ways: Reports<'_, Way>, cuts: Cuts, time: Duration) {
    let mut text = format!("soak: {} s, no faults; AOF: {cuts:?}\n", time.as_secs());
    let mut line = |name: String, report: &Report| {
        text.push_str(&format!("  {name}: {report}\n"));
    };
    settings
        .iter()
        .for_each(|(it, report)| line(format!("{it:?}"), report));
    ways.iter()
        .for_each(|(it, report)| line(format!("{it:?}"), report));
    let _ = write!(std::io::stderr(), "{text}");
}
