//! The bounds of numbers, lengths and variants: every value on either side of each, not some at random.

use super::*;
use crate::queue::attr::Attrs;
use crate::queue::effect::{Came, Change, Forgotten, How, Purge};
use crate::queue::job::{Terms, ID_MAX, LADDER_MAX};
use crate::queue::settings::GroupSettings;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// Every power of two and its neighbours: where a number gets longer by a byte, and where its type ends.
pub fn edges() -> impl Iterator<Item = u64> {
    let powers = (0..64).map(|bit| 1_u64 << bit);
    let around = powers.flat_map(|power| [power - 1, power, power + 1]);
    around.chain([u64::MAX])
}

fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    append(value, &mut bytes);
    bytes
}

/// Alone and before other bytes; and nothing is read where its last byte is missing.
#[track_caller]
fn comes_back<T>(value: T, len: usize)
where
    T: Serialize + for<'a> Deserialize<'a> + PartialEq + Debug,
{
    let mut bytes = encoded(&value);
    assert_eq!(bytes.len(), len, "{value:?}");
    for cut in 0..len {
        assert_eq!(take::<T>(&mut &bytes[..cut]), None, "{value:?}");
    }
    bytes.push(0x80);
    let mut rest = &*bytes;
    assert_eq!(take(&mut rest), Some(value));
    assert_eq!(rest, [0x80]);
}

/// Of seven bits each.
fn bytes_of(bits: u32) -> usize {
    bits.max(1).div_ceil(7) as usize
}

#[test]
fn numbers_come_back_in_as_many_bytes_as_they_need() {
    for number in (0..1 << 17).chain(edges()) {
        comes_back(number, bytes_of(64 - number.leading_zeros()));
        comes_back(number as usize, bytes_of(64 - number.leading_zeros()));
        let short = number as u32;
        comes_back(short, bytes_of(32 - short.leading_zeros()));
        // The sign is the lowest bit.
        for signed in [number as i64, (number as i64).wrapping_neg()] {
            let folded = (signed << 1) ^ (signed >> 63);
            comes_back(signed, bytes_of(64 - folded.leading_zeros()));
            let signed = signed as i32;
            let folded = (signed << 1) ^ (signed >> 31);
            comes_back(signed, bytes_of(32 - folded.leading_zeros()));
        }
    }
}

/// All strings of up to three bytes, against the rule: seven bits a byte, up to the first one below 128.
#[test]
fn short_strings_are_read_by_the_rule_or_refused() {
    for len in 0..=3 {
        for string in 0..1_u32 << (8 * len) {
            let bytes = &string.to_le_bytes()[..len];
            let end = bytes.iter().position(|&byte| byte < 0x80);
            let number = end.map(|end| {
                let sevens = bytes[..=end].iter().rev();
                sevens.fold(0, |number, &byte| number << 7 | u64::from(byte & 0x7f))
            });
            let mut rest = bytes;
            assert_eq!(take::<u64>(&mut rest), number, "{bytes:?}");
            let read = end.map_or(0, |end| end + 1);
            assert_eq!(rest.len(), len - read, "{bytes:?}");
        }
    }
}

/// The last byte that a number may have holds what is left of its bits, and none follows it.
#[test]
fn numbers_do_not_outgrow_their_types() {
    for last in 0..=255_u8 {
        let long = [&[0xff; 9][..], &[last, 0]].concat();
        let wide = (last <= 1).then(|| u64::MAX >> 1 | u64::from(last) << 63);
        assert_eq!(take::<u64>(&mut &*long), wide, "{last}");
        assert_eq!(take::<i64>(&mut &*long).is_some(), last <= 1, "{last}");
        assert_eq!(take::<usize>(&mut &*long), wide.map(|it| it as usize));
        let short = [&[0xff; 4][..], &[last, 0]].concat();
        let narrow = (last <= 15).then(|| u32::MAX >> 4 | u32::from(last) << 28);
        assert_eq!(take::<u32>(&mut &*short), narrow, "{last}");
        assert_eq!(take::<i32>(&mut &*short).is_some(), last <= 15, "{last}");
    }
}

