//! The dq queue, and the ledger of what was imported, a key of its own.
//!
//! The ledger is a hash: id -> `mark due`, or `mark due deleting` while the job is being deleted from the source, or
//! `duplicate`. Each source has its own. One script writes a job and its line in the ledger. So a job is added once,
//! however often the import is interrupted and run again, even if the job was delivered and acknowledged in between.

use std::collections::HashMap;

use anyhow::{bail, Context, Result};
use redis::{Connection, Script, Value};

use crate::entry::{Entry, Seen};
use crate::source::Setting;

/// The end of a line while the import is deleting this job from the source.
const DELETING: &str = " deleting";

/// How the reply about a job begins whose rule or AFTER the server does not accept.
const REFUSED: &str = "refused ";

/// KEYS: the queue, the ledger. ARGV, for each job: id, mark, due, payload, number of options, options ...
/// Replies with one of `Written` for each. If it fails, the jobs before the error have been added. What comes
/// first among the options may not be acceptable here: a rule, or an AFTER of jobs that were not imported. That is no
/// error.
const ADD: &str = r"
local answers, at = {}, 1
while at <= #ARGV do
  local id, mark, due = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local options = tonumber(ARGV[at + 4])
  local first = options > 0 and ARGV[at + 5]
  local refusable = first == 'CRON' or first == 'EVERY' or first == 'AFTER'
  local line = redis.call('HGET', KEYS[2], id)
  local answer
  if not line then
    local added = redis.pcall('DQ.ADD', KEYS[1], id, ARGV[at + 3], 'NX',
      unpack(ARGV, at + 5, at + 4 + options))
    if type(added) == 'table' and added.err then
      if not refusable or string.sub(added.err, 1, 4) ~= 'ERR ' then return added end
      answer = 'refused ' .. string.sub(added.err, 5)
    elseif added then
      redis.call('HSET', KEYS[2], id, mark .. ' ' .. due)
      answer = 'added'
    else
      redis.call('HSET', KEYS[2], id, 'duplicate')
      answer = 'duplicate'
    end
  elseif line == 'duplicate' then answer = 'duplicate'
  elseif string.sub(line, 1, #mark + 1) == mark .. ' ' then answer = 'before'
  else answer = 'changed'
  end
  answers[#answers + 1] = answer
  at = at + 5 + options
end
return answers";

/// What is in the queue of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Found {
    /// In the queue, as imported.
    There,
    /// Imported, and no longer in the queue.
    Finished,
    /// The queue had a job with that id before the import.
    Duplicate,
    /// The source's job is no longer what was imported.
    ChangedInSource,
    /// The queue's job is not what was imported.
    Differs,
    /// Never imported.
    Missing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    Added,
    Before,
    Duplicate,
    Changed,
    /// This server does not accept the job's rule, or its AFTER.
    Refused(String),
}

pub struct Target {
    server: Connection,
    queue: String,
    ledger: String,
    add: Script,
}

impl Target {
    pub fn open(mut server: Connection, place: &str, queue: &str, source: &str) -> Result<Target> {
        redis::cmd("DQ.LEN")
            .arg(queue)
            .query::<u64>(&mut server)
            .with_context(|| {
                format!("{place} must have the dq module, and {queue} must be a queue or not exist")
            })?;
        Ok(Target {
            server,
            queue: queue.to_owned(),
            ledger: ledger_of(queue, source),
            add: Script::new(ADD),
        })
    }

    pub fn title(&self) -> String {
        format!("the queue {}", self.queue)
    }

    pub fn ledger(&self) -> &str {
        &self.ledger
    }

    /// Whether something was imported from the source and not deleted there since.
    pub fn has_ledger(&mut self) -> Result<bool> {
        let there: u64 = redis::cmd("EXISTS")
            .arg(&self.ledger)
            .query(&mut self.server)?;
        Ok(there > 0)
    }

    pub fn add(&mut self, entries: &[Entry]) -> Result<Vec<Written>> {
        let mut invocation = self.add.key(&self.queue);
        invocation.key(&self.ledger);
        for entry in entries {
            let options = options_of(entry);
            invocation
                .arg(&entry.id)
                .arg(entry.mark())
                .arg(entry.due_ms)
                .arg(&entry.payload)
                .arg(options.len());
            for option in options {
                invocation.arg(option);
            }
        }
        let answers: Vec<String> = invocation.invoke(&mut self.server)?;
        answers.iter().map(|answer| written(answer)).collect()
    }

    /// Compares the entries with the ledger and the queue; changes nothing.
    pub fn find(&mut self, entries: &[Entry]) -> Result<Vec<Found>> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for entry in entries {
            pipe.cmd("HGET").arg(&self.ledger).arg(&entry.id);
            pipe.cmd("DQ.GET").arg(&self.queue).arg(&entry.id);
        }
        let answers: Vec<Value> = pipe.query(&mut self.server)?;
        let mut answers = answers.into_iter();
        entries
            .iter()
            .map(|entry| {
                let line = redis::from_redis_value(answers.next().context("an answer")?)?;
                let job = redis::from_redis_value(answers.next().context("an answer")?)?;
                found(entry, line, job)
            })
            .collect()
    }

    /// Records that jobs are about to be deleted from the source. If the import dies now, those that are missing from
    /// the source later were deleted by it, not taken by other workers.
    pub fn note_deleting(&mut self, entries: &[Entry], deleting: bool) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let ids: Vec<&Vec<u8>> = entries.iter().map(|entry| &entry.id).collect();
        let lines: Vec<Option<String>> = redis::cmd("HMGET")
            .arg(&self.ledger)
            .arg(&ids)
            .query(&mut self.server)?;
        let mut set = redis::cmd("HSET");
        set.arg(&self.ledger);
        for (id, line) in ids.into_iter().zip(lines) {
            let line = line.context("the ledger was deleted")?;
            let line = line.trim_end_matches(DELETING);
            set.arg(id)
                .arg(format!("{line}{}", if deleting { DELETING } else { "" }));
        }
        Ok(set.query(&mut self.server)?)
    }

    /// Removes jobs that are no longer in the source from the ledger.
    pub fn strike<'a>(&mut self, ids: impl IntoIterator<Item = &'a Vec<u8>>) -> Result<()> {
        let ids: Vec<&Vec<u8>> = ids.into_iter().collect();
        if !ids.is_empty() {
            redis::cmd("HDEL")
                .arg(&self.ledger)
                .arg(ids)
                .query::<u64>(&mut self.server)?;
        }
        Ok(())
    }

    /// The jobs of the ledger that were imported, except those in `known`; and for each whether the import was deleting
    /// it.
    pub fn imported_but(&mut self, known: &Seen) -> Result<Vec<(Vec<u8>, bool)>> {
        let mut others = HashMap::new();
        let mut cursor: u64 = 0;
        loop {
            let (next, page): (u64, Vec<(Vec<u8>, String)>) = redis::cmd("HSCAN")
                .arg(&self.ledger)
                .arg(cursor)
                .arg("COUNT")
                .arg(1000)
                .query(&mut self.server)?;
            for (id, line) in page {
                if line != "duplicate" && !known.contains(&id) {
                    others.insert(id, line.ends_with(DELETING));
                }
            }
            if next == 0 {
                return Ok(others.into_iter().collect());
            }
            cursor = next;
        }
    }

    /// Cancels a job; returns whether it was deleted: not if a worker has reserved or finished it.
    pub fn cancel(&mut self, id: &[u8]) -> Result<bool> {
        let gone: u64 = redis::cmd("DQ.DEL")
            .arg(&self.queue)
            .arg("UNRESERVED")
            .arg("IDS")
            .arg(1)
            .arg(id)
            .query(&mut self.server)?;
        Ok(gone > 0)
    }

    /// Gives the queue its settings, unless it is there already; returns whether it did.
    pub fn configure(&mut self, settings: &[Setting]) -> Result<bool> {
        let there: u64 = redis::cmd("EXISTS")
            .arg(&self.queue)
            .query(&mut self.server)?;
        if there > 0 {
            return Ok(false);
        }
        for (command, words) in settings {
            redis::cmd(command)
                .arg(&self.queue)
                .arg(words)
                .exec(&mut self.server)?;
        }
        Ok(true)
    }

    pub fn forget(&mut self) -> Result<bool> {
        let gone: u64 = redis::cmd("UNLINK")
            .arg(&self.ledger)
            .query(&mut self.server)?;
        Ok(gone > 0)
    }
}

