//! The structures that jobs are read from.

mod beanstalkd;
mod beanstalkd_client;
mod both;
mod bullmq;
mod bullmq_due;
mod crontab;
mod dq;
mod ids;
mod pass;
mod redisson;
mod redisson_due;
mod said;
mod scan;
mod schedulers;
mod zset;

use anyhow::Result;

use crate::entry::IdRule;
use crate::options::{Options, SourceOptions};
pub use pass::{Pass, Setting, Source};

pub fn open(options: &Options) -> Result<Box<dyn Source>> {
    let batch = options.pace.batch as usize;
    let connect = || options.from();
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
