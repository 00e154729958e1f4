//! The table, and then what changes in it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::Extension;
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

use super::answer::plain;
use super::api::{Shared, Site};
use crate::core::access::{By, Role, Visitor};
use crate::core::wire;
use crate::servers::reader::Tab;

pub async fn live(
    State(site): Shared,
    Extension(visitor): Extension<Visitor>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let tab = site.board.reader.open_tab();
    let first = vec![tab.all.clone(), hello(&tab, &visitor)];
    let events = stream::unfold(
        (tab, first, site),
        |(mut tab, mut first, site)| async move {
            let text = match first.pop() {
                Some(text) => text,
                None => next(&mut tab, &site).await?,
            };
            Some((Ok(Event::default().data(text)), (tab, first, site)))
        },
    );
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
}

fn hello(tab: &Tab, visitor: &Visitor) -> String {
    let (user, session) = match &visitor.by {
        By::Nothing | By::Token(_) => (None, false),
        By::User(name) => (Some(name), false),
        By::Password(name) => (Some(name), true),
    };
    json!({
        "kind": "hello",
        "tab": tab.number,
        "actions": visitor.role == Role::Operate,
        "user": user,
        "session": session,
    })
    .to_string()
}

/// None: the board ends.
async fn next(tab: &mut Tab, site: &Arc<Site>) -> Option<String> {
    let mut ending = site.ending.clone();
    let change = tokio::select! {
        change = tab.changes.recv() => change,
        _ = ending.wait_for(|ends| *ends) => return None,
    };
    match change {
        Ok(text) => Some(text.to_string()),
        Err(RecvError::Lagged(_)) => Some(tab.again()),
        Err(RecvError::Closed) => None,
    }
}

#[derive(Deserialize)]
struct Seen {
    tab: u64,
    queues: Vec<String>,
}

/// Which queues are on a tab's screen.
pub async fn see(State(site): Shared, body: Bytes) -> Response {
    match serde_json::from_slice::<Seen>(&body) {
        Err(_) => plain(StatusCode::BAD_REQUEST, "Not understood.\n"),
        Ok(seen) => {
            let keys = seen.queues.iter().filter_map(|name| wire::key_of(name));
            site.board.reader.see(seen.tab, keys.collect());
            StatusCode::NO_CONTENT.into_response()
        }
    }
}