/// The ledger's key, in the queue's slot of a cluster.
fn ledger_of(queue: &str, source: &str) -> String {
    format!("dq:import:{}:{source}", tagged(queue))
}

/// The queue's name with a hash tag.
pub fn tagged(queue: &str) -> String {
    let has_tag = queue
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .is_some_and(|(tag, _)| !tag.is_empty());
    match has_tag {
        true => queue.to_owned(),
        false => format!("{{{queue}}}"),
    }
}

fn options_of(entry: &Entry) -> Vec<Vec<u8>> {
    let options = &entry.options;
    let rule = options.rule.as_ref();
    let mut words = rule.map_or_else(Vec::new, |rule| bytes(&rule.words));
    words.extend_from_slice(&options.words);
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend(bytes(&[name.to_owned(), value]));
        }
    };
    let starts = rule.map_or(Some(entry.due_ms), |rule| rule.starts_ms);
    let starts = starts.filter(|due| *due > 0 || !options.waits());
    option("AT", starts.map(|value| value.to_string()));
    option("PRIORITY", options.priority.map(|value| value.to_string()));
    option("TTR", options.ttr_ms.map(|value| value.to_string()));
    option("ATTEMPTS", options.attempts.map(|value| value.to_string()));
    if let Some(backoff_ms) = &options.backoff_ms {
        option("BACKOFF", Some(backoff_ms.len().to_string()));
        let steps: Vec<String> = backoff_ms.iter().map(u64::to_string).collect();
        words.extend(bytes(&steps));
    }
    words
}

