//! Answers to browsers and programs.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{header, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

pub fn plain(status: StatusCode, text: &str) -> Response {
    (status, Body::from(text.to_owned())).into_response()
}

pub fn json_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

pub fn failed(status: StatusCode, why: &str) -> Response {
    (status, json_text(json!({ "error": why }).to_string())).into_response()
}

/// For reading a request's body and answering; a purge or a retry of very many jobs takes longest.
const PATIENCE: Duration = Duration::from_secs(120);

/// Closes a connection whose answer does not begin in time, as it does not if the body never arrives.
pub async fn in_time(request: Request, next: Next) -> Response {
    let answer = tokio::time::timeout(PATIENCE, next.run(request)).await;
    answer.unwrap_or_else(|_| plain(StatusCode::REQUEST_TIMEOUT, "This took too long.\n"))
}
