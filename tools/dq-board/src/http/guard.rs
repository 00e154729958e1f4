//! Decides who may come in, and from where.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, RwLock};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{header, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use tokio::sync::watch;

use super::assets;
use super::sessions::Sessions;
use crate::audit::record;
use crate::core::access::{Access, By, Key, Role, Users, Visitor};
use dq_serve::answer::plain;
use dq_serve::audit::Audit;
use dq_serve::sites;
use dq_serve::throttle::{Full, Throttle};

/// A page of another site cannot send this header without a preflight request, which is never answered.
const OUR_HEADER: &str = "x-dq";

const POLICY: &str =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'self'; form-action 'none'; frame-ancestors 'none'";

pub struct Guard {
    access: RwLock<Arc<Access>>,
    pub sessions: Sessions,
    pub audit: Arc<Audit>,
    hosts: Vec<String>,
    prefix: String,
    /// The names of the servers, where there are several.
    servers: RwLock<Vec<String>>,
    throttle: Throttle,
    changed: watch::Sender<()>,
}

/// A visitor who was let in, and what for.
pub struct Admitted {
    pub visitor: Visitor,
    pub headers: HeaderMap,
    pub peer: IpAddr,
}

/// Why a visitor is not let in.
enum Closed {
    Full(Full),
    /// No key was given, or a wrong one.
    SignIn,
    /// A user whom the proxy knows and the board does not.
    Stranger,
}

impl Guard {
    /// `hosts`: names under which browsers may reach the board without a password, besides those of this machine.
    pub fn new(
        access: Access,
        sessions: Sessions,
        audit: Arc<Audit>,
        hosts: Vec<String>,
        prefix: &str,
    ) -> Guard {
        Guard {
            access: RwLock::new(Arc::new(access)),
            sessions,
            audit,
            hosts,
            prefix: prefix.to_owned(),
            servers: RwLock::default(),
            throttle: Throttle::default(),
            changed: watch::channel(()).0,
        }
    }

