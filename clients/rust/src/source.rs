//! What a job asks of the queue that it came from.

use crate::envelope::Headers;
use crate::keys::Shards;
use crate::server::Server;

/// A queue, as its jobs see it: [`crate::Queue`] names the job's module, which therefore cannot name it.
pub(crate) trait Source: Send + Sync {
    fn server(&self) -> &Server;
    fn shards(&self) -> &Shards;
    /// Calls the hooks for a job that is about to be added.
    fn adding(&self, headers: &mut Headers);
}
