//! Who did what, for the audit log.

use dq_serve::audit::Audit;
use serde_json::{json, Map, Value};

use crate::core::access::{By, Visitor};

/// Records what a visitor does.
pub fn record(audit: &Audit, visitor: &Visitor, event: &str, about: Value) {
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
    audit.write(event, visitor.address, who, about);
}
