//! How many workers are needed, and what groups hold back.

use dq_watch::model::row::Measured;
use dq_watch::model::stats::{Jobs, BLOCKED, DELAYED, READY, RESERVED};
use dq_watch::read::detail::Settings;
use dq_watch::read::shares::Share;
use dq_watch::text::{escape, units};

/// A group: its jobs, and what it may have of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenant {
    pub name: Vec<u8>,
    /// Jobs that are blocked, delayed or ready, and those of them that are ready.
    pub waiting: u64,
    pub ready: u64,
    pub reserved: u64,
    pub own: Share,
}

/// The groups that hold jobs back, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenants {
    pub all: Vec<Tenant>,
    /// Groups that have jobs and are limited by the queue's settings, but are not among them.
    pub unlisted: u64,
    /// How many of their jobs are ready was not counted, but follows from some of the ready jobs.
    pub is_about: bool,
    /// More groups have settings than were asked for.
    pub is_part: bool,
}

/// Jobs that are to be done until an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub ready: u64,
    pub reserved: u64,
    /// Jobs that become due until then.
    pub coming: u64,
    /// Of the ready and coming ones those of groups that are paused until then.
    pub held: u64,
    /// Of the ready and coming ones those that the limits let through.
    pub deliveries: u64,
    /// Jobs that may be reserved at a time.
    pub most: u64,
}

/// How many of a group's jobs are ready, where so many of some of the queue's ready ones are its own.
pub fn ready_of(waiting: u64, (its, some): (u64, u64), jobs: &Jobs) -> u64 {
    let ready = jobs[READY];
    let others = (ready + jobs[DELAYED] + jobs[BLOCKED]).saturating_sub(waiting);
    let share = (u128::from(ready) * u128::from(its)).checked_div(some.into());
    let share = share.unwrap_or_default() as u64;
    // Its last reading and that of the queue may not be of one moment.
    let least = ready.saturating_sub(others).min(waiting);
    share.clamp(least, waiting.min(ready).max(least))
}

impl Tenant {
    /// Jobs that it may have reserved at a time, if there is a limit.
    fn most(&self, settings: &Settings) -> Option<u64> {
        let most = self.own.max.unwrap_or(settings.groupmax);
        let fifo = settings.groupfifo.then_some(1);
        Some(most)
            .filter(|most| *most > 0)
            .into_iter()
            .chain(fifo)
            .min()
    }

    fn rate(&self, settings: &Settings) -> (u64, u64) {
        self.own.rate.unwrap_or(settings.grouprate)
    }

    pub fn later(&self) -> u64 {
        self.waiting.saturating_sub(self.ready)
    }

    /// Its own of so many jobs, which are spread as the jobs are of which it has those that are not known to be ready.
    fn share(&self, of: u64, all: u64) -> u64 {
        let later = u128::from(self.later());
        (u128::from(of) * later)
            .div_ceil(u128::from(all).max(1))
            .min(later) as u64
    }
}

impl Tenants {
    pub fn paused(&self) -> impl Iterator<Item = &Tenant> {
        self.all.iter().filter(|it| it.own.paused != 0)
    }

    /// How many jobs of each group are ready or `coming`.
    fn due(&self, jobs: &Jobs, coming: u64) -> impl Iterator<Item = (&Tenant, u64)> {
        // Ready jobs that some of these groups must have, though none of those looked at were theirs.
        let sum = |of: fn(&Tenant) -> u64| self.all.iter().map(of).sum::<u64>();
        let (later, delayed) = (sum(Tenant::later), jobs[DELAYED] + jobs[BLOCKED]);
        let of_others = (jobs[READY] + delayed).saturating_sub(sum(|it| it.waiting));
        let unseen = jobs[READY].saturating_sub(sum(|it| it.ready) + of_others);
        self.all.iter().map(move |it| {
            let due = it.ready + it.share(unseen, later) + it.share(coming, delayed);
            (it, due.min(it.waiting))
        })
    }

