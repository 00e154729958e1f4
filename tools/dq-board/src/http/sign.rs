//! Signing in and out.

use std::net::SocketAddr;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, State};
use axum::http::{header, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Extension;
use serde::Deserialize;
use serde_json::json;

use super::answer::failed;
use super::api::Shared;
use crate::core::access::Visitor;

#[derive(Deserialize)]
struct Login {
    password: String,
}

pub async fn sign_in(
    State(site): Shared,
    Extension(ConnectInfo(peer)): Extension<ConnectInfo<SocketAddr>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Ok(login) = serde_json::from_slice::<Login>(&body) else {
        return failed(StatusCode::BAD_REQUEST, "Not understood.");
    };
    let encrypted = headers
        .get("x-forwarded-proto")
        .is_some_and(|it| it == "https");
    let from = site.guard.client(&headers, peer.ip());
    match site.guard.sign_in(&login.password, encrypted, from).await {
        Ok(Some(cookie)) => with_cookie(cookie),
        Ok(None) => failed(StatusCode::FORBIDDEN, "That is not the password."),
        Err(answer) => answer,
    }
}

pub async fn sign_out(
    State(site): Shared,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
) -> Response {
    let cookie = site.guard.sessions.end(&headers);
    site.guard.audit.visitor(&visitor, "sign-out", json!({}));
    with_cookie(cookie)
}

fn with_cookie(cookie: String) -> Response {
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
}
