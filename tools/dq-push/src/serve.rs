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

use crate::metrics;
use crate::queue::Queue;

/// The queues of the configuration that was read last.
pub type Queues = Arc<RwLock<Vec<Arc<Queue>>>>;

/// Serves both paths; returns the address.
pub async fn serve(address: SocketAddr, queues: Queues) -> Result<SocketAddr, String> {
    let told = |error: std::io::Error| format!("--metrics {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(told)?;
    let bound = listener.local_addr().map_err(told)?;
    let routes = Router::new()
        .route("/metrics", get(figures))
        .route("/healthz", get(health))
        .with_state(queues);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(bound)
}

async fn figures(State(queues): State<Queues>) -> impl IntoResponse {
    let queues = queues.read().unwrap_or_else(PoisonError::into_inner);
    let shown: Vec<metrics::Shown> = queues
        .iter()
        .map(|queue| (queue.config.name.as_str(), &*queue.metrics))
        .collect();
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4")],
        metrics::text(&shown),
    )
}

async fn health(State(queues): State<Queues>) -> impl IntoResponse {
    let queues = queues.read().unwrap_or_else(PoisonError::into_inner);
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
    match text.is_empty() {
        true => (StatusCode::OK, "ok\n".to_owned()),
        false => (StatusCode::SERVICE_UNAVAILABLE, text),
    }
}