    fn access(&self) -> Arc<Access> {
        let access = self.access.read();
        Arc::clone(&access.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub fn set(&self, access: Access) {
        self.sessions.keep(&access);
        let now = self.access.write();
        *now.unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(access);
        self.changed.send_replace(());
    }

    /// Ends the session; returns the cookie that removes the browser's.
    pub fn sign_out(&self, headers: &HeaderMap) -> String {
        let cookie = self.sessions.end(headers);
        self.changed.send_replace(());
        cookie
    }

    /// Tells of each change after which some may no longer be let in.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Whether this visitor would be let in again, with the same role.
    pub fn still_admits(&self, admitted: &Admitted) -> bool {
        let (access, headers) = (self.access(), &admitted.headers);
        let role = match &admitted.visitor.by {
            By::Nothing => access.is_open().then_some(access.open),
            By::User(user) => {
                let users = access
                    .users
                    .as_ref()
                    .filter(|_| access.is_proxy(admitted.peer));
                users.and_then(|users| users.role(user, &groups_of(users, headers)))
            }
            By::Password(_) | By::Token(_) => {
                let said = || said_key(&access, text(headers, &header::AUTHORIZATION)?).cloned();
                self.sessions.key(headers).or_else(said).map(|key| key.role)
            }
        };
        role == Some(admitted.visitor.role)
    }

    pub fn set_servers(&self, names: Vec<String>) {
        let now = self.servers.write();
        *now.unwrap_or_else(std::sync::PoisonError::into_inner) = names;
    }

    /// The address of the client that asks.
    pub fn client(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        let all = headers.get_all("x-forwarded-for").iter();
        let all: Vec<&str> = all.filter_map(|value| value.to_str().ok()).collect();
        self.access().client(peer, &all.join(","))
    }

    async fn visitor(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
        server: Option<&str>,
    ) -> Result<Visitor, Closed> {
        let access = self.access();
        let address = self.client(headers, peer);
        let visitor = |by, role| Visitor {
            server: server.map(str::to_owned),
            address,
            role,
            by,
        };
        let users = access.users.as_ref().filter(|_| access.is_proxy(peer));
        if let Some((users, user)) = users.and_then(|users| Some((users, user_of(users, headers)?)))
        {
            let Some(role) = users.role(&user, &groups_of(users, headers)) else {
                self.audit.refused(address, "proxy", Some(&user));
                return Err(Closed::Stranger);
            };
            return Ok(visitor(By::User(user), role));
        }
        if let Some(key) = self.sessions.key(headers) {
            return Ok(visitor(By::Password(key.name), key.role));
        }
        if let Some(said) = text(headers, &header::AUTHORIZATION) {
            let (by, role) = self.by_key(&access, said, address).await?;
            return Ok(visitor(by, role));
        }
        match access.is_open() {
            true => Ok(visitor(By::Nothing, access.open)),
            false => Err(Closed::SignIn),
        }
    }

    /// A token, or a password as browsers and curl send it. A right token does not wait for other visitors' guesses: it
    /// is too long to be checked.
    async fn by_key(
        &self,
        access: &Access,
        said: &str,
        from: IpAddr,
    ) -> Result<(By, Role), Closed> {
        let key = || said_key(access, said);
        if said.starts_with("Bearer ") {
            if let Some(key) = key() {
                return Ok((By::Token(key.name.clone()), key.role));
            }
            self.check_slowly(from, "token", || None).await?;
            return Err(Closed::SignIn);
        }
        match self
            .check_slowly(from, "password", || key().cloned())
            .await?
        {
            Some(key) => Ok((By::Password(key.name), key.role)),
            None => Err(Closed::SignIn),
        }
    }

    async fn check_slowly(
        &self,
        from: IpAddr,
        what: &str,
        right: impl FnOnce() -> Option<Key>,
    ) -> Result<Option<Key>, Closed> {
        let checked = self.throttle.check(from, right).await;
        if !matches!(checked, Ok(Some(_))) {
            self.audit.refused(from, what, None);
        }
        checked.map_err(Closed::Full)
    }

    /// The cookie for a visitor who gives a right password.
    pub async fn sign_in(
        &self,
        password: &str,
        encrypted: bool,
        from: IpAddr,
    ) -> Result<Option<String>, Response> {
        let access = self.access();
        let right = || access.password(password).cloned();
        let key = match self.check_slowly(from, "password", right).await {
            Err(Closed::Full(full)) => return Err(full.into_response()),
            Err(_) | Ok(None) => return Ok(None),
            Ok(Some(key)) => key,
        };
        let visitor = Visitor {
            server: None,
            address: from,
            role: key.role,
            by: By::Password(key.name.clone()),
        };
        record(&self.audit, &visitor, "sign-in", serde_json::json!({}));
        let cookie = self.sessions.begin(key, encrypted);
        cookie
            .map(Some)
            .map_err(|error| plain(StatusCode::INTERNAL_SERVER_ERROR, &error))
    }

    /// The server, where there are several, and the rest of the path; None outside the prefix.
    fn place<'a>(&self, path: &'a str) -> Option<(Option<&'a str>, &'a str)> {
        let place = path.strip_prefix(&self.prefix)?.strip_prefix('/')?;
        let of_server = place.split_once('/');
        let servers = self.servers.read();
        let servers = servers.unwrap_or_else(std::sync::PoisonError::into_inner);
        let of_server = of_server.filter(|(name, _)| servers.iter().any(|it| it == name));
        Some(of_server.map_or((None, place), |(name, behind)| (Some(name), behind)))
    }

    /// The path is not under the prefix: if only the slash after it is missing, redirects.
    fn away(&self, path: &str) -> Response {
        match path == self.prefix || path == "/" {
            true => Redirect::temporary(&format!("{}/", self.prefix)).into_response(),
            false => plain(StatusCode::NOT_FOUND, "Page not found.\n"),
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The key of an Authorization header, as programs and browsers send it.
fn said_key<'a>(access: &'a Access, said: &str) -> Option<&'a Key> {
    if let Some(token) = said.strip_prefix("Bearer ") {
        return access.token(token);
    }
    let login = STANDARD.decode(said.strip_prefix("Basic ")?).ok()?;
    let login = String::from_utf8(login).ok()?;
    access.password(login.split_once(':')?.1)
}

fn user_of(users: &Users, headers: &HeaderMap) -> Option<String> {
    let user = headers.get(&users.user_header)?;
    let user = String::from_utf8_lossy(user.as_bytes()).into_owned();
    (!user.is_empty()).then_some(user)
}

fn groups_of(users: &Users, headers: &HeaderMap) -> String {
    let Some(header) = &users.groups_header else {
        return String::new();
    };
    let all = headers.get_all(header.as_str()).iter();
    let all: Vec<&str> = all.filter_map(|value| value.to_str().ok()).collect();
    all.join(",")
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

async fn admit(guard: &Guard, mut request: Request, next: Next) -> Response {
    let headers = request.headers();
    if guard.access().is_open() && !sites::is_for_us(headers, &guard.hosts) {
        return plain(
            StatusCode::MISDIRECTED_REQUEST,
            "The board does not answer to this host name (see --allow-host).\n",
        );
    }
    let Some((server, place)) = guard.place(request.uri().path()) else {
        return guard.away(request.uri().path());
    };
    let api = place.starts_with("api/");
    let only_looks = [Method::GET, Method::HEAD].contains(request.method());
    let crosses_sites = match only_looks {
        true => api && sites::is_of_another_site(headers),
        false => !is_from_our_page(headers),
    };
    if crosses_sites {
        return plain(
            StatusCode::FORBIDDEN,
            "Only the board's own pages may ask for this.\n",
        );
    }
    if place.starts_with("assets/") || place == "api/sign-in" {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(IpAddr::from([0; 4]), |peer| peer.0.ip());
    match guard.visitor(headers, peer, server).await {
        Ok(visitor) => {
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
        Err(Closed::Full(full)) => full.into_response(),
        Err(Closed::Stranger) => plain(
            StatusCode::FORBIDDEN,
            "You may not see this board (see its configuration, [board.users]).\n",
        ),
        Err(Closed::SignIn) if api => plain(StatusCode::UNAUTHORIZED, "Sign in first.\n"),
        Err(Closed::SignIn) => {
            let page = assets::page("sign-in.html", &guard.prefix);
            (StatusCode::UNAUTHORIZED, page).into_response()
        }
    }
}

fn is_from_our_page(headers: &HeaderMap) -> bool {
    headers.contains_key(OUR_HEADER) && !sites::is_of_another_site(headers)
}
