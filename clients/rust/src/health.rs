//! Whether a worker is healthy, for supervisors.

use crate::guard::log;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How often the file is written.
const TOUCH: Duration = Duration::from_secs(1);
const REQUEST: Duration = Duration::from_secs(2);

/// Whether a worker reaches its server.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<Option<Instant>>>);

impl Health {
    fn until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets until when the worker is healthy, unless this is called again before.
    pub(crate) fn is_good_until(&self, until: Option<Instant>) {
        *self.until() = until;
    }

    /// Whether a fetch or a heartbeat was answered in time.
    pub fn is_good(&self) -> bool {
        self.until().is_some_and(|until| Instant::now() < until)
    }
}

/// Where supervisors read the worker's health.
#[derive(Clone, Debug)]
pub(crate) enum Probe {
    Http(SocketAddr),
    File(PathBuf),
}

impl Probe {
    pub fn at(place: &str) -> Self {
        match place.parse() {
            Ok(address) => Probe::Http(address),
            Err(_) => Probe::File(place.into()),
        }
    }

    pub async fn run(self, health: Health) {
        match self {
            Probe::Http(address) => match TcpListener::bind(address).await {
                Ok(listener) => answer(listener, health).await,
                Err(error) => {
                    log!(error, %address, %error, "no health probe: the address cannot be used")
                }
            },
            Probe::File(path) => loop {
                if health.is_good() {
                    if let Err(error) = std::fs::write(&path, b"ok\n") {
                        log!(error, path = %path.display(), %error, "no health probe: the file cannot be written");
                    }
                }
                tokio::time::sleep(TOUCH).await;
            },
        }
    }
}

async fn answer(listener: TcpListener, health: Health) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            let health = health.clone();
            tokio::spawn(async move {
                tokio::time::timeout(REQUEST, respond(stream, health.is_good())).await
            });
        }
    }
}

async fn respond(mut stream: TcpStream, is_good: bool) {
    let mut request = [0; 1024];
    let read = stream.read(&mut request).await;
    let (status, body) = match is_good {
        true => ("200 OK", "ok\n"),
        false => (
            "503 Service Unavailable",
            "no fetch and no heartbeat was answered within its time\n",
        ),
    };
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    if read.is_ok() && stream.write_all(response.as_bytes()).await.is_ok() {
        _ = stream.shutdown().await;
    }
}
