//! All recurring jobs of a program at once.

use super::new_job::NewJob;
use super::queries::Scan;
use super::records::State;
use super::Queue;
use crate::bounds;
use crate::envelope::Envelope;
use crate::error::Error;
use crate::guard::log;
use crate::keys::crc_32;
use crate::values;
use redis::{cmd, Cmd, Value};
use std::collections::BTreeSet;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

/// The header with the time at which a rule was said last, and the checksum of what was said.
const SAID: &str = "dq:said";
const RECENT_MS: u64 = 600_000;
const AT_ONCE: usize = 1000;
const MOST_SHOWN: usize = 10;
/// Removes a job that is still as it was read: one that is said again has another payload.
const REMOVE: &str = "
local rule = redis.call('DQ.GET', KEYS[1], ARGV[1]) or {}
for at = 1, #rule, 2 do
  if rule[at] == 'payload' and rule[at + 1] == ARGV[2] then
    return redis.call('DQ.DEL', KEYS[1], 'UNRESERVED', 'IDS', 1, ARGV[1])
  end
end
return 0
";

/// What [`Queue::rules`] returns: add rules, set options, then `.await` it.
#[must_use = "nothing is said until it is awaited"]
pub struct Rules<'a> {
    queue: &'a Queue,
    program: Vec<u8>,
    rules: Vec<(Vec<u8>, NewJob)>,
    is_pruning: bool,
    may_be_empty: bool,
    is_dry: bool,
}

/// What [`Rules`] did, or would do: names of rules, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleChanges {
    /// They were not there.
    pub added: Vec<String>,
    /// They were other.
    pub changed: Vec<String>,
    /// They were as they are.
    pub kept: Vec<String>,
    /// They had left the set.
    pub removed: Vec<String>,
    /// Rules of the program that the set does not have, and that stay.
    pub unknown: Vec<String>,
}

struct Spoken {
    id: Vec<u8>,
    sum: String,
    command: Cmd,
}

impl Queue {
    /// Says all recurring jobs of a program: adds those that are new, and changes those that differ. The id of each is
    /// `program:name`. A worker's start says its rules, and logs which others there are; a deploy prunes them.
    ///
    /// ```no_run
    /// # use dq_redis::NewJob;
    /// # async fn say(queue: dq_redis::Queue) -> Result<(), dq_redis::Error> {
    /// let nightly = NewJob::cron("0 3 * * *", &()).tz("Europe/Berlin").kind("report");
    /// queue.rules("billing").rule("nightly", nightly).prune().await?;
    /// # Ok(()) }
    /// ```
    pub fn rules(&self, program: impl AsRef<[u8]>) -> Rules<'_> {
        Rules {
            queue: self,
            program: program.as_ref().to_vec(),
            rules: Vec::new(),
            is_pruning: false,
            may_be_empty: false,
            is_dry: false,
        }
    }
}

impl<'a> Rules<'a> {
    /// A rule by its name, which has no colon: a job of [`NewJob::every`] or [`NewJob::cron`] without an id.
    pub fn rule(mut self, name: impl AsRef<[u8]>, job: NewJob) -> Self {
        self.rules.push((name.as_ref().to_vec(), job));
        self
    }

    /// Removes the program's other rules, but none that is reserved, and none that was said within ten minutes, as by
    /// workers of the version before. For a deploy.
    pub fn prune(mut self) -> Self {
        self.is_pruning = true;
        self
    }

    /// Prunes even if there are no rules.
    pub fn allow_empty(mut self) -> Self {
        self.may_be_empty = true;
        self
    }

    /// Changes nothing.
    pub fn dry_run(mut self) -> Self {
        self.is_dry = true;
        self
    }

