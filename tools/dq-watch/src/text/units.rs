//! Numbers in at most six columns, with their unit.

const STEPS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];

/// Exact up to five digits.
pub fn count(number: u64) -> String {
    if number < 100_000 {
        number.to_string()
    } else {
        shortened(number as f64)
    }
}

/// As in a sentence: `4,568`.
pub fn full(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", full(number / 1000), number % 1000),
    }
}

/// Per second.
pub fn rate(per_second: f64) -> String {
    match per_second {
        zero if zero <= 0.0 => "0".to_owned(),
        little if little < 0.05 => "<0.1".to_owned(),
        small if small < 9.95 => format!("{small:.1}"),
        exact if exact < 99_999.5 => format!("{exact:.0}"),
        large => shortened(large),
    }
}

pub fn bytes(number: u64) -> String {
    if number < 1000 {
        format!("{number}B")
    } else {
        format!("{}B", shortened(number as f64))
    }
}

/// Three digits and the unit.
fn shortened(number: f64) -> String {
    for (index, (step, unit)) in STEPS.iter().enumerate() {
        let shown = number / step;
        // 999.6k is no 1000k but 1.00M.
        if shown >= 0.9995 || index == STEPS.len() - 1 {
            return match shown {
                small if small < 9.995 => format!("{small:.2}{unit}"),
                medium if medium < 99.95 => format!("{medium:.1}{unit}"),
                large => format!("{large:.0}{unit}"),
            };
        }
    }
    String::new()
}

/// A bound of the lateness buckets: one, two or five of a decade, or an hour.
pub fn micros(us: u64) -> String {
    match us {
        0..1_000 => format!("{us}µs"),
        1_000..1_000_000 => tenths(us, 1_000, "ms"),
        3_600_000_000 => "1h".to_owned(),
        _ => tenths(us, 1_000_000, "s"),
    }
}

fn tenths(number: u64, unit: u64, name: &str) -> String {
    if number < 10 * unit && number % unit >= unit / 10 {
        format!("{}.{}{name}", number / unit, number % unit * 10 / unit)
    } else {
        format!("{}{name}", number / unit)
    }
}

/// The two largest units that fit: `340ms`, `4.2s`, `59s`, `3m20s`, `45m`, `3h20m`, `2d5h`, `12y`.
pub fn millis(ms: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = ms / 1000;
    let two = |large: u64, unit: &str, small: u64, rest: &str| match seconds % large / small {
        0 => format!("{}{unit}", seconds / large),
        rest_count => format!("{}{unit}{rest_count}{rest}", seconds / large),
    };
    match seconds {
        0 => format!("{ms}ms"),
        1..10 => format!("{}.{}s", seconds, ms % 1000 / 100),
        10..MINUTE => format!("{seconds}s"),
        MINUTE..600 => two(MINUTE, "m", 1, "s"),
        600..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => two(HOUR, "h", MINUTE, "m"),
        DAY..864_000 => two(DAY, "d", HOUR, "h"),
        864_000..63_072_000 => format!("{}d", seconds / DAY),
        _ => format!("{}y", seconds / (365 * DAY)),
    }
}

/// One of these in a sentence: `3 min 20 s`.
pub fn spaced(short: &str) -> String {
    let mut text = String::new();
    for it in short.chars() {
        let changes = match it.is_ascii_digit() {
            true => text.ends_with(char::is_alphabetic),
            false => it.is_alphabetic() && text.ends_with(|it: char| it.is_ascii_digit()),
        };
        if changes {
            text.push(' ');
        }
        text.push(it);
    }
    let full = |it| match it {
        "m" => "min",
        "y" => "years",
        _ => it,
    };
    text.split(' ').map(full).collect::<Vec<_>>().join(" ")
}

