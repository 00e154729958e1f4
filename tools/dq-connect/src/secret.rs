//! Passwords and other secrets, on the command line and in configuration files alike.

use std::env;
use std::fs;

/// A variable of the environment that is set to something.
pub fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// What `env:NAME` and `file:PATH` stand for, without the end of its line; anything else stands for itself. No error
/// contains a secret.
pub fn read(said: &str, environment: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    if let Some(name) = said.strip_prefix("env:") {
        return environment(name).ok_or(format!("the environment variable {name} is not set"));
    }
    let Some(path) = path(said) else {
        return Ok(said.to_owned());
    };
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The file that has the secret, if one has.
pub fn path(said: &str) -> Option<&str> {
    said.strip_prefix("file:")
}
