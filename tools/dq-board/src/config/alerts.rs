//! `[board.alerts]` of the configuration file: when to alert, and which webhook.

use dq_watch::sign::Secret;
use serde::Deserialize;

use super::secret_of;
use crate::alerts::Webhook;
use crate::core::alerts::{Limits, Often, Rules};
use crate::web;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileAlerts {
    url: String,
    secret: Option<String>,
    board_url: Option<String>,
    dead: Option<u64>,
    oldest_ready: Option<f64>,
    lateness: Option<f64>,
    missed: Option<u64>,
    unreachable: Option<f64>,
    resolve_after: Option<f64>,
    repeat: Option<f64>,
    #[serde(default)]
    queue: Vec<FileQueue>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileQueue {
    name: String,
    dead: Option<u64>,
    oldest_ready: Option<f64>,
    lateness: Option<f64>,
    missed: Option<u64>,
}

#[derive(Clone)]
pub struct Alerts {
    pub rules: Rules,
    pub hook: Webhook,
}

const RESOLVE_S: f64 = 300.0;
const LONGEST_S: f64 = 31_536_000.0;

/// Seconds as so many parts of one (1000: milliseconds); 0 is off.
fn span(name: &str, seconds: Option<f64>, parts: f64) -> Result<Option<u64>, String> {
    match seconds {
        None | Some(0.0) => Ok(None),
        Some(seconds) if (0.001..=LONGEST_S).contains(&seconds) => {
            Ok(Some((seconds * parts).round() as u64))
        }
        Some(_) => Err(format!("{name}: seconds, from 0.001 to a year; 0 is off")),
    }
}

fn limits(
    dead: Option<u64>,
    oldest_ready: Option<f64>,
    lateness: Option<f64>,
    missed: Option<u64>,
) -> Result<Limits, String> {
    let count = |count: Option<u64>| count.filter(|count| *count > 0);
    Ok(Limits {
        dead: count(dead),
        oldest_ready_ms: span("oldest-ready", oldest_ready, 1e3)?,
        lateness_us: span("lateness", lateness, 1e6)?,
        missed: count(missed),
    })
}

pub fn alerts(file: FileAlerts) -> Result<Alerts, String> {
    let secret = file.secret.map(|said| secret_of("alerts", &said));
    let secret = secret.transpose()?.map(|it| Secret::parse(&it));
    let secret = secret.transpose()?;
    let (dead, oldest, late) = (file.dead, file.oldest_ready, file.lateness);
    let others = limits(dead, oldest, late, file.missed)?;
    let own = file.queue.into_iter().map(|own| {
        // A limit that is not set for the queue is that of all queues.
        let oldest = own.oldest_ready.or(oldest);
        let late = own.lateness.or(late);
        let missed = own.missed.or(file.missed);
        Ok((own.name, limits(own.dead.or(dead), oldest, late, missed)?))
    });
    let own: Result<Vec<(String, Limits)>, String> = own.collect();
    let seconds = |name, seconds| Ok::<_, String>(span(name, seconds, 1e3)?.map(|ms| ms as i64));
    let rules = Rules {
        queues: own?,
        others,
        unreachable_ms: seconds("unreachable", file.unreachable)?,
        often: Often {
            resolve_ms: seconds("resolve-after", file.resolve_after.or(Some(RESOLVE_S)))?
                .unwrap_or(0),
            repeat_ms: seconds("repeat", file.repeat)?,
        },
    };
    let board = file
        .board_url
        .map(|text| web::url(&text).map(|_| format!("{}/", text.trim_end_matches('/'))));
    Ok(Alerts {
        rules,
        hook: Webhook {
            url: web::url(&file.url)?,
            secret,
            board: board.transpose()?,
        },
    })
}
