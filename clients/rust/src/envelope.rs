//! A payload with a kind and headers: `{"dq":1,"kind":...,"data":...,"headers":{...}}`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::Value;
use std::collections::BTreeMap;

const VERSION: u64 = 1;

/// Headers of a job, by name.
pub type Headers = BTreeMap<String, String>;

#[derive(Debug)]
pub(crate) struct Envelope {
    version: u64,
    pub kind: Option<String>,
    pub data: Box<RawValue>,
    pub headers: Headers,
}

#[derive(Serialize)]
struct Written<'a, T: ?Sized> {
    dq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    data: &'a T,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: &'a Headers,
}

#[derive(Deserialize)]
struct Read {
    dq: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    kind: Option<Value>,
    #[serde(default, deserialize_with = "raw")]
    data: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "given")]
    headers: Option<Value>,
}

/// `Some` also if the value is null.
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// `Some` also if the value is null: a job of a kind may have no data.
fn raw<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    <Box<RawValue>>::deserialize(from).map(Some)
}

impl Envelope {
    pub fn write<T: Serialize + ?Sized>(
        data: &T,
        kind: Option<&str>,
        headers: &Headers,
    ) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&Written {
            dq: VERSION,
            kind,
            data,
            headers,
        })
    }

    /// `None` if the payload is no envelope.
    pub fn read(payload: &[u8]) -> Option<Self> {
        if !payload.starts_with(b"{") || !payload.windows(4).any(|four| four == b"\"dq\"") {
            return None;
        }
        let read: Read = serde_json::from_slice(payload).ok()?;
        if read.kind.is_none() && read.headers.is_none() {
            return None;
        }
        let kind = match read.kind {
            Some(Value::String(kind)) => Some(kind),
            _ => None, // a kind that is not a string is ignored
        };
        let headers = match read.headers {
            Some(Value::Object(fields)) => fields
                .into_iter()
                .filter_map(|(name, value)| match value {
                    Value::String(text) => Some((name, text)),
                    _ => None,
                })
                .collect(),
            _ => Headers::new(),
        };
        Some(Envelope {
            version: read.dq?.as_u64()?,
            kind,
            data: read.data?,
            headers,
        })
    }

    pub fn is_known(&self) -> bool {
        self.version == VERSION
    }
}
