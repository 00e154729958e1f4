//! A dq queue, job by job: for queues whose dump is too large, and those that go into one that has jobs.

use std::collections::HashMap;

use anyhow::{Context, Result};
use redis::{cmd, from_redis_value, Connection, Script, Value};

use super::said::told_alike;
use super::scan::any_exists;
use super::{Pass, Setting, Source};
use crate::entry::{now_ms, sha1, Entry, Item, JobOptions, Rule};

/// What tells whether a job has changed since it was read, besides its payload.
const VERSION: [&str; 7] = [
    "due",
    "priority",
    "attempts",
    "max-attempts",
    "ttr",
    "expires",
    "group",
];

/// KEYS: the queue. ARGV, for each job: id, version, SHA-1 of its payload. Replies with 1 or 0 for each.
const DELETE: &str = r"
local answers = {}
for at = 1, #ARGV, 3 do
  local job, is, version = redis.call('DQ.GET', KEYS[1], ARGV[at]), {}, {}
  for i = 1, #(job or {}), 2 do is[job[i]] = job[i + 1] end
  for i, name in ipairs({'due', 'priority', 'attempts', 'max-attempts', 'ttr', 'expires', 'group'}) do
    version[i] = tostring(is[name])
  end
  local same = job and table.concat(version, ' ') == ARGV[at + 1] and redis.sha1hex(is.payload) == ARGV[at + 2]
  answers[#answers + 1] = same and redis.call('DQ.DEL', KEYS[1], 'UNRESERVED', 'IDS', 1, ARGV[at]) or 0
end
return answers";

type Fields = HashMap<String, Value>;

pub struct Queue {
    server: Connection,
    key: String,
    batch: usize,
    /// The next step of the pass.
    step: Step,
    blocked: Vec<Vec<u8>>,
    pass: Pass,
}

#[derive(Clone, Copy)]
enum Step {
    Scan(u64),
    Blocked,
    Over,
}

impl Queue {
    pub fn new(server: Connection, key: &str, batch: usize) -> Queue {
        Queue {
            server,
            key: key.to_owned(),
            batch,
            step: Step::Over,
            blocked: Vec::new(),
            pass: Pass::Read,
        }
    }

    /// The ids of blocked jobs, in the order of adding: each comes after those that it waits for.
    fn read_blocked(&mut self) -> Result<()> {
        let count: u64 = cmd("DQ.LEN")
            .arg(&self.key)
            .arg("BLOCKED")
            .query(&mut self.server)?;
        let peeked: Vec<Vec<Value>> = match count {
            0 => Vec::new(),
            _ => cmd("DQ.PEEK")
                .arg(&self.key)
                .arg("BLOCKED")
                .arg("COUNT")
                .arg(count)
                .arg("PREFIX")
                .arg(0)
                .query(&mut self.server)?,
        };
        let id = |fields: Vec<Value>| {
            Ok(from_redis_value(
                fields.into_iter().next().context("an id")?,
            )?)
        };
        self.blocked = peeked.into_iter().map(id).collect::<Result<_>>()?;
        // next_page takes them from the end. When they are deleted, none may lose what it waits for before it goes.
        if self.pass == Pass::Read {
            self.blocked.reverse();
        }
        Ok(())
    }

    fn scan(&mut self, cursor: u64) -> Result<Vec<Vec<u8>>> {
        let (next, ids): (u64, Vec<Vec<u8>>) = cmd("DQ.SCAN")
            .arg(&self.key)
            .arg(cursor)
            .arg("COUNT")
            .arg(self.batch)
            .query(&mut self.server)?;
        self.step = match (next, self.pass) {
            (0, Pass::Read) => Step::Blocked,
            (0, Pass::Delete) => Step::Over,
            _ => Step::Scan(next),
        };
        Ok(ids)
    }

    fn take_blocked(&mut self) -> Vec<Vec<u8>> {
        let rest = self.blocked.len().saturating_sub(self.batch);
        let ids = self.blocked.split_off(rest).into_iter().rev().collect();
        if rest == 0 {
            self.step = match self.pass {
                Pass::Read => Step::Over,
                Pass::Delete => Step::Scan(0),
            };
        }
        ids
    }

    fn read(&mut self, ids: Vec<Vec<u8>>, are_blocked: bool) -> Result<Vec<Item>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for id in &ids {
            pipe.cmd("DQ.GET").arg(&self.key).arg(id);
        }
        let jobs: Vec<Option<Fields>> = pipe.query(&mut self.server)?;
        let mut items = Vec::new();
        for (id, job) in ids.into_iter().zip(jobs) {
            let Some(job) = job.map(Job) else { continue };
            if (job.text("state")? == "blocked") == are_blocked {
                items.push(job.item(id)?);
            }
        }
        Ok(items)
    }
}

