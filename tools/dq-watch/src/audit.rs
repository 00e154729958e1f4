//! A file that grows by a line of JSON for each thing that somebody did.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{json, Map, Value};

pub struct Log {
    path: PathBuf,
    file: Mutex<File>,
}

fn open(path: &Path) -> Result<File, String> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| format!("--audit-log {}: {error}", path.display()))
}

impl Log {
    pub fn open(path: &Path) -> Result<Log, String> {
        Ok(Log {
            path: path.to_owned(),
            file: Mutex::new(open(path)?),
        })
    }

    /// Opens the file anew: another file may have its name by now.
    pub fn open_again(&self) -> Result<(), String> {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = open(&self.path)?;
        Ok(())
    }

    /// A line that cannot be written is reported on stderr: otherwise nobody would notice.
    pub fn write(&self, event: &str, about: Value) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let ms = now.map_or(0, |now| now.as_millis() as u64);
        let at = humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms));
        let mut line = Map::new();
        line.insert("at".to_owned(), json!(at.to_string()));
        line.insert("event".to_owned(), json!(event));
        if let Value::Object(about) = about {
            line.extend(about);
        }
        let text = format!("{}\n", Value::Object(line));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(text.as_bytes()) {
            eprintln!("dq: --audit-log {}: {error}", self.path.display());
        }
    }
}
