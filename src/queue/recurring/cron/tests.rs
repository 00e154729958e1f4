use super::*;
use crate::queue::recurring::zone::{Span, UTC};
use std::cell::Cell;

thread_local! {
    /// Months that were looked at.
    pub(super) static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Offsets from instants on, the first from the beginning of time.
struct Clock(Vec<(i64, i32)>);

impl Zone for Clock {
    fn span_at(&self, unix_s: i64) -> Span {
        let next = self.0.partition_point(|&(from, _)| from <= unix_s);
        let (from, offset_s) = self.0[next - 1];
        let to = self.0.get(next).map_or(i64::MAX, |&(to, _)| to);
        Span { from, to, offset_s }
    }
}

fn cron(text: &str) -> Cron {
    Cron::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    let Err(error) = Cron::parse(text.as_bytes()) else {
        panic!("{text:?} is taken");
    };
    error.text().into()
}

/// Seconds of a date and a time in UTC.
fn utc(year: i64, month: u32, day: i64, hour: i64, minute: i64) -> i64 {
    (Month::of(year, month).first + day - 1) * DAY_S + hour * 3600 + minute * 60
}

/// What comes after that second, in seconds.
fn after(text: &str, from: i64, zone: &dyn Zone, count: usize) -> Vec<i64> {
    let cron = cron(text);
    let mut at = from as u64 * 1000;
    let instants = std::iter::from_fn(|| {
        at = cron.next_after(at, zone)?;
        Some((at / 1000) as i64)
    });
    instants.take(count).collect()
}

/// The days of 2024 on which it comes.
fn days(text: &str) -> Vec<(u32, u32)> {
    let from = utc(2024, 1, 1, 0, 0) - 1;
    let to = utc(2025, 1, 1, 0, 0);
    let all = after(text, from, &UTC, 400);
    let days = all.into_iter().take_while(|&at| at < to).map(|at| {
        assert_eq!(at % DAY_S, 0);
        let (_, month, day) = date_of(at / DAY_S);
        (month, day)
    });
    days.collect()
}

#[test]
fn days_are_those_that_the_contract_names() {
    let firsts = |n: u32| (1..=12).map(move |month| (month, n)).collect::<Vec<_>>();
    assert_eq!(days("0 0 1 * *"), firsts(1));
    assert_eq!(days("@monthly"), firsts(1));
    assert_eq!(days("@YEARLY"), [(1, 1)]);
    assert_eq!(days("0 0 29 feb *"), [(2, 29)]);
    let ends = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let last: Vec<_> = (1..).zip(ends).collect();
    assert_eq!(days("0 0 l * *"), last);
    // Of 2024, 31 March, 30 June, 31 August were weekends; the last of the others are theirs.
    assert_eq!(
        days("0 0 lw 3,6,8,11 *"),
        [(3, 29), (6, 28), (8, 30), (11, 29)]
    );
    // 1 June was a Saturday, 1 September a Sunday, 30 June a Sunday, 31 August a Saturday.
    assert_eq!(days("0 0 1w 6,9 *"), [(6, 3), (9, 2)]);
    assert_eq!(days("0 0 30W,31W 6,8 *"), [(6, 28), (8, 30)]);
    assert_eq!(days("0 0 15W 6,9,10 *"), [(6, 14), (9, 16), (10, 15)]);
    assert_eq!(days("0 0 31W 2,4 *"), []);
    assert_eq!(days("0 0 * 2 FRI#2"), [(2, 9)]);
    assert_eq!(days("0 0 * 2 thu#5"), [(2, 29)]);
    assert_eq!(days("0 0 * 3 FRI#5,5l"), [(3, 29)]);
    assert_eq!(days("0 0 * 3 7L"), [(3, 31)]);
    assert_eq!(days("0 0 * 2 FRI-SUN/2"), days("0 0 * 2 5,7"));
    assert_eq!(days("0 0 * 2 0"), days("0 0 * feb Sun"));
    assert_eq!(days("0 0 * 2 SUN-MON"), days("0 0 * 2 0,1"));
    assert_eq!(days("0 0 * 2 SUN-SUN"), days("0 0 * 2 0"));
    assert_eq!(days("0 0 * 1 */7"), days("0 0 * 1 SUN"));
    assert_eq!(days("0 0 */100 * *"), firsts(1));
}

#[test]
fn a_day_field_that_begins_with_a_star_restricts_nothing() {
    let either = days("0 0 13 9 FRI");
    assert_eq!(either, [(9, 6), (9, 13), (9, 20), (9, 27)]);
    assert_eq!(
        days("0 0 13 12 FRI"),
        [(12, 6), (12, 13), (12, 20), (12, 27)]
    );
    // Both must match then, as in Vixie cron.
    assert_eq!(days("0 0 */13 9 FRI"), [(9, 27)]);
    assert_eq!(days("0 0 13 9 */5"), [(9, 13)]);
    assert_eq!(days("0 0 1-31 9 FRI").len(), 30);
}

#[test]
fn times_and_blanks() {
    let from = utc(2024, 2, 28, 23, 58);
    let at = |day: i64, hour, minute| utc(2024, 2, 28 + day, hour, minute);
    assert_eq!(after("\t 59 23  * *\t* ", from, &UTC, 1), [at(0, 23, 59)]);
    let seconds = after("*/20 59 23 * * *", from, &UTC, 4);
    let minute = at(0, 23, 59);
    assert_eq!(seconds, [minute, minute + 20, minute + 40, minute + DAY_S]);
    assert_eq!(after("@hourly", from, &UTC, 2), [at(1, 0, 0), at(1, 1, 0)]);
    assert_eq!(after("0 */99 * * *", from, &UTC, 1), [at(1, 0, 0)]);
    // Strictly after, whatever the milliseconds.
    let daily = cron("@daily");
    let midnight = at(1, 0, 0) as u64 * 1000;
    for (after, next) in [
        (-1, midnight),
        (0, midnight + 86_400_000),
        (999, midnight + 86_400_000),
    ] {
        let after = midnight.saturating_add_signed(after);
        assert_eq!(daily.next_after(after, &UTC), Some(next));
    }
    assert_eq!(daily.next_after(u64::MAX, &UTC), None);
    let last = INSTANT_MAX / 86_400_000 * 86_400_000;
    assert_eq!(daily.next_after(last - 1, &UTC), Some(last));
    assert_eq!(daily.next_after(last, &UTC), None);
}

#[test]
fn errors_name_the_field_and_say_why() {
    for (text, reason) in [
        ("", "must have 5 fields"),
        ("* * * *", "must have 5 fields"),
        ("* * * * * * *", "must have 5 fields"),
        ("@reboot", "@hourly"),
        ("@daily *", "must have 5 fields"),
        ("60 * * * *", "minute '60': expected 0 to 59"),
        ("60 0 * * * *", "second '60': expected 0 to 59"),
        ("* 24 * * *", "hour '24': expected 0 to 23"),
        ("* * 0 * *", "day of month '0': expected 1 to 31"),
        ("* * * 13 *", "month '13': expected 1 to 12 or a name"),
        ("* * * * 8", "day of week '8': expected 0 to 7 or a name"),
        ("* * ? * *", "day of month '?'"),
        (
            "5/15 * * * *",
            "minute '5/15': a step needs * or a range before it",
        ),
        (
            "* * * * FRI-MON",
            "day of week 'FRI-MON': the range ends before it begins",
        ),
        (
            "* * * * 5-0",
            "day of week '5-0': the range ends before it begins",
        ),
        ("* * L-3 * *", "day of month 'L-3'"),
        ("* * * * 5#L", "day of week '5#L': expected #1 to #5"),
        ("* * * * 5#6", "day of week '5#6'"),
        ("* * * * #1", "day of week '#1'"),
        ("* * * * L", "day of week 'L'"),
        ("* * W * *", "day of month 'W'"),
        ("* * 0W * *", "day of month '0W'"),
        ("* * 1-5W * *", "day of month '1-5W'"),
        ("*/0 * * * *", "minute '*/0': a step is 1 or more"),
        ("*/ * * * *", "minute '*/': the step is not a number"),
        ("*/1/1 * * * *", "minute '*/1/1': the step is not a number"),
        ("1,,2 * * * *", "minute '': expected 0 to 59"),
        ("-5 * * * *", "minute '-5'"),
        ("+5 * * * *", "minute '+5'"),
        ("MON * * * *", "minute 'MON'"),
        ("* * * * JAN", "day of week 'JAN'"),
        ("0\n0 0 * *", "must have 5 fields"),
        ("0\n 0 0 * *", "minute '0\\n'"),
        ("* * * * FRIDAY", "day of week 'FRIDAY'"),
        (
            "99999999999999999999 * * * *",
            "minute '99999999999999999999'",
        ),
    ] {
        let error = error(text);
        assert!(
            error.starts_with("ERR CRON ") && error.contains(reason),
            "{text:?}: {error}"
        );
    }
    assert!(error(&"*".repeat(10_000)).contains("longer than 1024"));
    let long = error(&format!("* * {} * *", "9".repeat(900)));
    assert!(long.len() < 150, "{long}");
    assert!(Cron::parse(&[0, 255, b' ', 13, b' ', 1, b' ', 2, b' ', 3]).is_err());
}

/// An hour ahead, in March from 01:00 UTC on two hours, in October from 01:00 UTC on one again.
fn berlin_2024() -> (Clock, i64, i64) {
    let (spring, autumn) = (utc(2024, 3, 31, 1, 0), utc(2024, 10, 27, 1, 0));
    let clock = Clock(vec![(i64::MIN, 3600), (spring, 7200), (autumn, 3600)]);
    (clock, spring, autumn)
}

#[test]
fn what_the_clock_skips() {
    let (zone, spring, _) = berlin_2024();
    let from = spring - 1800;
    let of = |text| after(text, from, &zone, 2);
    assert_eq!(of("30 2 * * *"), [spring, spring + 86_400 - 1800]);
    // Two times that are skipped at once come once.
    assert_eq!(of("15,45 2 * * *"), [spring, spring + 86_400 - 2700]);
    assert_eq!(
        of("0 3 31 * *"),
        [spring, spring + 30 * 86_400 + 31 * 86_400]
    );
    assert_eq!(
        of("*/30 2 * * *"),
        [spring + 86_400 - 3600, spring + 86_400 - 1800]
    );
    assert_eq!(of("*/30 * * * *"), [spring, spring + 1800]);
    // In Berlin the moment after the gap is on the day of the skipped time; in Samoa, which skipped a whole day, it is
    // not.
    let samoa = utc(2011, 12, 30, 10, 0);
    let zone = Clock(vec![(i64::MIN, -36_000), (samoa, 50_400)]);
    let of = |text| after(text, samoa - 60, &zone, 1);
    assert_eq!(of("0 12 30 12 *"), [samoa]);
    assert_eq!(of("0 12 * * FRI"), [samoa]);
    assert_eq!(of("0 12 31 12 *"), [samoa + 12 * 3600]);
    assert_eq!(of("* * 30 12 *"), [utc(2012, 12, 29, 10, 0)]);
}

#[test]
fn what_the_clock_repeats() {
    let (zone, _, autumn) = berlin_2024();
    let first = autumn - 3600;
    let of = |text, from| after(text, from, &zone, 2);
    assert_eq!(
        of("30 2 * * *", first),
        [first + 1800, first + 1800 + 25 * 3600]
    );
    // It does not come again if the search begins while the clock shows that time once more.
    assert_eq!(
        of("30 2 * * *", autumn),
        [first + 1800 + 25 * 3600, first + 1800 + 49 * 3600]
    );
    assert_eq!(of("0 3 * * *", autumn), [autumn + 3600, autumn + 25 * 3600]);
    assert_eq!(of("*/30 2 * * *", first + 1800), [autumn, autumn + 1800]);
    assert_eq!(of("30 * * * *", first), [first + 1800, autumn + 1800]);
}

fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed >> 11
}

