//! A server's board as the requests see it.

use std::sync::Arc;

use axum::extract::State;
use tokio::sync::watch;

use super::guard::Guard;
use crate::board::Board;
use crate::tasks::Tasks;

/// A board, and who may ask it.
pub struct Site {
    pub board: Arc<Board>,
    pub guard: Arc<Guard>,
    pub tasks: Arc<Tasks>,
    /// The server's name, where there are several.
    pub name: Option<String>,
    pub prefix: String,
    /// Becomes true when the program ends, or this board is no longer shown.
    pub ending: watch::Sender<bool>,
}

impl Site {
    pub fn end(&self) {
        self.ending.send_replace(true);
    }
}

pub type Shared = State<Arc<Site>>;
