//! A reply as redis-cli shows it.

use std::fmt::Write;

use dq_connect::reply;
use redis::Value;

/// `is_raw`: for a program that reads it, each value on a line of its own.
pub fn reply(value: &Value, is_raw: bool) -> String {
    match is_raw {
        true => raw(value),
        false => nested(value, 0) + "\n",
    }
}

fn raw(value: &Value) -> String {
    if let Some(error) = reply::error(value) {
        return error + "\n";
    }
    match value {
        Value::Nil => "\n".to_owned(),
        Value::Int(number) => format!("{number}\n"),
        Value::Okay => "OK\n".to_owned(),
        Value::Double(number) => format!("{number}\n"),
        Value::Array(values) | Value::Set(values) => values.iter().map(raw).collect(),
        Value::Map(pairs) => pairs
            .iter()
            .map(|(key, value)| raw(key) + &raw(value))
            .collect(),
        other => {
            String::from_utf8_lossy(&reply::bytes(other).unwrap_or_default()).into_owned() + "\n"
        }
    }
}

/// Without a line's end; `indent` is of what follows in its own lines.
fn nested(value: &Value, indent: usize) -> String {
    if let Some(error) = reply::error(value) {
        return format!("(error) {error}");
    }
    match value {
        Value::Nil => "(nil)".to_owned(),
        Value::Int(number) => format!("(integer) {number}"),
        Value::Okay => "OK".to_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Double(number) => format!("(double) {number}"),
        Value::Array(values) | Value::Set(values) if values.is_empty() => {
            "(empty array)".to_owned()
        }
        Value::Array(values) | Value::Set(values) => numbered(values, indent),
        Value::Map(pairs) => {
            let shown = pairs
                .iter()
                .map(|(key, value)| format!("{} => {}", nested(key, 0), nested(value, indent)));
            shown
                .collect::<Vec<_>>()
                .join(&format!("\n{}", " ".repeat(indent)))
        }
        other => quoted(&reply::bytes(other).unwrap_or_default()),
    }
}

fn numbered(values: &[Value], indent: usize) -> String {
    let width = values.len().to_string().len();
    let inner = indent + width + 2;
    let lines = values
        .iter()
        .enumerate()
        .map(|(at, value)| format!("{:width$}) {}", at + 1, nested(value, inner)));
    lines
        .collect::<Vec<_>>()
        .join(&format!("\n{}", " ".repeat(indent)))
}

fn quoted(bytes: &[u8]) -> String {
    let mut text = "\"".to_owned();
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', byte as char]),
            b'\n' => text += "\\n",
            b'\r' => text += "\\r",
            b'\t' => text += "\\t",
            7 => text += "\\a",
            8 => text += "\\b",
            b' '..=b'~' => text.push(byte as char),
            // Of a terminal nothing but these bytes reach it.
            _ => drop(write!(text, "\\x{byte:02x}")),
        }
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_as_in_redis_cli() {
        let parsed = |text: &str| redis::parse_redis_value(text.as_bytes()).unwrap();
        let job = parsed("*4\r\n$5\r\nmails\r\n*2\r\n:1\r\n$-1\r\n*0\r\n+OK\r\n");
        let lines = "1) \"mails\"\n2) 1) (integer) 1\n   2) (nil)\n3) (empty array)\n4) OK\n";
        assert_eq!(reply(&job, false), lines);
        assert_eq!(reply(&job, true), "mails\n1\n\nOK\n");
        assert_eq!(reply(&parsed("-ERR no\r\n"), false), "(error) ERR no\n");
        let hostile = Value::BulkString(b"\x1b[2J\"\\\n\xff".to_vec());
        assert_eq!(reply(&hostile, false), "\"\\x1b[2J\\\"\\\\\\n\\xff\"\n");
    }
}
