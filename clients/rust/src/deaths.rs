//! Which jobs have died by time, or with another job: found at the server, by each worker that has the hook.

use crate::core::trouble::trouble_wait;
use crate::error::Error;
use crate::guard::log;
use crate::server::{answers, Server};
use crate::source::Source;
use crate::values;
use redis::{cmd, Pipeline, Value};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;
use tokio::sync::Notify;

/// How many deaths one question finds.
const PAGE: usize = 100;
/// How many deaths of a queue are remembered, so that the hook is called once for each.
const KNOWN: usize = 10_000;
/// From so much on a server's clock that is behind was set back.
const SET_BACK_MS: i64 = 1000;

/// A queue, or one of its shards.
pub(crate) struct Place {
    pub key: Arc<[u8]>,
    pub source: Arc<Source>,
    pub called: Mutex<Known>,
    /// A death of which an answer told found no room: the next look is for those, too.
    is_short: AtomicBool,
    look: Notify,
    /// That the server does not tell of deaths is said once.
    is_said: Arc<AtomicBool>,
}

/// A death that waits for the hook.
pub(crate) struct Death {
    pub place: Arc<Place>,
    /// The first of them that is dead is the job.
    pub ids: Vec<Vec<u8>>,
    /// When it died, of one that was found; an answer does not say.
    pub at: Option<i64>,
    /// It counts whatever it died of. Others count if no answer can have told of them.
    pub is_any: bool,
}

impl Place {
    pub fn new(key: Arc<[u8]>, source: Arc<Source>, is_said: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Place {
            key,
            source,
            called: Mutex::default(),
            is_short: AtomicBool::default(),
            look: Notify::new(),
            is_said,
        })
    }

    /// Has the next look find a death that an answer told of.
    pub fn is_short(&self) {
        self.is_short.store(true, Ordering::Relaxed);
        self.look.notify_one();
    }

    /// Whether the hook was not called for this death. It is from now on.
    pub fn claim(&self, id: &[u8], at: i64) -> bool {
        let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = called.add(id, at);
        if called.0.len() > KNOWN {
            called.forget(i64::MIN);
        }
        is_new
    }

    pub fn is_called(&self, id: &[u8], at: i64) -> bool {
        let called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
        called.0.get(id) == Some(&at)
    }

    pub fn refused(&self, error: &Error) {
        if !self.is_said.swap(true, Ordering::Relaxed) {
            log!(warn, %error, "the server does not tell of dead jobs: their hook misses some");
        }
    }
}

/// When jobs died, by id.
#[derive(Default)]
pub(crate) struct Known(HashMap<Vec<u8>, i64>);

impl Known {
    fn add(&mut self, id: &[u8], at: i64) -> bool {
        self.0.insert(id.to_vec(), at) != Some(at)
    }

    /// Forgets what is older, and the oldest of too many. Returns since when all are known.
    fn forget(&mut self, mut from: i64) -> i64 {
        if self.0.len() > KNOWN {
            let mut all: Vec<i64> = self.0.values().copied().collect();
            all.sort_unstable();
            from = from.max(all[all.len() - KNOWN / 2]);
        }
        self.0.retain(|_, at| *at >= from);
        from
    }
}

/// Looks for deaths in one place.
pub(crate) struct Finder {
    pub place: Arc<Place>,
    /// With connections of the finder's own.
    pub server: Server,
    pub every: Duration,
    pub list: Sender<Death>,
    /// Since when to look: before the last look began, as a server that has many deaths finds some of them late. At first,
    /// when the worker began, by the server's clock.
    from: i64,
    /// When the last look began, by the server's clock and by ours.
    began: Option<(i64, Instant)>,
    found: Known,
}

impl Finder {
    pub fn new(place: Arc<Place>, server: Server, every: Duration, list: Sender<Death>) -> Self {
        Finder {
            place,
            server,
            every,
            list,
            from: 0,
            began: None,
            found: Known::default(),
        }
    }

