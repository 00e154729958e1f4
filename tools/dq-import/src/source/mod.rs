//! The structures that jobs are read from.

mod beanstalkd;
mod beanstalkd_client;
mod both;
mod bullmq;
mod bullmq_due;
mod crontab;
mod dq;
mod ids;
mod redisson;
mod redisson_due;
mod scan;
mod schedulers;
mod zset;

use anyhow::Result;

use crate::connect::connect;
use crate::entry::{Entry, IdRule, Item};
use crate::options::{Options, SourceOptions};

/// What a pass over the source is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pass {
    /// Shows everything that exists during the whole pass, perhaps twice.
    Read,
    /// As `Read`, in the order in which the source deletes cheaply.
    Delete,
}

pub trait Source {
    /// The source's name in messages.
    fn title(&self) -> String;

    /// Whether the old queue exists; it may be empty.
    fn exists(&mut self) -> Result<bool>;

    /// About how many items a pass will show.
    fn size(&mut self) -> Result<u64>;

    /// Begins a pass.
    fn begin(&mut self, pass: Pass) -> Result<()>;

    /// The next items of the pass, None at its end. A page before that may be empty.
    fn next_page(&mut self) -> Result<Option<Vec<Item>>>;

    /// Deletes the entries that are unchanged since they were read, each entirely or not at all. Returns for each
    /// whether it was deleted.
    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>>;

    /// Commands that give the target's queue its settings, without their key.
    fn settings(&mut self) -> Result<Vec<(&'static str, Vec<String>)>> {
        Ok(Vec::new())
    }

    /// What the user should know about the jobs that stay, if anything.
    fn remark(&mut self) -> Result<Option<String>> {
        Ok(None)
    }
}

pub fn open(options: &Options) -> Result<Box<dyn Source>> {
    let batch = options.pace.batch as usize;
    let connect = || connect(&options.from, options.cacert.as_deref());
    Ok(match &options.source {
        SourceOptions::Beanstalkd {
            tube,
            address,
            first_id,
        } => Box::new(beanstalkd::Tube::open(address, tube, *first_id, batch)?),
        SourceOptions::Crontab { file, tz, system } => {
            Box::new(crontab::Crontab::open(file, tz.as_deref(), *system)?)
        }
        SourceOptions::Dq { key, .. } => Box::new(dq::Queue::new(connect()?, key, batch)),
        SourceOptions::Zset { key, unit, id } => {
            let id = IdRule::new(&id.id_json, &id.id_text)?;
            Box::new(zset::Zset::new(connect()?, key, *unit, id, batch))
        }
        SourceOptions::Ids {
            key,
            unit,
            payload_hash,
            payload_key,
            payload_field,
        } => {
            let place = ids::Place::new(payload_hash, payload_key, payload_field)?;
            Box::new(ids::Ids::new(connect()?, key, *unit, place, batch))
        }
        SourceOptions::Redisson {
            name,
            packing,
            due,
            id,
        } => {
            let id = IdRule::new(&id.id_json, &id.id_text)?;
            let due = due.then(connect).transpose()?;
            let due = due.map(|server| redisson_due::Due::new(server, name, id.clone(), batch));
            let delayed = redisson::DelayedQueue::new(connect()?, name, *packing, id, batch);
            with(delayed, due)
        }
        SourceOptions::Bullmq {
            name,
            prefix,
            payload,
            due,
        } => {
            let jobs = bullmq::Jobs::new(prefix, name, *payload);
            let due = due.then(connect).transpose()?;
            let due = due.map(|server| bullmq_due::Due::new(server, jobs.clone(), batch));
            with(bullmq::Delayed::new(connect()?, jobs, batch), due)
        }
        SourceOptions::BullmqSchedulers {
            name,
            prefix,
            payload,
            tz,
        } => Box::new(schedulers::Schedulers::new(
            connect()?,
            prefix,
            name,
            *payload,
            tz.clone(),
            batch,
        )),
    })
}

/// The delayed jobs, and also those already due if these are wanted.
fn with(delayed: impl Source + 'static, due: Option<impl Source + 'static>) -> Box<dyn Source> {
    match due {
        Some(due) => Box::new(both::Both::new(Box::new(delayed), Box::new(due))),
        None => Box::new(delayed),
    }
}
