//! Waits for the ends of jobs: all of one key share one `DQ.AWAIT`, on a connection of their own.

use super::Queue;
use crate::connect::{silent, Waiter};
use crate::core::trouble::{fatal, trouble_wait};
use crate::error::{Error, Outcome};
use crate::result::decode;
use crate::server::Server;
use crate::values::{self, server_error};
use redis::{cmd, Cmd, Pipeline, RedisError, Value};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::future::{pending, Future};
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

pub(super) const UNBLOCK_AGAIN: Duration = Duration::from_millis(50);
/// `DQ.AWAIT` is then sent again, so that a connection that hangs is noticed.
const WAIT: Duration = Duration::from_secs(5);

/// Outcome and value.
type Ended = Result<(Outcome, Option<Vec<u8>>), Error>;
type Wanted = (Vec<u8>, oneshot::Sender<Ended>);

/// For each key, where new waits go.
#[derive(Default)]
pub(super) struct Waits(HashMap<Arc<[u8]>, mpsc::UnboundedSender<Wanted>>);

pub(super) fn close(waits: &Mutex<Waits>) {
    waits
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .0
        .clear();
}

impl Queue {
    /// Waits until a job has ended, and returns its result; `None` if it has none. If the job did not succeed, the
    /// error is [`Error::JobFailed`]. So it is if the job ended before and was not kept (`keep`, or `DONETTL` of the
    /// queue). All waits on a shard of a queue share one connection.
    pub async fn wait<R: DeserializeOwned>(
        &self,
        id: impl AsRef<[u8]>,
        timeout: Duration,
    ) -> Result<Option<R>, Error> {
        let id = id.as_ref().to_vec();
        let (wanted, ended) = oneshot::channel();
        self.want((id.clone(), wanted));
        let ended = match tokio::time::timeout(timeout, ended).await {
            Ok(Ok(ended)) => ended?,
            Ok(Err(_)) => return Err(Error::Connection("the queue was closed".into())),
            Err(_) => {
                return Err(Error::TimedOut {
                    id: values::lossy(id),
                    timeout,
                    signal: None,
                })
            }
        };
        match ended {
            (Outcome::Done, value) => value.as_deref().map(decode).transpose(),
            (outcome, reason) => Err(Error::JobFailed {
                id: values::lossy(id),
                outcome,
                reason: reason.map(values::lossy),
            }),
        }
    }

    fn want(&self, wanted: Wanted) {
        let key = self.key(&wanted.0).clone();
        let mut waits = self.0.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = match waits.0.get(&key) {
            Some(sender) => sender.send(wanted).err().map(|refused| refused.0),
            None => Some(wanted),
        };
        if let Some(wanted) = refused {
            let (sender, receiver) = mpsc::unbounded_channel();
            _ = sender.send(wanted);
            tokio::spawn(Waiting::new(self.server().clone(), key.clone()).run(receiver));
            waits.0.insert(key, sender);
        }
    }
}

struct Waiting {
    server: Server,
    key: Arc<[u8]>,
    wanted: HashMap<Vec<u8>, Vec<oneshot::Sender<Ended>>>,
    open: Option<Waiter>,
    troubles: u32,
}

/// What can happen during a wait.
enum News {
    Reply(Result<Value, RedisError>),
    Wanted(Option<Wanted>),
    Unblocked(bool),
}

impl Waiting {
    fn new(server: Server, key: Arc<[u8]>) -> Self {
        Waiting {
            server,
            key,
            wanted: HashMap::new(),
            open: None,
            troubles: 0,
        }
    }

    /// Runs until its queue is closed.
    async fn run(mut self, mut receiver: mpsc::UnboundedReceiver<Wanted>) {
        loop {
            for waiters in self.wanted.values_mut() {
                waiters.retain(|waiter| !waiter.is_closed());
            }
            self.wanted.retain(|_, waiters| !waiters.is_empty());
            if self.wanted.is_empty() {
                let Some(wanted) = receiver.recv().await else {
                    return;
                };
                self.add(wanted);
            }
            while let Ok(wanted) = receiver.try_recv() {
                self.add(wanted);
            }
            match self.look(&mut receiver).await {
                Ok(true) => self.troubles = 0,
                Ok(false) => return,
                Err(text) => self.trouble(&text).await,
            }
        }
    }

