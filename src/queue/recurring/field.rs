//! One field of a cron expression, without what only day fields have: `*`, numbers, names, ranges, steps.

use super::cron_error::CronError;

/// What may stand in a field.
pub struct Field {
    pub name: &'static str,
    least: u32,
    most: u32,
    /// Names of the values, from the least one on.
    names: &'static [&'static str],
}

pub const SECOND: Field = Field::of("second", 0, 59, &[]);
pub const MINUTE: Field = Field::of("minute", 0, 59, &[]);
pub const HOUR: Field = Field::of("hour", 0, 23, &[]);
pub const DAY: Field = Field::of("day of month", 1, 31, &[]);
pub const MONTH: Field = Field::of(
    "month",
    1,
    12,
    &[
        "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
    ],
);
/// 7 is Sunday, as 0 is.
pub const WEEKDAY: Field = Field::of(
    "day of week",
    0,
    7,
    &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
);

impl Field {
    const fn of(name: &'static str, least: u32, most: u32, names: &'static [&'static str]) -> Self {
        Field {
            name,
            least,
            most,
            names,
        }
    }

    pub fn error(&self, item: &[u8], why: &str) -> CronError {
        CronError::of_field(self.name, item, why)
    }

    /// The values of a list, as bits.
    pub fn list(&self, text: &[u8]) -> Result<u64, CronError> {
        text.split(|&byte| byte == b',')
            .try_fold(0, |bits, item| Ok(bits | self.item(item)?))
    }

    /// The values of one item of a list.
    pub fn item(&self, item: &[u8]) -> Result<u64, CronError> {
        let (range, step) = match item.iter().position(|&byte| byte == b'/') {
            Some(at) => (&item[..at], Some(&item[at + 1..])),
            None => (item, None),
        };
        let (from, to) = match range.iter().position(|&byte| byte == b'-') {
            _ if range == b"*" => (self.least, self.most),
            Some(at) => self.range(item, &range[..at], &range[at + 1..])?,
            None if step.is_some() => {
                return Err(self.error(item, "a step needs * or a range before it"))
            }
            None => {
                let value = self.value(item, range)?;
                (value, value)
            }
        };
        let step = step.map_or(Ok(1), |step| self.step(item, step))?;
        let values = (from..=to).step_by(step as usize);
        Ok(values.fold(0, |bits, value| bits | 1 << value))
    }

    fn range(&self, item: &[u8], from: &[u8], to: &[u8]) -> Result<(u32, u32), CronError> {
        let (first, last) = (self.value(item, from)?, self.value(item, to)?);
        // A range of days that ends with SUN ends with Sunday as 7.
        let is_week = self.most == 7 && last == 0 && first > 0 && !to.starts_with(b"0");
        let last = if is_week { 7 } else { last };
        if first > last {
            return Err(self.error(item, "the range ends before it begins"));
        }
        Ok((first, last))
    }

    fn step(&self, item: &[u8], digits: &[u8]) -> Result<u32, CronError> {
        match number(digits) {
            Some(0) => Err(self.error(item, "a step is 1 or more")),
            Some(step) => Ok(step),
            None => Err(self.error(item, "the step is not a number")),
        }
    }

    /// A number or a name of this field.
    pub fn value(&self, item: &[u8], text: &[u8]) -> Result<u32, CronError> {
        let value = number(text).or_else(|| {
            let is_it = |name: &&str| text.eq_ignore_ascii_case(name.as_bytes());
            let index = self.names.iter().position(is_it)?;
            Some(self.least + index as u32)
        });
        match value {
            Some(value) if (self.least..=self.most).contains(&value) => Ok(value),
            _ => {
                let or_names = if self.names.is_empty() {
                    ""
                } else {
                    " or a name"
                };
                let why = format!("expected {} to {}{or_names}", self.least, self.most);
                Err(self.error(item, &why))
            }
        }
    }
}

/// Reads decimal digits; a number that is too large for any field saturates.
fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u32, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    })
}
