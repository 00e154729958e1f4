//! Stops workers: from elsewhere, or at a signal.

use crate::core::Event;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

/// Stops a worker from elsewhere. Clones stop the same worker.
#[derive(Clone, Debug, Default)]
pub struct Stopper(Arc<Mutex<Stops>>);

#[derive(Debug, Default)]
struct Stops {
    early: usize,
    events: Option<UnboundedSender<Event>>,
}

impl Stopper {
    fn lock(&self) -> MutexGuard<'_, Stops> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the worker stop: it fetches no more, and handlers get the time of [`Worker::drain_for`](crate::Worker::drain_for) to end. A second
    /// call ends that time. If the worker does not run yet, it stops as soon as it runs.
    pub fn stop(&self) {
        let mut stops = self.lock();
        match &stops.events {
            Some(events) => _ = events.send(Event::Stop),
            None => stops.early += 1,
        }
    }

    pub(crate) fn connect(&self, events: UnboundedSender<Event>) {
        let mut stops = self.lock();
        for _ in 0..std::mem::take(&mut stops.early) {
            _ = events.send(Event::Stop);
        }
        stops.events = Some(events);
    }

    fn disconnect(&self) {
        self.lock().events = None;
    }
}

/// Stops a worker whose future is dropped.
pub(crate) struct OnDrop(pub Stopper);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.stop(); // if the worker has ended, this does nothing
        self.0.disconnect();
    }
}

/// Waits for SIGINT or SIGTERM. A second one ends the drain of all workers of this process.
pub async fn shutdown() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{signal, SignalKind};
        if let (Ok(mut interrupt), Ok(mut terminate)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) {
            let mut next = async move || {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            };
            next().await;
            tokio::spawn(async move {
                next().await;
                crate::io::stop_all();
            });
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
