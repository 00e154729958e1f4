//! Cron expressions: five fields, or six with seconds first, or a word such as @daily.
//!
//! ```text
//!   text ──parse──► sets of bits ──► days of a month, as bits ──► the first day that matches
//!                                                                  and the first time of it
//! ```
//!
//! The search goes from month to month, and from one span of constant offset to the next. Between 1970 and
//! the last instant lie 1680 months and a few hundred spans: that bounds its work, whatever the expression.
//!
//! Two kinds of expression differ when a zone's clock is changed. One with a `*` or `/` in its time comes
//! whenever the clock shows a matching time. One of *fixed* times comes when the clock first shows that time
//! or a later one: a time that is skipped comes at the first moment after the gap, and one that is
//! repeated comes once.

use super::calendar::{date_of, Month};
use super::cron_error::CronError;
use super::field::{DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY};
use super::zone::{Zone, OFFSET_MAX_S};
use crate::queue::instant::INSTANT_MAX;

/// Bytes of an expression, at most: lists of all values of all fields are shorter.
pub const CRON_MAX: usize = 1024;
const DAY_S: i64 = 86_400;
/// The last second of the last instant.
const LAST_S: i64 = (INSTANT_MAX / 1000) as i64;

/// Days of the month: as bits, from bit 1 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MonthDays {
    days: u32,
    /// Days for which the nearest workday is meant.
    nearest: u32,
    last: bool,
    last_workday: bool,
}

/// Days of the week: as bits, of which bit 0 is Sunday.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WeekDays {
    days: u8,
    /// The first, second, ... of the month.
    nth: [u8; 5],
    /// The last of the month.
    last: u8,
}

/// A parsed expression. It depends on no zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    seconds: u64,
    minutes: u64,
    hours: u64,
    months: u64,
    of_month: MonthDays,
    of_week: WeekDays,
    /// A day needs to match only one of the two day fields, as neither begins with `*`.
    either: bool,
    /// No `*` or `/` in second, minute and hour.
    fixed: bool,
}

impl Cron {
    /// Reads what a client sent, with blanks or tabs between fields.
    pub fn parse(text: &[u8]) -> Result<Self, CronError> {
        if text.len() > CRON_MAX {
            return Err(CronError::of(
                "ERR CRON expression is longer than 1024 bytes",
            ));
        }
        let blank = |&byte: &u8| byte == b' ' || byte == b'\t';
        let mut fields: Vec<&[u8]> = text
            .split(blank)
            .filter(|field| !field.is_empty())
            .collect();
        if let [word] = fields[..] {
            fields = named(word)?.split(blank).collect();
        }
        match fields[..] {
            [minute, hour, day, month, weekday] => {
                Self::of_fields([b"0", minute, hour, day, month, weekday])
            }
            [second, minute, hour, day, month, weekday] => {
                Self::of_fields([second, minute, hour, day, month, weekday])
            }
            _ => Err(CronError::of(
                "ERR CRON expression must have 5 fields, or 6 with seconds first",
            )),
        }
    }

    fn of_fields(fields: [&[u8]; 6]) -> Result<Self, CronError> {
        let [second, minute, hour, day, month, weekday] = fields;
        let is_free = |field: &[u8]| field.iter().any(|byte| b"*/".contains(byte));
        let is_restricted = |field: &[u8]| !field.starts_with(b"*");
        Ok(Cron {
            seconds: SECOND.list(second)?,
            minutes: MINUTE.list(minute)?,
            hours: HOUR.list(hour)?,
            of_month: MonthDays::parse(day)?,
            months: MONTH.list(month)?,
            of_week: WeekDays::parse(weekday)?,
            either: is_restricted(day) && is_restricted(weekday),
            fixed: ![second, minute, hour].into_iter().any(is_free),
        })
    }

