//! How many workers are needed.

use dq_watch::model::row::Measured;
use dq_watch::read::detail::{Group, Settings};

/// Jobs that are to be done until an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub ready: u64,
    pub reserved: u64,
    /// Jobs that become due until then.
    pub coming: u64,
    pub limits: Limits,
}

/// What a queue lets through until an instant. None: as much as there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub deliveries: Option<u64>,
    /// Jobs reserved at a time.
    pub reserved: Option<u64>,
}

impl Limits {
    /// By RATE, MAXRESERVED, a pause, and the limits of groups. `jobs`: all that may yet be delivered or are reserved;
    /// those of none of these groups are not limited by theirs.
    pub fn of(
        settings: &Settings,
        (groups, jobs): (&[Group], u64),
        now_ms: i64,
        ahead_ms: i64,
    ) -> Limits {
        let open_ms = match settings.paused {
            0 => ahead_ms,
            until => (now_ms + ahead_ms - until).clamp(0, ahead_ms) * i64::from(until > 0),
        };
        // Windows that end in that time, and the one that begins with it.
        let windows = |(n, ms): (u64, u64)| {
            let windows = open_ms as u64 / ms.max(1) + u64::from(open_ms > 0);
            (n > 0).then(|| n.saturating_mul(windows))
        };
        let of = |group: &Group| group.waiting + group.reserved;
        let others = jobs.saturating_sub(groups.iter().map(of).sum());
        let least = |each: u64, of: fn(&Group) -> u64| {
            let groups = groups.iter().map(|group| of(group).min(each));
            groups.sum::<u64>() + others
        };
        let max = Some(settings.groupmax).filter(|most| *most > 0);
        let pause = (open_ms == 0).then_some(0);
        let group_rate = windows(settings.grouprate);
        let group_rate = group_rate.map(|each| least(each, |group| group.waiting));
        let reserved = Some(settings.maxreserved).filter(|most| *most > 0);
        let group_max = max.map(|each| least(each, |group| group.waiting + group.reserved));
        Limits {
            deliveries: [pause, windows(settings.rate), group_rate]
                .into_iter()
                .flatten()
                .min(),
            reserved: [reserved, group_max].into_iter().flatten().min(),
        }
    }
}

/// Jobs that one worker does in that time: as configured, or as measured.
pub fn each(said: Option<u64>, measured: Option<Measured>, ahead_ms: i64) -> Option<f64> {
    let measured = || Some((ahead_ms as f64 / measured?.ms).max(1.0));
    let said = said.filter(|per| *per > 0).map(|per| per as f64);
    said.or_else(measured)
}

/// Rounds up: a worker that is not needed costs less than a job that waits.
pub fn workers(load: Load, each: f64) -> u64 {
    let delivered = (load.ready + load.coming).min(load.limits.deliveries.unwrap_or(u64::MAX));
    let wanted = ((delivered + load.reserved) as f64 / each).ceil() as u64;
    wanted.min(load.limits.reserved.unwrap_or(u64::MAX))
}

/// `60s`, `5m`, `1h`, or milliseconds.
pub fn span_ms(text: &str) -> Option<i64> {
    let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
    let of_unit = |(unit, ms): &(&str, i64)| {
        let number: i64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*ms)
    };
    let ms = units
        .iter()
        .find_map(of_unit)
        .or_else(|| text.parse().ok())?;
    (1..=86_400_000).contains(&ms).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_rounded_up() {
        let load = |ready, reserved, coming| Load {
            ready,
            reserved,
            coming,
            limits: Limits::default(),
        };
        assert_eq!(workers(load(0, 0, 0), 10.0), 0);
        assert_eq!(workers(load(1, 0, 0), 10.0), 1);
        assert_eq!(workers(load(100, 10, 91), 100.0), 3);
        let measured = Measured {
            workers: 4,
            ms: 500.0,
        };
        assert_eq!(each(None, Some(measured), 60_000), Some(120.0));
        assert_eq!(each(Some(7), Some(measured), 60_000), Some(7.0));
        assert_eq!(each(Some(0), None, 60_000), None);
    }

    /// Workers for 1000 ready jobs and two reserved ones, of ten jobs a minute each.
    fn wanted(groups: &[Group], set: impl Fn(&mut Settings)) -> u64 {
        let mut settings = Settings::default();
        set(&mut settings);
        let load = Load {
            ready: 1000,
            reserved: 2,
            coming: 0,
            limits: Limits::of(&settings, (groups, 1002), 1_000_000, 60_000),
        };
        workers(load, 10.0)
    }

    #[test]
    fn no_more_workers_than_the_queue_lets_work() {
        let wanted = |set: fn(&mut Settings)| wanted(&[], set);
        assert_eq!(wanted(|_| ()), 101);
        assert_eq!(wanted(|it| it.maxreserved = 3), 3);
        assert_eq!(wanted(|it| it.rate = (10, 30_000)), 4);
        assert_eq!(wanted(|it| it.paused = -1), 1);
        assert_eq!(wanted(|it| it.paused = 1_030_000), 101);
        let both = |it: &mut Settings| (it.paused, it.rate) = (1_030_000, (10, 30_000));
        assert_eq!(wanted(both), 3);
    }

    #[test]
    fn no_more_workers_than_groups_let_work() {
        let group = |name: &[u8], waiting, reserved| Group {
            name: name.to_vec(),
            waiting,
            reserved,
        };
        let all = [group(b"a", 900, 2), group(b"b", 95, 0), group(b"c", 5, 0)];
        assert_eq!(wanted(&all, |_| ()), 101);
        assert_eq!(wanted(&all, |it| it.groupmax = 2), 6);
        let least = |it: &mut Settings| (it.groupmax, it.maxreserved) = (2, 4);
        assert_eq!(wanted(&all, least), 4);
        assert_eq!(
            wanted(&all, |it| it.groupmax = 50),
            101,
            "as many as there are"
        );
        // 30 of a, 30 of b, and the five of c; two are reserved.
        let rate = |it: &mut Settings| it.grouprate = (10, 30_000);
        assert_eq!(wanted(&all, rate), 7);
        let least = |it: &mut Settings| (it.grouprate, it.rate) = ((10, 30_000), (4, 30_000));
        assert_eq!(wanted(&all, least), 2);
        let least = |it: &mut Settings| (it.grouprate, it.paused) = ((10, 30_000), -1);
        assert_eq!(wanted(&all, least), 1);
        assert_eq!(
            wanted(&all[1..], |it| it.groupmax = 2),
            101,
            "most have none"
        );
    }

    #[test]
    fn spans() {
        let all = ["60s", "5m", "1h", "1500", "1500ms"].map(span_ms);
        assert_eq!(
            all.map(Option::unwrap),
            [60_000, 300_000, 3_600_000, 1500, 1500]
        );
        for wrong in ["", "s", "0", "-1s", "2d", "25h", "9223372036854775807h"] {
            assert_eq!(span_ms(wrong), None, "{wrong}");
        }
    }
}
