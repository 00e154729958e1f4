//! Sends alerts to a webhook: signed, in order, again until the webhook accepts them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use dq_watch::model::clock;
use dq_watch::sign::{signatures, Secret};
use dq_watch::text::escape;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, CONTENT_TYPE};
use hyper::{Method, Uri};
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::{mpsc, watch};

use crate::core::alerts::{Alert, State};
use crate::web::Web;

/// Alerts in one call.
const TOGETHER: usize = 100;
/// Alerts that wait at most: the oldest are dropped.
const WAITING: usize = 10_000;
/// The pause after a failed call: the first and the longest.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// A call that fails for so long is abandoned.
const GIVE_UP: Duration = Duration::from_secs(3600);

#[derive(Clone)]
pub struct Webhook {
    pub url: Uri,
    pub secret: Option<Secret>,
    /// The address of the board's pages, ending with a slash.
    pub board: Option<String>,
}

/// One call, with the same content however often it is tried.
struct Call {
    id: String,
    body: Bytes,
    begun: Instant,
}

impl Call {
    fn new(number: u64, alerts: &[Alert], board: Option<&str>) -> Call {
        let at = Timestamp::from_millisecond(clock::now_ms()).map(|at| at.to_string());
        let firing = alerts.iter().filter(|it| it.state == State::Firing).count();
        let texts: Vec<String> = alerts.iter().map(Alert::text).collect();
        let shown: Vec<_> = alerts.iter().map(|alert| alert.json(board)).collect();
        let body = json!({
            "type": "dq.alerts",
            "timestamp": at.ok(),
            // What chats show of a webhook.
            "text": texts.join("\n"),
            "data": { "firing": firing, "alerts": shown },
        });
        Call {
            id: format!("dq-alerts-{}-{number}", clock::now_ms()),
            body: body.to_string().into(),
            begun: Instant::now(),
        }
    }

    async fn send(&self, web: &Web, hook: &Webhook) -> Result<(), String> {
        let seconds = clock::now_ms() / 1000;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut say = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        say("webhook-id", &self.id);
        say("webhook-timestamp", &seconds.to_string());
        if let Some(secret) = &hook.secret {
            let secrets = std::slice::from_ref(secret);
            let signed = signatures(secrets, &self.id, seconds as u64, &self.body);
            say("webhook-signature", &signed);
        }
        let body = self.body.clone();
        web.ask(Method::POST, &hook.url, &headers, body)
            .await
            .map(drop)
    }
}

/// Runs until no sender is left. Without a webhook the alerts wait.
pub async fn send(
    web: Web,
    mut news: mpsc::UnboundedReceiver<Vec<Alert>>,
    hook: watch::Receiver<Option<Webhook>>,
    taken: impl Fn(&[Alert]),
) {
    let mut waiting = VecDeque::new();
    let mut number = 0;
    while let Some(alerts) = news.recv().await {
        waiting.extend(alerts);
        while !waiting.is_empty() {
            let Some(board) = hook.borrow().as_ref().map(|hook| hook.board.clone()) else {
                waiting.clear();
                break;
            };
            let together: Vec<Alert> = waiting.drain(..waiting.len().min(TOGETHER)).collect();
            number += 1;
            let call = Call::new(number, &together, board.as_deref());
            if deliver(&web, &hook, &call).await {
                taken(&together);
            }
            while let Ok(more) = news.try_recv() {
                waiting.extend(more);
            }
            let dropped = waiting.len().saturating_sub(WAITING);
            if dropped > 0 {
                eprintln!("dq board: {dropped} alerts are dropped: too many wait for the webhook");
                waiting.drain(..dropped);
            }
        }
    }
}

/// Returns whether the webhook accepted the call.
async fn deliver(web: &Web, hook: &watch::Receiver<Option<Webhook>>, call: &Call) -> bool {
    let mut pause = PAUSES[0];
    loop {
        let Some(hook) = hook.borrow().clone() else {
            return false;
        };
        let Err(why) = call.send(web, &hook).await else {
            return true;
        };
        let why = escape::line(why.as_bytes());
        if call.begun.elapsed() > GIVE_UP {
            eprintln!("dq board: alerts are given up: {why}");
            return false;
        }
        eprintln!(
            "dq board: alerts: {}: {why}; trying again",
            hook.url.host().unwrap_or_default()
        );
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES[1]);
    }
}
