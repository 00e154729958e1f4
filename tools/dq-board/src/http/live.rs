//! The stream of the table: all of it first, and then its changes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{header, HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Extension;
use futures_util::stream::{self, StreamExt};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::time::timeout;

use super::guard::Admitted;
use super::site::{Shared, Site};
use crate::core::access::{Role, Visitor};
use crate::core::packed::{takes_gzip, Packing, Part};
use crate::core::wire;
use crate::servers::reader::Tab;
use dq_serve::answer::plain;

/// Some proxies would close a connection on which nothing is sent for longer.
const QUIET: Duration = Duration::from_secs(15);

pub async fn live(
    State(site): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(ConnectInfo(peer)): Extension<ConnectInfo<SocketAddr>>,
    headers: HeaderMap,
) -> Response {
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let gzip = accepted.is_some_and(|text| text.to_str().is_ok_and(takes_gzip));
    let tab = site.board.reader.open_tab();
    let first = vec![
        Arc::clone(&tab.all),
        hello(&tab, &visitor, site.name.as_deref()),
    ];
    let told = Telling {
        tab,
        first,
        changes: site.guard.changes(),
        admitted: Admitted {
            visitor,
            headers,
            peer: peer.ip(),
        },
        site,
        packing: Packing::new(gzip),
    };
    let begin = stream::iter([Ok::<_, Infallible>(told.packing.head())]);
    let events = stream::unfold(Some(told), |telling| async {
        let mut telling = telling?;
        match telling.next().await {
            Some(part) => Some((Ok(telling.packing.next(&part)), Some(telling))),
            None => Some((Ok(telling.packing.foot()), None)),
        }
    });
    let body = Body::from_stream(begin.chain(events));
    let mut answer = body.into_response();
    let words = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::VARY, "accept-encoding"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let packed = gzip.then_some((header::CONTENT_ENCODING, "gzip"));
    for (name, value) in words.into_iter().chain(packed) {
        answer
            .headers_mut()
            .insert(name, header::HeaderValue::from_static(value));
    }
    answer
}

/// The stream of one tab.
struct Telling {
    tab: Tab,
    /// Pieces that are sent before anything else, the last one first.
    first: Vec<Arc<Part>>,
    site: Arc<Site>,
    packing: Packing,
    admitted: Admitted,
    /// When somebody signs out, or a file was read again.
    changes: watch::Receiver<()>,
}

impl Telling {
    /// None: the board ends, or the visitor is no longer let in.
    async fn next(&mut self) -> Option<Arc<Part>> {
        if let Some(part) = self.first.pop() {
            return Some(part);
        }
        let mut ending = self.site.ending.subscribe();
        if !self.site.guard.still_admits(&self.admitted) {
            return None;
        }
        let change = tokio::select! {
            change = timeout(QUIET, self.tab.changes.recv()) => change,
            _ = ending.wait_for(|ends| *ends) => return None,
            _ = self.changes.changed() => return Some(Arc::new(Part::new(":\n\n"))),
        };
        match change {
            Err(_) => Some(Arc::new(Part::new(":\n\n"))),
            Ok(Ok(part)) => Some(part),
            Ok(Err(RecvError::Lagged(_))) => Some(self.tab.again()),
            Ok(Err(RecvError::Closed)) => None,
        }
    }
}

fn hello(tab: &Tab, visitor: &Visitor, server: Option<&str>) -> Arc<Part> {
    let (user, session) = visitor.shown();
    let hello = json!({
        "kind": "hello",
        "tab": tab.number,
        "actions": visitor.role == Role::Operate,
        "user": user,
        "session": session,
        "server": server,
    });
    Arc::new(Part::event(&hello.to_string()))
}

#[derive(Deserialize)]
struct Seen {
    tab: u64,
    queues: Vec<String>,
}

/// Records which queues are on a tab's screen.
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
