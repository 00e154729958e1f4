//! Arithmetic that must always be right, checked in all cases, or in one case of each kind, with the reason why the
//! others are alike. Each check is also given a wrong function, which it must reject.

use dq::queue::claim::Claim;
use dq::queue::clock::{Mint, Now};
use dq::queue::job::{INSTANT_MAX, TOKEN_MAX, TOKEN_MS_SHIFT};

/// A number and its neighbours.
fn around(number: u64) -> impl Iterator<Item = u64> {
    (0..=4).map(move |n| number.saturating_add(n).saturating_sub(2))
}

/// No wait is shorter than asked, none is longer than to the next millisecond, and none ends after the last instant.
///
/// A reading of the clock is q full milliseconds and r microseconds. The end is q + ms, or one more if r is not 0. What
/// must hold of it is the same for each q and each ms, except near 0 and near the last instant. So all r are checked,
/// with each q and ms near those bounds.
fn waits_are_right(after: impl Fn(u64, u64) -> Option<u64>) -> bool {
    let bounds = [2, 1_700_000_000_000, INSTANT_MAX / 2, INSTANT_MAX];
    let wholes: Vec<u64> = bounds.into_iter().flat_map(around).collect();
    wholes.iter().filter(|&&q| q <= INSTANT_MAX).all(|&q| {
        let left = INSTANT_MAX - q;
        let waits: Vec<u64> = [2, 60_000, left, INSTANT_MAX, u64::MAX]
            .into_iter()
            .flat_map(around)
            .filter(|&ms| ms > 0)
            .collect();
        let micros = if q == INSTANT_MAX {
            0..1u32
        } else {
            0..1000u32
        };
        micros.into_iter().all(|r| {
            let us = u128::from(q) * 1000 + u128::from(r);
            waits.iter().all(|&ms| {
                let least = us + u128::from(ms) * 1000;
                match after(us as u64, ms) {
                    Some(end) => {
                        let end_us = u128::from(end) * 1000;
                        end <= INSTANT_MAX && (least..least + 1000).contains(&end_us)
                    }
                    None => least > u128::from(INSTANT_MAX) * 1000,
                }
            })
        })
    })
}

#[test]
fn no_wait_is_shorter_than_asked() {
    assert!(waits_are_right(|us, ms| Now::from_us(us).after(ms)));
    let bounded = |end: u64| (end <= INSTANT_MAX).then_some(end);
    let down = |us: u64, ms: u64| bounded((us / 1000).checked_add(ms)?);
    let up_always = |us: u64, ms: u64| bounded((us / 1000 + 1).checked_add(ms)?);
    let past = |us: u64, ms: u64| {
        let end = us.div_ceil(1000).checked_add(ms)?;
        (end <= INSTANT_MAX + 1).then_some(end)
    };
    assert!(!waits_are_right(down) && !waits_are_right(up_always) && !waits_are_right(past));
}

/// A token is larger than the last one and than all that its queue has seen, and not less than the clock's time.
///
/// A token is computed from the last token, the floor and the shifted clock by comparing them, by adding 1 and by two
/// bounds. So it depends only on the order of these numbers, and on which of them are neighbours: all combinations
/// around each bound, and around each other, cover every case.
fn tokens_grow(draw: impl Fn(u64, u64, u64) -> u64) -> bool {
    /// The bound of a mint's own number; tokens of one queue may be larger.
    const MINT_MAX: u64 = TOKEN_MAX / 4 * 3;
    let clocks = [2, 1_700_000_000_000, INSTANT_MAX - 2];
    let clocks: Vec<u64> = clocks.into_iter().flat_map(around).collect();
    let numbers = clocks.iter().map(|ms| ms << TOKEN_MS_SHIFT);
    let numbers = numbers.chain([2, MINT_MAX, TOKEN_MAX - 2]);
    let numbers: Vec<u64> = numbers.flat_map(around).collect();
    let in_mint = |&&last: &&u64| last < MINT_MAX;
    clocks.iter().all(|&ms| {
        numbers.iter().filter(in_mint).all(|&last| {
            numbers.iter().filter(|&&it| it < TOKEN_MAX).all(|&floor| {
                let token = draw(last, ms, floor);
                token > last && token > floor && token >= ms << TOKEN_MS_SHIFT && token <= TOKEN_MAX
            })
        })
    })
}

#[test]
fn tokens_grow_from_wherever_they_are() {
    let drawn = |last: u64, ms: u64, floor: u64| {
        let mut mint = Mint::new();
        mint.raise_token(last);
        mint.next_token(Now::from_ms(ms), floor)
    };
    assert!(tokens_grow(drawn));
    let shifted = |ms: u64| ms << TOKEN_MS_SHIFT;
    assert!(!tokens_grow(|last, ms, floor| shifted(ms)
        .max(last)
        .max(floor + 1)));
    assert!(!tokens_grow(|last, ms, floor| shifted(ms)
        .max(last + 1)
        .max(floor)));
    assert!(!tokens_grow(|last, _, floor| (last + 1).max(floor + 1)));
}

/// Reads a token as a client sends it: text that is not a number as tokens are written matches nothing.
fn as_written(digits: &[u8]) -> Claim {
    let is_written = digits.len() <= 19
        && digits.first().is_some_and(|&first| first != b'0')
        && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_written);
    let number = text.and_then(|text| text.parse().ok());
    number.map_or(Claim::Nothing, Claim::Token)
}

/// All texts of up to two bytes; and for each other length all bytes in each place of three texts. The effect of a
/// digit depends only on its own place, so checking each place alone covers all texts.
fn claims_are_read(read: impl Fn(&[u8]) -> Claim) -> bool {
    let is_read = |digits: &[u8]| read(digits) == as_written(digits);
    let bytes = || 0..=u8::MAX;
    let short = bytes().all(|a| is_read(&[a]) && bytes().all(|b| is_read(&[a, b])));
    let long = (1..=21).all(|len| {
        [b'0', b'1', b'9'].into_iter().all(|others| {
            (0..len).all(|place| {
                bytes().all(|byte| {
                    let mut digits = vec![others; len];
                    digits[0] = others.max(b'1');
                    digits[place] = byte;
                    is_read(&digits)
                })
            })
        })
    });
    is_read(b"") && short && long
}

#[test]
fn tokens_are_read_as_they_are_written() {
    assert!(claims_are_read(Claim::of_token));
    let of_longer = |digits: &[u8]| match Claim::of_token(&digits[..digits.len().min(19)]) {
        claim if digits.len() <= 20 => claim,
        _ => Claim::Nothing,
    };
    assert!(!claims_are_read(of_longer));
    let with_colon = |digits: &[u8]| match digits {
        [first @ .., b':'] => Claim::of_token(&[first, b"9"].concat()),
        _ => Claim::of_token(digits),
    };
    assert!(!claims_are_read(with_colon));
}
