//! The delayed jobs of a BullMQ queue.
//!
//! ```text
//! bull:NAME:delayed   sorted set: job ids, score = due in ms * 4096 + order within that ms
//! bull:NAME:ID        hash: name, data (JSON), opts (JSON), timestamp, delay, priority, atm ...
//! ```

use anyhow::Result;
use redis::{Connection, Script};
use serde_json::value::RawValue;
use serde_json::Value;

use super::scan::{
    any_exists, counted, deleted, left, Scan, Scanned, Scored, NO_INSTANT, NO_PAYLOAD,
};
use crate::entry::{instant_ms, sha1, Entry, Item, JobOptions};
use crate::options::BullPayload;

/// Prefix of each script that deletes. KEYS begin with events and meta, ARGV with the queue's prefix.
pub const REMOVE: &str = r"
local function remove(id, job, state)
  local prefix = ARGV[1]
  local shared = redis.call('HGET', job, 'deid')
  if shared and redis.call('GET', prefix .. 'de:' .. shared) == id then
    redis.call('DEL', prefix .. 'de:' .. shared, prefix .. 'dn:' .. shared)
  end
  redis.call('DEL', job, job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed',
    job .. ':unsuccessful')
  local longest = redis.call('HGET', KEYS[2], 'opts.maxLenEvents') or 10000
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', longest, '*', 'event', 'removed', 'jobId', id, 'prev', state)
end";

/// Deletes as BullMQ's own Job.remove() does with a delayed job that has no parent.
/// KEYS: events, meta, delayed, then for each job its hash. ARGV: the queue's prefix, then for each job
/// id, score, SHA-1 of its data.
const DELETE: &str = r"
local gone = {}
for n = 1, #KEYS - 3 do
  local at = (n - 1) * 3 + 2
  local id, job = ARGV[at], KEYS[n + 3]
  local score = redis.call('ZSCORE', KEYS[3], id)
  local data = redis.call('HGET', job, 'data')
  if score and tonumber(score) == tonumber(ARGV[at + 1]) and data and redis.sha1hex(data) == ARGV[at + 2] then
    redis.call('ZREM', KEYS[3], id)
    remove(id, job, 'delayed')
    gone[#gone + 1] = n
  end
end
return gone";

/// One millisecond in a delayed job's score.
const SCORE_PER_MS: f64 = 4096.0;

const FIELDS: [&str; 8] = [
    "name",
    "data",
    "opts",
    "priority",
    "parentKey",
    "rjk",
    "atm",
    "attemptsMade", // what older versions call atm
];

type Fields = [Option<String>; FIELDS.len()];

/// Reads the queue's jobs, whichever list their ids are in.
#[derive(Clone)]
pub struct Jobs {
    /// `bull:NAME:`
    prefix: String,
    payload: BullPayload,
}

impl Jobs {
    pub fn new(prefix: &str, name: &str, payload: BullPayload) -> Jobs {
        Jobs {
            prefix: format!("{prefix}:{name}:"),
            payload,
        }
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The key of a job or a list.
    pub fn key(&self, name: impl AsRef<[u8]>) -> Vec<u8> {
        [self.prefix.as_bytes(), name.as_ref()].concat()
    }

    pub fn hashes<'a>(
        &self,
        server: &mut Connection,
        ids: impl IntoIterator<Item = &'a Vec<u8>>,
    ) -> Result<Vec<Fields>> {
        let mut pipe = redis::pipe();
        for id in ids {
            pipe.cmd("HMGET").arg(self.key(id)).arg(&FIELDS);
        }
        Ok(pipe.query(server)?)
    }

    /// `when`: the due time, and what else belongs to the version; None without a due time.
    pub fn item(&self, id: Vec<u8>, fields: Fields, when: Option<(u64, String)>) -> Item {
        let [name, data, opts, priority, parent, repeat, made, made_formerly] = fields;
        let (Some(name), Some(data)) = (name, data) else {
            return left(id, NO_PAYLOAD);
        };
        if parent.is_some_and(|parent| !parent.is_empty()) {
            return left(id, "it is the child of a flow; its parent waits for it");
        }
        if repeat.is_some() || id.starts_with(b"repeat:") {
            return left(
                id,
                "it belongs to a job scheduler, which bullmq-schedulers imports",
            );
        }
        let Some((due_ms, version)) = when else {
            return left(id, NO_INSTANT);
        };
        let payload = match self.payload {
            BullPayload::Data => data.into_bytes(),
            BullPayload::Named => match named(&name, &data) {
                Some(payload) => payload,
                None => return left(id, "its data is not JSON"),
            },
        };
        let made = made.or(made_formerly);
        let options = job_options(opts.as_deref(), priority.as_deref(), made.as_deref());
        Item::Job(Entry {
            id: id.clone(),
            payload,
            due_ms,
            version: format!("{version} {options:?}").into_bytes(),
            options,
            handle: id,
        })
    }

    /// The job's data, from the payload that was made of it.
    pub fn data_of<'a>(&self, entry: &'a Entry) -> &'a [u8] {
        #[derive(serde::Deserialize)]
        struct Named<'a> {
            #[serde(borrow)]
            data: &'a RawValue,
        }
        match self.payload {
            BullPayload::Data => &entry.payload,
            BullPayload::Named => serde_json::from_slice::<Named>(&entry.payload)
                .map_or(&[][..], |named| named.data.get().as_bytes()),
        }
    }
}

