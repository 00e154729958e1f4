//! The pages and scripts, built in.

use axum::extract::Path;
use axum::http::{header, HeaderMap, HeaderValue, StatusCode};
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

/// The paths at which the browser's part of the board shows a page.
pub const PAGES: [&str; 10] = [
    "/",
    "/queue",
    "/jobs",
    "/job",
    "/recurring",
    "/groups",
    "/search",
    "/signals",
    "/flow",
    "/workers",
];

const NOTHING: &str = "There is no such page.\n";
/// What Prometheus asks every program for by default.
const NO_METRICS: &str = "The board has no metrics: redis_exporter has those of the queues, see \
docs/monitoring.md, and /api/scale?queue=NAME says how many workers a queue wants.\n";

/// A browser is shown the frame of a page, other programs a sentence.
pub fn nothing(path: &str, headers: &HeaderMap, prefix: &str) -> Response {
    let accept = headers.get(header::ACCEPT).map(HeaderValue::as_bytes);
    let accept = String::from_utf8_lossy(accept.unwrap_or_default());
    match path.ends_with("/metrics") {
        true => plain(StatusCode::NOT_FOUND, NO_METRICS),
        false if accept.contains("text/html") => {
            (StatusCode::NOT_FOUND, page("index.html", prefix)).into_response()
        }
        false => plain(StatusCode::NOT_FOUND, NOTHING),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_view_of_the_browser_is_a_page() {
        let (_, app) = find("app.js").expect("built in");
        let views = app.split_once("const views = {").expect("views").1;
        let views = views.split_once('}').expect("an end").0;
        let names = views.split(',').filter_map(|view| view.split(':').next());
        let paths = names.map(|name| format!("/{}", name.trim().trim_matches('"')));
        assert_eq!(paths.collect::<Vec<_>>(), PAGES);
    }

    #[test]
    fn what_is_not_there_is_said_in_a_sentence() {
        let asked = |path, accept: &'static str| {
            let accept = (header::ACCEPT, HeaderValue::from_static(accept));
            let response = nothing(path, &HeaderMap::from_iter([accept]), "");
            let kind = response.headers().get(header::CONTENT_TYPE);
            let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
            (response.status().as_u16(), is_page)
        };
        let browser = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";
        assert_eq!(asked("/metrics", browser), (404, false));
        assert_eq!(asked("/eu/metrics", "text/plain,*/*;q=0.1"), (404, false));
        assert_eq!(asked("/nonsense", "*/*"), (404, false));
        assert_eq!(asked("/nonsense", browser), (404, true));
    }
}
