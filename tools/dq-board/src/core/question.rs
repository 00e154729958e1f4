//! What a view asks for, as words. Equal questions share an answer.

use std::collections::HashMap;

use dq_watch::model::QueueKey;

use super::wire;

pub struct Question {
    pub key: QueueKey,
    words: HashMap<String, Vec<u8>>,
}

impl Question {
    pub fn of(query: &str) -> Option<Question> {
        let words = wire::query(query);
        let key = wire::key_of_bytes(words.get("queue")?)?;
        let own = |(name, value): (&str, Vec<u8>)| (name.to_owned(), value);
        Some(Question {
            key,
            words: words.into_iter().map(own).collect(),
        })
    }

    pub fn bytes(&self, name: &str) -> &[u8] {
        self.words.get(name).map_or(&[], Vec::as_slice)
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
