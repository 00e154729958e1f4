//! An alert, as text and as JSON.

use dq_watch::model::QueueKey;
use dq_watch::text::{escape, units};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use crate::core::wire;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Dead,
    OldestReady,
    Lateness,
    Missed,
    Unreachable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Firing,
    Resolved,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    pub state: State,
    pub kind: Kind,
    /// The server's name, where the board shows several.
    pub server: Option<String>,
    pub node: String,
    #[serde(with = "key")]
    pub queue: Option<QueueKey>,
    pub value: u64,
    pub limit: u64,
    pub at_ms: i64,
}

/// A queue as web addresses name it: a queue's name need not be text.
mod key {
    use super::{wire, Deserialize, QueueKey};
    use serde::de::Error;

    pub fn serialize<S: serde::Serializer>(
        key: &Option<QueueKey>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match key {
            Some(key) => to.serialize_some(&wire::name_of(key)),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'a, D: serde::Deserializer<'a>>(
        from: D,
    ) -> Result<Option<QueueKey>, D::Error> {
        let name = Option::<String>::deserialize(from)?;
        let key = name.map(|name| wire::key_of(&name).ok_or_else(|| D::Error::custom("no queue")));
        key.transpose()
    }
}

impl Alert {
    /// What the alert is about: a later one with the same key replaces it.
    pub fn about(&self) -> String {
        let kind = self.kind;
        match &self.queue {
            Some(key) => format!("{kind:?} {}", wire::name_of(key)),
            None => format!("{kind:?} {}", self.node),
        }
    }

    /// The alert as people read it.
    pub fn text(&self) -> String {
        let what = match &self.queue {
            Some(key) => escape::name(&key.name),
            None => self.node.clone(),
        };
        let value = self.value;
        let said = match self.kind {
            Kind::Dead if value == 1 => "a job died".to_owned(),
            Kind::Dead => format!("{value} jobs died"),
            Kind::Missed if value == 1 => "a recurring job missed an occurrence".to_owned(),
            Kind::Missed => format!("recurring jobs missed {value} occurrences"),
            Kind::OldestReady => format!(
                "a job has been due for {}",
                units::spaced(&units::millis(value))
            ),
            Kind::Lateness => format!(
                "deliveries are late by {}",
                units::spaced(&units::micros(value))
            ),
            Kind::Unreachable => format!(
                "cannot be reached for {}",
                units::spaced(&units::millis(value))
            ),
        };
        let server = self.server.iter();
        let of_it: String = server.map(|server| format!("{server}: ")).collect();
        match self.state {
            State::Firing => format!("{of_it}{what}: {said}"),
            State::Resolved => format!("{of_it}{what}: resolved ({said})"),
        }
    }

    /// `board`: the address of the board's pages, if it is known.
    pub fn json(&self, board: Option<&str>) -> Value {
        let mut shown = json!({
            "state": self.state,
            "kind": self.kind,
            "server": self.node,
            "name": self.server,
            "at": self.at_ms,
            "value": self.value,
            "limit": self.limit,
            "text": self.text(),
        });
        if let Some(key) = &self.queue {
            shown["queue"] = escape::name(&key.name).into();
            shown["db"] = key.db.into();
            shown["link"] = board
                .map(|board| {
                    let server = self.server.iter();
                    let under: String = server.map(|server| format!("{server}/")).collect();
                    format!("{board}{under}queue?queue={}", wire::name_of(key))
                })
                .into();
        }
        shown
    }
}
