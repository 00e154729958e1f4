//! Decides what an answer means for the job.

use std::time::{Duration, SystemTime};

use hyper::header::RETRY_AFTER;
use hyper::{HeaderMap, StatusCode};

/// Not the request's fault: 403 and 404 are answered for seconds while a receiver is deployed.
const NOT_FATAL: [StatusCode; 6] = [
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::PROXY_AUTHENTICATION_REQUIRED,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::TOO_EARLY,
    StatusCode::TOO_MANY_REQUESTS,
];

const SHORTEST: Duration = Duration::from_secs(1);
const REASON_BYTES: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Acknowledge, with the text that is kept as the job's result.
    Done(Option<String>),
    /// Dead: never try again.
    Fatal(String),
    /// Try again after this delay, or as the job's backoff says.
    Again(Option<Duration>, String),
}

/// What the configuration says about answers.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Statuses of 4xx that kill the job; None: all but those that may pass.
    pub fatal: Option<Vec<u16>>,
    pub keep_answers: bool,
    pub longest_retry_after: Duration,
}

impl Rules {
    pub fn judge(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        text: &[u8],
        now: SystemTime,
    ) -> Verdict {
        if status.is_success() {
            return Verdict::Done(self.keep_answers.then(|| reason(status, text)));
        }
        let reason = reason(status, text);
        if status == StatusCode::GONE {
            return Verdict::Fatal(reason);
        }
        match retry_after(headers, now) {
            Some(wait) => {
                Verdict::Again(Some(wait.clamp(SHORTEST, self.longest_retry_after)), reason)
            }
            None if self.is_fatal(status) => Verdict::Fatal(reason),
            None => Verdict::Again(None, reason),
        }
    }

    fn is_fatal(&self, status: StatusCode) -> bool {
        match &self.fatal {
            Some(listed) => listed.contains(&status.as_u16()),
            None => status.is_client_error() && !NOT_FATAL.contains(&status),
        }
    }
}

fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large for u64 is beyond every bound anyway.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let instant = httpdate::parse_http_date(text).ok()?;
    Some(instant.duration_since(now).unwrap_or_default())
}

/// The status, and the answer's first line as far as it is text.
fn reason(status: StatusCode, text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(REASON_BYTES)]);
    let line = text.trim_start().lines().next().unwrap_or_default();
    let line: String = line.chars().filter(|letter| !letter.is_control()).collect();
    match line.trim_end() {
        "" => format!("HTTP {}", status.as_u16()),
        line => format!("HTTP {}: {line}", status.as_u16()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(fatal: Option<&[u16]>, status: u16, after: Option<&str>, text: &str) -> Verdict {
        let rules = Rules {
            fatal: fatal.map(<[u16]>::to_vec),
            longest_retry_after: Duration::from_secs(3600),
            keep_answers: false,
        };
        let mut headers = HeaderMap::new();
        if let Some(after) = after {
            headers.insert(RETRY_AFTER, after.parse().unwrap());
        }
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        rules.judge(
            StatusCode::from_u16(status).unwrap(),
            &headers,
            text.as_bytes(),
            now,
        )
    }

    fn again(seconds: Option<u64>, reason: &str) -> Verdict {
        Verdict::Again(seconds.map(Duration::from_secs), reason.to_owned())
    }

    #[test]
    fn statuses() {
        for done in [200, 201, 204, 299] {
            assert_eq!(judge(None, done, Some("5"), ""), Verdict::Done(None));
        }
        for passing in [
            301, 302, 307, 403, 404, 407, 408, 425, 429, 500, 502, 503, 599,
        ] {
            assert_eq!(
                judge(None, passing, None, ""),
                again(None, &format!("HTTP {passing}"))
            );
        }
        for fatal in [400, 401, 405, 410, 422, 499] {
            assert_eq!(
                judge(None, fatal, None, ""),
                Verdict::Fatal(format!("HTTP {fatal}"))
            );
        }
    }

    #[test]
    fn rules_of_the_configuration() {
        assert_eq!(
            judge(Some(&[404]), 404, None, ""),
            Verdict::Fatal("HTTP 404".into())
        );
        assert_eq!(judge(Some(&[404]), 400, None, ""), again(None, "HTTP 400"));
        assert_eq!(
            judge(Some(&[]), 410, None, ""),
            Verdict::Fatal("HTTP 410".into())
        );
        assert_eq!(
            judge(Some(&[429]), 429, None, ""),
            Verdict::Fatal("HTTP 429".into())
        );
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_within_bounds() {
        for (said, seconds) in [
            ("120", Some(120)),
            ("0", Some(1)),
            ("9999999", Some(3600)),
            ("99999999999999999999999", Some(3600)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some(120)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(1)),
            ("Sat, 06 Nov 2094 08:00:00 GMT", Some(3600)),
            ("soon", None),
            ("-5", None),
            ("1.5", None),
            ("", None),
        ] {
            assert_eq!(
                judge(None, 503, Some(said), ""),
                again(seconds, "HTTP 503"),
                "{said}"
            );
        }
        assert_eq!(judge(None, 404, Some("7"), ""), again(Some(7), "HTTP 404"));
        assert_eq!(
            judge(None, 410, Some("7"), ""),
            Verdict::Fatal("HTTP 410".into())
        );
    }

    #[test]
    fn the_reason_is_one_line_of_text() {
        assert_eq!(
            judge(None, 400, None, "\r\n no such\torder\x1b[31m \r\nmore"),
            Verdict::Fatal("HTTP 400: no suchorder[31m".into())
        );
        let Verdict::Fatal(long) = judge(None, 400, None, &"é".repeat(5000)) else {
            panic!("not fatal")
        };
        assert!(long.len() < 1100 && long.starts_with("HTTP 400: éé"));
    }
}