    /// The first instant after `after_ms`, both in unix-ms; `None` if there is none up to the last instant.
    pub fn next_after(&self, after_ms: u64, zone: &dyn Zone) -> Option<u64> {
        let first = (after_ms.min(INSTANT_MAX) / 1000) as i64 + 1;
        let next = if self.fixed {
            self.next_fixed(first, zone)
        } else {
            self.next_shown(first, zone)
        };
        next.filter(|&unix_s| unix_s <= LAST_S)
            .map(|unix_s| unix_s as u64 * 1000)
    }

    /// The first instant from `first` on at which the clock shows a matching time.
    fn next_shown(&self, first: i64, zone: &dyn Zone) -> Option<i64> {
        let mut from = first;
        while from <= LAST_S {
            let span = zone.span_at(from);
            let to = span.to.min(LAST_S + 1);
            let shown = self.next_time(span.shown(from), span.shown(to));
            if let Some(shown) = shown {
                return Some(shown - i64::from(span.offset_s));
            }
            from = to.max(from + 1);
        }
        None
    }

    /// The first instant from `first` on at which the clock has reached a matching time that it had not
    /// reached before.
    fn next_fixed(&self, first: i64, zone: &dyn Zone) -> Option<i64> {
        let reached = latest_shown(first - 1, zone);
        let time = self.next_time(reached + 1, LAST_S + OFFSET_MAX_S)?;
        // No clock shows that time earlier.
        let mut from = first.max(time - OFFSET_MAX_S);
        while from <= LAST_S {
            let span = zone.span_at(from);
            let at = from.max(time - i64::from(span.offset_s));
            if at < span.to {
                return Some(at);
            }
            from = span.to.max(from + 1);
        }
        None
    }

    /// The first matching time of a clock from `from` on, if it is before `before`.
    fn next_time(&self, from: i64, before: i64) -> Option<i64> {
        let (today, second) = (from.div_euclid(DAY_S), from.rem_euclid(DAY_S) as u32);
        let (year, month, day) = date_of(today);
        let midnight = |day: i64| day * DAY_S;
        if self.days_of(year, month) >> day & 1 != 0 {
            if let Some(second) = self.time_from(second) {
                return Some(midnight(today) + i64::from(second)).filter(|&time| time < before);
            }
        }
        let first_time = i64::from(self.time_from(0)?);
        let later = u32::MAX.checked_shl(day + 1).unwrap_or(0);
        let (mut year, mut month, mut wanted) = (year, month, later);
        loop {
            let begins = Month::of(year, month).first;
            if midnight(begins) >= before {
                return None;
            }
            let days = self.days_of(year, month) & wanted;
            if days != 0 {
                let day = begins + i64::from(days.trailing_zeros()) - 1;
                return Some(midnight(day) + first_time).filter(|&time| time < before);
            }
            (year, month, wanted) = match month {
                12 => (year + 1, 1, u32::MAX),
                _ => (year, month + 1, u32::MAX),
            };
        }
    }

    /// The first matching second of a day from `from` on.
    fn time_from(&self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        let time = |hour, minute, second| Some((hour * 60 + minute) * 60 + second);
        let (first_minute, first_second) =
            (self.minutes.trailing_zeros(), self.seconds.trailing_zeros());
        if self.hours >> hour & 1 != 0 {
            if self.minutes >> minute & 1 != 0 {
                if let Some(second) = first_from(self.seconds, second) {
                    return time(hour, minute, second);
                }
            }
            if let Some(minute) = first_from(self.minutes, minute + 1) {
                return time(hour, minute, first_second);
            }
        }
        let hour = first_from(self.hours, hour + 1)?;
        time(hour, first_minute, first_second)
    }

    /// The days of a month that match.
    fn days_of(&self, year: i64, month: u32) -> u32 {
        if self.months >> month & 1 == 0 {
            return 0;
        }
        #[cfg(test)]
        tests::STEPS.set(tests::STEPS.get() + 1);
        let month = Month::of(year, month);
        let (of_month, of_week) = (self.of_month.of(month), self.of_week.of(month));
        if self.either {
            of_month | of_week
        } else {
            of_month & of_week
        }
    }
}

