//! Keys of shards, slots of a cluster, and ids.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const fn table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                value >> 1 ^ polynomial
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
}

const CRC_32: [u32; 256] = table(0xedb8_8320);

/// The CRC-32 that chooses the shard of an id, the same in all languages.
pub(crate) fn crc_32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        crc >> 8 ^ CRC_32[usize::from(crc as u8 ^ byte)]
    })
}

/// The keys of a queue: one, or one for each shard.
#[derive(Clone, Debug)]
pub(crate) struct Shards(Arc<[Arc<[u8]>]>);

impl Shards {
    pub fn one(name: &str) -> Self {
        Shards([name.as_bytes().into()].into())
    }

    pub fn of(name: &str, count: usize) -> Self {
        let key = |shard| format!("{name}:{{{shard}}}").into_bytes().into();
        Shards((0..count).map(key).collect())
    }

    pub fn all(&self) -> &[Arc<[u8]>] {
        &self.0
    }

    /// The key of a job with this id.
    pub fn key(&self, id: &[u8]) -> &Arc<[u8]> {
        match &*self.0 {
            [key] => key,
            keys => &keys[crc_32(id) as usize % keys.len()],
        }
    }

    /// Whether a job with this id is in that key.
    pub fn has(&self, key: &[u8], id: &[u8]) -> bool {
        **self.key(id) == *key
    }

    /// An id of that key: the given one, or the first of `id~1`, `id~2`, ... that belongs there.
    pub fn id_like(&self, key: &[u8], id: &[u8]) -> Vec<u8> {
        let mut made = id.to_vec();
        let mut n = 0;
        let is_ours = self.0.iter().any(|known| **known == *key);
        while is_ours && !self.has(key, &made) {
            n += 1;
            made = [id, format!("~{n}").as_bytes()].concat();
        }
        made
    }
}

/// CRC-16/XMODEM.
fn crc_16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                crc << 1 ^ 0x1021
            }
        })
    })
}

/// The slot of a key in a cluster.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let find = |byte, within: &[u8]| within.iter().position(|each| *each == byte);
    let tag = find(b'{', key).and_then(|open| {
        let rest = &key[open + 1..];
        find(b'}', rest)
            .filter(|close| *close > 0)
            .map(|close| &rest[..close])
    });
    crc_16(tag.unwrap_or(key)) % 16384
}

/// Makes ids that grow with time. A `DQ.ADD` with an explicit id that is sent twice adds one job.
pub(crate) struct Ids {
    /// How many ids have their random bytes drawn at a time: a draw costs more than an id.
    block: usize,
    drawn: Vec<u8>,
}

const CHANCE: usize = 10;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl Ids {
    pub fn new(block: usize) -> Self {
        Ids {
            block,
            drawn: Vec::new(),
        }
    }

    pub fn next(&mut self) -> Vec<u8> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64);
        if self.drawn.is_empty() {
            self.draw();
        }
        let rest = self.drawn.len() - CHANCE;
        let mut id = Vec::with_capacity(2 * (6 + CHANCE));
        for byte in now.to_be_bytes()[2..].iter().chain(&self.drawn[rest..]) {
            id.push(DIGITS[usize::from(byte >> 4)]);
            id.push(DIGITS[usize::from(byte & 15)]);
        }
        self.drawn.truncate(rest);
        id
    }

    fn draw(&mut self) {
        self.drawn.resize(self.block * CHANCE, 0);
        if getrandom::fill(&mut self.drawn).is_err() {
            // Without a source of random numbers: what std uses for its maps.
            use std::hash::{BuildHasher, Hasher};
            for part in self.drawn.chunks_mut(8) {
                let made = std::collections::hash_map::RandomState::new().build_hasher();
                part.copy_from_slice(&made.finish().to_be_bytes()[..part.len()]);
            }
        }
    }
}

/// A single new id.
pub(crate) fn new_id() -> Vec<u8> {
    Ids::new(1).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_answers() {
        assert_eq!(crc_32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc_16(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"x{user}y"), slot_of(b"user"));
        assert_eq!(slot_of(b"{}user"), crc_16(b"{}user") % 16384);
    }

    #[test]
    fn ids_grow_and_differ() {
        let mut many = Ids::new(64);
        let ids: Vec<Vec<u8>> = (0..1000)
            .map(|n| if n % 3 == 0 { new_id() } else { many.next() })
            .collect();
        let is_hex = |id: &Vec<u8>| id.iter().all(|digit| DIGITS.contains(digit));
        assert!(ids.iter().all(|id| id.len() == 32 && is_hex(id)));
        assert!(ids.windows(2).all(|two| two[0][..12] <= two[1][..12]));
        let chances: std::collections::HashSet<_> = ids.iter().map(|id| &id[12..]).collect();
        assert_eq!(chances.len(), ids.len());
    }
}
