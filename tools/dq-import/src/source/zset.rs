//! A polled sorted set whose members are the payloads.

use anyhow::Result;
use redis::{Connection, Script};

use super::scan::{deleted, left, Scan, Scanned, Scored, NO_INSTANT};
use crate::entry::{instant_ms, Entry, IdRule, Item, JobOptions};
use crate::options::Unit;

/// KEYS: the sorted set. ARGV: member, score, member, score ...
const DELETE: &str = r"
local gone = {}
for at = 1, #ARGV, 2 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[at])
  if score and tonumber(score) == tonumber(ARGV[at + 1]) then
    redis.call('ZREM', KEYS[1], ARGV[at])
    gone[#gone + 1] = (at + 1) / 2
  end
end
return gone";

pub struct Zset {
    scan: Scan,
    unit: Unit,
    id: IdRule,
    delete: Script,
}

impl Zset {
    pub fn new(server: Connection, key: &str, unit: Unit, id: IdRule, batch: usize) -> Zset {
        Zset {
            scan: Scan::new(server, key, batch),
            unit,
            id,
            delete: Script::new(DELETE),
        }
    }

    fn item(&self, member: Vec<u8>, score: String) -> Item {
        let Some(due_ms) = instant_ms(&score, self.unit.ms_each()) else {
            return left(member, NO_INSTANT);
        };
        let id = match self.id.id(&member, &member) {
            Ok(id) => id,
            Err(why) => return left(member, why),
        };
        Item::Job(Entry {
            id,
            payload: member.clone(),
            due_ms,
            options: JobOptions::default(),
            handle: member,
            version: score.into_bytes(),
        })
    }
}

impl Scanned for Zset {
    fn scan(&mut self) -> &mut Scan {
        &mut self.scan
    }

    fn title(&self) -> String {
        format!("the sorted set {}", self.scan.key)
    }

    fn items(&mut self, page: Scored) -> Result<Vec<Item>> {
        Ok(page
            .into_iter()
            .map(|(member, score)| self.item(member, score))
            .collect())
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        let mut invocation = self.delete.key(&self.scan.key);
        for entry in entries {
            invocation.arg(&entry.handle).arg(&entry.version);
        }
        deleted(&invocation, &mut self.scan.server, entries.len())
    }
}
