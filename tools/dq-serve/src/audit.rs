//! The audit log, a line of JSON for each action, each sign-in and each refusal: who, what, when, how many.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq_watch::audit;
use serde_json::{json, Map, Value};

use crate::locked::locked;

pub struct Audit(Option<Log>);

struct Log {
    /// The event of a refusal.
    refused: &'static str,
    lines: audit::Log,
    /// How many refusals were not written yet of those that were written less than a second ago.
    refusals: Mutex<HashMap<Refused, u64>>,
}

/// From where, how, and which user. None: others, where there are too many to tell apart.
type Refused = Option<(IpAddr, String, Option<String>)>;

/// Refusals are said once in this time, and counted.
const COUNTED: Duration = Duration::from_secs(1);
/// So many kinds of them are told apart.
const KINDS: usize = 50;

impl Audit {
    /// `refused`: the event of a refusal.
    pub fn open(refused: &'static str, path: Option<&Path>) -> Result<Audit, String> {
        let log = |path: &Path| {
            Ok::<_, String>(Log {
                refused,
                lines: audit::Log::open(path)?,
                refusals: Mutex::default(),
            })
        };
        Ok(Audit(path.map(log).transpose()?))
    }

    /// Opens the file anew: another file may have its name by now.
    pub fn open_again(&self) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |log| log.lines.open_again())
    }

    /// Records a request that was refused: the first at once, those that follow within a second as their number.
    pub fn refused(self: &Arc<Audit>, from: IpAddr, how: &str, user: Option<&str>) {
        let Some(log) = &self.0 else { return };
        let mut refusals = locked(&log.refusals);
        let own = Some((from, how.to_owned(), user.map(str::to_owned)));
        let is_told_apart = refusals.len() < KINDS || refusals.contains_key(&own);
        let of = own.filter(|_| is_told_apart);
        if let Some(more) = refusals.get_mut(&of) {
            *more += 1;
            return;
        }
        refusals.insert(of.clone(), 0);
        drop(refusals);
        self.write_refused(&of, 1);
        let audit = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(COUNTED).await;
                if !audit.counted(&of) {
                    break;
                }
            }
        });
    }

    /// Writes the refusals that were counted; false where there were none, so that the next one is written at once.
    fn counted(&self, of: &Refused) -> bool {
        let Some(log) = &self.0 else { return false };
        let mut refusals = locked(&log.refusals);
        let count = refusals.insert(of.clone(), 0).unwrap_or_default();
        if count == 0 {
            refusals.remove(of);
            return false;
        }
        drop(refusals);
        self.write_refused(of, count);
        true
    }

    fn write_refused(&self, of: &Refused, count: u64) {
        let Some(log) = &self.0 else { return };
        let unknown = (IpAddr::from([0; 4]), "others".to_owned(), None);
        let (from, how, user) = of.as_ref().unwrap_or(&unknown);
        let mut who = Map::new();
        who.insert("user".to_owned(), json!(user));
        let mut about = json!({ "how": how });
        if count > 1 {
            about["count"] = count.into();
        }
        self.write(log.refused, *from, who, about);
    }

    pub fn write(&self, event: &str, from: IpAddr, who: Map<String, Value>, about: Value) {
        let Some(log) = &self.0 else { return };
        let mut line = Map::new();
        line.insert("address".to_owned(), json!(from.to_string()));
        line.extend(who);
        if let Value::Object(about) = about {
            line.extend(about);
        }
        log.lines.write(event, line.into());
    }
}
