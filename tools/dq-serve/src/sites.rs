//! Requests that a browser sends for a page of somebody else.

use axum::http::{header, HeaderMap};

/// Whether the request is for a name of this machine, or one of `also`: otherwise another site could point its own name
/// here (DNS rebinding), and its pages could read the answers.
pub fn is_for_us(headers: &HeaderMap, also: &[String]) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|it| it.to_str().ok()) else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    };
    let also = also.iter().map(String::as_str);
    ["localhost", "127.0.0.1", "[::1]"]
        .into_iter()
        .chain(also)
        .any(|ours| ours.eq_ignore_ascii_case(name))
}

pub fn is_of_another_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_some_and(|site| site != "same-origin" && site != "none")
}
