//! Connections of browsers. One that does not say what it wants in time is closed, as it keeps a place from others.

use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

/// Within which a request's head is there, counted from the connection's begin or the answer before it.
const HEAD: Duration = Duration::from_secs(10);
/// After an accept that failed, as it does when no file is left.
const PAUSE: Duration = Duration::from_millis(100);
/// How long requests that are under way may take when the program ends.
const DRAIN: Duration = Duration::from_secs(30);

/// Until the program ends, and the requests that are under way then.
pub async fn serve(listener: TcpListener, routes: Router, mut ending: watch::Receiver<bool>) {
    let (open, mut all_closed) = mpsc::channel::<()>(1);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.wait_for(|ends| *ends) => break,
        };
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let routes = routes.clone().layer(Extension(ConnectInfo(from)));
        let (open, ending) = (open.clone(), ending.clone());
        tokio::spawn(async move {
            connection(stream, routes, ending).await;
            drop(open);
        });
    }
    drop((listener, open));
    let _ = tokio::time::timeout(DRAIN, all_closed.recv()).await;
}

async fn connection(stream: TcpStream, routes: Router, mut ending: watch::Receiver<bool>) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let service = TowerToHyperService::new(routes);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // What goes wrong is the browser's, or that it has gone.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ending.wait_for(|ends| *ends) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
