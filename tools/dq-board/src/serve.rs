//! Connections of browsers. One that does not say what it wants in time is closed, as it keeps a place from others.

use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

/// Within which a request's head is there, counted from the connection's begin or the answer before it.
const HEAD: Duration = Duration::from_secs(10);
/// After an accept that failed, as it does when no file is left.
const PAUSE: Duration = Duration::from_millis(100);

pub async fn serve(listener: TcpListener, routes: Router) {
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let routes = routes.clone().layer(Extension(ConnectInfo(from)));
        tokio::spawn(async move {
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEAD);
            // What goes wrong is the browser's, or that it has gone.
            let _ = server
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
                .await;
        });
    }
}
