//! Hash slots of a cluster: computes a key's slot as the server does.

#![deny(missing_docs)]

use std::borrow::Cow;

const SLOTS: u16 = 16384;

/// CRC-16/XMODEM of each byte.
const CRC: [u16; 256] = crc_table();

const fn crc_table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ if crc & 0x8000 != 0 { 0x1021 } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (crc << 8) ^ CRC[usize::from((crc >> 8) as u8 ^ byte)]
    })
}

/// The part of a key that is hashed: the text between the first `{` and the next `}`, unless that
/// is empty.
fn hashed_part(key: &[u8]) -> &[u8] {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let len = rest.iter().position(|&byte| byte == b'}')?;
        (len > 0).then(|| &rest[..len])
    });
    tag.unwrap_or(key)
}

/// The slot of a key, by the key or by the text in its first braces.
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(hashed_part(key)) % SLOTS
}

/// What no user's key ends with.
const WAITS: &[u8] = b"}\0dq: a client waits";

/// Another name in the key's slot, which no user has used.
pub fn unused_name_beside(key: &[u8]) -> Vec<u8> {
    let part = hashed_part(key);
    let tag: Cow<[u8]> = if part.is_empty() || part.contains(&b'}') {
        two_bytes_in(slot_of(key)).to_vec().into()
    } else {
        part.into()
    };
    let mut name = Vec::with_capacity(tag.len() + WAITS.len() + 1);
    name.push(b'{');
    name.extend_from_slice(&tag);
    name.extend_from_slice(WAITS);
    name
}

/// Over two bytes the CRC is a bijection, so each slot has four such pairs.
fn two_bytes_in(slot: u16) -> [u8; 2] {
    let mut pairs = (0..=u16::MAX).map(u16::to_be_bytes);
    pairs
        .find(|pair| !pair.contains(&b'}') && crc16(pair) % SLOTS == slot)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_as_the_server_reckons_them() {
        for (key, slot) in [
            ("", 0),
            ("123456789", 0x31c3),
            ("foo", 12182),
            ("{user1000}.following", 3443),
            ("x{user1000}", 3443),
            ("user1000", 3443),
            ("foo{}{bar}", 8363),
            ("foo{{bar}}zap", 4015),
        ] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
    }

    #[test]
    fn a_name_beside_a_key_is_in_its_slot() {
        let keys: [&[u8]; 9] = [
            b"",
            b"q",
            b"{t}q",
            b"q{t}",
            b"a}b",
            b"{}",
            b"{}}",
            b"{a",
            b"\0{\xff}",
        ];
        for key in keys {
            let name = unused_name_beside(key);
            assert_eq!(slot_of(&name), slot_of(key), "{key:?}");
            assert_ne!(name, key);
        }
        for slot in 0..SLOTS {
            assert_eq!(slot_of(&two_bytes_in(slot)), slot);
        }
    }
}
