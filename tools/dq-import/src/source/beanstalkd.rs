//! A tube of beanstalkd, over its protocol.
//!
//! beanstalkd has no command that lists jobs. But ids are numbers that count up from 1 over all tubes, and `stats-job`
//! and `peek` show a job by its id without taking it. So all ids are asked for, up to the latest one. Only `put`
//! reveals that one: a job is put into a tube of its own, and deleted at once.

use anyhow::{bail, Context, Result};

use super::beanstalkd_client::{fields, Answer, Client};
use super::scan::left;
use super::{Pass, Source};
use crate::entry::{now_ms, Entry, Item, JobOptions};

/// No worker watches this tube.
const PROBE_TUBE: &str = "dq-probe";

/// beanstalkd's own longest delay, so that no worker gets the probe even if it watched the tube.
const PROBE: &str = "put 4294967295 4294967295 1 0\r\n";

pub struct Tube {
    client: Client,
    tube: String,
    first_id: u64,
    next_id: u64,
    last_id: u64,
    batch: usize,
}

/// What `stats-job` says about a job.
struct Job {
    id: u64,
    tube: String,
    state: String,
    pri: i64,
    ttr_s: u64,
    left_s: u64,
    delay_s: u64,
    buries: u64,
    /// Counters that grow with whatever happens to the job.
    events: String,
    reserves: u64,
}

impl Job {
    fn from(answer: Answer) -> Result<Option<Job>> {
        let Some(body) = answer.body_of("OK") else {
            return Ok(None);
        };
        let mut fields = fields(&body);
        let mut text = |name: &str| {
            fields
                .remove(name)
                .with_context(|| format!("stats-job without {name}"))
        };
        let events: Vec<String> = ["delay", "timeouts", "releases", "buries", "kicks"]
            .into_iter()
            .map(&mut text)
            .collect::<Result<_>>()?;
        Ok(Some(Job {
            id: text("id")?.parse()?,
            tube: text("tube")?,
            state: text("state")?,
            pri: text("pri")?.parse()?,
            ttr_s: text("ttr")?.parse()?,
            left_s: text("time-left")?.parse()?,
            delay_s: events[0].parse()?,
            buries: events[3].parse()?,
            reserves: text("reserves")?.parse()?,
            events: events.join(" "),
        }))
    }

    fn version(&self) -> String {
        self.version_before(0)
    }

    /// The version before so many reservations.
    fn version_before(&self, reservations: u64) -> String {
        let reserves = self.reserves.saturating_sub(reservations);
        format!("{} {} {} {reserves}", self.pri, self.ttr_s, self.events)
    }

    /// beanstalkd reports whole seconds. The next one is taken, so that the job is never early.
    fn due_ms(&self) -> u64 {
        match self.state.as_str() {
            "delayed" => now_ms() + (self.left_s + 1) * 1000,
            _ => now_ms(),
        }
    }

    fn item(self, body: Vec<u8>) -> Item {
        let name = self.id.to_string().into_bytes();
        match self.state.as_str() {
            "delayed" | "ready" => {}
            "buried" => return left(name, "it is buried: kick or delete it first"),
            _ => return left(name, "a worker has reserved it"),
        }
        Item::Job(Entry {
            payload: body,
            due_ms: self.due_ms(),
            options: JobOptions {
                // beanstalkd's priorities reach twice as far as dq's: those beyond become equal, and come last.
                priority: Some(self.pri.min(i32::MAX.into())),
                ttr_ms: Some(self.ttr_s * 1000),
                ..JobOptions::default()
            },
            version: self.version().into_bytes(),
            id: name.clone(),
            handle: name,
        })
    }
}

impl Tube {
    pub fn open(address: &str, tube: &str, first_id: u64, batch: usize) -> Result<Tube> {
        let mut client = Client::connect(address)?;
        if !client.ask_one(&format!("use {PROBE_TUBE}"))?.is("USING") {
            bail!("beanstalkd does not know the command 'use'");
        }
        Ok(Tube {
            client,
            tube: tube.to_owned(),
            first_id,
            next_id: first_id,
            last_id: 0,
            batch,
        })
    }

