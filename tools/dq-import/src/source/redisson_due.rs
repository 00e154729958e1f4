//! The elements of a Redisson queue that are already due: they have no ids, and may be equal.

use std::collections::HashMap;

use anyhow::Result;
use redis::{Connection, Script};

use super::scan::{any_exists, deleted, left};
use super::{Pass, Source};
use crate::entry::{digest, now_ms, Entry, IdRule, Item, JobOptions};

/// KEYS: the list. ARGV: elements.
const DELETE: &str = r"
local gone = {}
for n = 1, #ARGV do
  if redis.call('LREM', KEYS[1], 1, ARGV[n]) == 1 then gone[#gone + 1] = n end
end
return gone";

pub struct Due {
    server: Connection,
    list: String,
    id: IdRule,
    batch: usize,
    /// Where the next page begins.
    at: usize,
    /// How many equal elements the pass has met: the second of two is another job.
    met: HashMap<[u8; 16], u64>,
    due_ms: u64,
    delete: Script,
}

impl Due {
    pub fn new(server: Connection, list: &str, id: IdRule, batch: usize) -> Due {
        Due {
            server,
            list: list.to_owned(),
            id,
            batch,
            at: 0,
            met: HashMap::new(),
            due_ms: now_ms(),
            delete: Script::new(DELETE),
        }
    }

    fn item(&mut self, element: Vec<u8>) -> Item {
        let met = self.met.entry(digest(&element)).or_default();
        *met += 1;
        let name = [b"due ".as_slice(), &met.to_le_bytes(), &element].concat();
        match self.id.id(&element, &name) {
            Err(why) => left(name, why),
            Ok(id) => Item::Job(Entry {
                id,
                payload: element,
                due_ms: self.due_ms,
                options: JobOptions::default(),
                version: b"due".to_vec(),
                handle: name,
            }),
        }
    }
}

impl Source for Due {
    fn title(&self) -> String {
        format!("its list {}", self.list)
    }

    fn exists(&mut self) -> Result<bool> {
        any_exists(&mut self.server, &[&self.list])
    }

    fn size(&mut self) -> Result<u64> {
        Ok(redis::cmd("LLEN").arg(&self.list).query(&mut self.server)?)
    }

    fn begin(&mut self, _: Pass) -> Result<()> {
        self.at = 0;
        self.met.clear();
        Ok(())
    }

    fn next_page(&mut self) -> Result<Option<Vec<Item>>> {
        let page: Vec<Vec<u8>> = redis::cmd("LRANGE")
            .arg(&self.list)
            .arg(self.at)
            .arg(self.at + self.batch - 1)
            .query(&mut self.server)?;
        self.at += page.len();
        let items: Vec<Item> = page.into_iter().map(|each| self.item(each)).collect();
        Ok((!items.is_empty()).then_some(items))
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        let mut invocation = self.delete.key(&self.list);
        for entry in entries {
            invocation.arg(&entry.payload);
        }
        let gone = deleted(&invocation, &mut self.server, entries.len())?;
        // Deleting elements moves the rest of the list up.
        self.at -= gone.iter().filter(|&&gone| gone).count().min(self.at);
        Ok(gone)
    }
}