/// Mostly an expression.
fn random_expression(seed: &mut u64) -> String {
    const TIMES: &[&str] = &[
        "*", "*/2", "*/7", "*/99", "0", "2", "1-5", "2-20/3", "1,3", "?",
    ];
    const DAYS: &[&str] = &[
        "*", "*/2", "*/31", "*/99", "1", "29", "30", "31", "2-20/3", "L", "LW", "1W", "15W", "31W",
        "29W,LW",
    ];
    const MONTHS: &[&str] = &["*", "2", "*/5", "FEB", "feb-dec/10", "4,6", "11"];
    const WEEKDAYS: &[&str] = &[
        "*", "*/7", "*/2", "0", "7", "5L", "0L", "5#5", "1#1", "SUN", "FRI-SUN",
    ];
    let fields = [TIMES, TIMES, TIMES, DAYS, MONTHS, WEEKDAYS];
    let skipped = (random(seed) % 2) as usize;
    let mut item = |of: &[&'static str]| of[random(seed) as usize % of.len()];
    let fields: Vec<&str> = fields[skipped..].iter().map(|&of| item(of)).collect();
    fields.join(" ")
}

/// Days on which a zone could be changed each month: more often than any is.
fn restless() -> Clock {
    let months = (0..1680).map(|month| {
        (
            month * 31 * DAY_S / 2 + 7,
            (month % 7 * 5400) as i32 - 16_200,
        )
    });
    let first = (i64::MIN, 0);
    Clock(std::iter::once(first).chain(months).collect())
}

#[test]
fn the_work_of_any_expression_is_bounded() {
    let zone = restless();
    let (mut taken, mut most) = (0, 0);
    let mut seed = 0x9E37_79B9_7F4A_7C15;
    for _ in 0..60_000 {
        let text = random_expression(&mut seed);
        let Ok(cron) = Cron::parse(text.as_bytes()) else {
            continue;
        };
        taken += 1;
        let from = random(&mut seed) % INSTANT_MAX;
        for zone in [&zone as &dyn Zone, &UTC] {
            STEPS.set(0);
            if let Some(next) = cron.next_after(from, zone) {
                assert!(
                    next > from && next <= INSTANT_MAX && next % 1000 == 0,
                    "{text}"
                );
            }
            most = most.max(STEPS.get());
        }
    }
    assert!(taken > 10_000, "{taken}");
    // One for each month that there is, two for each span.
    assert!((1000..=2 * 1680 + 1680).contains(&most), "{most}");
}

#[test]
fn any_bytes_are_an_expression_or_an_error() {
    const ALPHABET: &[u8] = b"0123456789 */-,#LWlwSUNFRIJANFEB?@\t\n\0\xff";
    let mut seed = 0x1234_5678_9ABC_DEF1;
    for _ in 0..300_000 {
        let len = random(&mut seed) as usize % 24;
        let text: Vec<u8> = (0..len)
            .map(|_| ALPHABET[random(&mut seed) as usize % ALPHABET.len()])
            .collect();
        match Cron::parse(&text) {
            Ok(cron) => assert_ne!(cron.next_after(0, &UTC), Some(0)),
            Err(error) => assert!(error.text().is_ascii() && !error.text().contains('\n')),
        }
    }
}
