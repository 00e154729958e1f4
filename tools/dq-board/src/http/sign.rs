//! Signing in and out.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::ConnectInfo;
use axum::http::{header, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Extension;
use serde::Deserialize;
use serde_json::json;

use super::guard::Guard;
use crate::audit::record;
use crate::core::access::Visitor;
use dq_serve::answer::failed;

#[derive(Deserialize)]
struct Login {
    password: String,
}

pub async fn sign_in(
    Extension(guard): Extension<Arc<Guard>>,
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
    let from = guard.client(&headers, peer.ip());
    match guard.sign_in(&login.password, encrypted, from).await {
        Ok(Some(cookie)) => with_cookie(cookie),
        Ok(None) => failed(StatusCode::FORBIDDEN, "That is not the password."),
        Err(answer) => answer,
    }
}

pub async fn sign_out(
    Extension(guard): Extension<Arc<Guard>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
) -> Response {
    let cookie = guard.sign_out(&headers);
    record(&guard.audit, &visitor, "sign-out", json!({}));
    with_cookie(cookie)
}

fn with_cookie(cookie: String) -> Response {
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
}
