//! One call: the request of a job, and what its answer means.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{
    HeaderMap, HeaderValue, CONTENT_LENGTH, CONTENT_TYPE, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::http::Extensions;
use hyper::{Method, Request, Response};
use hyper_util::client::legacy::connect::{capture_connection, CaptureConnection, Connect};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{timeout_at, Instant};

use crate::answer::Verdict;
use crate::config::{Config, QueueConfig, Receiver};
use crate::connect::{Connector, Written};
use crate::hand::{Count, Counted, Job};
use crate::names::Names;
use crate::proxy::Proxy;
use dq_watch::sign::{signatures, Secret};

/// At most so much of an answer is read; after a longer one its connection is closed.
const ANSWER_BYTES: usize = 64 * 1024;
/// The longest head of an answer. With each piece all before it is parsed again, at a cost of its square: with the
/// library's limit of 400 KB, receivers whose headers never end would hold up the heartbeats of other jobs.
const HEAD_BYTES: usize = 64 * 1024;
const KEEP_IDLE: Duration = Duration::from_secs(60);
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

type Http = Client<Connector, Full<Bytes>>;

/// Makes calls, and keeps the connections to receivers.
pub struct Caller {
    http: Http,
    /// Speaks HTTP/2 without asking which protocol the receiver speaks.
    http2: Http,
    proxy: Option<Arc<Proxy>>,
    /// The jobs in hand, of all queues, but those that run alone.
    pub others: Count,
    /// The jobs that run alone, and those that wait for it.
    pub alone: Count,
    one: Mutex<()>,
}

/// The result of a call, and whether its receiver works: it answered with a status below 500.
pub struct Called {
    pub verdict: Verdict,
    pub well: bool,
}

impl Caller {
    pub fn new(config: &Config) -> Result<Caller, String> {
        let names = Names::default();
        let proxy = config.proxy.clone().map(Arc::new);
        let client = |only_http2| {
            let (allowed, proxy) = (config.allowed.clone(), proxy.clone());
            let connector = Connector::new(allowed, names.clone(), &config.tls, proxy, only_http2)?;
            let mut builder = Client::builder(TokioExecutor::new());
            builder
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(KEEP_IDLE)
                .http1_max_buf_size(HEAD_BYTES)
                .http2_only(only_http2);
            Ok::<Http, String>(builder.build(connector))
        };
        Ok(Caller {
            http: client(false)?,
            http2: client(true)?,
            proxy,
            others: Count::default(),
            alone: Count::default(),
            one: Mutex::default(),
        })
    }

    /// Waits until no other job is in hand; meanwhile nothing is fetched.
    pub async fn turn_alone(&self) -> (Counted, MutexGuard<'_, ()>) {
        let counted = self.alone.one();
        self.others.none().await;
        (counted, self.one.lock().await)
    }

    pub async fn call(&self, queue: &QueueConfig, to: &Receiver, job: &Job) -> Called {
        let again = |why: String| Called {
            verdict: Verdict::Again(None, why),
            well: false,
        };
        let deadline = Instant::now() + queue.timeout;
        let mut request = match request(queue, to, job, SystemTime::now()) {
            Ok(request) => request,
            Err(error) => {
                return Called {
                    verdict: Verdict::Fatal(format!("no request: {error}")),
                    well: true,
                }
            }
        };
        self.tell_proxy(&mut request);
        let client = if queue.http2 { &self.http2 } else { &self.http };
        let answer = match answer(client, request, deadline).await {
            Ok(answer) => answer,
            Err(Some(error)) => return again(innermost(&error)),
            Err(None) => return again(format!("no answer within {:?}", queue.timeout)),
        };
        let (head, body) = answer.into_parts();
        let mut text = Vec::new();
        // The status counts, even if the body cannot be read.
        let _ = timeout_at(deadline, read(body, &mut text)).await;
        let now = SystemTime::now();
        Called {
            verdict: queue.rules.judge(head.status, &head.headers, &text, now),
            well: head.status.as_u16() < 500,
        }
    }

    /// Adds the proxy's login to a request without TLS; one through a tunnel is seen by the receiver alone.
    fn tell_proxy(&self, request: &mut Request<Full<Bytes>>) {
        let login = self
            .proxy
            .as_ref()
            .and_then(|proxy| proxy.authorization.clone());
        if let Some(login) = login.filter(|_| request.uri().scheme_str() == Some("http")) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, login);
        }
    }
}

fn request(
    queue: &QueueConfig,
    receiver: &Receiver,
    job: &Job,
    now: SystemTime,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let is_get = queue.method == Method::GET;
    let body = if is_get {
        Bytes::new()
    } else {
        job.payload.clone()
    };
    let mut request = Request::builder()
        .method(queue.method.clone())
        .uri(receiver.url.clone())
        .body(Full::new(body.clone()))?;
    let headers = request.headers_mut();
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("dq/", env!("CARGO_PKG_VERSION"))),
    );
    headers.extend(receiver.headers.clone());
    sign(headers, queue, &receiver.secrets, job, (now, &body))?;
    if is_get {
        return Ok(request);
    }
    let content_type = match &queue.content_type {
        Some(given) => given.clone(),
        None if is_json(&job.payload) => JSON,
        None => BYTES,
    };
    headers.insert(CONTENT_TYPE, content_type);
    // Sent with an empty payload, too: some receivers refuse a POST without it.
    headers.insert(CONTENT_LENGTH, job.payload.len().into());
    Ok(request)
}

