//! One board: which servers it shows, and which of their queues.

use std::sync::{Arc, Mutex};

use dq_connect::scope::Scope;
use dq_connect::target::Target;
use dq_watch::model::{clock, QueueKey};

use crate::config::Shown;
use crate::core::failure::Failure;
use crate::core::history::Parts;
use crate::servers::connections::Connections;
use crate::servers::prometheus::Prometheus;
use crate::servers::reader::Reader;
use dq_serve::locked::locked;

pub struct Board {
    pub reader: Arc<Reader>,
    pub connections: Arc<Connections>,
    scope: Scope,
    /// The name of the servers' target.
    name: String,
    /// Where history comes from, if not from the board itself.
    prometheus: Mutex<Option<Prometheus>>,
    /// The instant from which deliveries are counted.
    pub since_ms: i64,
}

impl Board {
    pub fn new(
        reader: Arc<Reader>,
        connections: Arc<Connections>,
        shown: &Shown,
        prometheus: Option<Prometheus>,
    ) -> Board {
        Board {
            since_ms: reader.server_ms(),
            reader,
            connections,
            scope: shown.scope.clone(),
            name: shown.target.name(),
            prometheus: Mutex::new(prometheus),
        }
    }

    /// Whether `shown` has the same queues of the same servers, however they are reached.
    pub fn is_of(&self, shown: &Shown) -> bool {
        self.scope == shown.scope && self.name == shown.target.name()
    }

    /// Sets how the servers and their history are reached from now on.
    pub fn reach(&self, target: Target, prometheus: Option<Prometheus>) {
        self.connections.set_target(target.clone());
        self.reader.set_target(target);
        *locked(&self.prometheus) = prometheus;
    }

    /// The history of a queue, from so long ago on, in so many parts.
    pub async fn past(
        &self,
        key: &QueueKey,
        ago_ms: i64,
        each_ms: i64,
        count: usize,
    ) -> Result<Parts, String> {
        let prometheus = locked(&self.prometheus).clone();
        match prometheus {
            None => self.reader.past(key, ago_ms, each_ms, count),
            Some(prometheus) => {
                let parts = Parts::new(clock::now_ms() - ago_ms, each_ms, count);
                prometheus.past(key, parts).await
            }
        }
    }

    /// Refuses what `--queue` and `-n` exclude: they limit what may be asked for, not only what is
    /// listed.
    pub fn shows(&self, key: &QueueKey) -> Result<(), Failure> {
        match self.scope.has(key.db, &key.name) {
            true => Ok(()),
            false => Err(Failure::Forbidden(
                "This board does not show that queue (see --queue and -n).".to_owned(),
            )),
        }
    }
}
