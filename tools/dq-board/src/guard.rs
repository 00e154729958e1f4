//! Who may come in, and from where.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{header, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use tokio::sync::Mutex;

use crate::options::Options;
use crate::{assets, wire};

/// After a wrong password the next one is looked at so much later, whoever sends it.
const AFTER_WRONG: Duration = Duration::from_millis(500);

const COOKIE: &str = "dq-board";

/// No page of another site can send this without being asked first, and that question is never answered.
const OUR_HEADER: &str = "x-dq-board";

const POLICY: &str =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'self'; form-action 'none'; frame-ancestors 'none'";

pub struct Guard {
    password: Option<String>,
    token: Option<String>,
    /// What a browser holds that has said the password; another one after each start.
    session: String,
    hosts: Vec<String>,
    prefix: String,
    wrong: Mutex<()>,
}

impl Guard {
    pub fn new(options: &Options) -> Result<Guard, String> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| format!("no randomness: {error}"))?;
        Ok(Guard {
            password: options.password.clone(),
            token: options.token.clone(),
            session: wire::encoded(STANDARD.encode(random).as_bytes()),
            hosts: options.hosts.clone(),
            prefix: options.prefix.clone(),
            wrong: Mutex::default(),
        })
    }

    fn is_open(&self) -> bool {
        self.password.is_none() && self.token.is_none()
    }

    /// Without a password only the names of this machine are taken: else a page of another site could have its
    /// own name lead here, and read as if it were ours.
    fn is_our_host(&self, headers: &HeaderMap) -> bool {
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        let Some(host) = host else {
            return false;
        };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
            _ => host,
        };
        ["localhost", "127.0.0.1", "[::1]"].contains(&name)
            || self
                .hosts
                .iter()
                .any(|ours| ours.eq_ignore_ascii_case(name))
    }

    async fn knows(&self, headers: &HeaderMap) -> bool {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let cookies = text(header::COOKIE).unwrap_or_default();
        let ours = cookies
            .split(';')
            .filter_map(|cookie| cookie.trim().split_once('='))
            .find(|(name, _)| *name == COOKIE);
        if ours.is_some_and(|(_, value)| same(value, &self.session)) {
            return true;
        }
        let Some(said) = text(header::AUTHORIZATION) else {
            return false;
        };
        let basic = || {
            let login = STANDARD.decode(said.strip_prefix("Basic ")?).ok()?;
            let login = String::from_utf8(login).ok()?;
            login
                .split_once(':')
                .map(|(_, password)| password.to_owned())
        };
        let right = match (said.strip_prefix("Bearer "), basic()) {
            (Some(token), _) => is(&self.token, token),
            (None, Some(password)) => is(&self.password, &password),
            (None, None) => false,
        };
        if !right {
            self.slow_down().await;
        }
        right
    }

    async fn slow_down(&self) {
        let _one_at_a_time = self.wrong.lock().await;
        tokio::time::sleep(AFTER_WRONG).await;
    }

    /// The cookie for one who says the password.
    pub async fn sign_in(&self, password: &str, encrypted: bool) -> Option<String> {
        if !is(&self.password, password) {
            self.slow_down().await;
            return None;
        }
        let secure = if encrypted { "; Secure" } else { "" };
        let (session, prefix) = (&self.session, &self.prefix);
        Some(format!(
            "{COOKIE}={session}; Path={prefix}/; HttpOnly; SameSite=Strict; Max-Age=2592000{secure}"
        ))
    }
}

fn is(secret: &Option<String>, said: &str) -> bool {
    secret.as_ref().is_some_and(|secret| same(secret, said))
}

/// In a time that does not tell where they differ.
fn same(a: &str, b: &str) -> bool {
    let differs = a
        .bytes()
        .zip(b.bytes())
        .fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differs) == 0
}

pub async fn guard(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = admit(&guard, request, next).await;
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

async fn admit(guard: &Guard, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let headers = request.headers();
    let api = path.contains("/api/");
    if guard.is_open() && !guard.is_our_host(headers) {
        return plain(
            StatusCode::MISDIRECTED_REQUEST,
            "dq-board does not answer to this host name (see --allow-host).\n",
        );
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) && !is_from_our_page(headers) {
        return plain(
            StatusCode::FORBIDDEN,
            "Only dq-board's own pages may ask for this.\n",
        );
    }
    let public = path.contains("/assets/") || path.ends_with("/api/sign-in");
    if guard.is_open() || public || guard.knows(headers).await {
        return next.run(request).await;
    }
    match api {
        true => plain(StatusCode::UNAUTHORIZED, "Sign in first.\n"),
        false => (
            StatusCode::UNAUTHORIZED,
            assets::page("sign-in.html", &guard.prefix),
        )
            .into_response(),
    }
}

fn is_from_our_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    let same_site = site.is_none_or(|site| site == "same-origin" || site == "none");
    headers.contains_key(OUR_HEADER) && same_site
}

pub fn plain(status: StatusCode, text: &str) -> Response {
    (status, Body::from(text.to_owned())).into_response()
}
