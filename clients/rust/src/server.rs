//! Where a queue is: one server, behind Sentinels, or in a cluster.

use crate::cluster::{node_of, redirected, Map, Redirected};
use crate::connect::{connect, silent};
use crate::error::Error;
use crate::keys::slot_of;
use crate::values;
use redis::aio::MultiplexedConnection;
use redis::sentinel::{Sentinel, SentinelNodeConnectionInfo};
use redis::{cmd, Client, Cmd, ConnectionInfo, IntoConnectionInfo, Pipeline, RedisError, Value};
use std::collections::HashMap;
use std::fmt;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

const ANSWER: Duration = Duration::from_secs(10);
const REDIRECTIONS: usize = 16;
/// How long it takes to notice that a connection is closed. No server executes a command and is lost in that time.
const AT_ONCE: Duration = Duration::from_millis(1);

/// A server with the dq module, by redis-rs. All queues on it share its connection. It connects when it is first
/// needed, and again after a lost connection.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

pub(crate) struct Inner {
    pub place: Arc<Place>,
    name: String,
    /// By the node's name; for a single server the name is empty.
    open: Mutex<HashMap<String, MultiplexedConnection>>,
}

pub(crate) enum Place {
    One(Client),
    Sentinel {
        sentinel: tokio::sync::Mutex<Sentinel>,
        master: String,
        node: SentinelNodeConnectionInfo,
    },
    Cluster {
        seeds: Vec<ConnectionInfo>,
        map: Mutex<Map>,
    },
}

impl Inner {
    fn redirected(&self, replies: &[Value]) -> Redirected {
        match &*self.place {
            Place::Cluster { seeds, map } => redirected(seeds, map, replies),
            _ => Redirected::Not,
        }
    }

    /// The node that has a slot; `anew`: ask the cluster again.
    async fn node_of(&self, slot: u16, anew: bool) -> Result<ConnectionInfo, RedisError> {
        match &*self.place {
            Place::Cluster { seeds, map } => node_of(seeds, map, slot, anew).await,
            _ => Err((redis::ErrorKind::Client, "no cluster").into()),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.0.name)
    }
}

impl Server {
    /// A server by its URL: `redis://user:password@host:6379/0`, `rediss://` with TLS (feature `tls`), or `unix://`.
    pub fn open(url: &str) -> Result<Self, Error> {
        Ok(Server::client(Client::open(url).map_err(unfit)?))
    }

    /// A server by a client of redis-rs, with the client's settings for TLS and the like.
    pub fn client(client: Client) -> Self {
        let info = client.get_connection_info();
        let name = format!("{}/{}", info.addr(), info.redis_settings().db());
        Server::of(name, Place::One(client))
    }

