//! /metrics and /healthz.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::Router;
use tokio::net::TcpListener;

use crate::inbound::Inbound;
use crate::metrics;
use crate::queue::Queue;

/// The queues of the configuration that was read last, and the way in.
#[derive(Clone)]
pub struct Shown {
    pub queues: Arc<RwLock<Vec<Arc<Queue>>>>,
    pub inbound: Option<Arc<Inbound>>,
}

/// Serves both paths; returns the address.
pub async fn serve(address: SocketAddr, shown: Shown) -> Result<SocketAddr, String> {
    let told = |error: std::io::Error| format!("--metrics {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(told)?;
    let bound = listener.local_addr().map_err(told)?;
    let routes = Router::new()
        .route("/metrics", get(figures))
        .route("/healthz", get(health))
        .with_state(shown);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(bound)
}

/// Of the way in, if there is one: whether the server answers.
async fn is_up(inbound: &Option<Arc<Inbound>>) -> Option<bool> {
    match inbound {
        Some(inbound) => Some(inbound.links.is_up().await),
        None => None,
    }
}

async fn figures(State(all): State<Shown>) -> impl IntoResponse {
    let is_up = is_up(&all.inbound).await;
    let queues = all.queues.read().unwrap_or_else(PoisonError::into_inner);
    let shown: Vec<metrics::Shown> = queues
        .iter()
        .map(|queue| (queue.config.name.as_str(), &*queue.metrics))
        .collect();
    let mut text = metrics::text(&shown);
    if let (Some(inbound), Some(is_up)) = (&all.inbound, is_up) {
        text += &inbound.counts.text(is_up);
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

async fn health(State(all): State<Shown>) -> impl IntoResponse {
    let is_up = is_up(&all.inbound).await;
    let queues = all.queues.read().unwrap_or_else(PoisonError::into_inner);
    if queues.iter().any(|queue| queue.is_stopping()) {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned());
    }
    let mut text = String::new();
    for queue in queues.iter() {
        let name = queue.shown_name();
        if queue.metrics.stopped.load(Relaxed) {
            text += &format!("stopped: {name}: {}\n", queue.reported().join("; "));
        } else if !queue.metrics.up.load(Relaxed) {
            text += &format!("no server for: {name}\n");
        }
    }
    if is_up == Some(false) {
        text += "no server for those who add jobs\n";
    }
    match text.is_empty() {
        true => (StatusCode::OK, "ok\n".to_owned()),
        false => (StatusCode::SERVICE_UNAVAILABLE, text),
    }
}