/// From now to an instant: `in 4.2s`, `3m20s ago`.
pub fn relative(instant_ms: i64, now_ms: i64) -> String {
    match instant_ms - now_ms {
        0 => "now".to_owned(),
        ahead @ 1.. => format!("in {}", millis(ahead as u64)),
        past => format!("{} ago", millis(past.unsigned_abs())),
    }
}

/// What a user types for a wait: `500`, `500ms`, `30s`, `5m`, `2h`, `1d`; a bare number is milliseconds.
pub fn parse_millis(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(unit)
}

const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar of so many eighths of a line's height.
pub fn bar(eighths: usize) -> char {
    BARS[eighths.min(8)]
}

/// The last `width` values as bars, the largest of them full; nothing where nothing happened.
pub fn sparkline(values: &[f64], width: usize) -> String {
    let values = &values[values.len().saturating_sub(width)..];
    let largest = values.iter().copied().fold(0.0, f64::max);
    let bars = values.iter().map(|value| match largest > 0.0 {
        true => bar((value / largest * 8.0).ceil() as usize),
        false => ' ',
    });
    let bars: String = bars.collect();
    format!("{bars:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_within_six_columns() {
        let told = [0, 99_999, 100_000, 999_499, 999_600, 12_345_678, u64::MAX].map(count);
        assert_eq!(
            told,
            ["0", "99999", "100k", "999k", "1.00M", "12.3M", "18446744T"]
        );
        assert_eq!(
            [0.0, 0.01, 3.123, 9.96, 123.4, 250_000.0].map(rate),
            ["0", "<0.1", "3.1", "10", "123", "250k"]
        );
        assert_eq!(
            [12, 1_500, 2_000_000].map(bytes),
            ["12B", "1.50kB", "2.00MB"]
        );
    }

    #[test]
    fn numbers_in_sentences_are_exact() {
        let told = [0, 999, 1_000, 4_568, 1_000_020].map(full);
        assert_eq!(told, ["0", "999", "1,000", "4,568", "1,000,020"]);
    }

    #[test]
    fn durations_have_their_two_largest_units() {
        let told = [0, 999, 1_000, 9_999, 59_999, 60_000, 200_000, 2_700_000].map(millis);
        assert_eq!(
            told,
            ["0ms", "999ms", "1.0s", "9.9s", "59s", "1m", "3m20s", "45m"]
        );
        let told = [12_000_000, 190_800_000, 8_640_000_000, 4_398_046_511_103].map(millis);
        assert_eq!(told, ["3h20m", "2d5h", "100d", "139y"]);
        assert_eq!(
            [10, 1_000, 50_000, 2_500, 2_000_000, 3_600_000_000].map(micros),
            ["10µs", "1ms", "50ms", "2.5ms", "2s", "1h"]
        );
        let spaced = ["4.2s", "3m20s", "45m", "2.5ms", "56y"].map(spaced);
        assert_eq!(
            spaced,
            ["4.2 s", "3 min 20 s", "45 min", "2.5 ms", "56 years"]
        );
        assert_eq!(relative(5_000, 1_000), "in 4.0s");
        assert_eq!(relative(1_000, 5_000), "4.0s ago");
    }

    #[test]
    fn typed_waits_have_units() {
        let told = ["0", "500", "500 ms", "30s", "5m", "2H", "1d"].map(parse_millis);
        assert_eq!(
            told.map(Option::unwrap),
            [0, 500, 500, 30_000, 300_000, 7_200_000, 86_400_000]
        );
        for wrong in [
            "",
            "s",
            "-1",
            "1.5s",
            "5x",
            "99999999999999999999",
            "9999999999999999d",
        ] {
            assert_eq!(parse_millis(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sparklines_are_scaled_to_their_largest() {
        assert_eq!(sparkline(&[0.0, 1.0, 4.0, 8.0], 4), " ▁▄█");
        assert_eq!(sparkline(&[5.0], 3), "  █");
        assert_eq!(sparkline(&[8.0, 0.0, 0.0], 2), "  ");
    }
}
