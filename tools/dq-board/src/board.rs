//! What is shown: which servers, which of their queues.

use std::sync::Arc;

use dq_watch::model::QueueKey;
use dq_watch::read::target::Target;
use dq_watch::read::Scope;

use crate::core::failure::Failure;
use crate::servers::look::Looker;
use crate::servers::reader::Reader;

pub struct Board {
    pub reader: Arc<Reader>,
    pub looker: Arc<Looker>,
    scope: Scope,
    /// Since when deliveries are counted.
    pub since_ms: i64,
}

impl Board {
    pub fn new(reader: Arc<Reader>, looker: Arc<Looker>, scope: Scope) -> Board {
        Board {
            since_ms: reader.server_ms(),
            reader,
            looker,
            scope,
        }
    }

    /// From now on the servers are reached in this way.
    pub fn set_target(&self, target: Target) {
        self.looker.set_target(target.clone());
        self.reader.set_target(target);
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