    /// Looks again and again, until the server refuses that.
    pub async fn run(mut self) {
        let mut troubles = 0;
        loop {
            let rest = match self.look().await {
                Ok(()) => {
                    troubles = 0;
                    self.every
                }
                Err(error) if is_final(&error) => return self.place.refused(&error),
                Err(_) => {
                    troubles += 1; // the links say what is wrong
                    trouble_wait(troubles, 0.0)
                }
            };
            _ = tokio::time::timeout(rest, self.place.look.notified()).await;
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        let began = self.now().await?;
        let from = self.since(began, Instant::now());
        let takes_all = self.place.is_short.swap(false, Ordering::Relaxed);
        let found = self.find(from, takes_all).await;
        if takes_all && found.is_err() {
            self.place.is_short.store(true, Ordering::Relaxed);
        }
        found?;
        let from = from.max(began - values::ms(self.every) as i64);
        self.from = self.found.forget(from);
        Ok(())
    }

    /// Begins a look at this time of the server's clock. Returns since when to look.
    fn since(&mut self, began: i64, now: Instant) -> i64 {
        match self.began {
            None => self.from = began,
            Some((last, at)) => {
                let behind = last + values::ms(now - at) as i64 - began;
                if behind > SET_BACK_MS || began < self.from {
                    // The server's clock was set back, as by a failover: by this one, the last look began earlier.
                    self.from = self.from.min(last - behind.max(0)).max(0);
                }
            }
        }
        self.began = Some((began, now));
        self.from
    }

    /// Puts all deaths since then into the list, as soon as there is room.
    async fn find(&mut self, mut at: i64, takes_all: bool) -> Result<(), Error> {
        let mut past = 0; // so many at that instant are known
        loop {
            let most = PAGE + std::mem::take(&mut past);
            let rows = self.page(at, most).await?;
            let is_all = rows.len() < most;
            for (id, died) in rows {
                if self.found.add(&id, died) || takes_all {
                    let death = Death {
                        place: self.place.clone(),
                        ids: vec![id],
                        at: Some(died),
                        is_any: takes_all,
                    };
                    _ = self.list.send(death).await;
                }
                past = if died == at { past + 1 } else { 1 };
                at = died;
            }
            if is_all {
                return Ok(());
            }
        }
    }

    async fn page(&self, from: i64, most: usize) -> Result<Vec<(Vec<u8>, i64)>, Error> {
        let mut peek = cmd("DQ.PEEK");
        peek.arg(&*self.place.key).arg("DEAD").arg("FROM").arg(from);
        peek.arg("COUNT").arg(most).arg("PREFIX").arg(0);
        let rows = values::list(self.server.ask(&self.place.key, &peek).await?);
        let read = |row: Value| {
            let mut row = values::list(row).into_iter();
            let (id, _, at) = (row.next()?, row.next()?, row.next()?);
            Some((values::bytes(id)?, values::int(&at)))
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// The server's time, or that of its clock for tests.
    async fn now(&self) -> Result<i64, Error> {
        let mut pipe = Pipeline::with_capacity(2);
        pipe.cmd("DQ.CLOCK").arg("GET").cmd("TIME");
        let mut replies = self.server.ask_all(&self.place.key, &pipe).await?;
        if let Some(Value::Int(ms)) = replies.first() {
            return Ok(*ms);
        }
        let mut time = Pipeline::with_capacity(1);
        time.cmd("TIME");
        let time = answers(&time, replies.split_off(1))?.pop();
        let mut parts = time.into_iter().flat_map(values::list);
        let mut part = || Some(values::text(parts.next()?)?.parse::<i64>().unwrap_or(0));
        Ok(part().unwrap_or(0) * 1000 + part().unwrap_or(0) / 1000)
    }
}

/// Whether the server will not answer, however long it is asked.
pub(crate) fn is_final(error: &Error) -> bool {
    match error {
        Error::Connection(_) => false,
        Error::Refused(why) => ["NOPERM", "ERR", "WRONGTYPE"].contains(&&*why.code),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_hides_no_death() {
        let server = Server::open("redis://localhost").expect("a URL");
        let source = crate::queue::Queue::on(&server, "q").source();
        let place = Place::new(b"q"[..].into(), source.into(), Arc::default());
        let (list, _) = tokio::sync::mpsc::channel(1);
        let mut finder = Finder::new(place, server, Duration::from_secs(60), list);
        let start = Instant::now();
        let mut look = |ms, after| {
            let since = finder.since(ms, start + Duration::from_secs(after));
            finder.from = since.max(ms - 60_000);
            since
        };
        assert_eq!(look(5_000_000, 0), 5_000_000);
        assert_eq!(look(5_060_000, 60), 5_000_000);
        // By 90 s: what died right after the last look did so at 4 970 000.
        assert_eq!(look(5_030_000, 120), 4_970_000);
        assert_eq!(look(5_090_000, 180), 4_970_000);
        finder.from = 6_000_000; // of deaths by a clock that was ahead
        let at = start + Duration::from_secs(240);
        assert_eq!(finder.since(5_150_000, at), 5_090_000);
        // By less than has passed since the first look.
        finder.began = None;
        assert_eq!(finder.since(5_000_000, start), 5_000_000);
        assert_eq!(
            finder.since(5_030_000, start + Duration::from_secs(60)),
            4_970_000
        );
    }
}
