//! A polled sorted set whose members are the payloads.

use anyhow::Result;
use redis::{Connection, Script};

use super::scan::{deleted, left, Scan, NO_INSTANT};
use super::{Pass, Source};
use crate::entry::{id_from, instant_ms, Entry, Item, JobOptions};
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
    id_json: Option<String>,
    delete: Script,
}

impl Zset {
    pub fn new(
        server: Connection,
        key: &str,
        unit: Unit,
        id_json: Option<String>,
        batch: usize,
    ) -> Zset {
        Zset {
            scan: Scan::new(server, key, batch),
            unit,
            id_json,
            delete: Script::new(DELETE),
        }
    }

    fn item(&self, member: Vec<u8>, score: String) -> Item {
        let Some(due_ms) = instant_ms(&score, self.unit.per_ms()) else {
            return left(member, NO_INSTANT);
        };
        let id = match &self.id_json {
            None => id_from(&member),
            Some(field) => match field_of(&member, field) {
                Some(id) => id,
                None => return left(member, "it is no JSON object with the id's field"),
            },
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

/// A field that is a string or an integer, as text.
fn field_of(object: &[u8], field: &str) -> Option<Vec<u8>> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(object).ok()?;
    match object.get(field)? {
        serde_json::Value::String(text) if !text.is_empty() => Some(text.clone().into_bytes()),
        serde_json::Value::Number(number) if !number.is_f64() => {
            Some(number.to_string().into_bytes())
        }
        _ => None,
    }
}

impl Source for Zset {
    fn title(&self) -> String {
        format!("the sorted set {}", self.scan.key)
    }

    fn size(&mut self) -> Result<u64> {
        self.scan.size()
    }

    fn begin(&mut self, _: Pass) -> Result<()> {
        self.scan.begin();
        Ok(())
    }

    fn next_page(&mut self) -> Result<Option<Vec<Item>>> {
        let page = self.scan.next_page()?;
        Ok(page.map(|page| {
            page.into_iter()
                .map(|(member, score)| self.item(member, score))
                .collect()
        }))
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        let mut invocation = self.delete.key(&self.scan.key);
        for entry in entries {
            invocation.arg(&entry.handle).arg(&entry.version);
        }
        deleted(&invocation, &mut self.scan.server, entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::field_of;

    #[test]
    fn an_id_is_a_string_or_an_integer() {
        assert_eq!(field_of(br#"{"id":"a"}"#, "id"), Some(b"a".to_vec()));
        assert_eq!(field_of(br#"{"id":17}"#, "id"), Some(b"17".to_vec()));
        for none in [r#"{"id":""}"#, r#"{"id":1.5}"#, r#"{}"#, r#"[1]"#, "x"] {
            assert_eq!(field_of(none.as_bytes(), "id"), None, "{none}");
        }
    }
}