    /// What the queue's settings and those of its groups let through, of the jobs that are ready or `coming`.
    pub fn load(
        &self,
        settings: &Settings,
        jobs: &Jobs,
        coming: u64,
        now_ms: i64,
        ahead_ms: i64,
    ) -> Load {
        let open_ms = |paused: i64| open_ms(paused, now_ms, ahead_ms);
        let open = open_ms(settings.paused);
        let due_of_all = jobs[READY] + coming;
        let (mut due, mut reserved) = (0, 0);
        let (mut held, mut deliveries, mut most) = (0_u64, 0_u64, 0_u64);
        for (tenant, its) in self.due(jobs, coming) {
            let its_open = open_ms(tenant.own.paused).min(open);
            let let_through = its.min(windows(tenant.rate(settings), its_open));
            if open_ms(tenant.own.paused) == 0 {
                held += its;
            }
            deliveries += let_through;
            let at_work = let_through + tenant.reserved;
            most += at_work.min(
                tenant
                    .most(settings)
                    .unwrap_or(u64::MAX)
                    .max(tenant.reserved),
            );
            (due, reserved) = (due + its, reserved + tenant.reserved);
        }
        // Jobs without a group are limited by the queue alone. Where not all groups are listed they count as theirs.
        let other = Tenant::default();
        let mut others = due_of_all.saturating_sub(due);
        let mut at_work = others + jobs[RESERVED].saturating_sub(reserved);
        if self.unlisted > 0 {
            let each = windows(other.rate(settings), open);
            others = others.min(each.saturating_mul(self.unlisted));
            let each = other.most(settings).unwrap_or(u64::MAX);
            at_work = at_work.min(each.saturating_mul(self.unlisted));
        }
        let maxreserved = Some(settings.maxreserved).filter(|most| *most > 0);
        Load {
            ready: jobs[READY],
            reserved: jobs[RESERVED],
            coming,
            held: held.min(due_of_all),
            deliveries: (deliveries + others)
                .min(due_of_all)
                .min(windows(settings.rate, open)),
            most: (most + at_work).min(maxreserved.unwrap_or(u64::MAX)),
        }
    }

    /// What the group that takes longest allows all of them together, on an average: how many jobs may be reserved at a
    /// time, and how many are delivered in a millisecond, each with the name of the limit. Groups that are paused are left
    /// out. Of the others' jobs the ready ones count, or where none is ready all that wait.
    pub fn pace(&self, settings: &Settings, jobs: &Jobs) -> [Option<(f64, String)>; 2] {
        let is_ready = jobs[READY] > 0;
        let of = |it: &Tenant| if is_ready { it.ready } else { it.waiting };
        let of_queue = jobs[READY]
            + if is_ready {
                0
            } else {
                jobs[DELAYED] + jobs[BLOCKED]
            };
        let all = of_queue.saturating_sub(self.paused().map(of).sum()) as f64;
        let listed = self.all.iter().map(of).sum();
        let mean = of_queue.saturating_sub(listed) as f64 / self.unlisted.max(1) as f64;
        let other = Tenant::default();
        let open = self.all.iter().filter(|it| it.own.paused == 0);
        let each = open.map(|it| (it, of(it) as f64));
        let each = each.chain((self.unlisted > 0).then_some((&other, mean)));
        let each: Vec<(&Tenant, f64)> = each.filter(|(_, jobs)| *jobs > 0.0).collect();
        let slowest = |most: &dyn Fn(&Tenant) -> Option<(f64, String)>| {
            let limited = each.iter().filter_map(|(it, jobs)| {
                let (most, name) = most(it)?;
                Some((all * most / jobs, name))
            });
            limited.min_by(|(a, _), (b, _)| a.total_cmp(b))
        };
        let of_its = |it: &Tenant| format!(" of the group {}", escape::name(&it.name));
        let reserved = slowest(&|it| {
            let most = it.most(settings)?;
            let name = match it.own.max {
                _ if settings.groupfifo => "GROUPFIFO 1".to_owned(),
                Some(own) => format!("MAX {}{}", units::full(own), of_its(it)),
                None => format!("GROUPMAX {}", units::full(most)),
            };
            Some((most as f64, name))
        });
        let rate = slowest(&|it| {
            let (n, ms) = Some(it.rate(settings)).filter(|(n, _)| *n > 0)?;
            let said = format!("RATE {} in {} ms", units::full(n), units::full(ms));
            let name = match it.own.rate {
                Some(_) => format!("{said}{}", of_its(it)),
                None => format!("GROUP{said}"),
            };
            Some((n as f64 / ms.max(1) as f64, name))
        });
        [reserved, rate]
    }
}

