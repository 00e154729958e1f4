//! What a request that failed is answered.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use dq_serve::answer::failed;

use crate::core::failure::Failure;

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
