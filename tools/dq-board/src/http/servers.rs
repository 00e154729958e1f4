//! All servers, where there are several: a line for each on one page.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde_json::{json, Value};

use super::guard::Guard;
use super::site::Site;
use super::{assets, sign};
use crate::core::access::Visitor;
use crate::core::alerts::Alert;
use dq_serve::answer::{in_time, json_text};
use dq_serve::locked::locked;

pub struct Servers {
    sites: Mutex<Arc<[Arc<Site>]>>,
    pub guard: Arc<Guard>,
    pub prefix: String,
}

impl Servers {
    pub fn new(sites: Vec<Arc<Site>>, guard: Arc<Guard>, prefix: String) -> Servers {
        Servers {
            sites: Mutex::new(sites.into()),
            guard,
            prefix,
        }
    }

    pub fn sites(&self) -> Arc<[Arc<Site>]> {
        Arc::clone(&locked(&self.sites))
    }

    pub fn set(&self, sites: Vec<Arc<Site>>) {
        *locked(&self.sites) = sites.into();
    }

    /// Records that the webhook accepted these alerts.
    pub fn taken(&self, alerts: &[Alert]) {
        for site in self.sites().iter() {
            let its = alerts.iter().filter(|alert| alert.server == site.name);
            let its: Vec<Alert> = its.cloned().collect();
            if !its.is_empty() {
                site.board.reader.taken(&its);
            }
        }
    }

    /// Announces that the program ends.
    pub fn end(&self) {
        self.sites().iter().for_each(|site| site.end());
    }
}

pub fn routes(servers: Arc<Servers>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/assets/{name}", get(assets::asset))
        .route("/api/servers", get(all))
        .route("/api/sign-in", post(sign::sign_in))
        .route("/api/sign-out", post(sign::sign_out))
        .fallback(nothing)
        .layer(axum::middleware::from_fn(in_time))
        .with_state(servers)
}

async fn page(State(servers): State<Arc<Servers>>) -> Response {
    assets::page("servers.html", &servers.prefix).into_response()
}

async fn nothing(State(servers): State<Arc<Servers>>, uri: Uri, headers: HeaderMap) -> Response {
    assets::nothing(uri.path(), &headers, &servers.prefix)
}

async fn all(
    State(servers): State<Arc<Servers>>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    let sites = servers.sites();
    let lines: Vec<Value> = sites
        .iter()
        .map(|site| json!({ "name": site.name, "head": site.board.reader.head() }))
        .collect();
    let (user, session) = visitor.shown();
    json_text(json!({ "servers": lines, "user": user, "session": session }).to_string())
}
