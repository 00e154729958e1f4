//! A whole dq queue by DUMP and RESTORE: leases, tokens, order and settings come along.
//!
//! DUMP under WATCH -> RESTORE under a name of its own, where no worker waits -> compared -> deleted from the source, if
//! requested and if nothing has changed it since -> renamed to the queue. So at no moment do two servers deliver it.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use redis::{cmd, Connection, ConnectionLike, Script, Value};

use crate::options::Options;
use crate::output::line;
use crate::target::tagged;

/// The dump's version of Redis 7.0, the oldest server that dq runs on. Every newer one reads it too, while Redis and
/// Valkey refuse each other's newer versions. A module's value is written in the same way in all of them.
const DUMP_VERSION: u16 = 10;
/// Behind the value: two bytes of version, eight of checksum.
const FOOTER: usize = 10;
const DEFAULT_BULK: u64 = 512 << 20;
/// A dump of that size takes the servers some seconds.
const PATIENCE: Duration = Duration::from_secs(600);

pub const NOT_BROUGHT: &str = "Job by job these do not come along: tokens and leases, attempts made, the order of jobs \
    with one due time, remembered ids (DEDUPE), groups' turns and settings, what is already over for blocked jobs, \
    totals. Reserved, dead and done jobs, and those with steps, stay in the source.";

/// KEYS: the staged queue, its final name. Takes the name if no job is under it.
const ARRIVE: &str = r"
for _, state in ipairs({{}, {'DEAD'}, {'DONE'}}) do
  if redis.call('DQ.LEN', KEYS[2], unpack(state)) > 0 then return 0 end
end
redis.call('RENAME', KEYS[1], KEYS[2])
return 1";

pub enum Outcome {
    /// Whether all is in order.
    Settled(bool),
    /// Only job by job, for this reason.
    ByCommands(String),
}

struct Whole<'a> {
    options: &'a Options,
    from: Connection,
    to: Connection,
    source: &'a str,
    queue: &'a str,
    /// Where the queue is on the target until it takes its name.
    staged: String,
}

pub fn run(options: &Options, source: &str) -> Result<Outcome> {
    let jobs = &options.jobs;
    if !jobs.id_prefix.is_empty()
        || jobs.ttr.or(jobs.attempts).or(jobs.due_after).is_some()
        || options.mode.cancel_gone
    {
        bail!("--id-prefix, --ttr, --attempts, --due-after and --cancel-gone need --by-commands: a whole queue moves as it is");
    }
    let patient = |server: Connection| {
        server.set_read_timeout(Some(PATIENCE))?;
        server.set_write_timeout(Some(PATIENCE))?;
        Ok::<_, anyhow::Error>(server)
    };
    let mut whole = Whole {
        options,
        from: patient(options.from()?)?,
        to: patient(options.to()?.1)?,
        source,
        queue: &options.queue,
        staged: format!("dq:moving:{}:{source}", tagged(&options.queue)),
    };
    if whole.is_same_key()? {
        bail!("--from is the same server, and {source} and --queue one key: nothing to move");
    }
    whole.run()
}

