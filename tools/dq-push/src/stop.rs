//! Stopping, in two stages for all queues: first nothing new is begun, and then calls are not
//! waited for.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    Draining,
    Hurried,
}

pub struct Stop {
    stage: watch::Sender<Stage>,
    why: Mutex<Option<String>>,
}

impl Stop {
    pub fn new() -> Stop {
        Stop {
            stage: watch::channel(Stage::Running).0,
            why: Mutex::new(None),
        }
    }

    pub fn now(&self) {
        self.reach(Stage::Draining);
    }

    /// Aborts the calls that are still running.
    pub fn hurry(&self) {
        self.reach(Stage::Hurried);
    }

    fn reach(&self, stage: Stage) {
        self.stage.send_if_modified(|now| {
            let is_new = *now < stage;
            *now = stage.max(*now);
            is_new
        });
    }

    /// Stops for this reason; the first reason counts.
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
        *self.stage.borrow() >= Stage::Draining
    }

    pub async fn wait(&self) {
        self.reached(Stage::Draining).await;
    }

    pub async fn hurried(&self) {
        self.reached(Stage::Hurried).await;
    }

    async fn reached(&self, stage: Stage) {
        let mut now = self.stage.subscribe();
        // An error would mean that the sender is gone, but it is in self.
        let _ = now.wait_for(|now| *now >= stage).await;
    }
}
