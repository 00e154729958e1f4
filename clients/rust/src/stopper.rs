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
    /// Of each run: a worker and its clones may run beside each other.
    events: Vec<UnboundedSender<Event>>,
}

impl Stopper {
    fn lock(&self) -> MutexGuard<'_, Stops> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the worker stop: it fetches no more, and handlers get the time of [`Worker::drain_for`](crate::Worker::drain_for) to end. A second
    /// call ends that time. If the worker does not run yet, it stops as soon as it runs.
    pub fn stop(&self) {
        let mut stops = self.lock();
        if stops.events.is_empty() {
            stops.early += 1;
        }
        for events in &stops.events {
            _ = events.send(Event::Stop);
        }
    }

    /// Until what it returns is dropped, which stops that run.
    pub(crate) fn connect(&self, events: UnboundedSender<Event>) -> OnDrop {
        let mut stops = self.lock();
        for _ in 0..std::mem::take(&mut stops.early) {
            _ = events.send(Event::Stop);
        }
        stops.events.push(events.clone());
        OnDrop(self.clone(), events)
    }
}

/// Stops a worker whose future is dropped.
pub(crate) struct OnDrop(Stopper, UnboundedSender<Event>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        _ = self.1.send(Event::Stop); // if the worker has ended, this does nothing
        let is_other = |it: &UnboundedSender<Event>| !it.same_channel(&self.1);
        self.0.lock().events.retain(is_other);
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