    async fn say(mut self) -> Result<RuleChanges, Error> {
        bounds::between("program", self.program.len() as u64, " bytes", 1, 1022)?;
        let queue = self.queue;
        let now = values::instant_ms(SystemTime::now());
        let rules = std::mem::take(&mut self.rules);
        let spoken = rules
            .into_iter()
            .map(|(name, job)| self.spoken(&name, job, now));
        let spoken: Vec<Spoken> = spoken.collect::<Result<_, _>>()?;
        let before = queue.jobs(spoken.iter().map(|each| &*each.id)).await?;
        if !self.is_dry {
            let all = spoken
                .iter()
                .map(|each| (queue.key(&each.id).clone(), each.command.clone()));
            queue.all(all.collect()).await?;
        }
        let mut others = self.others().await?;
        spoken.iter().for_each(|each| _ = others.remove(&each.id));
        let is_pruning = self.is_pruning && (!spoken.is_empty() || self.may_be_empty);
        let removed = match is_pruning {
            true => self.pruned(&others, now).await?,
            false => Vec::new(),
        };
        removed.iter().for_each(|id| _ = others.remove(id));
        let mut changes = RuleChanges {
            removed: self.names(removed),
            unknown: self.names(others),
            ..RuleChanges::default()
        };
        for (each, job) in spoken.into_iter().zip(before) {
            let to = match job {
                Value::Nil => &mut changes.added,
                job => match Stamp::of(job).sum == each.sum {
                    true => &mut changes.kept,
                    false => &mut changes.changed,
                },
            };
            to.extend(self.names([each.id]));
        }
        for names in [&mut changes.added, &mut changes.changed, &mut changes.kept] {
            names.sort();
        }
        self.warn(&changes.unknown);
        Ok(changes)
    }

    fn names(&self, ids: impl IntoIterator<Item = Vec<u8>>) -> Vec<String> {
        let name = |id: Vec<u8>| values::lossy(id[self.program.len() + 1..].to_vec());
        let mut names: Vec<String> = ids.into_iter().map(name).collect();
        names.sort();
        names
    }

    fn warn(&self, names: &[String]) {
        if !names.is_empty() {
            let queue = self.queue.name();
            let program = values::lossy(self.program.clone());
            let (count, some) = (names.len(), names[..names.len().min(MOST_SHOWN)].join(", "));
            log!(
                warn,
                queue,
                program,
                count,
                "rules of the program that are not in this set: {some}"
            );
        }
    }

    fn spoken(&self, name: &[u8], mut job: NewJob, now: u64) -> Result<Spoken, Error> {
        let shown = || values::lossy(name.to_vec());
        if name.is_empty() || name.contains(&b':') {
            return Err(Error::Usage(format!(
                "the name of a rule is not empty and has no colon, not {:?}",
                shown()
            )));
        }
        if job.options.rule.is_none() || job.options.id.is_some() {
            return Err(Error::Usage(format!(
                "rule {:?} is a job of NewJob::every or NewJob::cron, without an id",
                shown()
            )));
        }
        let id = [&*self.program, b":", name].concat();
        bounds::id(&id)?;
        let key = self.queue.key(&id);
        let plain = job.command(key, &id)?.get_packed_command();
        let sum = format!("{:x}", crc_32(&plain));
        let said = format!("{now} {sum}");
        job.options.headers.insert(SAID.to_owned(), said);
        self.queue.adding(&mut job);
        let command = job.command(key, &id)?;
        Ok(Spoken { id, sum, command })
    }

    /// The ids of the program's rules. What has another colon is of a program whose name is longer.
    async fn others(&self) -> Result<BTreeSet<Vec<u8>>, Error> {
        let mut pattern = Vec::new();
        for byte in &self.program {
            if b"*?[\\".contains(byte) {
                pattern.push(b'\\');
            }
            pattern.push(*byte);
        }
        pattern.extend(b":*");
        let mut found = BTreeSet::new();
        for shard in 0..self.queue.keys().len() {
            let scan = Scan::new().shard(shard).matching(&pattern).recurring();
            let scan = scan.count(AT_ONCE);
            let mut cursor = "0".to_owned();
            loop {
                let (next, ids) = self.queue.scan(&cursor, &scan).await?;
                let is_its = |id: &Vec<u8>| !id[self.program.len() + 1..].contains(&b':');
                found.extend(ids.into_iter().filter(is_its));
                if next == "0" {
                    break;
                }
                cursor = next;
            }
        }
        Ok(found)
    }

