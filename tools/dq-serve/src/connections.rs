//! Connections of clients. A connection without a timely request is closed, as it keeps a place from others.

use std::net::SocketAddr;
use std::sync::Arc;
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
use tokio::sync::{mpsc, watch, Semaphore};

/// How soon a request's head must be complete, counted from the begin of the connection or the last answer.
const HEAD: Duration = Duration::from_secs(10);
/// The pause after an accept that failed, as it does without free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// How long requests may still take when the program ends.
const DRAIN: Duration = Duration::from_secs(30);

/// What clients may hold.
#[derive(Clone, Copy)]
pub struct Limits {
    /// So many connections; others wait until one is closed.
    pub connections: usize,
    /// How long a connection may last, so that none that reads its answer slowly keeps its place for ever.
    pub age: Option<Duration>,
}

/// Serves until the program ends and open requests are done. Each request uses the routes of its moment.
pub async fn serve(
    listener: TcpListener,
    routes: watch::Receiver<Router>,
    mut ending: watch::Receiver<bool>,
    limits: Limits,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let (open, mut all_closed) = mpsc::channel::<()>(1);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            _ = ending.wait_for(|ends| *ends) => break,
        };
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (routes, open, ending) = (routes.clone(), open.clone(), ending.clone());
        tokio::spawn(async move {
            connection(stream, ConnectInfo(from), routes, ending, limits.age).await;
            drop((open, place));
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
    age: Option<Duration>,
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
    let old = async {
        match age {
            Some(age) => tokio::time::sleep(age).await,
            None => std::future::pending().await,
        }
    };
    // A failure is the client's, or the client has gone.
    let is_ending = tokio::select! {
        _ = connection.as_mut() => return,
        _ = ending.wait_for(|ends| *ends) => true,
        () = old => false,
    };
    connection.as_mut().graceful_shutdown();
    match is_ending {
        true => drop(connection.await),
        false => drop(tokio::time::timeout(DRAIN, connection).await),
    }
}
