//! One call: the request of a job, and what its answer means.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{
    HeaderMap, HeaderValue, CONTENT_LENGTH, CONTENT_TYPE, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::{Method, Request};
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{timeout_at, Instant};

use crate::answer::Verdict;
use crate::config::{Config, QueueConfig, Receiver};
use crate::connect::Connector;
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

pub struct Job {
    pub id: Vec<u8>,
    pub token: Vec<u8>,
    pub payload: Bytes,
    pub attempt: u64,
    pub due: i64,
}

type Http = Client<Connector, Full<Bytes>>;

/// Makes calls, and keeps the connections to receivers.
pub struct Caller {
    http: Http,
    /// Speaks HTTP/2 without asking which protocol the receiver speaks.
    http2: Http,
    proxy: Option<Arc<Proxy>>,
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
        })
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
        let connection = capture_connection(&mut request);
        let client = if queue.http2 { &self.http2 } else { &self.http };
        let answer = match timeout_at(deadline, client.request(request)).await {
            Err(_) => {
                // With HTTP/2 other calls would continue to use the connection, though the receiver may be gone.
                if let Some(connected) = &*connection.connection_metadata() {
                    connected.poison();
                }
                return again(format!("no answer within {:?}", queue.timeout));
            }
            Ok(Err(error)) => return again(innermost(&error)),
            Ok(Ok(answer)) => answer,
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
        HeaderValue::from_static(concat!("dq-push/", env!("CARGO_PKG_VERSION"))),
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
    use super::*;
    use crate::config::Config;

    fn headers(lines: &str, payload: &'static str) -> HeaderMap {
        let file = format!("[[queue]]\nname = \"q é\"\nurl = \"http://example.com/a\"\n{lines}\n");
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
}