/// For how long of that time no pause lasts.
fn open_ms(paused: i64, now_ms: i64, ahead_ms: i64) -> i64 {
    match paused {
        0 => ahead_ms,
        until => (now_ms + ahead_ms - until).clamp(0, ahead_ms) * i64::from(until > 0),
    }
}

/// Deliveries in the windows that end in that time, and in the one that begins with it.
fn windows((n, ms): (u64, u64), open_ms: i64) -> u64 {
    match open_ms {
        0 => 0,
        _ if n == 0 => u64::MAX,
        open_ms => n.saturating_mul(open_ms as u64 / ms.max(1) + 1),
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
    let wanted = ((load.deliveries + load.reserved) as f64 / each).ceil() as u64;
    wanted.min(load.most)
}

/// As many as that, if it is known what one does. Otherwise, if nobody is there, a first one by which it can be measured.
/// None: workers are there, and how many are wanted is not known.
pub fn wanted(load: Load, each: Option<f64>, attended: Option<bool>) -> Option<u64> {
    match (each, workers(load, 1.0), attended) {
        (Some(each), ..) => Some(workers(load, each)),
        (None, 0, _) => Some(0),
        (None, _, Some(false)) => Some(1),
        _ => None,
    }
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

    fn load(ready: u64, reserved: u64, coming: u64) -> Load {
        let jobs = [coming, ready, reserved, 0, 0, 0];
        Tenants::default().load(&Settings::default(), &jobs, coming, 0, 60_000)
    }

    #[test]
    fn workers_are_rounded_up() {
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

    #[test]
    fn where_nothing_was_measured_a_first_worker_is_wanted_if_there_is_work() {
        let load = |ready| load(ready, 0, 0);
        for attended in [None, Some(false), Some(true)] {
            assert_eq!(wanted(load(0), None, attended), Some(0), "{attended:?}");
            assert_eq!(wanted(load(30), Some(10.0), attended), Some(3));
        }
        assert_eq!(wanted(load(30), None, Some(false)), Some(1));
        assert_eq!(wanted(load(30), None, Some(true)), None);
        assert_eq!(wanted(load(30), None, None), None);
    }

    fn tenant(name: &str, ready: u64, reserved: u64, own: Share) -> Tenant {
        Tenant {
            name: name.into(),
            waiting: ready,
            ready,
            reserved,
            own,
        }
    }

    fn of(all: &[Tenant]) -> Tenants {
        Tenants {
            all: all.to_vec(),
            ..Tenants::default()
        }
    }

    const NONE: Share = Share {
        weight: None,
        max: None,
        rate: None,
        maxlen: None,
        paused: 0,
        rate_used: 0,
    };

    /// Workers for 1000 ready jobs and two reserved ones, of ten jobs a minute each.
    fn limited(tenants: &Tenants, set: impl Fn(&mut Settings)) -> u64 {
        let mut settings = Settings::default();
        set(&mut settings);
        let jobs = [0, 1000, 2, 0, 0, 0];
        workers(tenants.load(&settings, &jobs, 0, 1_000_000, 60_000), 10.0)
    }

    #[test]
    fn no_more_workers_than_the_queue_lets_work() {
        let wanted = |set: fn(&mut Settings)| limited(&Tenants::default(), set);
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
        let all = [
            tenant("a", 900, 2, NONE),
            tenant("b", 95, 0, NONE),
            tenant("c", 5, 0, NONE),
        ];
        let (all, few) = (of(&all), of(&all[1..]));
        assert_eq!(limited(&all, |_| ()), 101);
        assert_eq!(limited(&all, |it| it.groupmax = 2), 6);
        assert_eq!(limited(&all, |it| it.groupfifo = true), 4, "a has two");
        let least = |it: &mut Settings| (it.groupmax, it.maxreserved) = (2, 4);
        assert_eq!(limited(&all, least), 4);
        assert_eq!(
            limited(&all, |it| it.groupmax = 50),
            101,
            "as many as there are"
        );
        // 30 of a, 30 of b, and the five of c; two are reserved.
        let rate = |it: &mut Settings| it.grouprate = (10, 30_000);
        assert_eq!(limited(&all, rate), 7);
        let least = |it: &mut Settings| (it.grouprate, it.rate) = ((10, 30_000), (4, 30_000));
        assert_eq!(limited(&all, least), 2);
        let least = |it: &mut Settings| (it.grouprate, it.paused) = ((10, 30_000), -1);
        assert_eq!(limited(&all, least), 1);
        assert_eq!(limited(&few, |it| it.groupmax = 2), 101, "most have none");
        // Each of many groups that were not listed is limited as well.
        let many = Tenants { unlisted: 7, ..few };
        assert_eq!(limited(&many, |it| it.groupmax = 2), 2 + 2 + 14);
        // 30 of b, five of c, 30 of each of the seven, and two are reserved.
        assert_eq!(limited(&many, rate), 25);
    }

    #[test]
    fn no_workers_for_jobs_of_paused_groups_and_as_many_as_a_group_of_its_own_settings_lets_work() {
        let own = |paused: i64, max, rate| Share {
            paused,
            max,
            rate,
            ..NONE
        };
        // The 50 other jobs have no group.
        let with = |own| of(&[tenant("a", 950, 2, own)]);
        let wanted = |share| limited(&with(share), |_| ());
        assert_eq!(wanted(NONE), 101);
        assert_eq!(wanted(own(-1, None, None)), 6);
        assert_eq!(wanted(own(1_030_000, None, None)), 101, "it goes on");
        assert_eq!(wanted(own(2_000_000, None, None)), 6);
        assert_eq!(wanted(own(0, None, Some((10, 30_000)))), 9);
        assert_eq!(wanted(own(0, Some(3), None)), 53);
        let limits = |it: &mut Settings| (it.groupmax, it.grouprate) = (1, (1, 60_000));
        let free = with(own(0, Some(0), Some((0, 0))));
        assert_eq!(limited(&free, limits), 101, "none, instead of the queue's");
        let load = |paused| {
            let (settings, jobs) = (Settings::default(), [0, 1000, 2, 0, 0, 0]);
            let with = with(own(paused, None, None));
            with.load(&settings, &jobs, 0, 1_000_000, 60_000).held
        };
        assert_eq!((load(-1), load(0), load(1_030_000)), (950, 0, 0));
    }

    #[test]
    fn which_jobs_of_a_group_are_ready_follows_from_some_of_the_queues() {
        let jobs = |ready, delayed| [delayed, ready, 0, 0, 0, 0];
        assert_eq!(ready_of(400, (0, 0), &jobs(1000, 0)), 400, "all are");
        assert_eq!(ready_of(400, (10, 50), &jobs(1000, 9000)), 200);
        assert_eq!(ready_of(90, (50, 50), &jobs(1000, 9000)), 90, "no more");
        assert_eq!(ready_of(400, (0, 50), &jobs(1000, 100)), 300, "no fewer");
        assert_eq!(ready_of(1200, (50, 50), &jobs(1000, 9000)), 1000);
        assert_eq!(ready_of(9000, (0, 50), &jobs(1000, 9000)), 0);
        // Delayed jobs of others want no worker for the paused ones; those that become due are spread as all of them.
        let paused = Tenant {
            waiting: 3000,
            ..tenant("a", 1000, 0, Share { paused: -1, ..NONE })
        };
        let load = |coming| {
            let (settings, jobs) = (Settings::default(), jobs(1000, 8000));
            let load = of(std::slice::from_ref(&paused)).load(&settings, &jobs, coming, 0, 60_000);
            (load.held, load.deliveries)
        };
        assert_eq!(load(0), (1000, 0));
        assert_eq!(load(80), (1020, 60));
    }

    #[test]
    fn ready_jobs_of_groups_that_were_not_looked_at_are_theirs() {
        // Of 500 groups with a hundred ready jobs each, a look at 100 jobs has seen 90.
        let jobs = [500, 50_000, 0, 0, 0, 0];
        let group = |number: u64| Tenant {
            waiting: 101,
            ..tenant("a", if number < 90 { 101 } else { 0 }, 0, NONE)
        };
        let all: Vec<Tenant> = (0..500).map(group).collect();
        let settings = Settings {
            groupmax: 1,
            ..Settings::default()
        };
        let load = of(&all).load(&settings, &jobs, 0, 0, 60_000);
        assert_eq!(workers(load, 1.0), 500);
        assert_eq!(workers(load, 200.0), 250);
    }

    #[test]
    fn the_group_that_takes_longest_sets_the_pace() {
        let own = |max, rate| Share { max, rate, ..NONE };
        let all = [
            tenant("big", 90, 0, NONE),
            tenant("small", 10, 0, NONE),
            tenant("held", 900, 0, Share { paused: -1, ..NONE }),
        ];
        let jobs = [0, 1000, 0, 0, 0, 0];
        let pace = |all: &[Tenant], set: fn(&mut Settings)| {
            let mut settings = Settings::default();
            set(&mut settings);
            of(all).pace(&settings, &jobs)
        };
        let said =
            |pace: Option<(f64, String)>| pace.map(|(most, name)| ((most * 1e6).round(), name));
        assert_eq!(pace(&all, |_| ()), [None, None]);
        let [max, rate] = pace(&all, |it| (it.groupmax, it.grouprate) = (9, (9, 1000)));
        assert_eq!(said(max), Some((10e6, "GROUPMAX 9".to_owned())));
        let limit = "GROUPRATE 9 in 1,000 ms".to_owned();
        assert_eq!(said(rate), Some((10_000.0, limit)));
        // Where the small one has settings of its own, it may be the one that takes longest; the paused one takes no part.
        let mut all = all;
        all[1].own = own(Some(0), Some((1, 10_000)));
        let [max, rate] = pace(&all, |it| (it.groupmax, it.grouprate) = (9, (9, 1000)));
        assert_eq!(said(max), Some((10e6, "GROUPMAX 9".to_owned())));
        let limit = "RATE 1 in 10,000 ms of the group small".to_owned();
        assert_eq!(said(rate), Some((1000.0, limit)));
        all[1].own = own(Some(1), None);
        let [max, _] = pace(&all, |_| ());
        assert_eq!(
            said(max),
            Some((10e6, "MAX 1 of the group small".to_owned()))
        );
        let [max, _] = pace(&all, |it| it.groupfifo = true);
        assert_eq!(said(max).map(|it| it.1), Some("GROUPFIFO 1".to_owned()));
        let unlisted = Tenants {
            unlisted: 90,
            ..of(&[])
        };
        let settings = Settings {
            groupmax: 2,
            ..Settings::default()
        };
        let [max, _] = unlisted.pace(&settings, &jobs);
        assert_eq!(said(max), Some((180e6, "GROUPMAX 2".to_owned())));
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
