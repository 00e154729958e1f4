//! The requests that the pages send.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};

use super::servers::{self, Servers};
use super::site::{Shared, Site};
use super::{act, assets, live, next, scale, sign, tasks};
use crate::core::question::Words;
use crate::views;
use dq_serve::answer::{in_time, json_text};

/// Bodies are a few words and perhaps a test job's payload.
const BODY_MAX: usize = 1 << 20;

/// All routes, under their prefixes and behind the guard.
pub fn routes(servers: &Arc<Servers>) -> Router {
    let guard = Arc::clone(&servers.guard);
    let mut all = Router::new();
    let sites = servers.sites();
    for site in sites.iter() {
        let pages = pages(Arc::clone(site));
        all = match site.prefix.as_str() {
            "" => pages,
            prefix => all.nest(&format!("{prefix}/"), pages),
        };
    }
    if sites.iter().any(|site| site.name.is_some()) {
        let pages = servers::routes(Arc::clone(servers));
        all = match servers.prefix.as_str() {
            "" => all.merge(pages),
            prefix => all.nest(&format!("{prefix}/"), pages),
        };
    }
    let guarded = axum::middleware::from_fn_with_state(Arc::clone(&guard), super::guard::guard);
    all.layer(Extension(guard)).layer(guarded)
}

fn pages(site: Arc<Site>) -> Router {
    let shown = assets::PAGES.into_iter();
    let shown = shown.fold(Router::new(), |all, path| all.route(path, get(page)));
    shown
        .route("/assets/{name}", get(assets::asset))
        .route("/api/live", get(live::live))
        .route("/api/see", post(live::see))
        .route("/api/look/{view}", get(look))
        .route("/api/act", post(act::act))
        .route("/api/next", get(next::next))
        .route("/api/scale", get(scale::scale))
        .route("/api/tasks", post(tasks::begin))
        .route("/api/tasks/{number}", get(tasks::progress))
        .route("/api/tasks/{number}/stop", post(tasks::stop))
        .route("/api/commands", post(act::commands))
        .route("/api/sign-in", post(sign::sign_in))
        .route("/api/sign-out", post(sign::sign_out))
        .fallback(nothing)
        .layer(axum::extract::DefaultBodyLimit::max(BODY_MAX))
        .layer(axum::middleware::from_fn(in_time))
        .with_state(site)
}

async fn page(State(site): Shared) -> Response {
    assets::page("index.html", &site.prefix).into_response()
}

async fn nothing(State(site): Shared, uri: Uri, headers: HeaderMap) -> Response {
    assets::nothing(uri.path(), &headers, &site.prefix)
}

async fn look(
    State(site): Shared,
    Path(view): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.unwrap_or_default();
    let board = Arc::clone(&site.board);
    let named = format!("{view}?{query}");
    let answer = site.board.connections.shared(named, || async move {
        match Words::of(&query).about_queue() {
            Ok(question) => views::answer(&board, &view, question).await,
            Err(words) => views::answer_of_all(&board, &view, words).await,
        }
    });
    match answer.await {
        Ok(answer) => json_text(answer.to_string()),
        Err(failure) => failure.into_response(),
    }
}
