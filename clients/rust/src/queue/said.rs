//! What a job may have.
//!
//! Written from src/queue/attr/rows.rs by `make generated`; DO NOT EDIT.

use crate::bounds;
use crate::error::Error;
use crate::values::ms;
use redis::{Cmd, ToRedisArgs};
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub priority: Option<i32>,
    pub ttr: Option<Duration>,
    pub attempts: Option<u32>,
    pub ttl: Option<Duration>,
    pub group: Option<String>,
    pub keep: Option<Duration>,
    pub cost: Option<u32>,
    pub backoff: Option<Vec<Duration>>,
    pub label: Option<String>,
}

fn value(to: &mut Cmd, word: &str, value: Option<impl ToRedisArgs>) {
    if let Some(value) = value {
        to.arg(word).arg(value);
    }
}

fn ladder(to: &mut Cmd, steps: Option<&[Duration]>) {
    if let Some(steps) = steps {
        to.arg("BACKOFF").arg(steps.len());
        steps.iter().for_each(|step| _ = to.arg(ms(*step)));
    }
}

#[rustfmt::skip]
impl Said {
    pub(crate) fn words(&self, to: &mut Cmd) {
        value(to, "PRIORITY", self.priority);
        value(to, "TTR", self.ttr.map(ms));
        value(to, "ATTEMPTS", self.attempts);
        value(to, "TTL", self.ttl.map(ms));
        value(to, "GROUP", self.group.as_deref());
        value(to, "KEEP", self.keep.map(ms));
        value(to, "COST", self.cost);
        ladder(to, self.backoff.as_deref());
        value(to, "LABEL", self.label.as_deref());
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        bounds::lengths([("ttr", self.ttr, 1)])?;
        bounds::lengths([("ttl", self.ttl, 1)])?;
        bounds::text("group", self.group.as_ref(), 256)?;
        bounds::lengths([("keep", self.keep, 0)])?;
        bounds::number("cost", self.cost.map(u64::from), 1, 1000000)?;
        bounds::backoff(self.backoff.as_ref())?;
        bounds::text("label", self.label.as_ref(), 256)?;
        Ok(())
    }
}

/// The methods that set something for one delivery. A queue's renew the lease, and return false if the token is not the
/// job's current one.
#[rustfmt::skip]
macro_rules! corrected {
    (queue) => {
        /// Sets it for this delivery: what a delivery counts towards the rates of the queue and of its group.
        pub async fn set_cost(&self, id: impl AsRef<[u8]>, token: &str, cost: u32) -> Result<bool, Error> {
            self.correct(id.as_ref(), token, Said { cost: Some(cost), ..Said::default() }).await
        }
    };
    (job) => {
        /// Sets it for this delivery: what a delivery counts towards the rates of the queue and of its group.
        pub async fn set_cost(&self, cost: u32) -> Result<(), Error> {
            self.correct(Said { cost: Some(cost), ..Said::default() }).await
        }
    };
}
pub(crate) use corrected;

/// The methods, for each type that holds options.
#[rustfmt::skip]
macro_rules! said {
    () => {
        /// The job's priority: smaller is delivered first.
        pub fn priority(self, priority: i32) -> Self {
            let value = priority;
            self.with(|o| o.said.priority = Some(value))
        }
        /// The length of the job's leases.
        pub fn ttr(self, ttr: Duration) -> Self {
            let value = ttr;
            self.with(|o| o.said.ttr = Some(value))
        }
        /// How often the job may be delivered; 0: without limit, whatever the queue's settings say.
        pub fn attempts(self, attempts: u32) -> Self {
            let value = attempts;
            self.with(|o| o.said.attempts = Some(value))
        }
        /// The job expires this long after it was added.
        pub fn ttl(self, ttl: Duration) -> Self {
            let value = ttl;
            self.with(|o| o.said.ttl = Some(value))
        }
        /// The group that the job belongs to, such as a tenant or a user. Groups take turns.
        pub fn group(self, group: impl Into<String>) -> Self {
            let value = group.into();
            self.with(|o| o.said.group = Some(value))
        }
        /// How long the job is kept with its result once it is done, whatever the queue keeps; 0: not at all.
        pub fn keep(self, keep: Duration) -> Self {
            let value = keep;
            self.with(|o| o.said.keep = Some(value))
        }
        /// What a delivery counts towards the rates of the queue and of its group; 1 by default.
        pub fn cost(self, cost: u32) -> Self {
            let value = cost;
            self.with(|o| o.said.cost = Some(value))
        }
        /// The waits after the 1st, 2nd, ... failure; the last one repeats. Empty: no waits.
        pub fn backoff(self, backoff: impl IntoIterator<Item = Duration>) -> Self {
            let value = backoff.into_iter().collect();
            self.with(|o| o.said.backoff = Some(value))
        }
        /// What kind of job it is, for those who look; it changes nothing of how the job is served.
        pub fn label(self, label: impl Into<String>) -> Self {
            let value = label.into();
            self.with(|o| o.said.label = Some(value))
        }
    };
}
pub(super) use said;
