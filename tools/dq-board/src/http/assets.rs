//! The pages and scripts, built in.

use axum::extract::Path;
use axum::http::{header, StatusCode};
use axum::response::{Html, IntoResponse, Response};

use dq_serve::answer::plain;

macro_rules! assets {
    ($($name:literal: $kind:literal),* $(,)?) => {
        fn find(name: &str) -> Option<(&'static str, &'static str)> {
            match name {
                $($name => Some(($kind, include_str!(concat!("../../assets/", $name)))),)*
                _ => None,
            }
        }
    };
}

assets! {
    "index.html": "text/html; charset=utf-8",
    "servers.html": "text/html; charset=utf-8",
    "servers.js": "text/javascript; charset=utf-8",
    "sign-in.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "theme.js": "text/javascript; charset=utf-8",
    "sign-in.js": "text/javascript; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "act.js": "text/javascript; charset=utf-8",
    "copy.js": "text/javascript; charset=utf-8",
    "dom.js": "text/javascript; charset=utf-8",
    "choice.js": "text/javascript; charset=utf-8",
    "columns.js": "text/javascript; charset=utf-8",
    "filter.js": "text/javascript; charset=utf-8",
    "found.js": "text/javascript; charset=utf-8",
    "scale.js": "text/javascript; charset=utf-8",
    "flow.js": "text/javascript; charset=utf-8",
    "json.js": "text/javascript; charset=utf-8",
    "life.js": "text/javascript; charset=utf-8",
    "bulk.js": "text/javascript; charset=utf-8",
    "rules.js": "text/javascript; charset=utf-8",
    "forecast.js": "text/javascript; charset=utf-8",
    "shape.js": "text/javascript; charset=utf-8",
    "chart.js": "text/javascript; charset=utf-8",
    "span.js": "text/javascript; charset=utf-8",
    "job.js": "text/javascript; charset=utf-8",
    "jobs.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "queue.js": "text/javascript; charset=utf-8",
    "overview.js": "text/javascript; charset=utf-8",
    "groups.js": "text/javascript; charset=utf-8",
    "whole.js": "text/javascript; charset=utf-8",
    "search.js": "text/javascript; charset=utf-8",
    "signals.js": "text/javascript; charset=utf-8",
    "workers.js": "text/javascript; charset=utf-8",
    "recurring.js": "text/javascript; charset=utf-8",
    "row.js": "text/javascript; charset=utf-8",
    "table.js": "text/javascript; charset=utf-8",
    "waits.js": "text/javascript; charset=utf-8",
    "zone.js": "text/javascript; charset=utf-8",
    "text.js": "text/javascript; charset=utf-8",
}

/// A page whose addresses begin at the prefix.
pub fn page(name: &str, prefix: &str) -> Html<String> {
    let text = find(name).map_or("", |(_, text)| text);
    Html(text.replace("{base}", &format!("{prefix}/")))
}

pub async fn asset(Path(name): Path<String>) -> Response {
    let found = find(&name).filter(|_| !name.ends_with(".html"));
    let Some((kind, text)) = found else {
        return plain(StatusCode::NOT_FOUND, "No such file.\n");
    };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}