/// Headers that name the job and, with secrets, prove that the call is ours.
fn sign(
    headers: &mut HeaderMap,
    queue: &QueueConfig,
    secrets: &[Secret],
    job: &Job,
    (now, body): (SystemTime, &Bytes),
) -> Result<(), hyper::http::Error> {
    let mut run = encoded(&job.id, b"");
    let mut message = encoded(&job.id, b".");
    headers.insert("dq-id", run.parse()?);
    headers.insert("dq-queue", encoded(queue.name.as_bytes(), b"").parse()?);
    headers.insert("dq-attempt", job.attempt.into());
    headers.insert("dq-due", job.due.into());
    if queue.recurring {
        run += &format!("@{}", job.due);
        message += &format!("@{}", job.due);
        headers.insert("dq-occurrence", run.parse()?);
    }
    if !secrets.is_empty() {
        let seconds = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        headers.insert("webhook-id", message.parse()?);
        headers.insert("webhook-timestamp", seconds.into());
        headers.insert(
            "webhook-signature",
            signatures(secrets, &message, seconds, body).parse()?,
        );
    }
    Ok(())
}

/// Encodes for a header: `%`, what is not visible ASCII, and the bytes of `also` become a percent sign and two digits.
/// A dot in an id would make the signed text ambiguous.
fn encoded(bytes: &[u8], also: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte.is_ascii_graphic() && byte != b'%' && !also.contains(&byte) {
            true => text.push(char::from(byte)),
            false => text += &format!("%{byte:02X}"),
        }
    }
    text
}

fn is_json(payload: &[u8]) -> bool {
    // Text that is skipped is not checked to be UTF-8, so that is done here.
    std::str::from_utf8(payload)
        .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}

async fn read(mut body: Incoming, text: &mut Vec<u8>) -> Result<(), hyper::Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            text.extend_from_slice(&data[..data.len().min(ANSWER_BYTES - text.len())]);
        }
        if text.len() == ANSWER_BYTES {
            break;
        }
    }
    Ok(())
}

/// Sends the request until there is an answer or an error, None at the deadline. If the receiver had reset a connection
/// that was kept, it is sent again on the next one.
async fn answer(
    client: &Client<impl Connect + Clone + Send + Sync + 'static, Full<Bytes>>,
    request: Request<Full<Bytes>>,
    deadline: Instant,
) -> Result<Response<Incoming>, Option<legacy::Error>> {
    loop {
        let mut request = request.clone();
        let connection = capture_connection(&mut request);
        match timeout_at(deadline, client.request(request)).await {
            Err(_) => {
                // With HTTP/2 other calls would continue to use the connection, though the receiver may be gone.
                if let Some(connected) = &*connection.connection_metadata() {
                    connected.poison();
                }
                return Err(None);
            }
            Ok(Err(_)) if nothing_went_out(&connection) => {}
            Ok(answer) => return answer.map_err(Some),
        }
    }
}

/// Whether the failed call was on a connection that had served others, and nothing of it was written.
fn nothing_went_out(connection: &CaptureConnection) -> bool {
    let mut extras = Extensions::new();
    if let Some(connected) = &*connection.connection_metadata() {
        connected.get_extras(&mut extras);
    }
    extras.get::<Written>().is_some_and(Written::is_nothing_new)
}