    fn add(&mut self, (id, waiter): Wanted) {
        self.wanted.entry(id).or_default().push(waiter);
    }

    async fn trouble(&mut self, text: &str) {
        self.open = None;
        if fatal(text).is_some() {
            let told = std::mem::take(&mut self.wanted).into_values().flatten();
            for (waiter, error) in told.zip(std::iter::from_fn(|| fatal(text))) {
                _ = waiter.send(Err(error));
            }
            return;
        }
        self.troubles += 1;
        tokio::time::sleep(trouble_wait(self.troubles, 0.0)).await;
    }

    fn words(&self) -> Cmd {
        let mut words = cmd("DQ.AWAIT");
        words.arg(&*self.key).arg(values::seconds(WAIT));
        words.arg("IDS").arg(self.wanted.len());
        self.wanted.keys().for_each(|id| _ = words.arg(id));
        words
    }

    /// Sends one `DQ.AWAIT` for all jobs. False: the queue was closed.
    async fn look(
        &mut self,
        receiver: &mut mpsc::UnboundedReceiver<Wanted>,
    ) -> Result<bool, String> {
        let waiter = match &self.open {
            Some(open) => open.clone(),
            None => {
                let made = self.server.connect(&self.key).await;
                let made = made.map_err(|error| values::error_text(&error))?;
                let made = Waiter::new(made).await;
                self.open.insert(made).clone()
            }
        };
        let mut connection = waiter.connection.clone();
        let mut pipe = Pipeline::with_capacity(1);
        pipe.add_command(self.words());
        let mut waiting = pin!(async move {
            let asked = connection.send_packed_commands(&pipe, 0, 1);
            let replies = tokio::time::timeout(2 * WAIT, asked)
                .await
                .map_err(|_| silent())??;
            Ok(replies.into_iter().next().unwrap_or(Value::Nil))
        });
        let mut unblocking: Pin<Box<dyn Future<Output = bool> + Send>> = Box::pin(pending());
        let mut is_unblocking = false;
        let reply = loop {
            let news = tokio::select! {
                biased;
                reply = &mut waiting => News::Reply(reply),
                wanted = receiver.recv() => News::Wanted(wanted),
                goes_on = &mut unblocking => News::Unblocked(goes_on),
            };
            match news {
                News::Reply(reply) => break reply.map_err(|error| values::error_text(&error))?,
                News::Wanted(None) => return Ok(false),
                News::Wanted(Some(wanted)) => {
                    let is_new = !self.wanted.contains_key(&wanted.0);
                    self.add(wanted);
                    if is_new && !is_unblocking && waiter.number.is_some() {
                        unblocking = Box::pin(unblock(waiter.clone(), Duration::ZERO));
                        is_unblocking = true;
                    }
                }
                // It may not have arrived, or the server holds it back.
                News::Unblocked(true) => {
                    unblocking = Box::pin(unblock(waiter.clone(), UNBLOCK_AGAIN));
                }
                News::Unblocked(false) => {
                    // Refused: new ids wait for the next round.
                    (unblocking, is_unblocking) = (Box::pin(pending()), false);
                    if let Some(open) = &mut self.open {
                        open.number = None;
                    }
                }
            }
        };
        if is_unblocking {
            unblocking.await; // else it might end the next wait, and a job may end between the two
        }
        match reply {
            Value::ServerError(error) if !error.code().starts_with("UNBLOCKED") => {
                Err(server_error(&error))
            }
            reply => {
                values::list(reply)
                    .into_iter()
                    .for_each(|row| self.ended(row));
                Ok(true)
            }
        }
    }

    fn ended(&mut self, row: Value) {
        let mut row = values::list(row).into_iter();
        let (Some(id), Some(outcome)) = (
            row.next().and_then(values::bytes),
            row.next().and_then(values::text),
        ) else {
            return;
        };
        let value = row.next().and_then(values::bytes);
        for waiter in self.wanted.remove(&id).unwrap_or_default() {
            _ = waiter.send(Ok((Outcome::named(&outcome), value.clone())));
        }
    }
}

async fn unblock(waiter: Waiter, after: Duration) -> bool {
    tokio::time::sleep(after).await;
    waiter.unblock().await
}
