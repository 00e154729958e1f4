//! What the monitor knows and shows, and how it handles reports and keys. It uses neither servers
//! nor the terminal: what is to be sent is put into `outbox`.

mod keys;
pub mod prompt;
mod reports;
#[cfg(test)]
mod tests;
pub mod view;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use dq_watch::fleet::Out;
use dq_watch::model::board::Order;
use dq_watch::model::column::{Now, Tone};
use dq_watch::model::row::Row;
use dq_watch::model::QueueKey;
use dq_watch::read::acts::Act;
use dq_watch::read::{Request, Watch};
use dq_watch::servers::Servers;
use prompt::Prompt;
use view::{QueueView, View};

pub struct App {
    pub servers: Servers,
    pub order: Order,
    pub view: View,
    /// The selected queue of the table.
    pub selected: Option<QueueKey>,
    /// Whether the user has selected it. Until then the first row is selected, whichever queue it
    /// shows.
    chosen: bool,
    pub top: usize,
    pub prompt: Option<Prompt>,
    pub help: bool,
    pub message: Option<Message>,
    pub quit: bool,
    pub read_only: bool,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// What each node was last told to watch.
    watches: HashMap<String, Watch>,
    /// An action that was passed on to another node: that happens only once.
    sent_on: Option<(QueueKey, Act)>,
}

/// A line about something that happened.
#[derive(Clone, Debug)]
pub struct Message {
    pub text: String,
    pub tone: Tone,
    at: Instant,
}

/// How long a message stays.
const MESSAGE_SHOWN: Duration = Duration::from_secs(15);

impl App {
    pub fn new(first_node: &str, order: Order, interval: Duration, read_only: bool) -> App {
        App {
            servers: Servers::new(first_node, interval),
            order,
            view: View::Table,
            selected: None,
            chosen: false,
            top: 0,
            prompt: None,
            help: false,
            message: None,
            quit: false,
            read_only,
            size: (80, 24),
            watches: HashMap::new(),
            sent_on: None,
        }
    }

    pub fn now(&self) -> Now {
        self.servers.now()
    }

    pub fn rows(&self) -> Vec<&Row> {
        self.servers.board.ordered(&self.order, self.now())
    }

    pub fn say(&mut self, text: impl Into<String>, tone: Tone) {
        self.message = Some(Message {
            text: text.into(),
            tone,
            at: Instant::now(),
        });
    }

    /// The message, unless it is old.
    pub fn current_message(&self) -> Option<&Message> {
        self.message
            .as_ref()
            .filter(|message| message.at.elapsed() < MESSAGE_SHOWN)
    }

    /// Keeps the selection in sight, and tells the nodes what is on the screen. Called after every
    /// key and report.
    pub fn settle(&mut self) {
        let rows = self.rows();
        let keys: Vec<QueueKey> = rows.iter().map(|row| row.key.clone()).collect();
        let place = self
            .selected
            .as_ref()
            .and_then(|it| keys.iter().position(|key| key == it));
        let place = match self.chosen {
            true => place.unwrap_or_else(|| self.top.min(keys.len().saturating_sub(1))),
            false => 0,
        };
        self.selected = keys.get(place).cloned();
        let height = self.table_rows().max(1);
        self.top = self.top.min(keys.len().saturating_sub(height));
        self.top = self.top.clamp((place + 1).saturating_sub(height), place);
        let visible = match &self.view {
            View::Table => keys.into_iter().skip(self.top).take(height).collect(),
            View::Queue(view) => vec![view.key.clone()],
        };
        self.tell_watches(&visible);
    }

    fn tell_watches(&mut self, visible: &[QueueKey]) {
        let detail = match &self.view {
            View::Table => None,
            View::Queue(view) => view.detail(self.job_rows()),
        };
        let names: Vec<String> = self.servers.nodes.keys().cloned().collect();
        for name in names {
            let here = |key: &&QueueKey| {
                self.servers
                    .board
                    .row(key)
                    .is_some_and(|row| row.node == name)
            };
            let watch = Watch {
                visible: visible.iter().filter(here).cloned().collect(),
                detail: detail.clone().filter(|detail| here(&&detail.key)),
                clients: false,
            };
            if self.watches.get(&name) != Some(&watch) {
                self.watches.insert(name.clone(), watch.clone());
                self.servers
                    .outbox
                    .push(Out::To(name, Request::Watch(watch)));
            }
        }
    }

    /// Rows that the table has on this terminal: without header (4), titles, message and keys.
    pub fn table_rows(&self) -> usize {
        usize::from(self.size.1).saturating_sub(7)
    }

    /// Jobs on a page: without title bar, queue, tabs, titles, message and keys.
    pub fn job_rows(&self) -> usize {
        usize::from(self.size.1).saturating_sub(6).clamp(1, 100)
    }

    pub fn queue_view(&self) -> Option<&QueueView> {
        match &self.view {
            View::Queue(view) => Some(view),
            View::Table => None,
        }
    }

    fn queue_view_mut(&mut self) -> Option<&mut QueueView> {
        match &mut self.view {
            View::Queue(view) => Some(view),
            View::Table => None,
        }
    }

    /// The queue that keys are about.
    pub fn subject(&self) -> Option<QueueKey> {
        match &self.view {
            View::Table => self.selected.clone(),
            View::Queue(view) => Some(view.key.clone()),
        }
    }
}
