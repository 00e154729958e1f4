//! Replies of the server as JSON.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use redis::Value;
use serde_json::{json, Map, Value as Json};

/// Not for those who add jobs: what ends a delivery, and who has it.
const HIDDEN: [&[u8]; 2] = [b"token", b"client"];

/// Bytes under a name; those that are not UTF-8 under the same name with `_base64`.
pub fn put(into: &mut Map<String, Json>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => into.insert(name.to_owned(), text.into()),
        Err(_) => into.insert(format!("{name}_base64"), STANDARD.encode(bytes).into()),
    };
}

/// The job that DQ.GET shows. What it does not have is left out. None: there is none.
pub fn job(reply: &Value) -> Option<Json> {
    let mut shown = Map::new();
    for pair in dq_connect::reply::array(reply)?.chunks_exact(2) {
        let (Value::BulkString(name), value) = (&pair[0], &pair[1]) else {
            continue;
        };
        if HIDDEN.contains(&&**name) {
            continue;
        }
        let name = String::from_utf8_lossy(name).replace('-', "_");
        match (&*name, value) {
            (_, Value::Nil) => {}
            (_, Value::BulkString(bytes)) => put(&mut shown, &name, bytes),
            ("steps", steps) => drop(shown.insert(name, pairs(steps))),
            (_, value) => drop(shown.insert(name, plain(value))),
        }
    }
    Some(shown.into())
}

/// How a job ended, as DQ.AWAIT says it, with the names that DQ.GET has. None: there is no such job.
pub fn end(reply: &Value) -> Option<Json> {
    let [id, outcome, value, at, attempts] = dq_connect::reply::array(reply)? else {
        return None;
    };
    let outcome = dq_connect::reply::text(outcome).filter(|it| it != "unknown")?;
    let (what, when) = match &*outcome {
        "dead" => ("reason", "failed"),
        "done" => ("result", "finished"),
        _ => ("result", "ended"),
    };
    let mut shown = Map::new();
    put(&mut shown, "id", &dq_connect::reply::bytes(id)?);
    shown.insert("state".to_owned(), outcome.into());
    if let Some(value) = dq_connect::reply::bytes(value) {
        put(&mut shown, what, &value);
    }
    shown.insert(when.to_owned(), plain(at));
    shown.insert("attempts".to_owned(), plain(attempts));
    Some(shown.into())
}

fn pairs(value: &Value) -> Json {
    let pairs = dq_connect::reply::array(value)
        .unwrap_or_default()
        .chunks_exact(2);
    let pairs = pairs.map(|pair| {
        let name = dq_connect::reply::text(&pair[0]).unwrap_or_default();
        (name, plain(&pair[1]))
    });
    Json::Object(pairs.collect())
}

fn plain(value: &Value) -> Json {
    match value {
        Value::Int(number) => (*number).into(),
        Value::BulkString(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
        },
        Value::Array(values) => values.iter().map(plain).collect(),
        Value::SimpleString(text) => text.as_str().into(),
        _ => Json::Null,
    }
}
