//! All servers, where there are several: one line for each.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::Router;
use serde_json::{json, Value};

use super::answer::json_text;
use super::api::{asset, in_time, Site};
use super::guard::Guard;
use super::{assets, sign};

pub struct Servers {
    pub sites: Vec<Arc<Site>>,
    pub guard: Arc<Guard>,
    pub prefix: String,
}

pub fn routes(servers: Arc<Servers>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/assets/{name}", get(asset))
        .route("/api/servers", get(all))
        .route("/api/sign-in", post(sign::sign_in))
        .route("/api/sign-out", post(sign::sign_out))
        .layer(axum::middleware::from_fn(in_time))
        .with_state(servers)
}

async fn page(State(servers): State<Arc<Servers>>) -> Response {
    assets::page("servers.html", &servers.prefix).into_response()
}

async fn all(State(servers): State<Arc<Servers>>) -> Response {
    let sites = servers.sites.iter();
    let lines: Vec<Value> = sites
        .map(|site| json!({ "name": site.name, "head": site.board.reader.head() }))
        .collect();
    json_text(json!({ "servers": lines }).to_string())
}
