//! Who may come in, and from where.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{header, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use base64::engine::general_purpose::STANDARD;
use base64::Engine;

use crate::guesses::{Full, Guesses};
use crate::options::Options;
use crate::{assets, wire};

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
    guesses: Guesses,
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
            guesses: Guesses::default(),
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

    /// Of any cookies of ours: another site of the same domain may have set one of that name.
    fn has_session(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter();
        cookies
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .any(|(name, value)| name == COOKIE && same(value, &self.session))
    }

    async fn knows(&self, headers: &HeaderMap, from: IpAddr) -> Result<bool, Full> {
        if self.has_session(headers) {
            return Ok(true);
        }
        let said = headers.get(header::AUTHORIZATION);
        let Some(said) = said.and_then(|said| said.to_str().ok()) else {
            return Ok(false);
        };
        self.guesses.guess(from, || self.is_right(said)).await
    }

    /// A token, or a password as browsers and curl send it.
    fn is_right(&self, said: &str) -> bool {
        if let Some(token) = said.strip_prefix("Bearer ") {
            return is(&self.token, token);
        }
        let login = said.strip_prefix("Basic ");
        let login = login.and_then(|login| STANDARD.decode(login).ok());
        let login = login.and_then(|login| String::from_utf8(login).ok());
        login.is_some_and(|login| {
            let password = login.split_once(':').map(|(_, password)| password);
            password.is_some_and(|password| is(&self.password, password))
        })
    }

    /// The cookie for one who says the password.
    pub async fn sign_in(
        &self,
        password: &str,
        encrypted: bool,
        from: IpAddr,
    ) -> Result<Option<String>, Full> {
        let is_right = self.guesses.guess(from, || is(&self.password, password));
        if !is_right.await? {
            return Ok(None);
        }
        let secure = if encrypted { "; Secure" } else { "" };
        let (session, prefix) = (&self.session, &self.prefix);
        Ok(Some(format!(
            "{COOKIE}={session}; Path={prefix}/; HttpOnly; SameSite=Strict; Max-Age=2592000{secure}"
        )))
    }

    /// What stands behind the prefix; None elsewhere.
    fn place<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(&self.prefix)?.strip_prefix('/')
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
    let headers = request.headers();
    if guard.is_open() && !guard.is_our_host(headers) {
        return plain(
            StatusCode::MISDIRECTED_REQUEST,
            "dq-board does not answer to this host name (see --allow-host).\n",
        );
    }
    let Some(place) = guard.place(request.uri().path()) else {
        return away(guard, request.uri().path());
    };
    let api = place.starts_with("api/");
    let only_looks = [Method::GET, Method::HEAD].contains(request.method());
    let foreign = match only_looks {
        true => api && is_of_another_site(headers),
        false => !is_from_our_page(headers),
    };
    if foreign {
        return plain(
            StatusCode::FORBIDDEN,
            "Only dq-board's own pages may ask for this.\n",
        );
    }
    if guard.is_open() || place.starts_with("assets/") || place == "api/sign-in" {
        return next.run(request).await;
    }
    let from = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let from = from.map_or(IpAddr::from([0; 4]), |from| from.0.ip());
    match guard.knows(headers, from).await {
        Err(full) => full.into_response(),
        Ok(true) => next.run(request).await,
        Ok(false) if api => plain(StatusCode::UNAUTHORIZED, "Sign in first.\n"),
        Ok(false) => (
            StatusCode::UNAUTHORIZED,
            assets::page("sign-in.html", &guard.prefix),
        )
            .into_response(),
    }
}

/// Not under the prefix: one who only forgot the slash behind it is shown the way.
fn away(guard: &Guard, path: &str) -> Response {
    match path == guard.prefix || path == "/" {
        true => Redirect::temporary(&format!("{}/", guard.prefix)).into_response(),
        false => plain(StatusCode::NOT_FOUND, "Page not found.\n"),
    }
}

fn is_from_our_page(headers: &HeaderMap) -> bool {
    headers.contains_key(OUR_HEADER) && !is_of_another_site(headers)
}

fn is_of_another_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_some_and(|site| site != "same-origin" && site != "none")
}

pub fn plain(status: StatusCode, text: &str) -> Response {
    (status, Body::from(text.to_owned())).into_response()
}
