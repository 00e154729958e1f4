//! The job schedulers of a BullMQ queue.
//!
//! ```text
//! bull:NAME:repeat       sorted set: scheduler ids, score = the next run in ms
//! bull:NAME:repeat:ID    hash: name, pattern or every, tz, limit, endDate, offset, ic (runs made so far),
//!                        data (JSON) and opts (JSON) of the jobs that it makes
//! bull:NAME:delayed      holds that next run as the job repeat:ID:SCORE
//! ```

use anyhow::Result;
use redis::{Connection, Script};

use super::bullmq::{job_options, named, whole_ms};
use super::scan::{any_exists, deleted, left, Scan, Scanned, Scored, NO_INSTANT};
use crate::entry::{instant_ms, sha1, Entry, Item, Rule};
use crate::options::BullPayload;

const NO_ZONE: &str = "its pattern uses the time zone of BullMQ's process: name it (--tz)";
const LAST_RUN: &str = "its last run is already due, and left to BullMQ's workers";
const NO_RULE: &str =
    "it is not a job scheduler (upsert repeatable jobs of older versions as schedulers first)";

/// Deletes as BullMQ's own removeJobScheduler does, if the scheduler is unchanged since it was read.
/// KEYS: repeat, delayed, events, then for each scheduler its hash. ARGV: the queue's prefix, how many fields, the
/// fields, then for each scheduler its id and the SHA-1 of those fields.
const DELETE: &str = r"
local prefix, count = ARGV[1], tonumber(ARGV[2])
local gone = {}
for n = 1, #KEYS - 3 do
  local id, mark = ARGV[count + 1 + 2 * n], ARGV[count + 2 + 2 * n]
  local score = redis.call('ZSCORE', KEYS[1], id)
  local fields = redis.call('HMGET', KEYS[n + 3], unpack(ARGV, 3, count + 2))
  for i = 1, count do fields[i] = fields[i] or '' end
  if score and redis.sha1hex(table.concat(fields, '\0')) == mark then
    local run = 'repeat:' .. id .. ':' .. score
    if redis.call('ZREM', KEYS[2], run) == 1 then
      local job = prefix .. run
      redis.call('DEL', job, job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed',
        job .. ':unsuccessful')
      redis.call('XADD', KEYS[3], '*', 'event', 'removed', 'jobId', run, 'prev', 'delayed')
    end
    redis.call('ZREM', KEYS[1], id)
    redis.call('DEL', KEYS[n + 3])
    gone[#gone + 1] = n
  end
end
return gone";

/// The fields of a scheduler. The first seven are compared before it is deleted.
const FIELDS: [&str; 9] = [
    "name", "pattern", "every", "tz", "data", "opts", "endDate", "limit", "ic",
];
const COMPARED: usize = 7;

type Fields = [Option<String>; FIELDS.len()];

pub struct Schedulers {
    /// `bull:NAME:`
    prefix: String,
    scan: Scan,
    payload: BullPayload,
    /// The zone of patterns that name none.
    zone: Option<String>,
    delete: Script,
}

/// A scheduler as it was read: its fields, and when its waiting run is due, if that is still delayed.
struct Read {
    id: Vec<u8>,
    next: String,
    fields: Fields,
    run_at: Option<String>,
}

impl Schedulers {
    pub fn new(
        server: Connection,
        prefix: &str,
        name: &str,
        payload: BullPayload,
        zone: Option<String>,
        batch: usize,
    ) -> Schedulers {
        let prefix = format!("{prefix}:{name}:");
        Schedulers {
            scan: Scan::new(server, &format!("{prefix}repeat"), batch),
            prefix,
            payload,
            zone,
            delete: Script::new(DELETE),
        }
    }

    fn hash(&self, id: &[u8]) -> Vec<u8> {
        [self.scan.key.as_bytes(), b":", id].concat()
    }

    fn read(&mut self, page: Scored) -> Result<Vec<Read>> {
        let mut pipe = redis::pipe();
        for (id, next) in &page {
            let run = [b"repeat:", id.as_slice(), b":", next.as_bytes()].concat();
            pipe.cmd("HMGET").arg(self.hash(id)).arg(&FIELDS);
            pipe.cmd("ZSCORE")
                .arg(format!("{}delayed", self.prefix))
                .arg(run);
        }
        let answers: Vec<redis::Value> = pipe.query(&mut self.scan.server)?;
        page.into_iter()
            .zip(answers.chunks_exact(2))
            .map(|((id, next), of_it)| {
                Ok(Read {
                    id,
                    next,
                    fields: redis::from_redis_value(of_it[0].clone())?,
                    run_at: redis::from_redis_value(of_it[1].clone())?,
                })
            })
            .collect()
    }

    fn item(&self, read: Read) -> Item {
        let id = read.id;
        let [name, pattern, every, zone, data, opts, end, limit, made] = &read.fields;
        let zone = zone.as_ref().or(self.zone.as_ref());
        let mut words: Vec<String> = match (pattern, every) {
            (Some(_), None) if zone.is_none() => return left(id, NO_ZONE),
            (Some(pattern), None) => vec!["CRON".into(), pattern.clone()],
            (None, Some(every)) => vec!["EVERY".into(), every.clone()],
            _ => return left(id, NO_RULE),
        };
        if let (Some(_), Some(zone)) = (pattern, zone) {
            words.extend(["TZ".into(), zone.clone()]);
        }
        if let Some(end) = end {
            words.extend(["UNTIL".into(), end.clone()]);
        }
        // A run that is no longer delayed is left to BullMQ's workers; the first run here is the next one.
        let delayed_ms = read.run_at.as_deref().and_then(whole_ms);
        match remaining(limit.as_deref(), made.as_deref(), delayed_ms.is_some()) {
            Some(0) => return left(id, LAST_RUN),
            Some(times) => words.extend(["TIMES".into(), times.to_string()]),
            None => {}
        }
        let Some(next_ms) = instant_ms(&read.next, 1.0) else {
            return left(id, NO_INSTANT);
        };
        let data = data.as_deref().unwrap_or("{}");
        let payload = match self.payload {
            BullPayload::Data => data.as_bytes().to_vec(),
            BullPayload::Named => match named(name.as_deref().unwrap_or_default(), data) {
                Some(payload) => payload,
                None => return left(id, "its data is not JSON"),
            },
        };
        let starts = match (delayed_ms, every.as_deref().map(str::parse::<u64>)) {
            (Some(due_ms), _) => Some(due_ms),
            (None, Some(Ok(every_ms))) => Some(next_ms + every_ms),
            (None, _) => None,
        };
        let priority = priority_of(opts.as_deref()).map(|priority| priority.to_string());
        let mut options = job_options(opts.as_deref(), priority.as_deref(), None);
        options.rule = Some(Rule {
            words,
            starts_ms: starts,
        });
        Item::Job(Entry {
            id: id.clone(),
            payload,
            due_ms: starts.unwrap_or(next_ms),
            version: mark(&read.fields).into_bytes(),
            options,
            handle: id,
        })
    }
}

/// How many runs remain for dq: among them BullMQ's latest one, if it is still delayed.
fn remaining(limit: Option<&str>, made: Option<&str>, is_delayed: bool) -> Option<u64> {
    let limit: u64 = limit?.parse().ok()?;
    let made: u64 = made.and_then(|made| made.parse().ok()).unwrap_or(1);
    let after = limit.saturating_sub(made);
    Some(after + u64::from(is_delayed))
}

fn priority_of(opts: Option<&str>) -> Option<i64> {
    let opts: serde_json::Value = serde_json::from_str(opts?).ok()?;
    opts["priority"].as_i64()
}

fn mark(fields: &Fields) -> String {
    let fields: Vec<&str> = fields[..COMPARED]
        .iter()
        .map(|field| field.as_deref().unwrap_or_default())
        .collect();
    sha1(fields.join("\0").as_bytes())
}

impl Scanned for Schedulers {
    fn scan(&mut self) -> &mut Scan {
        &mut self.scan
    }

    fn title(&self) -> String {
        format!("BullMQ's {}", self.scan.key)
    }

    fn exists(&mut self) -> Result<bool> {
        let meta = format!("{}meta", self.prefix);
        any_exists(&mut self.scan.server, &[&meta, &self.scan.key])
    }

    fn items(&mut self, page: Scored) -> Result<Vec<Item>> {
        let page = self.read(page)?;
        Ok(page.into_iter().map(|read| self.item(read)).collect())
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        let mut invocation = self.delete.key(&self.scan.key);
        invocation.key(format!("{}delayed", self.prefix));
        invocation.key(format!("{}events", self.prefix));
        invocation.arg(&self.prefix).arg(COMPARED);
        invocation.arg(&FIELDS[..COMPARED]);
        for entry in entries {
            invocation.key(self.hash(&entry.handle));
            invocation.arg(&entry.handle).arg(&entry.version);
        }
        deleted(&invocation, &mut self.scan.server, entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_run_counts_as_one_to_come_while_it_is_delayed() {
        assert_eq!(remaining(Some("5"), Some("1"), true), Some(5));
        assert_eq!(remaining(Some("5"), Some("5"), true), Some(1));
        assert_eq!(remaining(Some("5"), None, true), Some(5));
        assert_eq!(remaining(Some("5"), Some("1"), false), Some(4));
        assert_eq!(remaining(Some("1"), Some("1"), false), Some(0));
        assert_eq!(remaining(Some("1"), Some("7"), false), Some(0));
        assert_eq!(remaining(None, Some("7"), true), None);
    }
}
