//! Addresses of receivers, with one lookup at a time of each name. A resolver that does not answer holds a thread for
//! long, and threads are few: lookups for calls that timed out meanwhile would take them from all other queues.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt, Shared};
use tokio::net::lookup_host;
use tokio::task::AbortHandle;

type Found = Result<Vec<SocketAddr>, Arc<io::Error>>;
type Lookup = Shared<BoxFuture<'static, Found>>;
type Lookups = HashMap<(String, u16), (AbortHandle, Lookup)>;

#[derive(Clone, Default)]
pub struct Names(Arc<Mutex<Lookups>>);

impl Names {
    pub async fn find(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let key = (name.to_owned(), port);
        let ask = async move { Ok(lookup_host(key).await?.collect()) };
        let found = self.join(name, port, ask).await;
        found.map_err(|error| io::Error::new(error.kind(), error))
    }

    /// The running lookup of this name, or a new one. It continues even when nobody waits for it any more.
    fn join(
        &self,
        name: &str,
        port: u16,
        ask: impl Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    ) -> Lookup {
        let mut lookups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.to_owned(), port);
        // Judged by the lookup's own task: the shared future only advances while somebody waits for it.
        match lookups.get(&key) {
            Some((asked, lookup)) if !asked.is_finished() => return lookup.clone(),
            _ => {}
        }
        let asked = tokio::spawn(ask);
        let running = asked.abort_handle();
        let told = async {
            let found = asked.await.unwrap_or_else(|error| Err(error.into()));
            found.map_err(Arc::new)
        };
        let lookup = told.boxed().shared();
        lookups.insert(key, (running, lookup.clone()));
        lookup
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn one_lookup_of_a_name_at_a_time() {
        let names = Names::default();
        let (answer, silent) = oneshot::channel();
        let slow = async { silent.await.map_err(io::Error::other) };
        let never = || async { panic!("a second lookup of the same name") };
        drop(names.join("a", 1, slow));
        let (one, two) = (names.join("a", 1, never()), names.join("a", 1, never()));
        let other = async { Ok(Vec::new()) };
        assert!(names.join("b", 1, other).await.unwrap().is_empty());
        let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
        answer.send(vec![address]).unwrap();
        assert_eq!(
            (one.await.unwrap(), two.await.unwrap()),
            (vec![address], vec![address])
        );
        let anew = async { Ok(Vec::new()) };
        assert!(
            names.join("a", 1, anew).await.unwrap().is_empty(),
            "nothing is kept"
        );
    }
}