pub struct Delayed {
    jobs: Jobs,
    scan: Scan,
    delete: Script,
}

impl Delayed {
    pub fn new(server: Connection, jobs: Jobs, batch: usize) -> Delayed {
        Delayed {
            scan: Scan::new(server, &format!("{}delayed", jobs.prefix), batch),
            jobs,
            delete: Script::new(&format!("{REMOVE}{DELETE}")),
        }
    }
}

fn when(score: String) -> Option<(u64, String)> {
    instant_ms(&score, 1.0 / SCORE_PER_MS)?;
    Some((whole_ms(&score)?, score))
}

/// The low 12 bits are the order among jobs of the same millisecond, no part of the due time.
pub fn whole_ms(score: &str) -> Option<u64> {
    let score: f64 = score.parse().ok()?;
    Some((score / SCORE_PER_MS).floor() as u64)
}

/// The data is inserted unchanged, byte for byte.
pub fn named(name: &str, data: &str) -> Option<Vec<u8>> {
    #[derive(serde::Serialize)]
    struct Named<'a> {
        name: &'a str,
        data: &'a RawValue,
    }
    let data: &RawValue = serde_json::from_str(data).ok()?;
    serde_json::to_vec(&Named { name, data }).ok()
}

pub fn job_options(opts: Option<&str>, priority: Option<&str>, made: Option<&str>) -> JobOptions {
    let opts: Value = opts
        .and_then(|opts| serde_json::from_str(opts).ok())
        .unwrap_or_default();
    let made: u64 = made.and_then(|made| made.parse().ok()).unwrap_or(0);
    // BullMQ counts failed attempts; a job that asks for no number has one attempt.
    let attempts = opts["attempts"].as_u64().unwrap_or(1).max(1);
    let remaining = attempts.saturating_sub(made).max(1);
    JobOptions {
        priority: priority
            .and_then(|priority| priority.parse().ok())
            .filter(|&priority: &i64| priority != 0),
        ttr_ms: None,
        attempts: Some(remaining),
        backoff_ms: Some(backoff(&opts["backoff"], made, remaining)).filter(|it| !it.is_empty()),
        ..JobOptions::default()
    }
}

/// The delays before the remaining attempts.
fn backoff(backoff: &Value, made: u64, remaining: u64) -> Vec<u64> {
    const LONGEST: u64 = 32; // 2 to that power of any delay is longer than a job's life
    let delay = backoff.as_u64().or_else(|| backoff["delay"].as_u64());
    let Some(delay @ 1..) = delay else {
        return Vec::new();
    };
    match backoff["type"].as_str() {
        None | Some("fixed") => vec![delay],
        Some("exponential") => (made..made + (remaining - 1).min(LONGEST))
            .map(|failures| delay << failures.min(LONGEST))
            .filter(|&wait| wait < crate::entry::LAST_INSTANT_MS)
            .collect(),
        Some(_) => Vec::new(), // a strategy defined by the application
    }
}

