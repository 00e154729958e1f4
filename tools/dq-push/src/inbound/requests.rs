//! What is asked for, carried out.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{header, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use dq_connect::source::Trouble;
use dq_serve::answer::json_text;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use percent_encoding::percent_decode;
use redis::{cmd, Value};
use serde_json::{Map, Value as Json};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::job::{self, Asked, Job, Object};
use super::place::Place;
use super::refusal::Refusal;
use super::shared::Inbound;
use super::shown;
use super::tokens::Token;

/// The longest body.
const LONGEST: usize = 16 << 20;
const LONGEST_WAIT: f64 = 60.0;
/// How soon a body must have arrived, and how long one waits for memory.
const BODY: Duration = Duration::from_secs(30);
const MEMORY: Duration = Duration::from_secs(5);

/// Who asks, and for which queue.
pub struct Caller<'a> {
    pub inbound: &'a Inbound,
    pub token: &'a Token,
    pub queue: Vec<u8>,
    pub from: IpAddr,
}

impl Caller<'_> {
    pub async fn add(&self, request: Request) -> Result<Response, Refusal> {
        let (headers, body, _memory) = self.body(request).await?;
        let asked = Asked::of_headers(&headers)?;
        let asked = match is_json(&headers) {
            false => Asked {
                payload: body.into(),
                ..asked
            },
            true => {
                let object: Object =
                    serde_json::from_slice(&body).map_err(|it| job::not_json(&it))?;
                asked.and_of_json(&object)?
            }
        };
        let job = Job::new(asked, self.token)?;
        self.token.spend(1)?;
        let status = self.added(&job).await?;
        let mut said = Map::new();
        shown::put(&mut said, "id", &job.id);
        let location = Place::path(&self.queue, &job.id);
        Ok((
            status,
            [(header::LOCATION, location)],
            json_text(Json::Object(said).to_string()),
        )
            .into_response())
    }

    pub async fn added(&self, job: &Job) -> Result<StatusCode, Refusal> {
        let mut add = cmd("DQ.ADD");
        add.arg(&self.queue)
            .arg(&job.id)
            .arg(&job.payload)
            .arg(&job.words);
        job.answered(&self.ask(&add, job.again).await?)
    }

    /// `wait=SECONDS`: how it ended, as soon as it has; or the job, as it is after that time.
    pub async fn get(&self, id: &[u8], query: Option<&str>) -> Result<Response, Refusal> {
        let wait = match query {
            None | Some("") => 0.0,
            Some(query) => {
                let seconds = query.strip_prefix("wait=").and_then(|it| it.parse().ok());
                let wrong = || Refusal::argument("wait", "wait: seconds, from 0 to 60");
                seconds
                    .filter(|it| (0.0..=LONGEST_WAIT).contains(it))
                    .ok_or_else(wrong)?
            }
        };
        self.token.spend(1)?;
        if wait > 0.0 {
            if let Some(end) = self.end(id, wait).await? {
                return Ok(json_text(end.to_string()));
            }
        }
        let shown = shown::job(&self.reply(id).await?).ok_or_else(|| Refusal::unknown("job"))?;
        Ok(json_text(shown.to_string()))
    }

    /// None: it has not ended within this time, or the program is about to.
    async fn end(&self, id: &[u8], seconds: f64) -> Result<Option<Json>, Refusal> {
        let busy = |_| Refusal::unavailable("too many wait").because("waits");
        let _place = self.inbound.waits.try_acquire().map_err(busy)?;
        let mut wait = cmd("DQ.AWAIT");
        wait.arg(&self.queue).arg(seconds).arg("IDS").arg(1).arg(id);
        let mut ending = self.inbound.ending.clone();
        let answer = tokio::select! {
            answer = self.inbound.links.wait(&self.queue, &wait, seconds) => answer,
            _ = ending.wait_for(|ends| *ends) => return Ok(None),
        };
        match answer.map_err(|trouble| Refusal::of_server(&trouble))? {
            Value::Nil => Ok(None),
            ends => {
                let end = ends
                    .as_sequence()
                    .and_then(|ends| shown::end(ends.first()?));
                end.map(Some).ok_or_else(|| Refusal::unknown("job"))
            }
        }
    }

    async fn reply(&self, id: &[u8]) -> Result<Value, Refusal> {
        self.ask(cmd("DQ.GET").arg(&self.queue).arg(id), true).await
    }

    /// `unreserved`: a job that a worker has is left to it.
    pub async fn cancel(&self, id: &[u8], query: Option<&str>) -> Result<Response, Refusal> {
        let unreserved = match query {
            None | Some("" | "unreserved=false") => false,
            Some("unreserved" | "unreserved=true") => true,
            Some(_) => return Err(Refusal::asked("the query may be unreserved=true")),
        };
        self.token.spend(1)?;
        let mut del = cmd("DQ.DEL");
        del.arg(&self.queue);
        if unreserved {
            del.arg("UNRESERVED");
        }
        del.arg("IDS").arg(1).arg(id);
        if self.ask(&del, false).await? == Value::Int(1) {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        match unreserved && shown::job(&self.reply(id).await?).is_some() {
            true => Err(Refusal::new(StatusCode::CONFLICT, "a worker has this job")),
            false => Err(Refusal::unknown("job")),
        }
    }

    pub async fn signal(&self, id: &[u8], request: Request) -> Result<Response, Refusal> {
        let (headers, body, _memory) = self.body(request).await?;
        let (mut name, mut value) = (None, None);
        if is_json(&headers) {
            let object: Object = serde_json::from_slice(&body).map_err(|it| job::not_json(&it))?;
            for (key, given) in &object {
                if let Some(bytes) = job::bytes("name", key, given)? {
                    name = Some(bytes);
                } else {
                    let bytes = job::bytes("value", key, given)?;
                    value = Some(bytes.ok_or_else(|| job::unknown(key))?);
                }
            }
        } else {
            name = headers
                .get("dq-name")
                .map(|it| percent_decode(it.as_bytes()).collect());
            value = Some(body.into());
        }
        let name = name.filter(|it: &Vec<u8>| (1..=256).contains(&it.len()));
        let name = name.ok_or_else(|| Refusal::argument("name", "name: 1 to 256 bytes"))?;
        self.token.spend(1)?;
        let mut signal = cmd("DQ.SIGNAL");
        signal
            .arg(&self.queue)
            .arg(id)
            .arg(name)
            .arg(value.unwrap_or_default());
        match self.ask(&signal, true).await? {
            Value::Int(1) => Ok(StatusCode::CREATED.into_response()),
            Value::Int(_) => Ok(StatusCode::OK.into_response()),
            _ => Err(Refusal::unknown("job")),
        }
    }

    pub async fn ask(&self, command: &redis::Cmd, again: bool) -> Result<Value, Refusal> {
        let answer = self.inbound.links.ask(&self.queue, command, again).await;
        answer.map_err(|trouble: Trouble| Refusal::of_server(&trouble))
    }

    /// The body, and its share of the memory for all.
    pub async fn body(
        &self,
        request: Request,
    ) -> Result<(HeaderMap, Bytes, SemaphorePermit<'_>), Refusal> {
        let (head, body) = request.into_parts();
        let too_large = || {
            let refusal = Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "at most 16 MB");
            refusal.because("size")
        };
        let length = head.headers.get(header::CONTENT_LENGTH);
        let length = length
            .and_then(|it| it.to_str().ok()?.parse().ok())
            .unwrap_or(LONGEST);
        if length > LONGEST {
            return Err(too_large());
        }
        let share = u32::try_from(length / 1024 + 1).unwrap_or(u32::MAX);
        let memory = timeout(MEMORY, self.inbound.bodies.acquire_many(share)).await;
        let busy = || Refusal::unavailable("too many bodies at a time").because("memory");
        let memory = memory.ok().and_then(Result::ok).ok_or_else(busy)?;
        let read = timeout(BODY, Limited::new(body, LONGEST).collect()).await;
        let slow =
            || Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long").because("slow");
        match read.map_err(|_| slow())? {
            Ok(body) => Ok((head.headers, body.to_bytes(), memory)),
            Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
            Err(_) => Err(Refusal::asked("the body broke off")),
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|it| it.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}
