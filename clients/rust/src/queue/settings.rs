//! A queue's settings.

use super::{duration, Queue};
use crate::bounds;
use crate::error::Error;
use crate::values;
use redis::{cmd, Cmd, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// At most `jobs` jobs, weighted by their cost, in any window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// 0: no limit.
    pub jobs: u32,
    /// The length of the window.
    pub window: Duration,
}

/// A queue's settings. For [`Queue::configure`], a field that is `None` stays as it is, and 0 turns a limit off.
/// [`Queue::settings`] returns all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // by the names of the command reference
pub struct QueueSettings {
    pub ttr: Option<Duration>,
    pub attempts: Option<u32>,
    /// Empty: no wait.
    pub backoff: Option<Vec<Duration>>,
    /// Takes the queue's own backoff away, so that the server's holds.
    pub backoff_default: bool,
    pub maxlen: Option<u64>,
    pub maxbytes: Option<u64>,
    pub deadlen: Option<u64>,
    pub dedupe: Option<Duration>,
    pub maxreserved: Option<u64>,
    pub rate: Option<Rate>,
    pub groupmax: Option<u64>,
    pub grouprate: Option<Rate>,
    pub groupfifo: Option<bool>,
    pub donelen: Option<u64>,
    pub donettl: Option<Duration>,
    pub donebytes: Option<u64>,
    /// How many failed attempts each job keeps, at most 100.
    pub history: Option<u64>,
}

impl QueueSettings {
    fn check(&self) -> Result<(), Error> {
        bounds::lengths([
            ("ttr", self.ttr, 1),
            ("dedupe", self.dedupe, 0),
            ("donettl", self.donettl, 0),
            ("rate", self.rate.map(|rate| rate.window), 0),
            ("grouprate", self.grouprate.map(|rate| rate.window), 0),
        ])?;
        bounds::number("history", self.history, 0, 100)?;
        bounds::backoff(self.backoff.as_ref())
    }

    fn words(&self, to: &mut Cmd) {
        duration(to, "TTR", self.ttr);
        duration(to, "DEDUPE", self.dedupe);
        duration(to, "DONETTL", self.donettl);
        let numbers = [
            ("ATTEMPTS", self.attempts.map(u64::from)),
            ("MAXLEN", self.maxlen),
            ("MAXBYTES", self.maxbytes),
            ("DEADLEN", self.deadlen),
            ("MAXRESERVED", self.maxreserved),
            ("GROUPMAX", self.groupmax),
            ("GROUPFIFO", self.groupfifo.map(u64::from)),
            ("DONELEN", self.donelen),
            ("DONEBYTES", self.donebytes),
            ("HISTORY", self.history),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                to.arg(name).arg(value);
            }
        }
        say_rate(to, "RATE", self.rate);
        say_rate(to, "GROUPRATE", self.grouprate);
        if self.backoff_default {
            to.arg("BACKOFF").arg("DEFAULT");
        }
        if let Some(steps) = &self.backoff {
            to.arg("BACKOFF").arg(steps.len());
            steps.iter().for_each(|step| _ = to.arg(values::ms(*step)));
        }
    }

    fn of(reply: Value) -> Self {
        let fields: BTreeMap<String, Value> = values::map(reply).into_iter().collect();
        let number = |name: &str| {
            fields
                .get(name)
                .map(|value| values::int(value).max(0) as u64)
        };
        let length = |name: &str| fields.get(name).map(values::duration);
        let list = |name: &str| fields.get(name).cloned().map(values::list);
        let rate = |name: &str| {
            Some(
                fields
                    .get(name)
                    .cloned()
                    .and_then(rate_of)
                    .unwrap_or_default(),
            )
        };
        let steps = list("backoff").unwrap_or_default();
        let steps = steps.iter().map(values::duration);
        // `BACKOFF 0` is shown as a step of 0.
        let backoff: Vec<Duration> = steps.clone().filter(|step| !step.is_zero()).collect();
        let backoff_default = steps.len() == 0;
        QueueSettings {
            ttr: length("ttr"),
            attempts: number("attempts").map(|attempts| attempts as u32),
            backoff: (!backoff_default).then_some(backoff),
            backoff_default,
            maxlen: number("maxlen"),
            maxbytes: number("maxbytes"),
            deadlen: number("deadlen"),
            dedupe: length("dedupe"),
            maxreserved: number("maxreserved"),
            rate: rate("rate"),
            groupmax: number("groupmax"),
            grouprate: rate("grouprate"),
            groupfifo: number("groupfifo").map(|is| is == 1),
            donelen: number("donelen"),
            donettl: length("donettl"),
            donebytes: number("donebytes"),
            history: number("history"),
        }
    }
}

pub(super) fn say_rate(to: &mut Cmd, name: &str, rate: Option<Rate>) {
    if let Some(rate) = rate {
        to.arg(name).arg(rate.jobs).arg(values::ms(rate.window));
    }
}

/// Nothing, where the reply has none.
pub(super) fn rate_of(reply: Value) -> Option<Rate> {
    let [jobs, window] = <[Value; 2]>::try_from(values::list(reply)).ok()?;
    Some(Rate {
        jobs: values::int(&jobs) as u32,
        window: values::duration(&window),
    })
}

impl Queue {
    /// Sets the settings that are not `None`, on each shard. Creates the queue if it does not exist.
    pub async fn configure(&self, settings: QueueSettings) -> Result<(), Error> {
        settings.check()?;
        self.each("DQ.CFGSET", |words| settings.words(words))
            .await
            .map(|_| ())
    }

    /// The queue's settings (of its first shard); `None` if the queue does not exist.
    pub async fn settings(&self) -> Result<Option<QueueSettings>, Error> {
        let mut get = cmd("DQ.CFGGET");
        get.arg(&*self.keys()[0]);
        match self.server().ask(&self.keys()[0], &get).await? {
            Value::Nil => Ok(None),
            reply => Ok(Some(QueueSettings::of(reply))),
        }
    }
}
