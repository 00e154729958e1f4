//! The audit log, a line of JSON for each action, each sign-in and each refused one: who, what,
//! when, how many.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Timestamp;
use serde_json::{json, Map, Value};

use crate::core::access::{By, Visitor};
use crate::locked::locked;

pub struct Audit(Option<Log>);

struct Log {
    path: PathBuf,
    file: Mutex<File>,
}

fn open(path: &Path) -> Result<File, String> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| format!("--audit-log {}: {error}", path.display()))
}

impl Audit {
    pub fn open(path: Option<&Path>) -> Result<Audit, String> {
        let log = |path: &Path| {
            Ok::<_, String>(Log {
                path: path.to_owned(),
                file: Mutex::new(open(path)?),
            })
        };
        Ok(Audit(path.map(log).transpose()?))
    }

    /// Opens the file anew: another file may have its name by now.
    pub fn open_again(&self) -> Result<(), String> {
        if let Some(log) = &self.0 {
            *locked(&log.file) = open(&log.path)?;
        }
        Ok(())
    }

    pub fn visitor(&self, visitor: &Visitor, event: &str, about: Value) {
        let (kind, name) = match &visitor.by {
            By::Nothing => ("user", None),
            By::Password(name) => ("password", Some(name)),
            By::Token(name) => ("token", Some(name)),
            By::User(name) => ("user", Some(name)),
        };
        let mut who = Map::new();
        who.insert(kind.to_owned(), json!(name));
        if let Some(server) = &visitor.server {
            who.insert("server".to_owned(), json!(server));
        }
        self.write(event, visitor.address, who, about);
    }

    /// Records a visitor who was not let in.
    pub fn refused(&self, from: IpAddr, how: &str, user: Option<&str>) {
        let mut who = Map::new();
        who.insert("user".to_owned(), json!(user));
        self.write("sign-in refused", from, who, json!({ "how": how }));
    }

    /// A line that cannot be written is reported on stderr: otherwise nobody would notice.
    fn write(&self, event: &str, from: IpAddr, who: Map<String, Value>, about: Value) {
        let Some(log) = &self.0 else { return };
        let at = Timestamp::from_millisecond(Timestamp::now().as_millisecond());
        let mut line = Map::new();
        line.insert("at".to_owned(), json!(at.map(|at| at.to_string()).ok()));
        line.insert("event".to_owned(), json!(event));
        line.insert("address".to_owned(), json!(from.to_string()));
        line.extend(who);
        if let Value::Object(about) = about {
            line.extend(about);
        }
        let text = format!("{}\n", Value::Object(line));
        if let Err(error) = append(&log.file, &text) {
            eprintln!("dq-board: --audit-log {}: {error}", log.path.display());
        }
    }
}

fn append(file: &Mutex<File>, line: &str) -> io::Result<()> {
    locked(file).write_all(line.as_bytes())
}
