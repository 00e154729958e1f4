//! Requests that the board itself sends: to a webhook, to Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};

const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST: usize = 8 << 20;
const US: HeaderValue = HeaderValue::from_static(concat!("dq/", env!("CARGO_PKG_VERSION")));

#[derive(Clone)]
pub struct Web(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

pub fn url(text: &str) -> Result<Uri, String> {
    let url = text.parse::<Uri>().ok().filter(|url| {
        let is_known = matches!(url.scheme_str(), Some("http" | "https"));
        is_known && url.host().is_some()
    });
    url.ok_or_else(|| format!("{text}: not a URL such as https://example.com/"))
}

impl Web {
    /// Trusts the certificates that the system trusts.
    pub fn new() -> Result<Web, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let tls = tls.map_err(|error| error.to_string())?;
        // A small machine has none. Then no https is trusted, which few boards ask for.
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls.with_root_certificates(roots).with_no_client_auth())
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Web(Client::builder(TokioExecutor::new()).build(https)))
    }

    /// The body of a 2xx response; anything else is an error. Redirects are not followed.
    pub async fn ask(
        &self,
        method: Method,
        url: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Bytes, String> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = url.clone();
        *request.headers_mut() = headers.clone();
        request.headers_mut().insert(USER_AGENT, US);
        let asking = async {
            let answer = self.0.request(request).await.map_err(cause)?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), LONGEST).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            match status.is_success() {
                true => Ok(body),
                false => Err(format!("it answers {status}")),
            }
        };
        let answer = tokio::time::timeout(PATIENCE, asking).await;
        answer.unwrap_or_else(|_| Err("no answer within 10 seconds".to_owned()))
    }
}

/// The innermost error says most.
fn cause(error: hyper_util::client::legacy::Error) -> String {
    let mut error: &dyn std::error::Error = &error;
    while let Some(inner) = error.source() {
        error = inner;
    }
    error.to_string()
}
