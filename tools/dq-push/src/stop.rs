//! Once for all queues: nothing new is begun any more.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

pub struct Stop {
    set: watch::Sender<bool>,
    why: Mutex<Option<String>>,
}

impl Stop {
    pub fn new() -> Stop {
        Stop {
            set: watch::channel(false).0,
            why: Mutex::new(None),
        }
    }

    pub fn now(&self) {
        self.set.send_replace(true);
    }

    /// On account of that; the first reason counts.
    pub fn because(&self, why: String) {
        let mut said = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        said.get_or_insert(why);
        drop(said);
        self.now();
    }

    pub fn why(&self) -> Option<String> {
        self.why
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    pub fn is_set(&self) -> bool {
        *self.set.borrow()
    }

    pub async fn wait(&self) {
        let mut set = self.set.subscribe();
        // An error would mean that the sender is gone; it is in self.
        let _ = set.wait_for(|set| *set).await;
    }
}
