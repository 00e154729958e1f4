//! Why a request is not carried out, as the answer says it.

use axum::http::{header, HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use dq_connect::source::Trouble;
use dq_serve::answer::json_text;
use serde_json::{json, Map, Value};

use super::said::{self, Said};

#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub status: StatusCode,
    pub error: String,
    pub argument: Option<&'static str>,
    pub retry_after: Option<u64>,
    /// What it is in the audit log and in the metrics, if the program refuses it rather than the server.
    pub why: Option<&'static str>,
}

impl Refusal {
    pub fn new(status: StatusCode, error: &str) -> Refusal {
        Refusal {
            status,
            error: error.to_owned(),
            argument: None,
            retry_after: None,
            why: None,
        }
    }

    pub fn asked(error: &str) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, error)
    }

    pub fn argument(argument: &'static str, error: &str) -> Refusal {
        Refusal {
            argument: Some(argument),
            ..Refusal::asked(error)
        }
    }

    pub fn wrong(said: &Said) -> Refusal {
        let expected = said.expected();
        Refusal::argument(said.name, &format!("{}: {expected}", said.name))
    }

    /// What a token does not have is as if it did not exist.
    pub fn unknown(what: &str) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, &format!("there is no such {what}"))
    }

    pub fn later(status: StatusCode, error: &str, seconds: u64) -> Refusal {
        Refusal {
            retry_after: Some(seconds.max(1)),
            ..Refusal::new(status, error)
        }
    }

    /// That it counts as refused, for this reason.
    pub fn because(self, why: &'static str) -> Refusal {
        Refusal {
            why: Some(why),
            ..self
        }
    }

    /// What the server refuses, or that it does not answer. Nothing of its configuration is told.
    pub fn of_server(trouble: &Trouble) -> Refusal {
        match trouble {
            Trouble::Refused(text) if text.starts_with("MAX") => {
                Refusal::later(StatusCode::TOO_MANY_REQUESTS, text, 1)
            }
            Trouble::Refused(text) if text.starts_with("ERR AFTER names a job") => Refusal {
                argument: Some(said::AFTER),
                ..Refusal::unknown("job")
            },
            Trouble::Refused(text) if text.starts_with("ERR") => {
                let said = text.trim_start_matches("ERR ");
                Refusal {
                    argument: said::in_reply(said),
                    ..Refusal::asked(said)
                }
            }
            Trouble::Refused(_) => Refusal::unavailable("the server's memory is full"),
            Trouble::Passing(_) => Refusal::unavailable("the server is away"),
            Trouble::OfQueue(_) | Trouble::Final(_) => {
                Refusal::unavailable("this queue cannot be served now")
            }
        }
    }

    pub fn unavailable(error: &str) -> Refusal {
        Refusal::later(StatusCode::SERVICE_UNAVAILABLE, error, 1)
    }

    pub fn json(&self) -> Map<String, Value> {
        let mut said = Map::new();
        said.insert("error".to_owned(), json!(self.error));
        if let Some(argument) = self.argument {
            said.insert("argument".to_owned(), json!(argument));
        }
        said
    }

    /// What headers say of it.
    pub fn mark(&self, headers: &mut HeaderMap) {
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = Value::Object(self.json()).to_string();
        let mut response = (self.status, json_text(text)).into_response();
        self.mark(response.headers_mut());
        response
    }
}