impl Queue {
    fn settings_of(&mut self, group: Vec<u8>) -> Result<Vec<Setting>> {
        let mut asked = cmd("DQ.GROUPGET");
        let asked: Option<Fields> = asked.arg(&self.key).arg(&group).query(&mut self.server)?;
        let mut fields = asked.unwrap_or_default();
        for figure in ["waiting", "reserved", "rate-used"] {
            fields.remove(figure);
        }
        let (words, pause) = words_of(fields)?;
        let mut commands = Vec::new();
        if !words.is_empty() {
            commands.push(("DQ.GROUPSET", [vec![group.clone()], words].concat()));
        }
        if let Some(left) = pause {
            let of_group = [b"GROUP".to_vec(), group];
            commands.push(("DQ.PAUSE", left.into_iter().chain(of_group).collect()));
        }
        Ok(commands)
    }
}

impl Source for Queue {
    fn title(&self) -> String {
        format!("the queue {}, job by job", self.key)
    }

    fn exists(&mut self) -> Result<bool> {
        any_exists(&mut self.server, &[&self.key])
    }

    fn size(&mut self) -> Result<u64> {
        let mut size = 0;
        for state in [None, Some("DEAD"), Some("DONE")] {
            size += cmd("DQ.LEN")
                .arg(&self.key)
                .arg(state)
                .query::<u64>(&mut self.server)?;
        }
        Ok(size)
    }

    fn begin(&mut self, pass: Pass) -> Result<()> {
        self.pass = pass;
        self.read_blocked()?;
        self.step = match pass {
            Pass::Read => Step::Scan(0),
            Pass::Delete => Step::Blocked,
        };
        Ok(())
    }

    fn next_page(&mut self) -> Result<Option<Vec<Item>>> {
        match self.step {
            Step::Scan(cursor) => {
                let ids = self.scan(cursor)?;
                self.read(ids, false).map(Some)
            }
            Step::Blocked => {
                let ids = self.take_blocked();
                self.read(ids, true).map(Some)
            }
            Step::Over => Ok(None),
        }
    }

    /// The queue's own settings and those of its groups, and pauses.
    fn settings(&mut self) -> Result<Vec<Setting>> {
        let asked: Option<Fields> = cmd("DQ.CFGGET").arg(&self.key).query(&mut self.server)?;
        let (words, pause) = words_of(asked.unwrap_or_default())?;
        let mut commands = vec![("DQ.CFGSET", words)];
        commands.extend(pause.map(|left| ("DQ.PAUSE", left.into_iter().collect())));
        let mut cursor = 0;
        loop {
            let mut page = cmd("DQ.GROUPS");
            page.arg(&self.key)
                .arg(cursor)
                .arg("SET")
                .arg("COUNT")
                .arg(self.batch);
            let (next, groups): (u64, Vec<(Vec<u8>, u64, u64)>) = page.query(&mut self.server)?;
            for (name, ..) in groups {
                commands.extend(self.settings_of(name)?);
            }
            match next {
                0 => return Ok(commands),
                next => cursor = next,
            }
        }
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        let script = Script::new(DELETE);
        let mut invocation = script.key(&self.key);
        for entry in entries {
            invocation
                .arg(&entry.id)
                .arg(&entry.version)
                .arg(sha1(&entry.payload));
        }
        let answers: Vec<u64> = invocation.invoke(&mut self.server)?;
        Ok(answers.into_iter().map(|answer| answer > 0).collect())
    }
}

/// The words that give these settings; and whether there is a pause, with what is left of it if it ends by itself.
#[allow(clippy::type_complexity, reason = "said above")]
fn words_of(fields: Fields) -> Result<(Vec<Vec<u8>>, Option<Option<Vec<u8>>>)> {
    let (mut words, mut pause) = (Vec::new(), None);
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("paused", Value::Int(0)) => {}
            ("paused", Value::Int(until)) => {
                let left = until - now_ms() as i64;
                pause = Some((until > 0).then(|| left.max(1).to_string().into_bytes()));
            }
            ("backoff", steps) => {
                if let Some(steps) = ladder(from_redis_value(steps)?) {
                    words.extend([b"BACKOFF".to_vec(), steps.len().to_string().into_bytes()]);
                    words.extend(steps.iter().map(|step| step.to_string().into_bytes()));
                }
            }
            (_, Value::Array(numbers)) => {
                words.push(name.to_uppercase().into_bytes());
                for number in numbers {
                    words.push(bytes(number)?);
                }
            }
            (_, Value::Nil) => {}
            (_, value) => words.extend([name.to_uppercase().into_bytes(), bytes(value)?]),
        }
    }
    Ok((words, pause))
}

/// A number as its digits.
fn bytes(value: Value) -> Result<Vec<u8>> {
    Ok(match value {
        Value::Int(number) => number.to_string().into_bytes(),
        other => from_redis_value(other)?,
    })
}

/// What DQ.GET answers.
struct Job(Fields);

impl Job {
    fn get(&self, name: &str) -> Value {
        self.0.get(name).cloned().unwrap_or(Value::Nil)
    }

