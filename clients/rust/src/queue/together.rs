//! Jobs that are added in one transaction, once even if the server's answer is lost.

use super::batch::{Batch, Placed};
use super::Queue;
use crate::core::trouble::{passes, trouble_wait};
use crate::error::Error;
use crate::server::{answers, Failed};
use crate::values;
use redis::{cmd, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TRIES: u32 = 5;

impl Queue {
    /// Adds jobs of one key in one transaction, and returns a reply for each. If the answer is lost, it asks for the last
    /// one: if that is there, so are the others. They are sent again only if it is not, and none of the others ran.
    pub(super) async fn together(
        &self,
        key: &Arc<[u8]>,
        all: &[Placed],
    ) -> Result<Vec<Value>, Error> {
        let Some(last) = all.last() else {
            return Ok(Vec::new());
        };
        let said = &last.options.said;
        let kept = said.keep.unwrap_or_default();
        let mut sending = Sending {
            queue: self,
            key,
            all,
            batch: Batch::of(key, all)?,
            is_given: last.is_given,
            before: Value::Nil,
            kept: said.ttl.map_or(kept, |ttl| kept.min(ttl)),
            sent: Instant::now(),
            lost: None,
        };
        match sending.send().await {
            Ok(Some(replies)) => Ok(replies),
            Ok(None) => Ok(all
                .iter()
                .map(|each| Value::BulkString(each.id.clone()))
                .collect()),
            Err(error) => {
                let ours: HashSet<_> = all.iter().map(|each| &each.id).collect();
                let after = all.iter().flat_map(|each| &each.options.after);
                Err(self
                    .naming_unheld(error, after.filter(|id| !ours.contains(id)))
                    .await)
            }
        }
    }
}

/// A transaction that adds jobs.
struct Sending<'a> {
    queue: &'a Queue,
    key: &'a Arc<[u8]>,
    all: &'a [Placed],
    batch: Batch,
    /// Whether a job with the last one's id may have been there before, and what it was.
    is_given: bool,
    before: Value,
    /// How long the last one is there at least. Later on, that it is not there says nothing.
    kept: Duration,
    sent: Instant,
    /// What befell the sending before, if nobody knows whether it arrived.
    lost: Option<String>,
}

struct Trouble {
    error: Error,
    is_final: bool,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let is_final = match &error {
            Error::Connection(_) => false,
            Error::Refused(refused) => !passes(&refused.code),
            _ => true,
        };
        Trouble { error, is_final }
    }
}

impl Sending<'_> {
    /// Returns the replies; `None` if the jobs were added and the answer was lost.
    async fn send(&mut self) -> Result<Option<Vec<Value>>, Error> {
        let mut tries = 1;
        loop {
            let Trouble { error, is_final } = match self.attempt().await {
                Ok(replies) => return Ok(replies),
                Err(trouble) => trouble,
            };
            if is_final || tries == TRIES {
                return Err(self.lost.take().map_or(error, |lost| {
                    Error::Connection(format!(
                        "{lost}: it is not known whether the jobs were added"
                    ))
                }));
            }
            tokio::time::sleep(trouble_wait(tries, 0.0)).await;
            tries += 1;
        }
    }

    async fn attempt(&mut self) -> Result<Option<Vec<Value>>, Trouble> {
        if !self.is_due().await? {
            return Ok(None);
        }
        let pipe = self.batch.transaction();
        let said = match self.queue.server().try_all(self.key, &pipe, true).await {
            Ok(said) => said,
            Err(Failed { error, was_sent }) => {
                if was_sent {
                    self.lost = Some(values::error_text(&error));
                }
                return Err(Error::from(error).into());
            }
        };
        self.lost = None; // if it was refused, nothing of it was executed
        let replies = self.batch.executed(answers(&pipe, said)?);
        replies.map(Some).map_err(|error| Trouble {
            error,
            is_final: true,
        })
    }

    /// Whether the transaction must be sent.
    async fn is_due(&mut self) -> Result<bool, Trouble> {
        let last = self.all.len() - 1;
        if self.lost.is_none() {
            if self.is_given {
                self.before = self.look(&self.all[last..]).await?.remove(0);
            }
            self.sent = Instant::now();
            return Ok(true);
        }
        let mut others = self.look(self.all).await?;
        let found = others.remove(last);
        let is_there = found != Value::Nil;
        // A job that is still to run is not replaced, so what becomes of it tells nothing. One that has ended does not
        // change.
        let is_hidden = self.before != Value::Nil && !has_ended(&self.before);
        if is_there && !is_hidden && found != self.before {
            return Ok(false);
        }
        let is_late = !is_there && self.sent.elapsed() >= self.kept;
        let is_over = is_hidden || is_late || others.iter().any(has_begun);
        if is_over || !is_there && self.is_bounded().await? {
            return Err(Trouble {
                error: Error::Connection(String::new()),
                is_final: true,
            });
        }
        Ok(true)
    }

    /// Whether a job that has ended may go before its `keep` is over, as others end.
    async fn is_bounded(&self) -> Result<bool, Error> {
        let mut settings = cmd("DQ.CFGGET");
        settings.arg(&**self.key);
        match self.queue.server().ask(self.key, &settings).await {
            Ok(found) => Ok(["donelen", "donebytes", "deadlen"]
                .iter()
                .filter_map(|name| field(&found, name))
                .any(|most| values::int(&most) > 0)),
            Err(Error::Refused(refused)) if refused.code == "NOPERM" => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// What the server knows of these jobs; nil where it does not hold one.
    async fn look(&self, some: &[Placed]) -> Result<Vec<Value>, Error> {
        let get = |job: &Placed| {
            let mut get = cmd("DQ.GET");
            get.arg(&**self.key).arg(&job.id).arg("PREFIX").arg(0);
            (self.key.clone(), get)
        };
        self.queue.all(some.iter().map(get).collect()).await
    }
}

fn field(job: &Value, name: &str) -> Option<Value> {
    let fields = values::map(job.clone()).into_iter();
    fields
        .filter_map(|(known, value)| (known == name).then_some(value))
        .next()
}

fn has_ended(job: &Value) -> bool {
    let state = field(job, "state").and_then(values::text);
    matches!(state.as_deref(), Some("done" | "dead"))
}

fn has_begun(job: &Value) -> bool {
    field(job, "attempts").is_some_and(|attempts| values::int(&attempts) > 0) || has_ended(job)
}