/// The outermost error only says that there was one.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::io::{self, Read, Write};
    use std::net::SocketAddr;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::{mpsc, Mutex};
    use std::task::{Context, Poll};

    use hyper::Uri;
    use hyper_util::client::legacy::connect::{Connected, Connection};
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio::net::TcpStream;
    use tower_service::Service;

    use super::*;
    use crate::config::Config;
    use crate::connect::Watched;

    fn headers(lines: &str, payload: &'static str) -> HeaderMap {
        let file =
            format!("[[http.queue]]\nname = \"q é\"\nurl = \"http://example.com/a\"\n{lines}\n");
        let config = Config::parse(&file, |_| None).unwrap_or_else(|why| panic!("{why}"));
        let job = Job {
            id: b"a.b %\x00".to_vec(),
            token: Vec::new(),
            payload: Bytes::from_static(payload.as_bytes()),
            attempt: 3,
            due: 1_700_000_000_000,
        };
        let now = UNIX_EPOCH + Duration::from_secs(1_614_265_330);
        request(&config.queues[0], &config.queues[0].receiver, &job, now)
            .unwrap()
            .headers()
            .clone()
    }

    #[test]
    fn who_the_job_is() {
        let plain = headers("", "[1]");
        assert_eq!(plain["dq-id"], "a.b%20%25%00");
        assert_eq!(plain["dq-queue"], "q%20%C3%A9");
        assert_eq!(
            (&plain["dq-attempt"], &plain["dq-due"]),
            (&"3".parse().unwrap(), &"1700000000000".parse().unwrap())
        );
        assert!(!plain.contains_key("dq-occurrence") && !plain.contains_key("webhook-id"));
        let signed = headers(
            "recurring = true\nsecrets = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]",
            "",
        );
        assert_eq!(signed["dq-occurrence"], "a.b%20%25%00@1700000000000");
        assert_eq!(
            signed["webhook-id"], "a%2Eb%20%25%00@1700000000000",
            "a dot ends the id"
        );
        assert_eq!(signed["webhook-timestamp"], "1614265330");
    }

    #[test]
    fn what_the_payload_is() {
        assert!(!is_json(b"\"\xff\""), "text of JSON is UTF-8");
        for (lines, payload, is) in [
            ("", "{\"a\": 1}", "application/json"),
            ("", "\"a\"", "application/json"),
            ("", "a", "application/octet-stream"),
            ("", "", "application/octet-stream"),
            ("", "{} {}", "application/octet-stream"),
            ("content-type = \"text/plain\"", "{}", "text/plain"),
        ] {
            assert_eq!(headers(lines, payload)["content-type"], is, "{payload}");
        }
    }

    /// A connection that its receiver resets at the second request: before that is written, or afterwards.
    struct Kept {
        stream: TcpStream,
        writes: usize,
        second_goes_out: bool,
        reset: Arc<dyn Fn() + Send + Sync>,
    }

    impl AsyncRead for Kept {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(cx, buf)
        }
    }

    impl AsyncWrite for Kept {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.writes += 1;
            if self.writes == 2 && !self.second_goes_out {
                (self.reset)();
                // Until the reset has come here.
                while self.stream.peer_addr().is_ok() {
                    std::thread::yield_now();
                }
            }
            let written = Pin::new(&mut self.stream).poll_write(cx, buf);
            if self.writes == 2 && self.second_goes_out {
                (self.reset)();
            }
            written
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(cx)
        }
    }

    impl Connection for Watched<Kept> {
        fn connected(&self) -> Connected {
            Connected::new().extra(self.written())
        }
    }

    #[derive(Clone)]
    struct ToReceiver {
        address: SocketAddr,
        second_goes_out: bool,
        reset: Arc<dyn Fn() + Send + Sync>,
        connections: Arc<AtomicUsize>,
    }

    impl Service<Uri> for ToReceiver {
        type Response = TokioIo<Watched<Kept>>;
        type Error = io::Error;
        type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Uri) -> Self::Future {
            self.connections.fetch_add(1, SeqCst);
            let ToReceiver {
                address,
                second_goes_out,
                reset,
                ..
            } = self.clone();
            Box::pin(async move {
                Ok(TokioIo::new(Watched::new(Kept {
                    stream: TcpStream::connect(address).await?,
                    writes: 0,
                    second_goes_out,
                    reset,
                })))
            })
        }
    }

    /// Answers one call on each of two connections. It resets the first of them when asked to.
    fn receiver() -> (SocketAddr, Arc<dyn Fn() + Send + Sync>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ((reset, asked), (told, done)) = (mpsc::channel(), mpsc::channel());
        std::thread::spawn(move || {
            let answered = || {
                let (mut stream, _) = listener.accept().unwrap();
                // What it leaves unread makes its end a reset.
                stream.read_exact(&mut [0]).unwrap();
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(answer).unwrap();
                stream
            };
            let first = answered();
            asked.recv().unwrap();
            drop(first);
            told.send(()).unwrap();
            let _second = answered();
            let _ = asked.recv();
        });
        let done = Mutex::new(done);
        let reset = move || {
            reset.send(()).unwrap();
            done.lock().unwrap().recv().unwrap();
        };
        (address, Arc::new(reset))
    }

    #[tokio::test]
    async fn only_what_did_not_go_out_is_sent_again() {
        for second_goes_out in [false, true] {
            let (address, reset) = receiver();
            let connector = ToReceiver {
                address,
                second_goes_out,
                reset,
                connections: Arc::default(),
            };
            let client = Client::builder(TokioExecutor::new()).build(connector.clone());
            let mut answered = Vec::new();
            for _ in 0..2 {
                let request = Request::post("http://a/").body(Full::from("x")).unwrap();
                let deadline = Instant::now() + Duration::from_secs(60);
                answered.push(answer(&client, request, deadline).await.is_ok());
            }
            let connections = connector.connections.load(SeqCst);
            let expected = match second_goes_out {
                false => (vec![true, true], 2),
                true => (vec![true, false], 1),
            };
            assert_eq!((answered, connections), expected);
        }
    }
}
