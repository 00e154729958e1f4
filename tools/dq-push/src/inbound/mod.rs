//! The way in: jobs are added, looked at, cancelled and signalled by HTTP. See docs/http.md.

mod counts;
mod door;
mod job;
mod links;
mod many;
mod openapi;
mod place;
mod refusal;
mod requests;
pub mod said;
mod shared;
mod shown;
pub mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use dq_serve::connections::{self, Limits};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use shared::Inbound;

const LIMITS: Limits = Limits {
    connections: 1000,
    age: Some(Duration::from_secs(600)),
};

/// Serves until it is to end; returns the address.
pub async fn open(
    address: SocketAddr,
    inbound: &Arc<Inbound>,
) -> Result<(SocketAddr, JoinHandle<()>), String> {
    let told = |error: std::io::Error| format!("--listen {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(told)?;
    let bound = listener.local_addr().map_err(told)?;
    let routes = Router::new()
        .fallback(door::answer)
        .with_state(Arc::clone(inbound));
    let routes = watch::channel(routes).1;
    let ending = inbound.ending.clone();
    let serving = tokio::spawn(connections::serve(listener, routes, ending, LIMITS));
    Ok((bound, serving))
}