fn bytes(words: &[String]) -> Vec<Vec<u8>> {
    let bytes = words.iter().map(|word| word.clone().into_bytes());
    bytes.collect()
}

fn written(answer: &str) -> Result<Written> {
    Ok(match answer {
        "added" => Written::Added,
        "before" => Written::Before,
        "duplicate" => Written::Duplicate,
        "changed" => Written::Changed,
        refused if refused.starts_with(REFUSED) => {
            Written::Refused(refused[REFUSED.len()..].to_owned())
        }
        other => bail!("unexpected answer of the script: {other}"),
    })
}

fn found(
    entry: &Entry,
    line: Option<String>,
    job: Option<HashMap<String, Value>>,
) -> Result<Found> {
    let Some(line) = line else {
        return Ok(Found::Missing);
    };
    if line == "duplicate" {
        return Ok(Found::Duplicate);
    }
    let (mark, due) = line
        .trim_end_matches(DELETING)
        .split_once(' ')
        .context("an entry of the ledger that dq import did not write")?;
    if mark != entry.mark() {
        return Ok(Found::ChangedInSource);
    }
    let Some(mut job) = job else {
        return Ok(Found::Finished);
    };
    let mut field = |name: &str| job.remove(name).context("a field of DQ.GET");
    let payload: Vec<u8> = redis::from_redis_value(field("payload")?)?;
    let attempts: u64 = redis::from_redis_value(field("attempts")?)?;
    let its_due: Option<u64> = redis::from_redis_value(field("due")?)?;
    // A job that was delivered, or unblocked, may have another due time: that of its retry, or of its next run.
    let moves = attempts > 0 || entry.options.rule.is_some() || entry.options.waits();
    let same = payload == entry.payload && (moves || its_due == Some(due.parse::<u64>()?));
    Ok(if same { Found::There } else { Found::Differs })
}

#[cfg(test)]
mod tests {
    use super::ledger_of;

    #[test]
    fn the_ledger_is_in_the_queues_slot() {
        assert_eq!(ledger_of("mails", "zset old"), "dq:import:{mails}:zset old");
        assert_eq!(
            ledger_of("{shop}mails", "zset old"),
            "dq:import:{shop}mails:zset old"
        );
    }
}
