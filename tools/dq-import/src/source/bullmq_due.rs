//! The jobs of a BullMQ queue that are due already.
//!
//! ```text
//! bull:NAME:wait, bull:NAME:paused   lists of ids: new ids go to the head, workers take from the tail
//! bull:NAME:prioritized              sorted set of ids, in the order of delivery
//! ```

use anyhow::Result;
use redis::{Connection, Script};

use super::bullmq::{Jobs, REMOVE};
use super::scan::{any_exists, counted, deleted};
use super::{Pass, Source};
use crate::entry::{now_ms, sha1, Entry, Item};

/// Deletes as BullMQ's own Job.remove() does with a job that waits and has no parent.
/// KEYS: events, meta, wait, paused, prioritized, then for each job its hash. ARGV: the queue's prefix, then for each
/// job id, SHA-1 of its data.
const DELETE: &str = r"
local gone = {}
for n = 1, #KEYS - 5 do
  local id, job = ARGV[n * 2], KEYS[n + 5]
  local data = redis.call('HGET', job, 'data')
  if data and redis.sha1hex(data) == ARGV[n * 2 + 1] and redis.call('LREM', KEYS[3], -1, id)
     + redis.call('LREM', KEYS[4], -1, id) + redis.call('ZREM', KEYS[5], id) > 0 then
    remove(id, job, 'wait')
    gone[#gone + 1] = n
  end
end
return gone";

const PLACES: [&str; 3] = ["wait", "paused", "prioritized"];

pub struct Due {
    server: Connection,
    jobs: Jobs,
    batch: usize,
    /// The current place, and how many of its ids were shown and still exist.
    place: usize,
    at: usize,
    due_ms: u64,
    delete: Script,
}

impl Due {
    pub fn new(server: Connection, jobs: Jobs, batch: usize) -> Due {
        Due {
            server,
            jobs,
            batch,
            place: 0,
            at: 0,
            due_ms: now_ms(),
            delete: Script::new(&format!("{REMOVE}{DELETE}")),
        }
    }

    fn keys(&self) -> [Vec<u8>; 3] {
        PLACES.map(|place| self.jobs.key(place))
    }

    /// The next ids of this place, in the order in which workers take them.
    fn next_ids(&mut self) -> Result<Vec<Vec<u8>>> {
        let (from, to) = (self.at as i64, (self.at + self.batch) as i64);
        let place = PLACES[self.place];
        let is_list = place != "prioritized";
        let (command, first, last) = match is_list {
            true => ("LRANGE", -to, -from - 1),
            false => ("ZRANGE", from, to - 1),
        };
        let mut ids: Vec<Vec<u8>> = redis::cmd(command)
            .arg(self.jobs.key(place))
            .arg(first)
            .arg(last)
            .query(&mut self.server)?;
        if is_list {
            ids.reverse();
        }
        self.at += ids.len();
        Ok(ids)
    }
}

impl Source for Due {
    fn title(&self) -> String {
        "what is already due there".to_owned()
    }

    fn exists(&mut self) -> Result<bool> {
        let keys = self.keys();
        any_exists(&mut self.server, &keys)
    }

    fn size(&mut self) -> Result<u64> {
        let [wait, paused, prioritized] = self.keys();
        let (wait, paused, prioritized): (u64, u64, u64) = redis::pipe()
            .cmd("LLEN")
            .arg(wait)
            .cmd("LLEN")
            .arg(paused)
            .cmd("ZCARD")
            .arg(prioritized)
            .query(&mut self.server)?;
        Ok(wait + paused + prioritized)
    }

    fn begin(&mut self, _: Pass) -> Result<()> {
        (self.place, self.at) = (0, 0);
        Ok(())
    }

    fn next_page(&mut self) -> Result<Option<Vec<Item>>> {
        while self.place < PLACES.len() {
            let ids = self.next_ids()?;
            if ids.is_empty() {
                (self.place, self.at) = (self.place + 1, 0);
                continue;
            }
            let hashes = self.jobs.hashes(&mut self.server, &ids)?;
            let due_ms = self.due_ms;
            let items = ids.into_iter().zip(hashes).map(|(id, fields)| {
                let when = Some((due_ms, "due".to_owned()));
                self.jobs.item(id, fields, when)
            });
            return Ok(Some(items.collect()));
        }
        Ok(None)
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        let mut invocation = self.delete.key(self.jobs.key("events"));
        invocation.key(self.jobs.key("meta"));
        for key in self.keys() {
            invocation.key(key);
        }
        invocation.arg(self.jobs.prefix());
        for entry in entries {
            invocation.key(self.jobs.key(&entry.handle));
            invocation
                .arg(&entry.handle)
                .arg(sha1(self.jobs.data_of(entry)));
        }
        let gone = deleted(&invocation, &mut self.server, entries.len())?;
        self.at -= gone.iter().filter(|&&gone| gone).count().min(self.at);
        Ok(gone)
    }

    fn remark(&mut self) -> Result<Option<String>> {
        let active: u64 = redis::cmd("LLEN")
            .arg(self.jobs.key("active"))
            .query(&mut self.server)?;
        Ok((active > 0).then(|| {
            format!(
                "{}: for BullMQ's own workers.",
                counted(active, "job is active", "jobs are active")
            )
        }))
    }
}