/// A length is believed as far as bytes are there, and nothing is allocated for the rest.
#[test]
fn lengths_beyond_the_end_are_refused() {
    for there in [0, 1, 2, 127, 128, 129, LADDER_MAX, 1 << 14] {
        for claimed in edges().chain([there as u64]) {
            let fits = claimed <= there as u64;
            let string = [encoded(&claimed), vec![7; there]].concat();
            let read = take::<&serde_bytes::Bytes>(&mut &*string);
            assert_eq!(read.is_some(), fits, "{claimed} of {there}");
            assert!(read.is_none_or(|read| read.len() as u64 == claimed));
            // Priority, lease, attempts, and a rest of that length.
            let rest = [&[0; 3][..], &string].concat();
            let read = take::<Terms<'_>>(&mut &*rest);
            assert_eq!(read.is_some(), fits, "{claimed} of {there}");
            assert!(read.is_none_or(|read| read.rest.bytes().len() as u64 == claimed));
        }
    }
}

/// Read as it was written, and refused wherever it is cut.
#[track_caller]
fn effect_comes_back(effect: &Effect<'_>) {
    let mut bytes = Vec::new();
    begin(&mut bytes);
    encode(effect, &mut bytes);
    let all: Vec<_> = decode(&bytes).collect();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].as_ref().ok(), Some(effect));
    for cut in 2..bytes.len() {
        let mut read = decode(&bytes[..cut]);
        assert!(read.next().is_some_and(|it| it.is_err()), "{effect:?}");
        assert!(read.next().is_none(), "nothing behind it");
    }
}

#[test]
fn effects_come_back_with_every_number_at_its_bounds() {
    let id = b"id";
    for number in edges() {
        let terms = Terms {
            priority: number as i32,
            ttr_ms: number,
            max_attempts: number as u32,
            rest: Attrs::NONE.with_backoff(&[number; 2]),
        };
        let reserved = Change::Reserved {
            token: number,
            deadline: number,
            lease_ms: number,
        };
        let nacked = Change::Nacked {
            due: number,
            priority: (number as i32).wrapping_neg(),
            attempts: number as u32,
            failure: None,
        };
        for effect in [
            Effect::Came(Came {
                id,
                payload: b"payload",
                terms,
                group: Some(b"group"),
                how: How::New {
                    due: number,
                    expires: number,
                },
            }),
            Effect::Job {
                id,
                change: reserved,
            },
            Effect::Job { id, change: nacked },
            Effect::Paused { until: number },
            Effect::Floors {
                seq: number,
                death: number,
                token: number,
            },
            Effect::Purged(Purge::Overdue {
                dead: false,
                cut: number,
            }),
        ] {
            effect_comes_back(&effect);
        }
    }
}

#[test]
fn ids_come_back_in_every_length() {
    let longest = [b'x'; ID_MAX + 1];
    (0..=longest.len())
        .for_each(|len| effect_comes_back(&Effect::Forgot(Forgotten::Id(&longest[..len]))));
}

#[test]
fn versions_and_variants_that_nobody_writes_are_refused() {
    let first = |bytes: &[u8]| decode(bytes).next().map(|it| it.map(drop));
    for version in 0..=255 {
        let refused = match version {
            0 => Some(Err(QueueError::Malformed("effects of no version"))),
            EFFECTS_VERSION => None,
            _ => Some(Err(QueueError::Newer)),
        };
        assert_eq!(first(&[version]), refused, "{version}");
    }
    let last = encoded(&Effect::Group {
        name: b"",
        own: GroupSettings::default(),
    })[0];
    for variant in 0..=u64::from(u16::MAX) {
        let zeros = [&[EFFECTS_VERSION][..], &encoded(&variant), &[0; 32]].concat();
        let is_known = first(&zeros).is_some_and(|it| it.is_ok());
        assert_eq!(is_known, variant <= last.into(), "{variant}");
    }
}
