//! A sorted set of ids, with the payloads elsewhere: in one hash, or in one key for each job.

use anyhow::Result;
use redis::{Connection, Script};

use super::scan::{deleted, left, Scan, Scanned, Scored, NO_INSTANT, NO_PAYLOAD};
use crate::entry::{around_id, instant_ms, Entry, Item, JobOptions};
use crate::options::Unit;

/// Where the payload of an id is.
pub enum Place {
    Hash(String),
    Key {
        before: String,
        after: String,
        field: Option<String>,
    },
}

impl Place {
    pub fn new(
        hash: &Option<String>,
        key: &Option<String>,
        field: &Option<String>,
    ) -> Result<Place> {
        if let Some(hash) = hash {
            return Ok(Place::Hash(hash.clone()));
        }
        let pattern = key.as_deref().unwrap_or_default();
        let (before, after) = around_id("--payload-key", pattern)?;
        Ok(Place::Key {
            before,
            after,
            field: field.clone(),
        })
    }

    /// The key that holds the payload, and the field in it if it is a hash.
    fn of(&self, id: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
        match self {
            Place::Hash(key) => (key.clone().into_bytes(), Some(id.to_vec())),
            Place::Key {
                before,
                after,
                field,
            } => (
                [before.as_bytes(), id, after.as_bytes()].concat(),
                field.clone().map(String::into_bytes),
            ),
        }
    }
}

/// KEYS: the sorted set, then for each id the key of its payload. ARGV: `field` (deletes a field of the hash) or `key`
/// (deletes the key), then for each id: id, score, field (empty: a string), SHA-1 of the payload.
const DELETE: &str = r"
local gone = {}
for n = 1, #KEYS - 1 do
  local at = (n - 1) * 4 + 2
  local id, field, key = ARGV[at], ARGV[at + 2], KEYS[n + 1]
  local score = redis.call('ZSCORE', KEYS[1], id)
  local payload
  if field == '' then payload = redis.call('GET', key) else payload = redis.call('HGET', key, field) end
  if score and tonumber(score) == tonumber(ARGV[at + 1])
     and payload and redis.sha1hex(payload) == ARGV[at + 3] then
    redis.call('ZREM', KEYS[1], id)
    if ARGV[1] == 'field' then redis.call('HDEL', key, field) else redis.call('DEL', key) end
    gone[#gone + 1] = n
  end
end
return gone";

pub struct Ids {
    scan: Scan,
    unit: Unit,
    place: Place,
    delete: Script,
}

impl Ids {
    pub fn new(server: Connection, key: &str, unit: Unit, place: Place, batch: usize) -> Ids {
        Ids {
            scan: Scan::new(server, key, batch),
            unit,
            place,
            delete: Script::new(DELETE),
        }
    }

    fn payloads(&mut self, page: &[(Vec<u8>, String)]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut pipe = redis::pipe();
        for (id, _) in page {
            match self.place.of(id) {
                (key, Some(field)) => pipe.cmd("HGET").arg(key).arg(field),
                (key, None) => pipe.cmd("GET").arg(key),
            };
        }
        Ok(pipe.query(&mut self.scan.server)?)
    }

    fn item(&self, id: Vec<u8>, score: String, payload: Option<Vec<u8>>) -> Item {
        let Some(payload) = payload else {
            return left(id, NO_PAYLOAD);
        };
        let Some(due_ms) = instant_ms(&score, self.unit.ms_each()) else {
            return left(id, NO_INSTANT);
        };
        Item::Job(Entry {
            id: id.clone(),
            payload,
            due_ms,
            options: JobOptions::default(),
            handle: id,
            version: score.into_bytes(),
        })
    }
}

impl Scanned for Ids {
    fn scan(&mut self) -> &mut Scan {
        &mut self.scan
    }

    fn title(&self) -> String {
        format!("the sorted set of ids {}", self.scan.key)
    }

    fn items(&mut self, page: Scored) -> Result<Vec<Item>> {
        let payloads = self.payloads(&page)?;
        Ok(page
            .into_iter()
            .zip(payloads)
            .map(|((id, score), payload)| self.item(id, score, payload))
            .collect())
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        let mut invocation = self.delete.key(&self.scan.key);
        invocation.arg(match self.place {
            Place::Hash(_) => "field",
            Place::Key { .. } => "key",
        });
        for entry in entries {
            let (key, field) = self.place.of(&entry.handle);
            invocation.key(key);
            invocation
                .arg(&entry.handle)
                .arg(&entry.version)
                .arg(field.unwrap_or_default())
                .arg(crate::entry::sha1(&entry.payload));
        }
        deleted(&invocation, &mut self.scan.server, entries.len())
    }
}
