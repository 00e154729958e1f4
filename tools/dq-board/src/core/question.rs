//! What a view asks for, as words. Equal questions share an answer.

use std::collections::HashMap;
use std::ops::Deref;

use dq_watch::model::QueueKey;

use super::wire;

/// About one queue.
pub struct Question {
    pub key: QueueKey,
    words: Words,
}

/// About no queue, or about all of them.
pub struct Words(HashMap<String, Vec<u8>>);

impl Deref for Question {
    type Target = Words;

    fn deref(&self) -> &Words {
        &self.words
    }
}

impl Words {
    pub fn of(query: &str) -> Words {
        let own = |(name, value): (&str, Vec<u8>)| (name.to_owned(), value);
        Words(wire::query(query).into_iter().map(own).collect())
    }

    /// A question, if a queue is named.
    pub fn about_queue(self) -> Result<Question, Words> {
        match wire::key_of_bytes(self.bytes("queue")) {
            Some(key) => Ok(Question { key, words: self }),
            None => Err(self),
        }
    }

    /// Of these queues, which are in order, those from the one on at which the last question ended, each with the cursor
    /// at which to begin.
    pub fn onwards<'a>(&self, keys: &'a [QueueKey]) -> Vec<(&'a QueueKey, String)> {
        let from = wire::key_of_bytes(self.bytes("from"));
        let is_left = |key: &&QueueKey| from.as_ref().is_none_or(|from| *key >= from);
        let begin = |key: &'a QueueKey| match from.as_ref() == Some(key) {
            true => (key, self.cursor()),
            false => (key, "0".to_owned()),
        };
        keys.iter().filter(is_left).map(begin).collect()
    }

    /// Where the next question continues, as the rest of its address.
    pub fn place(key: &QueueKey, cursor: &str) -> String {
        let from = wire::encoded(wire::name_of(key).as_bytes());
        format!("{cursor}&from={from}")
    }

    pub fn bytes(&self, name: &str) -> &[u8] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn text(&self, name: &str) -> &str {
        std::str::from_utf8(self.bytes(name)).unwrap_or_default()
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).parse().ok()
    }

    /// The cursor at which the question begins, if it takes several of them.
    pub fn cursor(&self) -> String {
        match self.text("cursor") {
            "" => "0".to_owned(),
            cursor => cursor.to_owned(),
        }
    }
}
