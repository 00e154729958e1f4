//! The next runs of a rule.

use redis_dq::queue::recurring::cron::Cron;
use redis_dq::zones::Zones;

const EVERY_MIN: u64 = 1000;

pub fn every_runs(ms: &str, now_ms: u64, count: usize) -> Result<Vec<u64>, String> {
    let ms: u64 = ms.parse().map_err(|_| "not a time".to_owned())?;
    if ms < EVERY_MIN {
        return Err("at least a second".to_owned());
    }
    let runs = (1..=count as u64).map(|run| ms.checked_mul(run)?.checked_add(now_ms));
    runs.collect::<Option<_>>()
        .ok_or_else(|| "too long".to_owned())
}

pub fn cron_runs(
    expression: &str,
    zone: &str,
    now_ms: u64,
    count: usize,
) -> Result<Vec<u64>, String> {
    let cron = Cron::parse(expression.as_bytes()).map_err(|error| error.text().to_owned())?;
    let name = if zone.is_empty() { "UTC" } else { zone };
    let zone = Zones::of_system()
        .get(name)
        .or_else(|| Zones::built_in().get(name));
    let zone = zone.ok_or_else(|| format!("no time zone {name}"))?;
    let mut runs = Vec::with_capacity(count);
    let mut last = now_ms;
    while runs.len() < count {
        match cron.next_after(last, &*zone) {
            Some(next) => last = next,
            None => break,
        }
        runs.push(last);
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_follow_the_zones_clock() {
        // 2026-11-24 00:00 UTC, a Tuesday.
        let now = 1_795_478_400_000;
        let hour = 3_600_000;
        let runs = cron_runs("0 9 * * MON-FRI", "Europe/Berlin", now, 2).unwrap();
        assert_eq!(runs, [now + 8 * hour, now + 32 * hour]);
        assert_eq!(
            every_runs("60000", now, 2).unwrap(),
            [now + 60_000, now + 120_000]
        );
        assert!(cron_runs("61 * * * *", "", now, 1).is_err());
        assert!(cron_runs("* * * * *", "Nowhere/Else", now, 1)
            .unwrap_err()
            .contains("Nowhere"));
        for wrong in ["", "x", "999", "18446744073709551615"] {
            assert!(every_runs(wrong, now, 2).is_err(), "{wrong}");
        }
    }
}