/// The latest time that the clock has shown up to the instant: if it was set back, it has shown later times
/// than its current one.
fn latest_shown(unix_s: i64, zone: &dyn Zone) -> i64 {
    let mut span = zone.span_at(unix_s);
    let mut latest = span.shown(unix_s);
    // Further back the clock has shown less, even if offsets differ as much as they can.
    while span.from > unix_s - 2 * OFFSET_MAX_S {
        let end = span.from - 1;
        span = zone.span_at(end);
        latest = latest.max(span.shown(end));
        debug_assert!(span.from <= end);
    }
    latest
}

fn first_from(bits: u64, from: u32) -> Option<u32> {
    let left = bits & u64::MAX.checked_shl(from).unwrap_or(0);
    (left != 0).then(|| left.trailing_zeros())
}

fn named(word: &[u8]) -> Result<&'static [u8], CronError> {
    const WORDS: [(&str, &[u8]); 5] = [
        ("@hourly", b"0 * * * *"),
        ("@daily", b"0 0 * * *"),
        ("@weekly", b"0 0 * * 0"),
        ("@monthly", b"0 0 1 * *"),
        ("@yearly", b"0 0 1 1 *"),
    ];
    let is_it = |(name, _): &&(&str, _)| word.eq_ignore_ascii_case(name.as_bytes());
    let found = WORDS.iter().find(is_it).map(|&(_, expression)| expression);
    found.ok_or(CronError::of(
        "ERR CRON expression must have 5 fields, or 6 with seconds first, or be one of @hourly, @daily, \
         @weekly, @monthly, @yearly",
    ))
}

impl MonthDays {
    fn parse(text: &[u8]) -> Result<Self, CronError> {
        let mut all = MonthDays::default();
        for item in text.split(|&byte| byte == b',') {
            if item.eq_ignore_ascii_case(b"L") {
                all.last = true;
            } else if item.eq_ignore_ascii_case(b"LW") {
                all.last_workday = true;
            } else if let Some((b'W' | b'w', day)) = item.split_last() {
                all.nearest |= 1 << DAY.value(item, day)?;
            } else {
                all.days |= DAY.item(item)? as u32;
            }
        }
        Ok(all)
    }

    fn of(&self, month: Month) -> u32 {
        let mut days = self.days;
        if self.last {
            days |= 1 << month.len;
        }
        if self.last_workday {
            days |= 1 << month.nearest_workday(month.len);
        }
        let mut nearest = self.nearest & month.days();
        while nearest != 0 {
            days |= 1 << month.nearest_workday(nearest.trailing_zeros());
            nearest &= nearest - 1;
        }
        days & month.days()
    }
}

impl WeekDays {
    fn parse(text: &[u8]) -> Result<Self, CronError> {
        let mut all = WeekDays::default();
        let bit = |weekday: u32| 1 << (weekday % 7);
        for item in text.split(|&byte| byte == b',') {
            if let Some(at) = item.iter().position(|&byte| byte == b'#') {
                let weekday = WEEKDAY.value(item, &item[..at])?;
                let nth = match item[at + 1..] {
                    [digit @ b'1'..=b'5'] => usize::from(digit - b'1'),
                    _ => return Err(WEEKDAY.error(item, "expected #1 to #5")),
                };
                all.nth[nth] |= bit(weekday);
            } else if let Some((b'L' | b'l', weekday)) = item.split_last() {
                all.last |= bit(WEEKDAY.value(item, weekday)?);
            } else {
                let days = WEEKDAY.item(item)?;
                all.days |= (days | days >> 7) as u8 & 0x7f;
            }
        }
        Ok(all)
    }

    fn of(&self, month: Month) -> u32 {
        let mut days = month.weekdays(self.days);
        for (week, &weekdays) in self.nth.iter().enumerate() {
            days |= month.weekdays(weekdays) & 0x7f << (1 + 7 * week);
        }
        let last = month.days() & !(month.days() >> 7);
        days | month.weekdays(self.last) & last
    }
}

#[cfg(test)]
mod tests;
