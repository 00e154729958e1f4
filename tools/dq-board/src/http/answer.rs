//! Answers to browsers and programs.

use axum::body::Body;
use axum::http::{header, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::core::failure::Failure;

pub fn plain(status: StatusCode, text: &str) -> Response {
    (status, Body::from(text.to_owned())).into_response()
}

pub fn json_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

pub fn failed(status: StatusCode, why: &str) -> Response {
    (status, json_text(json!({ "error": why }).to_string())).into_response()
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = match self {
            Failure::Asked(_) => StatusCode::BAD_REQUEST,
            Failure::Unknown(_) => StatusCode::NOT_FOUND,
            Failure::Forbidden(_) => StatusCode::FORBIDDEN,
            Failure::Refused(_) => StatusCode::CONFLICT,
            Failure::Lost(_) => StatusCode::BAD_GATEWAY,
        };
        failed(status, self.why())
    }
}