    /// Those of the jobs that were removed, or would be.
    async fn pruned(&self, ids: &BTreeSet<Vec<u8>>, now: u64) -> Result<Vec<Vec<u8>>, Error> {
        let ids: Vec<_> = ids.iter().collect();
        let mut removed = Vec::new();
        for some in ids.chunks(AT_ONCE) {
            let jobs = self.queue.jobs(some.iter().map(|id| &***id)).await?;
            for (id, job) in some.iter().zip(jobs) {
                let mut stamp = Stamp::of(job);
                if stamp.is_old(now) {
                    let payload = std::mem::take(&mut stamp.payload);
                    if self.is_dry || self.queue.remove_same(id, &payload).await? {
                        removed.push((*id).clone());
                    }
                }
            }
        }
        Ok(removed)
    }
}

impl Queue {
    /// The command that adds the job of a rule that stands beside a handler.
    pub(crate) fn beside(
        &self,
        mut job: NewJob,
        kind: Option<&str>,
    ) -> Result<(Arc<[u8]>, Cmd), Error> {
        if let Some(kind) = kind {
            job = job.kind(kind);
        }
        let id = job.given_id().or_else(|| Some(kind?.into()));
        let Some(id) = id.filter(|_| job.options.rule.is_some()) else {
            return Err(Error::usage(
                "the rule of a handler is a job of NewJob::every or NewJob::cron, with an id unless the handler has a kind",
            ));
        };
        bounds::id(&id)?;
        self.adding(&mut job);
        let key = self.key(&id).clone();
        let command = job.command(&key, &id)?;
        Ok((key, command))
    }

    async fn remove_same(&self, id: &[u8], payload: &[u8]) -> Result<bool, Error> {
        let mut remove = cmd("EVAL");
        remove
            .arg(REMOVE)
            .arg(1)
            .arg(&**self.key(id))
            .arg(id)
            .arg(payload);
        Ok(self.ask(id, &remove).await? != Value::Int(0))
    }

    async fn jobs(&self, ids: impl Iterator<Item = &[u8]>) -> Result<Vec<Value>, Error> {
        let get = |id: &[u8]| {
            let key: Arc<[u8]> = self.key(id).clone();
            let mut get = cmd("DQ.GET");
            get.arg(&*key).arg(id);
            (key, get)
        };
        self.all(ids.map(get).collect()).await
    }
}

/// When a set said a job, and the checksum; nothing if something else added it.
#[derive(Default)]
struct Stamp {
    at: Option<u64>,
    sum: String,
    payload: Vec<u8>,
    is_reserved: bool,
}

impl Stamp {
    fn of(job: Value) -> Self {
        let mut stamp = Stamp::default();
        for (name, value) in values::map(job) {
            match &*name {
                "state" => {
                    stamp.is_reserved =
                        values::text(value).as_deref() == Some(State::Reserved.word());
                }
                "payload" => {
                    stamp.payload = values::bytes(value).unwrap_or_default();
                    let envelope = Envelope::read(&stamp.payload);
                    let said = envelope.and_then(|it| it.headers.get(SAID).cloned());
                    if let Some((at, sum)) = said.as_deref().and_then(|said| said.split_once(' ')) {
                        stamp.at = at.parse().ok();
                        sum.clone_into(&mut stamp.sum);
                    }
                }
                _ => {}
            }
        }
        stamp
    }

    fn is_old(&self, now: u64) -> bool {
        let is_said_before = |at: u64| now.saturating_sub(at) >= RECENT_MS;
        !self.is_reserved && self.at.is_some_and(is_said_before)
    }
}

impl<'a> IntoFuture for Rules<'a> {
    type Output = Result<RuleChanges, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.say())
    }
}
