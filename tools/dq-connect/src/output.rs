//! What is printed.

use std::io::{self, Write};

/// A reader that has gone (`| head`) is no error.
pub fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}