    /// A Redis Cluster, by the URLs of some of its nodes. User, password and TLS are those of the first URL.
    pub fn cluster<'a>(urls: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let seeds: Result<Vec<_>, _> = urls
            .into_iter()
            .map(IntoConnectionInfo::into_connection_info)
            .collect();
        let seeds = seeds.map_err(unfit)?;
        let Some(first) = seeds.first() else {
            return Err(Error::usage("a cluster needs the URL of a node"));
        };
        let name = format!("cluster of {}", first.addr());
        Ok(Server::of(
            name,
            Place::Cluster {
                seeds,
                map: Mutex::default(),
            },
        ))
    }

    /// The master of this name, by the URLs of its Sentinels. `url` has the master's user, password and database; its
    /// host is ignored.
    pub fn sentinel<'a>(
        sentinels: impl IntoIterator<Item = &'a str>,
        master: &str,
        url: &str,
    ) -> Result<Self, Error> {
        let sentinels: Result<Vec<ConnectionInfo>, _> = sentinels
            .into_iter()
            .map(IntoConnectionInfo::into_connection_info)
            .collect();
        let sentinels = sentinels.map_err(unfit)?;
        let places: Vec<String> = sentinels.iter().map(|one| one.addr().to_string()).collect();
        let name = format!("{master} of {}", places.join(" ")); // their URLs may have passwords
        let info = url.into_connection_info().map_err(unfit)?;
        let node = SentinelNodeConnectionInfo::default()
            .set_redis_connection_info(info.redis_settings().clone());
        let sentinel = tokio::sync::Mutex::new(Sentinel::build(sentinels).map_err(unfit)?);
        Ok(Server::of(
            name,
            Place::Sentinel {
                sentinel,
                master: master.to_owned(),
                node,
            },
        ))
    }

    fn of(name: String, place: Place) -> Self {
        Server(Arc::new(Inner {
            place: Arc::new(place),
            name,
            open: Mutex::default(),
        }))
    }

    /// The same server with other connections, for another runtime.
    pub(crate) fn anew(&self) -> Self {
        Server(Arc::new(Inner {
            place: self.0.place.clone(),
            name: self.0.name.clone(),
            open: Mutex::default(),
        }))
    }

    /// A name that is equal for two keys if one connection can wait for both.
    pub(crate) fn place_of(&self, key: &[u8]) -> String {
        match &*self.0.place {
            Place::Cluster { .. } => format!("{}#{}", self.0.name, slot_of(key)),
            _ => self.0.name.clone(),
        }
    }

    pub(crate) fn is_cluster(&self) -> bool {
        matches!(*self.0.place, Place::Cluster { .. })
    }

    // --- Connections

    /// Opens a separate connection to the server that has the key, and says which one that is.
    pub(crate) async fn connect(
        &self,
        key: &[u8],
    ) -> Result<(MultiplexedConnection, Client), RedisError> {
        let client = match &*self.0.place {
            Place::One(client) => client.clone(),
            Place::Sentinel {
                sentinel,
                master,
                node,
            } => {
                let mut sentinel = sentinel.lock().await;
                sentinel.async_master_for(master, Some(node)).await?
            }
            Place::Cluster { .. } => {
                let node = self.0.node_of(slot_of(key), true).await?;
                Client::open(node)?
            }
        };
        Ok((connect(&client).await?, client))
    }

    async fn shared(
        &self,
        node: Option<&ConnectionInfo>,
        key: &[u8],
    ) -> Result<(String, MultiplexedConnection), RedisError> {
        let name = node.map(|node| node.addr().to_string()).unwrap_or_default();
        if let Some(open) = self.opened().get(&name) {
            return Ok((name, open.clone()));
        }
        let made = match node {
            Some(node) => connect(&Client::open(node.clone())?).await?,
            None => self.connect(key).await?.0,
        };
        self.opened().insert(name.clone(), made.clone());
        Ok((name, made))
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, HashMap<String, MultiplexedConnection>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the connections. A program that was forked, or whose runtime has ended, then opens its own.
    pub(crate) fn close(&self) {
        self.opened().clear();
    }

    // --- Asking

    pub(crate) async fn ask(&self, key: &[u8], command: &Cmd) -> Result<Value, Error> {
        let mut pipe = redis::Pipeline::with_capacity(1);
        pipe.add_command(command.clone());
        let reply = self.ask_all(key, &pipe).await?.pop().unwrap_or(Value::Nil);
        answer(command, reply)
    }

    /// Sends commands of one key in one write, and returns their replies, errors among them. They are sent again only
    /// if they certainly were not sent.
    pub(crate) async fn ask_all(&self, key: &[u8], pipe: &Pipeline) -> Result<Vec<Value>, Error> {
        let asked = self.try_all(key, pipe, false).await;
        asked.map_err(|failed| failed.error.into())
    }

    /// `is_once`: not even what looks unsent is sent again.
    pub(crate) async fn try_all(
        &self,
        key: &[u8],
        pipe: &Pipeline,
        is_once: bool,
    ) -> Result<Vec<Value>, Failed> {
        let mut asking: Option<ConnectionInfo> = None;
        for _ in 0..REDIRECTIONS {
            let is_asking = asking.is_some();
            let node = match (self.is_cluster(), asking.take()) {
                (true, None) => Some(self.0.node_of(slot_of(key), false).await?),
                (_, node) => node,
            };
            let (name, mut connection) = self.shared(node.as_ref(), key).await?;
            let replies = match exchange(&mut connection, pipe, is_asking).await {
                Ok(replies) => replies,
                Err(failed) => {
                    self.opened().remove(&name);
                    if failed.was_sent || is_once {
                        let was_sent = true;
                        return Err(Failed { was_sent, ..failed });
                    }
                    continue;
                }
            };
            match self.0.redirected(&replies) {
                Redirected::Not => return Ok(replies),
                Redirected::Moved => tokio::time::sleep(Duration::from_millis(20)).await,
                Redirected::Ask(node) => asking = Some(*node),
            }
        }
        let what = "the server is not there, or its cluster redirects in a circle";
        let error = std::io::Error::new(std::io::ErrorKind::NotConnected, what);
        Err(RedisError::from(error).into())
    }
}

fn unfit(error: RedisError) -> Error {
    Error::usage(format!("the URL of the server is wrong: {error}"))
}

/// Turns an error reply into an error.
pub(crate) fn answer(command: &Cmd, reply: Value) -> Result<Value, Error> {
    match reply {
        Value::ServerError(error) => {
            let said = values::server_error(&error);
            Err(Error::refused(Some(command), &said))
        }
        reply => Ok(reply),
    }
}

/// The replies to these commands, or the first error among them.
pub(crate) fn answers(pipe: &Pipeline, replies: Vec<Value>) -> Result<Vec<Value>, Error> {
    let all = pipe.cmd_iter().zip(replies);
    all.map(|(command, reply)| answer(command, reply)).collect()
}

/// A write without an answer.
pub(crate) struct Failed {
    pub error: RedisError,
    /// Whether it may have arrived.
    pub was_sent: bool,
}

impl From<RedisError> for Failed {
    fn from(error: RedisError) -> Self {
        Failed {
            error,
            was_sent: false,
        }
    }
}

async fn exchange(
    connection: &mut MultiplexedConnection,
    pipe: &redis::Pipeline,
    is_asking: bool,
) -> Result<Vec<Value>, Failed> {
    let mut whole = redis::Pipeline::new();
    let first = usize::from(is_asking);
    let pipe = if is_asking {
        whole.add_command(cmd("ASKING"));
        pipe.cmd_iter()
            .for_each(|command| _ = whole.add_command(command.clone()));
        &whole
    } else {
        pipe
    };
    let mut sent = pin!(connection.send_packed_commands(pipe, first, pipe.len() - first));
    // What fails at the first poll has met a connection that was closed before, unless this thread stood still in it.
    let begun = Instant::now();
    let early = poll_fn(|context| Poll::Ready(sent.as_mut().poll(context))).await;
    let (reply, was_sent) = match early {
        Poll::Ready(reply) => (reply, begun.elapsed() > AT_ONCE),
        Poll::Pending => match tokio::time::timeout(ANSWER, sent).await {
            Ok(reply) => (reply, true),
            Err(_) => (Err(silent()), true),
        },
    };
    reply.map_err(|error| Failed {
        was_sent: was_sent || !error.is_io_error(),
        error,
    })
}