    /// The id of the latest job, whoever put it.
    fn latest_id(&mut self) -> Result<u64> {
        let answer = self.client.ask_one(PROBE)?;
        if !answer.is("INSERTED") {
            bail!(
                "beanstalkd answered {} to a put, so the latest id is unknown",
                answer.words.join(" ")
            );
        }
        let id: u64 = answer.words[1].parse()?;
        self.client.ask_one(&format!("delete {id}"))?;
        Ok(id - 1)
    }

    fn stats(&mut self, ids: &[u64]) -> Result<Vec<Option<Job>>> {
        let answers = self.each("stats-job", ids)?;
        answers.into_iter().map(Job::from).collect()
    }

    fn each(&mut self, command: &str, ids: &[u64]) -> Result<Vec<Answer>> {
        let commands: Vec<String> = ids.iter().map(|id| format!("{command} {id}")).collect();
        self.client.ask(&commands)
    }

    /// Reserves a job, so that nobody else can, and deletes it if nothing has happened to it since it was read.
    fn delete_unchanged(&mut self, entry: &Entry, id: u64) -> Result<bool> {
        if !self
            .client
            .ask_one(&format!("reserve-job {id}"))?
            .is("RESERVED")
        {
            return Ok(false);
        }
        let Some(job) = self.stats(&[id])?.pop().flatten() else {
            return Ok(false);
        };
        if job.version_before(1).as_bytes() == entry.version {
            return Ok(self.client.ask_one(&format!("delete {id}"))?.is("DELETED"));
        }
        // The job was changed after it was read. How long it had still to wait is unknown by now: the whole delay again
        // is late, but not early.
        self.client.ask_one(&match job.buries {
            0 => format!("release {id} {} {}", job.pri, job.delay_s),
            _ => format!("bury {id} {}", job.pri),
        })?;
        Ok(false)
    }
}

impl Source for Tube {
    fn title(&self) -> String {
        format!("beanstalkd's tube {}", self.tube)
    }

    /// A tube exists as long as it has jobs, or a client uses it.
    fn exists(&mut self) -> Result<bool> {
        let stats = format!("stats-tube {}", self.tube);
        Ok(self.client.ask_one(&stats)?.is("OK"))
    }

    /// The number of ids, not of jobs: a pass looks at each id.
    fn size(&mut self) -> Result<u64> {
        Ok((self.latest_id()? + 1).saturating_sub(self.first_id))
    }

    fn begin(&mut self, _: Pass) -> Result<()> {
        self.last_id = self.latest_id()?;
        self.next_id = self.first_id;
        Ok(())
    }

    fn next_page(&mut self) -> Result<Option<Vec<Item>>> {
        if self.next_id > self.last_id {
            return Ok(None);
        }
        let end = (self.next_id + self.batch as u64 - 1).min(self.last_id);
        let ids: Vec<u64> = (self.next_id..=end).collect();
        self.next_id = end + 1;
        let jobs: Vec<Job> = self
            .stats(&ids)?
            .into_iter()
            .flatten()
            .filter(|job| job.tube == self.tube)
            .collect();
        let ids: Vec<u64> = jobs.iter().map(|job| job.id).collect();
        let bodies = self.each("peek", &ids)?;
        Ok(Some(
            jobs.into_iter()
                .zip(bodies)
                // A job that is gone by now has been processed.
                .filter_map(|(job, answer)| Some(job.item(answer.body_of("FOUND")?)))
                .collect(),
        ))
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        let ids: Vec<u64> = entries
            .iter()
            .map(|entry| Ok(std::str::from_utf8(&entry.handle)?.parse()?))
            .collect::<Result<_>>()?;
        let jobs = self.stats(&ids)?;
        let mut gone = Vec::with_capacity(entries.len());
        for ((entry, id), job) in entries.iter().zip(ids).zip(jobs) {
            // A job that has changed is not reserved.
            let same = job.is_some_and(|job| job.version().as_bytes() == entry.version);
            gone.push(same && self.delete_unchanged(entry, id)?);
        }
        Ok(gone)
    }
}
