//! The Gregorian calendar. The days of a month are bits of a word: bit 1 is the 1st, bit 31 the 31st.

/// Days since 1970-01-01, as (year, month from 1, day from 1).
/// After Howard Hinnant, "chrono-compatible low-level date algorithms": years begin in March here, so that a
/// leap day is a year's last.
pub fn date_of(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * from_march + 2) / 5 + 1) as u32;
    let month = (from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32, day)
}

/// The first day of a month, in days since 1970-01-01.
pub fn first_of(year: i64, month: u32) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// One month: where it begins, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Month {
    /// In days since 1970-01-01.
    pub first: i64,
    pub len: u32,
    /// The weekday of its first day: 0 is Sunday.
    weekday: u32,
}

impl Month {
    pub fn of(year: i64, month: u32) -> Self {
        let first = first_of(year, month);
        let len = match month {
            4 | 6 | 9 | 11 => 30,
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            _ => 31,
        };
        Month {
            first,
            len,
            weekday: (first + 4).rem_euclid(7) as u32,
        }
    }

    /// All its days.
    pub fn days(self) -> u32 {
        ((1 << self.len) - 1) << 1
    }

    /// All days of some weekdays: bit 0 is Sunday.
    pub fn weekdays(self, weekdays: u8) -> u32 {
        let week = u32::from(weekdays) | u32::from(weekdays) << 7;
        let from_first = week >> self.weekday & 0x7f;
        let weeks = (0..5).fold(0u64, |days, week| {
            days | u64::from(from_first) << (7 * week)
        });
        (weeks << 1) as u32 & self.days()
    }

    /// The day from Monday to Friday that is nearest to `day` and within the month.
    pub fn nearest_workday(self, day: u32) -> u32 {
        match (self.weekday + day - 1) % 7 {
            6 if day == 1 => day + 2,
            6 => day - 1,
            0 if day == self.len => day - 2,
            0 => day + 1,
            _ => day,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other() {
        let (mut year, mut month, mut day) = (1899, 12, 31);
        for days in first_of(1900, 1)..first_of(2201, 1) {
            day += 1;
            if day > Month::of(year, month).len {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
            assert_eq!(date_of(days), (year, month, day));
            let of = Month::of(year, month);
            assert_eq!(of.first + i64::from(day) - 1, days);
            // 1970 began on a Thursday.
            let weekday = (days + 4).rem_euclid(7) as u32;
            assert_eq!(of.weekdays(1 << weekday) >> day & 1, 1);
            assert_eq!(of.weekdays(!(1 << weekday) & 0x7f) >> day & 1, 0);
            let workday = of.nearest_workday(day);
            assert!((1..=of.len).contains(&workday) && workday.abs_diff(day) <= 2);
            assert_eq!(of.weekdays(0b0111110) >> workday & 1, 1);
        }
    }
}
