//! What is shown: which servers, which of their queues.

use std::sync::Arc;

use dq_watch::model::{clock, QueueKey};
use dq_watch::read::target::Target;
use dq_watch::read::Scope;

use crate::core::failure::Failure;
use crate::core::history::Parts;
use crate::servers::look::Looker;
use crate::servers::prometheus::Prometheus;
use crate::servers::reader::Reader;

pub struct Board {
    pub reader: Arc<Reader>,
    pub looker: Arc<Looker>,
    scope: Scope,
    /// Who knows the past, if not the board itself.
    prometheus: Option<Prometheus>,
    /// Since when deliveries are counted.
    pub since_ms: i64,
}

impl Board {
    pub fn new(
        reader: Arc<Reader>,
        looker: Arc<Looker>,
        scope: Scope,
        prometheus: Option<Prometheus>,
    ) -> Board {
        Board {
            since_ms: reader.server_ms(),
            reader,
            looker,
            scope,
            prometheus,
        }
    }

    /// From now on the servers are reached in this way.
    pub fn set_target(&self, target: Target) {
        self.looker.set_target(target.clone());
        self.reader.set_target(target);
    }

    /// What a queue did, in so many parts from so long ago on.
    pub async fn past(
        &self,
        key: &QueueKey,
        ago_ms: i64,
        each_ms: i64,
        count: usize,
    ) -> Result<Parts, String> {
        match &self.prometheus {
            None => self.reader.past(key, ago_ms, each_ms, count),
            Some(prometheus) => {
                let parts = Parts::new(clock::now_ms() - ago_ms, each_ms, count);
                prometheus.past(key, parts).await
            }
        }
    }

    /// `--queue` and `-n` bound what is asked for, too: not only what is listed.
    pub fn shows(&self, key: &QueueKey) -> Result<(), Failure> {
        match self.scope.has(key) {
            true => Ok(()),
            false => Err(Failure::Forbidden(
                "This board does not show that queue (see --queue and -n).".to_owned(),
            )),
        }
    }
}