    fn text(&self, name: &str) -> Result<String> {
        Ok(from_redis_value(self.get(name))?)
    }

    fn number(&self, name: &str) -> Result<Option<u64>> {
        Ok(from_redis_value(self.get(name))?)
    }

    fn has(&self, name: &str) -> bool {
        match self.get(name) {
            Value::Nil => false,
            Value::Array(items) => !items.is_empty(),
            Value::Map(items) => !items.is_empty(),
            _ => true,
        }
    }

    fn item(&self, id: Vec<u8>) -> Result<Item> {
        let why = match self.text("state")?.as_str() {
            "reserved" => Some("a worker has it"),
            "dead" => Some("it is dead: DQ.KICK or DQ.DEL it"),
            "done" => Some("it is done, and kept"),
            _ if self.has("awaits") => Some("it waits for a signal"),
            _ if self.has("steps") => Some("it has steps, which would be repeated"),
            _ => None,
        };
        if let Some(why) = why {
            return Ok(Item::Left { name: id, why });
        }
        let due = self.number("due")?;
        Ok(Item::Job(Entry {
            payload: from_redis_value(self.get("payload"))?,
            due_ms: due.unwrap_or(0),
            options: self.options(due)?,
            version: self.version()?,
            handle: id.clone(),
            id,
        }))
    }

    /// As the script of `DELETE` writes it.
    fn version(&self) -> Result<Vec<u8>> {
        let parts: Result<Vec<Vec<u8>>> = VERSION
            .iter()
            .map(|name| match self.get(name) {
                Value::Nil => Ok(b"false".to_vec()),
                value => bytes(value),
            })
            .collect();
        Ok(parts?.join(&b' '))
    }

    fn options(&self, due: Option<u64>) -> Result<JobOptions> {
        let made = self.number("attempts")?.unwrap_or(0);
        let allowed = self.number("max-attempts")?.unwrap_or(0);
        let mut backoff_ms = ladder(from_redis_value(self.get("backoff"))?);
        if let Some(steps) = &mut backoff_ms {
            let used = made.min(steps.len().saturating_sub(1) as u64);
            steps.drain(..used as usize);
        }
        Ok(JobOptions {
            priority: from_redis_value(self.get("priority"))?,
            ttr_ms: self.number("ttr")?,
            attempts: Some(match allowed {
                0 => 0,
                allowed => allowed.saturating_sub(made).max(1),
            }),
            backoff_ms,
            rule: self.rule(due)?,
            words: self.words()?,
        })
    }

    fn rule(&self, due: Option<u64>) -> Result<Option<Rule>> {
        if !self.has("every") && !self.has("cron") {
            return Ok(None);
        }
        let mut words = Vec::new();
        for name in ["every", "cron", "tz", "until", "grace", "jitter"] {
            // An interval has no zone, though DQ.GET may show one.
            if self.has(name) && !(name == "tz" && self.has("every")) {
                words.extend([name.to_uppercase(), self.text(name)?]);
            }
        }
        if let Some(times) = self.number("times")? {
            let left = times.saturating_sub(self.number("runs")?.unwrap_or(0));
            words.extend(["TIMES".to_owned(), left.max(1).to_string()]);
        }
        Ok(Some(Rule {
            words,
            starts_ms: due,
        }))
    }

    /// What only dq's jobs have. AFTER comes first: the script looks for it.
    fn words(&self) -> Result<Vec<Vec<u8>>> {
        let mut words: Vec<Vec<u8>> = Vec::new();
        if self.has("after-group") {
            words.extend([
                b"AFTER".to_vec(),
                b"GROUP".to_vec(),
                from_redis_value(self.get("after-group"))?,
            ]);
        } else if self.has("after") {
            let ids: Vec<Vec<u8>> = from_redis_value(self.get("after"))?;
            words.extend([b"AFTER".to_vec(), ids.len().to_string().into_bytes()]);
            words.extend(ids);
            words.extend([
                b"ONDEAD".to_vec(),
                self.text("on-dead")?.to_uppercase().into_bytes(),
            ]);
        }
        for (word, field, unsaid) in told_alike() {
            let is_unsaid = unsaid.is_some_and(|it| self.get(field) == Value::Int(it as i64));
            if self.has(field) && !is_unsaid {
                words.extend([word.into(), bytes(self.get(field))?]);
            }
        }
        if let Some(expires) = self
            .number("expires")?
            .filter(|_| !self.has("every") && !self.has("cron"))
        {
            let left = expires.saturating_sub(now_ms()).max(1);
            words.extend([b"TTL".to_vec(), left.to_string().into_bytes()]);
        }
        Ok(words)
    }
}
/// The steps behind BACKOFF, none of them for no wait; `None`: the server's hold.
fn ladder(shown: Vec<u64>) -> Option<Vec<u64>> {
    match shown[..] {
        [] => None,
        [0] => Some(Vec::new()),
        _ => Some(shown),
    }
}
