//! What the pages ask for.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, RawQuery, Request, State};
use axum::http::{header, HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use dq_watch::model::QueueKey;
use dq_watch::read::acts::Act;
use dq_watch::read::detail::State as JobState;
use dq_watch::text::escape;
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

use crate::guard::{plain, Guard};
use crate::look::Looker;
use crate::reader::{Reader, Tab};
use crate::{assets, views, wire};

/// Bodies are a few words and perhaps a test job's payload.
const BODY_MAX: usize = 1 << 20;

pub struct Board {
    pub reader: Arc<Reader>,
    pub looker: Arc<Looker>,
    pub guard: Arc<Guard>,
    pub prefix: String,
    pub allow_actions: bool,
    /// Since when deliveries are counted.
    pub since_ms: i64,
}

/// For a request's body and what is to be done; a purge or a retry of very many jobs takes longest.
const PATIENCE: Duration = Duration::from_secs(120);

type Shared = State<Arc<Board>>;

pub fn routes(board: Arc<Board>) -> Router {
    let pages = Router::new()
        .route("/assets/{name}", get(asset))
        .route("/api/live", get(live))
        .route("/api/see", post(see))
        .route("/api/look/{view}", get(look))
        .route("/api/act", post(act))
        .route("/api/commands", post(commands))
        .route("/api/sign-in", post(sign_in))
        .fallback(get(page))
        .layer(axum::extract::DefaultBodyLimit::max(BODY_MAX))
        .layer(axum::middleware::from_fn(in_time));
    let guard = Arc::clone(&board.guard);
    let pages = pages.with_state(Arc::clone(&board));
    let pages = match board.prefix.as_str() {
        "" => pages,
        prefix => Router::new().nest(&format!("{prefix}/"), pages),
    };
    pages.layer(axum::middleware::from_fn_with_state(
        guard,
        crate::guard::guard,
    ))
}

/// An answer begins in time, or the connection is worth nothing: so does one whose body never comes.
async fn in_time(request: Request, next: Next) -> Response {
    let answer = tokio::time::timeout(PATIENCE, next.run(request)).await;
    answer.unwrap_or_else(|_| plain(StatusCode::REQUEST_TIMEOUT, "This took too long.\n"))
}

async fn page(State(board): Shared) -> Response {
    assets::page("index.html", &board.prefix).into_response()
}

async fn asset(Path(name): Path<String>) -> Response {
    assets::asset(&name).unwrap_or_else(|| plain(StatusCode::NOT_FOUND, "No such file.\n"))
}

/// The table, and then what changes in it.
async fn live(State(board): Shared) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let tab = board.reader.open_tab();
    let hello = json!({ "kind": "hello", "tab": tab.number, "actions": board.allow_actions });
    let first = vec![tab.all.clone(), hello.to_string()];
    let events = stream::unfold((tab, first), |(mut tab, mut first)| async move {
        let text = match first.pop() {
            Some(text) => text,
            None => next(&mut tab).await?,
        };
        Some((Ok(Event::default().data(text)), (tab, first)))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
}

async fn next(tab: &mut Tab) -> Option<String> {
    match tab.changes.recv().await {
        Ok(text) => Some(text.to_string()),
        Err(RecvError::Lagged(_)) => Some(tab.again()),
        Err(RecvError::Closed) => None,
    }
}

#[derive(Deserialize)]
struct Seen {
    tab: u64,
    queues: Vec<String>,
}

async fn see(State(board): Shared, body: Bytes) -> Response {
    match serde_json::from_slice::<Seen>(&body) {
        Err(_) => plain(StatusCode::BAD_REQUEST, "Not understood.\n"),
        Ok(seen) => {
            let keys = seen.queues.iter().filter_map(|name| wire::key_of(name));
            board.reader.see(seen.tab, keys.collect());
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

/// What a view asks for, by its words. Equal questions share an answer.
pub struct Question {
    pub key: QueueKey,
    words: HashMap<String, Vec<u8>>,
}

impl Question {
    fn of(query: &str) -> Option<Question> {
        let words = wire::query(query);
        let key = wire::key_of_bytes(words.get("queue")?)?;
        let own = |(name, value): (&str, Vec<u8>)| (name.to_owned(), value);
        Some(Question {
            key,
            words: words.into_iter().map(own).collect(),
        })
    }

    pub fn bytes(&self, name: &str) -> &[u8] {
        self.words.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn text(&self, name: &str) -> &str {
        std::str::from_utf8(self.bytes(name)).unwrap_or_default()
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).parse().ok()
    }
}

async fn look(
    State(board): Shared,
    Path(view): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.unwrap_or_default();
    let Some(question) = Question::of(&query) else {
        return plain(StatusCode::BAD_REQUEST, "Which queue?\n");
    };
    let of = Arc::clone(&board);
    let named = format!("{view}?{query}");
    let answer = board.looker.shared(named, || async move {
        views::answer(&of, &view, question).await
    });
    match answer.await {
        Ok(answer) => json_text(answer.to_string()),
        Err(error) => failed(StatusCode::BAD_GATEWAY, &error),
    }
}

#[derive(Deserialize)]
struct Asked {
    queue: String,
    act: String,
    #[serde(default)]
    id: String,
    /// Several jobs instead of one.
    #[serde(default)]
    ids: Vec<String>,
    #[serde(default)]
    ms: Option<u64>,
    #[serde(default)]
    count: u64,
    #[serde(default)]
    state: String,
    #[serde(default)]
    payload: String,
    /// A purge wants the queue's name typed.
    #[serde(default)]
    typed: String,
}

impl Asked {
    fn act(&self) -> Result<Act, &'static str> {
        if self.ids.is_empty() {
            return self.one(&self.id);
        }
        if !["kick", "now", "cancel", "delete"].contains(&self.act.as_str()) {
            return Err("That cannot be done to several jobs.");
        }
        let acts = self.ids.iter().map(|id| self.one(id));
        Ok(Act::Many(acts.collect::<Result<_, _>>()?))
    }

    fn one(&self, id: &str) -> Result<Act, &'static str> {
        let id = wire::decoded(id);
        let state = JobState::named(&self.state);
        Ok(match self.act.as_str() {
            "kick" => Act::Kick { id },
            "kick-dead" => Act::KickDead { count: self.count },
            "now" => Act::Reschedule { id, delay_ms: 0 },
            "reschedule" => Act::Reschedule {
                id,
                delay_ms: self.ms.ok_or("In how many milliseconds?")?,
            },
            "cancel" => Act::Cancel { id },
            "delete" => Act::Delete { id },
            "pause" => Act::Pause { ms: self.ms },
            "resume" => Act::Resume,
            "purge" if state.is_none() && self.state != "all" => return Err("Which jobs?"),
            "purge" => Act::Purge { state },
            "add" if self.id.is_empty() => return Err("A job needs an id."),
            "add" => Act::Add {
                id,
                payload: self.payload.clone().into_bytes(),
                delay_ms: self.ms.unwrap_or(0),
            },
            _ => return Err("There is no such action."),
        })
    }
}

fn asked(body: &Bytes) -> Result<(Asked, QueueKey, Act), &'static str> {
    let asked = serde_json::from_slice::<Asked>(body).map_err(|_| "Not understood.")?;
    let key = wire::key_of(&asked.queue).ok_or("Not understood.")?;
    let act = asked.act()?;
    Ok((asked, key, act))
}

/// What an action would send; it is not sent.
async fn commands(body: Bytes) -> Response {
    match asked(&body) {
        Err(why) => failed(StatusCode::BAD_REQUEST, why),
        Ok((_, key, act)) => json_text(json!({ "commands": act.for_cli(&key) }).to_string()),
    }
}

async fn act(State(board): Shared, body: Bytes) -> Response {
    if !board.allow_actions {
        let why = "This board only looks: it was started without --allow-actions.";
        return failed(StatusCode::FORBIDDEN, why);
    }
    let (asked, key, act) = match asked(&body) {
        Ok(asked) => asked,
        Err(why) => return failed(StatusCode::BAD_REQUEST, why),
    };
    if matches!(act, Act::Purge { .. }) && asked.typed != escape::name(&key.name) {
        return failed(
            StatusCode::BAD_REQUEST,
            "The name typed is not the queue's.",
        );
    }
    match board.looker.act(key, act).await {
        Ok(Ok(done)) => json_text(json!({ "done": done }).to_string()),
        Ok(Err(refused)) => failed(StatusCode::CONFLICT, &escape::line(refused.as_bytes())),
        Err(lost) => failed(StatusCode::BAD_GATEWAY, &lost),
    }
}

#[derive(Deserialize)]
struct Login {
    password: String,
}

async fn sign_in(
    State(board): Shared,
    Extension(ConnectInfo(from)): Extension<ConnectInfo<SocketAddr>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Ok(login) = serde_json::from_slice::<Login>(&body) else {
        return failed(StatusCode::BAD_REQUEST, "Not understood.");
    };
    let encrypted = headers
        .get("x-forwarded-proto")
        .is_some_and(|it| it == "https");
    let signed_in = board.guard.sign_in(&login.password, encrypted, from.ip());
    match signed_in.await {
        Ok(Some(cookie)) => {
            (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
        }
        Ok(None) => failed(StatusCode::FORBIDDEN, "That is not the password."),
        Err(full) => full.into_response(),
    }
}

fn json_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn failed(status: StatusCode, why: &str) -> Response {
    (status, json_text(json!({ "error": why }).to_string())).into_response()
}
