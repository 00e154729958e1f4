//! Configuration files: TOML. Their errors name the line, and repeat nothing of the file: it may be a secret.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

/// Reads a file and what `parse` makes of its text.
pub fn read<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string());
    let read = text.and_then(|text| parse(&text));
    read.map_err(|error| format!("--config {}: {error}", path.display()))
}

pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(text.len(), |span| span.start);
        wrong(text, at, without_values(error.message()))
    })
}

/// What is wrong at this byte of the text.
pub fn wrong(text: &str, at: usize, why: impl std::fmt::Display) -> String {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    format!("line {line}: {why}")
}

fn without_values(message: &str) -> String {
    let expected = message.find(", expected ").unwrap_or(message.len());
    match message.split_once([':', '`', '"']) {
        Some((what, _)) if what.starts_with("invalid ") || what.starts_with("unknown variant") => {
            format!("{}{}", what.trim_end(), &message[expected..])
        }
        _ => message.to_owned(),
    }
}
