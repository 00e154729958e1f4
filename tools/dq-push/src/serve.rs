//! /metrics and /healthz.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::Router;
use tokio::net::TcpListener;

use crate::metrics;
use crate::queue::Queue;

type Queues = Arc<Vec<Arc<Queue>>>;

/// Says where it listens.
pub async fn serve(address: SocketAddr, queues: Vec<Arc<Queue>>) -> Result<SocketAddr, String> {
    let told = |error: std::io::Error| format!("--metrics {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(told)?;
    let bound = listener.local_addr().map_err(told)?;
    let routes = Router::new()
        .route("/metrics", get(figures))
        .route("/healthz", get(health))
        .with_state(Arc::new(queues));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(bound)
}

async fn figures(State(queues): State<Queues>) -> impl IntoResponse {
    let shown: Vec<metrics::Shown> = queues
        .iter()
        .map(|queue| {
            (
                queue.config.name.as_str(),
                &queue.metrics,
                queue.hand.running(),
            )
        })
        .collect();
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4")],
        metrics::text(&shown),
    )
}

async fn health(State(queues): State<Queues>) -> impl IntoResponse {
    let down = queues
        .iter()
        .filter(|queue| !queue.metrics.up.load(Relaxed));
    if queues.iter().any(|queue| queue.is_stopping()) {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned());
    }
    let names: Vec<String> = down.map(|queue| queue.shown_name()).collect();
    if names.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let text = format!("no server for: {}\n", names.join(", "));
    (StatusCode::SERVICE_UNAVAILABLE, text)
}