impl Scanned for Delayed {
    fn scan(&mut self) -> &mut Scan {
        &mut self.scan
    }

    fn title(&self) -> String {
        format!("BullMQ's {}", self.scan.key)
    }

    /// A queue that was ever opened by BullMQ has settings.
    fn exists(&mut self) -> Result<bool> {
        let meta = format!("{}meta", self.jobs.prefix);
        any_exists(&mut self.scan.server, &[&meta, &self.scan.key])
    }

    fn items(&mut self, page: Scored) -> Result<Vec<Item>> {
        let ids = page.iter().map(|(id, _)| id);
        let hashes = self.jobs.hashes(&mut self.scan.server, ids)?;
        let items = page.into_iter().zip(hashes);
        Ok(items
            .map(|((id, score), fields)| self.jobs.item(id, fields, when(score)))
            .collect())
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        let mut invocation = self.delete.key(self.jobs.key("events"));
        invocation.key(self.jobs.key("meta"));
        invocation.key(&self.scan.key);
        invocation.arg(self.jobs.prefix());
        for entry in entries {
            invocation.key(self.jobs.key(&entry.handle));
            invocation
                .arg(&entry.handle)
                .arg(score_of(entry))
                .arg(sha1(self.jobs.data_of(entry)));
        }
        deleted(&invocation, &mut self.scan.server, entries.len())
    }

    fn remark(&mut self) -> Result<Option<String>> {
        let (waiting, paused, prioritized, active): (u64, u64, u64, u64) = redis::pipe()
            .cmd("LLEN")
            .arg(self.jobs.key("wait"))
            .cmd("LLEN")
            .arg(self.jobs.key("paused"))
            .cmd("ZCARD")
            .arg(self.jobs.key("prioritized"))
            .cmd("LLEN")
            .arg(self.jobs.key("active"))
            .query(&mut self.scan.server)?;
        let due = waiting + paused + prioritized;
        Ok((due + active > 0).then(|| {
            let due = counted(due, "job is already due", "jobs are already due");
            let active = counted(active, "is active", "are active");
            format!("{due}, {active}: for BullMQ's own workers (--due imports what is due).")
        }))
    }
}

fn score_of(entry: &Entry) -> &[u8] {
    entry
        .version
        .split(|&byte| byte == b' ')
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_wrapped_and_found_again_byte_for_byte() {
        let data = r#"{ "n": 1.50, "text":"\u00e9" }"#;
        let payload = named("mail \"x\"", data).expect("JSON");
        assert_eq!(
            String::from_utf8(payload.clone()).expect("UTF-8"),
            r#"{"name":"mail \"x\"","data":{ "n": 1.50, "text":"\u00e9" }}"#
        );
        let entry = Entry {
            id: Vec::new(),
            payload,
            due_ms: 0,
            options: JobOptions::default(),
            handle: Vec::new(),
            version: b"77 x".to_vec(),
        };
        let jobs = Jobs::new("bull", "orders", BullPayload::Named);
        assert_eq!(jobs.data_of(&entry), data.as_bytes());
        assert_eq!(score_of(&entry), b"77");
        assert_eq!(named("x", "{"), None);
    }

    #[test]
    fn the_order_within_a_millisecond_is_no_part_of_the_due() {
        let base = 1_795_159_820_557_u64 * 4096;
        for order in [0, 1, 4095] {
            assert_eq!(
                whole_ms(&(base + order).to_string()),
                Some(1_795_159_820_557)
            );
        }
    }

    #[test]
    fn attempts_and_waits_are_those_that_remain() {
        let of = |opts, made| job_options(Some(opts), Some("3"), made);
        let job = of(
            r#"{"attempts":5,"backoff":{"type":"exponential","delay":1000}}"#,
            Some("2"),
        );
        assert_eq!((job.priority, job.attempts), (Some(3), Some(3)));
        assert_eq!(job.backoff_ms, Some(vec![4000, 8000]));
        let job = of(r#"{"attempts":3,"backoff":500}"#, None);
        assert_eq!((job.attempts, job.backoff_ms), (Some(3), Some(vec![500])));
        assert_eq!(of("{}", None).attempts, Some(1));
    }
}
