//! Jobs to be added, and rules for recurring ones.

use crate::attempt::OnDead;
use crate::bounds;
use crate::codec::{encoded, Codec};
use crate::envelope::{Envelope, Headers};
use crate::error::Error;
use crate::queue::said::Said;
use crate::values::{instant_ms, ms};
use redis::{cmd, Cmd};
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime};

const LABEL_BYTES: usize = 256;

/// What happens if a job with this id exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IfExists {
    /// The new job is not added, so adding twice does no harm. A dead or done job is replaced.
    #[default]
    Refuse,
    /// The new job replaces the old one, in any state, if there is one.
    Replace,
    /// The new job replaces the old one, in any state; without one, nothing is added.
    OnlyReplace,
    /// As `Refuse`, but while the job is reserved, the new one is kept, and runs when the current run is over.
    RunAgain,
}

/// A job to be added, for [`Queue::add_many`](crate::Queue::add_many), [`Queue::chain`](crate::Queue::chain) and
/// [`Job::spawn`](crate::Job::spawn). What is not set is decided by the queue's settings or the worker's handler.
#[derive(Clone, Debug)]
pub struct NewJob {
    data: Data,
    pub(super) options: Options,
}

#[derive(Clone, Debug)]
enum Data {
    Json(Box<RawValue>),
    Bytes(Vec<u8>),
    Unfit(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Options {
    pub id: Option<Vec<u8>>,
    pub kind: Option<String>,
    pub headers: Headers,
    pub if_exists: IfExists,
    pub delay: Option<Duration>,
    pub at: Option<SystemTime>,
    pub said: Said,
    pub after: Vec<Vec<u8>>,
    pub after_group: Option<String>,
    pub on_dead: Option<OnDead>,
    pub rule: Option<Rule>,
    pub zone: Option<String>,
    pub until: Option<SystemTime>,
    pub times: Option<u64>,
    pub grace: Option<Duration>,
    pub jitter: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rule {
    Every(Duration),
    Cron(String),
}

/// The options of a job, for each type that holds one.
macro_rules! options {
    () => {
        /// The job's id, unique in the queue. Without one the library makes one, which grows with time.
        pub fn id(self, id: impl AsRef<[u8]>) -> Self {
            self.with(|o| o.id = Some(id.as_ref().to_vec()))
        }

        /// The job's kind, which chooses the worker's handler. It is the job's label, too, unless that is another.
        pub fn kind(self, kind: impl Into<String>) -> Self {
            self.with(|o| o.kind = Some(kind.into()))
        }

        /// A header, which travels with the data.
        pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.with(|o| _ = o.headers.insert(name.into(), value.into()))
        }

        /// What happens if a job with this id exists (default: `Refuse`).
        pub fn if_exists(self, what: IfExists) -> Self {
            self.with(|o| o.if_exists = what)
        }

        /// How long from now the job is due; default: now.
        pub fn delay(self, delay: Duration) -> Self {
            self.with(|o| o.delay = Some(delay))
        }

        /// When the job is due; default: now.
        pub fn at(self, at: SystemTime) -> Self {
            self.with(|o| o.at = Some(at))
        }

        crate::queue::said::said!();

        /// Blocks the job until these jobs of its queue have ended: ids, or what `add` has returned.
        pub fn after<I: crate::queue::AsId>(self, ids: impl IntoIterator<Item = I>) -> Self {
            let ids = ids.into_iter();
            let ids = ids.map(|id| id.as_id().unwrap_or_default().to_vec());
            let ids = ids.collect();
            self.with(|o| o.after = ids)
        }

        /// Blocks the job until no other job is left in that group.
        pub fn after_group(self, group: impl Into<String>) -> Self {
            self.with(|o| o.after_group = Some(group.into()))
        }

        /// What the job does if a job that it is after dies (default: it waits).
        pub fn on_dead(self, on_dead: OnDead) -> Self {
            self.with(|o| o.on_dead = Some(on_dead))
        }

        /// For a recurring job: no occurrence comes after this instant.
        pub fn until(self, until: SystemTime) -> Self {
            self.with(|o| o.until = Some(until))
        }

        /// For a recurring job: the number of occurrences in all.
        pub fn times(self, times: u64) -> Self {
            self.with(|o| o.times = Some(times))
        }

        /// For a recurring job: an occurrence that is not delivered within this time of its due time is skipped.
        pub fn grace(self, grace: Duration) -> Self {
            self.with(|o| o.grace = Some(grace))
        }

        /// For a recurring job: each occurrence is delayed by up to this time.
        pub fn jitter(self, jitter: Duration) -> Self {
            self.with(|o| o.jitter = Some(jitter))
        }

        /// For a cron rule: an IANA time zone (default UTC).
        pub fn tz(self, zone: impl Into<String>) -> Self {
            self.with(|o| o.zone = Some(zone.into()))
        }
    };
}
pub(super) use options;

impl NewJob {
    /// A job with data that serde can serialize, as JSON.
    pub fn new<T: Serialize + ?Sized>(data: &T) -> Self {
        let written = crate::guard::catch(|| crate::json::to_raw(data));
        let data = match written {
            Ok(Ok(json)) => Data::Json(json),
            Ok(Err(error)) => Data::Unfit(error.to_string()),
            Err(panicked) => Data::Unfit(panicked.to_string()),
        };
        NewJob {
            data,
            options: Options::default(),
        }
    }

    /// A job with data that a codec encodes.
    pub fn with_codec<T: Serialize + ?Sized>(codec: &impl Codec, data: &T) -> Self {
        NewJob {
            data: encoded(codec, data).map_or_else(Data::Unfit, Data::Bytes),
            options: Options::default(),
        }
    }

    /// A job whose payload is these bytes.
    pub fn bytes(data: impl Into<Vec<u8>>) -> Self {
        NewJob {
            data: Data::Bytes(data.into()),
            options: Options::default(),
        }
    }

    /// A job that recurs at an interval, for [`Queue::rules`](crate::Queue::rules); the data become JSON.
    pub fn every<T: Serialize + ?Sized>(interval: Duration, data: &T) -> Self {
        NewJob::new(data).by(Rule::Every(interval))
    }

    /// A job that recurs by a cron expression, in the zone of [`NewJob::tz`].
    pub fn cron<T: Serialize + ?Sized>(expression: &str, data: &T) -> Self {
        NewJob::new(data).by(Rule::Cron(expression.to_owned()))
    }

    fn by(mut self, rule: Rule) -> Self {
        self.options.rule = Some(rule);
        self.options.if_exists = IfExists::Replace;
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    options!();

    pub(crate) fn given_id(&self) -> Option<Vec<u8>> {
        self.options.id.clone()
    }

    /// Its kind, attempts and backoff.
    pub(crate) fn given(&self) -> (Option<&str>, u32, Option<&[Duration]>) {
        let Options { kind, said, .. } = &self.options;
        let attempts = said.attempts.unwrap_or(0);
        (kind.as_deref(), attempts, said.backoff.as_deref())
    }

    pub(crate) fn given_after(&self) -> &[Vec<u8>] {
        &self.options.after
    }

    pub(crate) fn headers_mut(&mut self) -> &mut Headers {
        &mut self.options.headers
    }

    pub(crate) fn payload(&self) -> Result<Vec<u8>, Error> {
        let Options { kind, headers, .. } = &self.options;
        let is_plain = kind.is_none() && headers.is_empty();
        match &self.data {
            Data::Json(json) if is_plain => Ok(json.get().as_bytes().to_vec()),
            Data::Json(json) => Envelope::write(json, kind.as_deref(), headers)
                .map_err(|error| Error::Encode(error.to_string())),
            Data::Bytes(bytes) if is_plain => Ok(bytes.clone()),
            Data::Bytes(_) => Err(Error::Encode(
                "bytes have no kind and no headers: those travel in JSON".into(),
            )),
            Data::Unfit(error) => Err(Error::Encode(error.clone())),
        }
    }

    /// The payload, and the options other than kind and headers, which are part of the payload.
    pub(super) fn parts(mut self) -> Result<(Vec<u8>, Options), Error> {
        let is_plain = self.options.kind.is_none() && self.options.headers.is_empty();
        let payload = match self.data {
            Data::Json(json) if is_plain => Box::<str>::from(json).into_boxed_bytes().into_vec(),
            Data::Bytes(bytes) if is_plain => bytes,
            _ => self.payload()?,
        };
        self.options.said.label = self.options.label().map(str::to_owned);
        self.options.kind = None;
        self.options.headers.clear();
        Ok((payload, self.options))
    }

    /// The `DQ.ADD` of the job under this id.
    pub(crate) fn command(&self, key: &[u8], id: &[u8]) -> Result<Cmd, Error> {
        let mut add = cmd("DQ.ADD");
        add.arg(key).arg(id).arg(self.payload()?);
        self.options.words(&mut add)?;
        Ok(add)
    }
}

impl Options {
    pub(super) fn words(&self, to: &mut Cmd) -> Result<(), Error> {
        self.check()?;
        match self.if_exists {
            IfExists::Refuse => {}
            IfExists::Replace => _ = to.arg("REPLACE"),
            IfExists::OnlyReplace => _ = to.arg("XX"),
            IfExists::RunAgain => _ = to.arg("NEXT"),
        }
        let number = |to: &mut Cmd, name, value: Option<u64>| {
            if let Some(value) = value {
                to.arg(name).arg(value);
            }
        };
        number(to, "DELAY", self.delay.map(ms));
        number(to, "AT", self.at.map(instant_ms));
        self.said.words(to);
        if let (None, Some(kind)) = (&self.said.label, self.label()) {
            to.arg("LABEL").arg(kind);
        }
        self.flow_words(to);
        match &self.rule {
            None => {}
            Some(Rule::Every(interval)) => _ = to.arg("EVERY").arg(ms(*interval)),
            Some(Rule::Cron(expression)) => _ = to.arg("CRON").arg(expression),
        }
        if let Some(zone) = &self.zone {
            to.arg("TZ").arg(zone);
        }
        number(to, "UNTIL", self.until.map(instant_ms));
        number(to, "TIMES", self.times);
        number(to, "GRACE", self.grace.map(ms));
        number(to, "JITTER", self.jitter.map(ms));
        Ok(())
    }

    /// The job's label, else its kind, where that can be one.
    fn label(&self) -> Option<&str> {
        let kind = || {
            self.kind
                .as_deref()
                .filter(|kind| (1..=LABEL_BYTES).contains(&kind.len()))
        };
        self.said.label.as_deref().or_else(kind)
    }

    fn check(&self) -> Result<(), Error> {
        if self.delay.is_some() && self.at.is_some() {
            return Err(Error::usage("delay or at, not both"));
        }
        if self.rule.is_some() && (self.delay.is_some() || self.at.is_some()) {
            let why = "a recurring job comes by its rule: leave out delay and at";
            return Err(Error::usage(why));
        }
        let every = match self.rule {
            Some(Rule::Every(interval)) => Some(interval),
            _ => None,
        };
        bounds::lengths([
            ("delay", self.delay, 0),
            ("every", every, 1),
            ("grace", self.grace, 0),
            ("jitter", self.jitter, 0),
        ])?;
        bounds::instants([("at", self.at), ("until", self.until)])?;
        self.said.check()?;
        bounds::name("after_group", self.after_group.as_ref())?;
        if self.after.iter().any(Vec::is_empty) {
            let why = "after: one of the jobs was not added, as a job of its id was there: name it by its id";
            return Err(Error::Usage(why.into()));
        }
        bounds::between("after", self.after.len() as u64, " jobs", 0, 1000)?;
        bounds::between("times", self.times.unwrap_or(1), "", 1, i64::MAX as u64)
    }

    fn flow_words(&self, to: &mut Cmd) {
        if let Some(group) = &self.after_group {
            to.arg("AFTER").arg("GROUP").arg(group);
        } else if !self.after.is_empty() {
            to.arg("AFTER").arg(self.after.len()).arg(&self.after);
        }
        if let Some(on_dead) = self.on_dead {
            to.arg("ONDEAD").arg(on_dead.word());
        }
    }
}

impl Options {
    /// Whether the job waits for others.
    pub fn is_of_flow(&self) -> bool {
        !self.after.is_empty() || self.after_group.is_some()
    }

    /// Whether it can share a command with others.
    pub fn is_plain(&self) -> bool {
        !self.is_of_flow() && self.if_exists != IfExists::RunAgain && self.rule.is_none()
    }

    /// Whether the job waits for a group.
    pub fn is_after_group(&self) -> bool {
        self.after_group.is_some()
    }

    /// Whether the library makes the id. Such a job cannot be refused: a nil reply means that an earlier sending
    /// added it.
    pub fn is_own(&self) -> bool {
        self.id.is_none() && self.if_exists != IfExists::OnlyReplace
    }
}