impl Whole<'_> {
    fn is_same_key(&mut self) -> Result<bool> {
        if self.source != self.queue || self.from.get_db() != self.to.get_db() {
            return Ok(false);
        }
        let told = "INFO must be allowed on both servers, to know whether they are one";
        let from = run_id(&mut self.from).context(told)?;
        Ok(from == run_id(&mut self.to).context(told)?)
    }

    fn run(&mut self) -> Result<Outcome> {
        let mode = &self.options.mode;
        let is_staged = exists(&mut self.to, &self.staged)?;
        if !exists(&mut self.from, self.source)? {
            if !is_staged {
                bail!("the queue {} does not exist: check the name", self.source);
            }
            if mode.dry_run || mode.check {
                bail!("an earlier run was interrupted after the deletion: run it again with --delete-source");
            }
            return self.arrive();
        }
        cmd("WATCH").arg(self.source).exec(&mut self.from)?;
        if self.is_there()? {
            return self.compare_with_queue();
        }
        if mode.check {
            line("check: MISSING: the queue was never imported\nNOT in order.")?;
            return Ok(Outcome::Settled(false));
        }
        let dump = match self.dump()? {
            Ok(dump) => dump,
            Err(why) => return Ok(Outcome::ByCommands(why)),
        };
        if mode.dry_run {
            let (source, bytes) = (self.source, dump.len());
            line(format_args!("the queue {source}, dry run:\n  would be imported whole, as a dump of {bytes} bytes"))?;
            return Ok(Outcome::Settled(true));
        }
        if !self.stage(&dump, is_staged)? {
            return self.changed();
        }
        if mode.delete_source && !self.delete()? {
            return self.changed();
        }
        self.arrive()
    }

    /// Whether the queue has jobs under its final name.
    fn is_there(&mut self) -> Result<bool> {
        Ok(jobs_of(&mut self.to, self.queue)? > 0)
    }

    /// An earlier run has copied it: it can be compared, and deleted from the source.
    fn compare_with_queue(&mut self) -> Result<Outcome> {
        let queue = self.queue;
        if !self.is_equal(queue)? {
            line(format_args!(
                "NOT in order.\n  {queue} has jobs of its own, or has changed since its import. A dump cannot be \
                 merged into it: use --by-commands, or another --queue."
            ))?;
            return Ok(Outcome::Settled(false));
        }
        if self.options.mode.delete_source && !self.delete()? {
            line("NOT in order.\n  The source was changed meanwhile.")?;
            return Ok(Outcome::Settled(false));
        }
        line("In order.")?;
        Ok(Outcome::Settled(true))
    }

    /// The dump, as every server reads it, or why it cannot be used.
    fn dump(&mut self) -> Result<Result<Vec<u8>, String>> {
        let bound = bulk_bound(&mut self.to)?;
        let stats = fields(&mut self.from, "DQ.STATS", &[self.source.as_bytes()])?;
        let payloads = number(&stats, "bytes") + number(&stats, "done-bytes");
        let too_large = |bytes: u64| {
            format!(
                "{bytes} bytes are more than the target's proto-max-bulk-len, {bound}: job by job"
            )
        };
        if payloads > bound {
            return Ok(Err(too_large(payloads)));
        }
        let dump: Option<Vec<u8>> = cmd("DUMP").arg(self.source).query(&mut self.from)?;
        let dump = dump.context("the source has gone meanwhile")?;
        if dump.len() as u64 > bound {
            return Ok(Err(too_large(dump.len() as u64)));
        }
        Ok(Ok(with_footer(dump)?))
    }

    /// Restores it under the staging name. False: the copy is not what is in the source now.
    fn stage(&mut self, dump: &[u8], is_staged: bool) -> Result<bool> {
        let staged = self.staged.clone();
        if is_staged {
            // It may be all that is left of the queue: if a run was interrupted after the deletion, and an old producer
            // has made the source anew.
            if !self.is_equal(&staged)? {
                bail!(
                    "{staged} on the target is from an interrupted run, and differs from the source. If the source \
                     still has those jobs, delete that key, and run this again; else rename it to {}",
                    self.queue
                );
            }
            return Ok(true);
        }
        let expires: i64 = cmd("PEXPIRETIME").arg(self.source).query(&mut self.from)?;
        cmd("RESTORE")
            .arg(&staged)
            .arg(expires.max(0))
            .arg(dump)
            .arg("ABSTTL")
            .exec(&mut self.to)
            .context("the target does not restore it; if its dq is older than the source's, use --by-commands")?;
        self.is_equal(&staged)
    }

    /// Deletes it in the source, unless anything has changed it since it was watched.
    fn delete(&mut self) -> Result<bool> {
        let mut transaction = redis::pipe();
        transaction.atomic().cmd("UNLINK").arg(self.source);
        let deleted: Option<(u64,)> = transaction.query(&mut self.from)?;
        if deleted.is_some() {
            line(format_args!(
                "the queue {}: deleted from the source",
                self.source
            ))?;
        }
        Ok(deleted.is_some())
    }

    /// The copy is of no use; the source still has all.
    fn changed(&mut self) -> Result<Outcome> {
        cmd("UNLINK").arg(&self.staged).exec(&mut self.to)?;
        line(format_args!(
            "NOT in order.\n  The queue changed while it was copied, and stays in the source alone. Stop its producers, \
             pause it (DQ.PAUSE {}), and run this again.",
            self.source
        ))?;
        Ok(Outcome::Settled(false))
    }

    fn arrive(&mut self) -> Result<Outcome> {
        let script = Script::new(ARRIVE);
        let arrived: u64 = script
            .key(&self.staged)
            .key(self.queue)
            .invoke(&mut self.to)?;
        let (staged, queue) = (&self.staged, self.queue);
        if arrived == 0 {
            bail!(
                "{queue} has got jobs of its own meanwhile. The whole queue is under {staged}: bring it from there, with \
                 --from the target, dq {staged} --by-commands"
            );
        }
        let jobs = jobs_of(&mut self.to, queue)?;
        line(format_args!(
            "the queue {} to the queue {queue}:\n  {jobs:>9}  imported whole\nIn order.",
            self.source
        ))?;
        Ok(Outcome::Settled(true))
    }

    /// Compares with a key of the target: by digest where both servers tell it, else each job and the settings.
    fn is_equal(&mut self, key: &str) -> Result<bool> {
        let digests = (
            digest(&mut self.from, self.source)?,
            digest(&mut self.to, key)?,
        );
        let (equal, how) = match digests {
            (Some(from), Some(to)) => (from == to, "by DEBUG DIGEST-VALUE"),
            _ => (
                self.is_equal_job_by_job(key)?,
                "by DQ.GET of each job, as DEBUG is not allowed",
            ),
        };
        let is = if equal { "equal" } else { "DIFFERENT" };
        line(format_args!("compared {how}: {is}"))?;
        Ok(equal)
    }

    fn is_equal_job_by_job(&mut self, key: &str) -> Result<bool> {
        let (source, key) = (self.source.as_bytes(), key.as_bytes());
        let settings = fields(&mut self.from, "DQ.CFGGET", &[source])?;
        if settings != fields(&mut self.to, "DQ.CFGGET", &[key])? {
            return Ok(false);
        }
        let mut cursor = 0;
        let mut shown = std::collections::HashSet::new();
        loop {
            let (next, ids): (u64, Vec<Vec<u8>>) = cmd("DQ.SCAN")
                .arg(source)
                .arg(cursor)
                .arg("COUNT")
                .arg(self.options.pace.batch)
                .query(&mut self.from)?;
            let from = jobs(&mut self.from, source, &ids)?;
            if from != jobs(&mut self.to, key, &ids)? {
                return Ok(false);
            }
            shown.extend(ids);
            if next == 0 {
                break;
            }
            cursor = next;
        }
        Ok(jobs_of(&mut self.to, &String::from_utf8_lossy(key))? == shown.len() as u64)
    }
}

