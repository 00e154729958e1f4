//! Connections of browsers. A connection without a timely request is closed, as it keeps a place from others.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{service_fn, Service};
use hyper::Request;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

/// How soon a request's head must be complete, counted from the begin of the connection or the last answer.
const HEAD: Duration = Duration::from_secs(10);
/// The pause after an accept that failed, as it does without free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// How long requests may still take when the program ends.
const DRAIN: Duration = Duration::from_secs(30);

/// Serves until the program ends and open requests are done. Each request uses the routes of its moment.
pub async fn serve(
    listener: TcpListener,
    routes: watch::Receiver<Router>,
    mut ending: watch::Receiver<bool>,
) {
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
        let (routes, open, ending) = (routes.clone(), open.clone(), ending.clone());
        tokio::spawn(async move {
            connection(stream, ConnectInfo(from), routes, ending).await;
            drop(open);
        });
    }
    drop((listener, open));
    let _ = tokio::time::timeout(DRAIN, all_closed.recv()).await;
}

async fn connection(
    stream: TcpStream,
    from: ConnectInfo<SocketAddr>,
    routes: watch::Receiver<Router>,
    mut ending: watch::Receiver<bool>,
) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(from);
        let routes = routes.borrow().clone();
        TowerToHyperService::new(routes).call(request)
    });
    let connection = server.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // A failure is the browser's, or the browser has gone.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ending.wait_for(|ends| *ends) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
