//! What a job asks of the queue that it came from.

use crate::envelope::Headers;
use crate::keys::Shards;
use crate::server::Server;

/// A queue's name, server, keys and hooks. The queue itself names the job's module, which therefore cannot name it.
pub(crate) struct Source {
    pub name: String,
    pub server: Server,
    pub shards: Shards,
    /// Calls the hooks for a job that is about to be added.
    pub adding: Box<dyn Fn(&mut Headers) + Send + Sync>,
}
