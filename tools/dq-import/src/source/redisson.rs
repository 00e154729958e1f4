//! Redisson's RDelayedQueue.
//!
//! ```text
//! NAME                                  list: what is due, for the consumers of the RQueue
//! redisson_delay_queue:{NAME}           list: what is delayed, in the order of adding
//! redisson_delay_queue_timeout:{NAME}   sorted set: the same members, score = due in ms
//! ```
//! A member is packed by Lua's struct: `Bc0Lc0` (length of the id, id, length of the value, value), in
//! older versions `dLc0` (the id is a double).

use anyhow::Result;
use redis::{Connection, Script};

use super::scan::{any_exists, counted, deleted, left, Scan, Scanned, Scored, NO_INSTANT};
use super::Pass;
use crate::entry::{instant_ms, Entry, IdRule, Item, JobOptions};
use crate::options::Packing;

/// The length of an id in both packings: 8 random bytes, or a double.
const ID_LENGTH: usize = 8;

/// KEYS: the sorted set, the list of what is delayed. ARGV: member, score, member, score ...
const DELETE: &str = r"
local gone = {}
for at = 1, #ARGV, 2 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[at])
  if score and tonumber(score) == tonumber(ARGV[at + 1]) then
    redis.call('ZREM', KEYS[1], ARGV[at])
    redis.call('LREM', KEYS[2], 1, ARGV[at])
    gone[#gone + 1] = (at + 1) / 2
  end
end
return gone";

pub struct DelayedQueue {
    name: String,
    list: String,
    scan: Scan,
    packing: Packing,
    id: IdRule,
    batch: usize,
    pass: Pass,
    /// In a pass that deletes: where the next page of the list begins.
    at: usize,
    delete: Script,
}

impl DelayedQueue {
    pub fn new(
        server: Connection,
        name: &str,
        packing: Packing,
        id: IdRule,
        batch: usize,
    ) -> DelayedQueue {
        let timeouts = key("redisson_delay_queue_timeout", name);
        DelayedQueue {
            name: name.to_owned(),
            list: key("redisson_delay_queue", name),
            scan: Scan::new(server, &timeouts, batch),
            packing,
            id,
            batch,
            pass: Pass::Read,
            at: 0,
            delete: Script::new(DELETE),
        }
    }

    /// LREM searches from the list's head. In the order of the list it finds each member at once; in another order it
    /// would search half of the list for each.
    fn next_of_list(&mut self) -> Result<Option<Scored>> {
        let members: Vec<Vec<u8>> = redis::cmd("LRANGE")
            .arg(&self.list)
            .arg(self.at)
            .arg(self.at + self.batch - 1)
            .query(&mut self.scan.server)?;
        if members.is_empty() {
            return Ok(None);
        }
        self.at += members.len();
        let scores: Vec<Option<String>> = redis::cmd("ZMSCORE")
            .arg(&self.scan.key)
            .arg(&members)
            .query(&mut self.scan.server)?;
        let both = members.into_iter().zip(scores);
        Ok(Some(
            both.filter_map(|(member, score)| Some((member, score?)))
                .collect(),
        ))
    }

    fn item(&self, member: Vec<u8>, score: String) -> Item {
        let Some((name, value)) = unpack(&member, self.packing) else {
            return left(
                member,
                "its bytes match none of Redisson's packings, or both (see --packing)",
            );
        };
        let Some(due_ms) = instant_ms(&score, 1.0) else {
            return left(member, NO_INSTANT);
        };
        let id = match self.id.id(value, name) {
            Ok(id) => id,
            Err(why) => return left(member, why),
        };
        Item::Job(Entry {
            id,
            payload: value.to_vec(),
            due_ms,
            options: JobOptions::default(),
            version: score.into_bytes(),
            handle: member,
        })
    }
}

/// Redisson's name of a key: all keys of a queue share a slot.
fn key(prefix: &str, name: &str) -> String {
    if name.contains('{') {
        format!("{prefix}:{name}")
    } else {
        format!("{prefix}:{{{name}}}")
    }
}

/// The random id and the value. None if the member has no known form, or could have either.
fn unpack(member: &[u8], packing: Packing) -> Option<(&[u8], &[u8])> {
    let bytes = || {
        let rest = member.strip_prefix(&[ID_LENGTH as u8])?;
        let (id, rest) = rest.split_at_checked(ID_LENGTH)?;
        Some((id, value(rest)?))
    };
    let double = || {
        let (id, rest) = member.split_at_checked(ID_LENGTH)?;
        Some((id, value(rest)?))
    };
    match packing {
        Packing::Bytes => bytes(),
        Packing::Double => double(),
        Packing::Auto => match (bytes(), double()) {
            (Some(_), Some(_)) => None,
            (one, other) => one.or(other),
        },
    }
}

/// A length as 8 bytes, little-endian, and exactly that many bytes.
fn value(packed: &[u8]) -> Option<&[u8]> {
    let (length, value) = packed.split_at_checked(8)?;
    let length = u64::from_le_bytes(length.try_into().ok()?);
    (length == value.len() as u64).then_some(value)
}

impl Scanned for DelayedQueue {
    fn scan(&mut self) -> &mut Scan {
        &mut self.scan
    }

    fn title(&self) -> String {
        format!("Redisson's delayed queue {}", self.name)
    }

    fn exists(&mut self) -> Result<bool> {
        let keys = [&*self.scan.key, &self.list, &self.name];
        any_exists(&mut self.scan.server, &keys)
    }

    fn begin(&mut self, pass: Pass) {
        self.pass = pass;
        self.at = 0;
        self.scan.begin();
    }

    fn next_members(&mut self) -> Result<Option<Scored>> {
        match self.pass {
            Pass::Read => self.scan.next_page(),
            Pass::Delete => self.next_of_list(),
        }
    }

    fn items(&mut self, page: Scored) -> Result<Vec<Item>> {
        Ok(page
            .into_iter()
            .map(|(member, score)| self.item(member, score))
            .collect())
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        let mut invocation = self.delete.key(&self.scan.key);
        invocation.key(&self.list);
        for entry in entries {
            invocation.arg(&entry.handle).arg(&entry.version);
        }
        let gone = deleted(&invocation, &mut self.scan.server, entries.len())?;
        // Deleting members moves the rest of the list up.
        self.at -= gone.iter().filter(|&&gone| gone).count().min(self.at);
        Ok(gone)
    }

    fn remark(&mut self) -> Result<Option<String>> {
        let ready: u64 = redis::cmd("LLEN")
            .arg(&self.name)
            .query(&mut self.scan.server)?;
        Ok((ready > 0).then(|| {
            let due = counted(ready, "element is already due", "elements are already due");
            format!(
                "{due}, in the list {}: for the old consumers, or --due.",
                self.name
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(before: &[u8], value: &[u8]) -> Vec<u8> {
        [before, &(value.len() as u64).to_le_bytes(), value].concat()
    }

    #[test]
    fn both_packings_are_recognized() {
        let today = packed(b"\x08ABCDEFGH", b"value");
        assert_eq!(
            unpack(&today, Packing::Auto),
            Some((&b"ABCDEFGH"[..], &b"value"[..]))
        );
        let older = packed(b"ABCDEFGH", b"");
        assert_eq!(
            unpack(&older, Packing::Auto),
            Some((&b"ABCDEFGH"[..], &b""[..]))
        );
        assert_eq!(unpack(&today, Packing::Double), None);
    }

    #[test]
    fn a_double_that_begins_like_a_length_is_a_double() {
        // Read as 7 bytes after their length, this would be an id and a value, too.
        let older = packed(b"\x07ABCDEF\x43", b"order 261");
        assert_eq!(
            unpack(&older, Packing::Auto),
            Some((&b"\x07ABCDEF\x43"[..], &b"order 261"[..]))
        );
    }

    #[test]
    fn what_is_of_no_form_is_refused() {
        let mut short = packed(b"\x08ABCDEFGH", b"value");
        short.pop();
        for bad in [&b""[..], b"x", b"{\"json\":1}", &short] {
            assert_eq!(unpack(bad, Packing::Auto), None, "{bad:?}");
        }
    }

    #[test]
    fn names_with_a_hash_tag_keep_it() {
        assert_eq!(key("p", "orders"), "p:{orders}");
        assert_eq!(key("p", "{a}orders"), "p:{a}orders");
    }
}
