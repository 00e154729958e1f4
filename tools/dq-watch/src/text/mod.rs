//! What bytes and numbers look like on the screen.

pub mod escape;
pub mod units;

/// What a parser of TOML says is wrong, without the file's own words: they may be a secret.
pub fn without_values(message: &str) -> String {
    let expected = message.find(", expected ").unwrap_or(message.len());
    match message.split_once([':', '`', '"']) {
        Some((what, _)) if what.starts_with("invalid ") || what.starts_with("unknown variant") => {
            format!("{}{}", what.trim_end(), &message[expected..])
        }
        _ => message.to_owned(),
    }
}