fn run_id(server: &mut Connection) -> Result<String> {
    let info: String = cmd("INFO").arg("server").query(server)?;
    let id = info.lines().find_map(|text| text.strip_prefix("run_id:"));
    Ok(id.context("INFO names no run_id")?.to_owned())
}

fn exists(server: &mut Connection, key: &str) -> Result<bool> {
    Ok(cmd("EXISTS").arg(key).query::<u64>(server)? > 0)
}

/// Jobs in any state.
fn jobs_of(server: &mut Connection, key: &str) -> Result<u64> {
    let stats = fields(server, "DQ.STATS", &[key.as_bytes()])?;
    let states = ["delayed", "ready", "reserved", "dead", "blocked", "done"];
    Ok(states.iter().map(|state| number(&stats, state)).sum())
}

type Fields = HashMap<String, Value>;

/// The map that the command answers, empty for nil.
fn fields(server: &mut Connection, command: &str, arguments: &[&[u8]]) -> Result<Fields> {
    let answer: Option<Fields> = cmd(command).arg(arguments).query(server)?;
    Ok(answer.unwrap_or_default())
}

fn number(fields: &Fields, name: &str) -> u64 {
    match fields.get(name) {
        Some(Value::Int(number)) => u64::try_from(*number).unwrap_or(0),
        _ => 0,
    }
}

/// All of each job but what depends on the moment, and on the connection.
fn jobs(server: &mut Connection, key: &[u8], ids: &[Vec<u8>]) -> Result<Vec<Option<Fields>>> {
    let mut pipe = redis::pipe();
    for id in ids {
        pipe.cmd("DQ.GET").arg(key).arg(id);
    }
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut jobs: Vec<Option<Fields>> = pipe.query(server)?;
    for job in jobs.iter_mut().flatten() {
        job.remove("client");
        if matches!(job.get("state"), Some(Value::BulkString(state)) if state == b"ready") {
            job.insert("state".to_owned(), Value::BulkString(b"delayed".to_vec()));
        }
    }
    Ok(jobs)
}

/// None: DEBUG is not allowed.
fn digest(server: &mut Connection, key: &str) -> Result<Option<String>> {
    let asked = cmd("DEBUG")
        .arg("DIGEST-VALUE")
        .arg(key)
        .query::<Vec<String>>(server);
    match asked {
        Ok(digests) => Ok(digests.into_iter().next()),
        Err(error) if error.code().is_some() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The longest argument that the server takes; its default where CONFIG is not allowed.
fn bulk_bound(server: &mut Connection) -> Result<u64> {
    let asked = cmd("CONFIG")
        .arg("GET")
        .arg("proto-max-bulk-len")
        .query::<Vec<String>>(server);
    match asked {
        Ok(pair) => Ok(pair
            .get(1)
            .and_then(|bytes| bytes.parse().ok())
            .unwrap_or(DEFAULT_BULK)),
        Err(error) if error.code().is_some() => Ok(DEFAULT_BULK),
        Err(error) => Err(error.into()),
    }
}

/// The dump with the version that all servers read, and its checksum.
fn with_footer(mut dump: Vec<u8>) -> Result<Vec<u8>> {
    let value = dump
        .len()
        .checked_sub(FOOTER)
        .context("a dump of less than 10 bytes")?;
    dump.truncate(value);
    dump.extend(DUMP_VERSION.to_le_bytes());
    dump.extend(crc64(&dump).to_le_bytes());
    Ok(dump)
}

/// The checksum of dumps: Jones' polynomial, bits reflected.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc: u64, byte| {
        (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)]
    })
}

const TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < table.len() {
        let mut crc = at as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ ((crc & 1) * 0x95ac_9329_ac4b_c9b5);
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::{crc64, with_footer};

    #[test]
    fn the_footer_is_that_of_redis_7_0() {
        // Redis's own test of its checksum.
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        let dump = with_footer(b"123456789VVCCCCCCCC".to_vec()).expect("a dump");
        assert_eq!(dump[..11], *b"123456789\x0a\x00");
        assert_eq!(dump[11..], crc64(b"123456789\x0a\x00").to_le_bytes());
        assert!(with_footer(Vec::new()).is_err());
    }
}
