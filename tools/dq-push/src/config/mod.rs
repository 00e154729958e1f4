//! The configuration; its errors name the line.

mod file;
mod reading;
mod tokens;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Uri};

use crate::answer::Rules;
use crate::inbound::tokens::Token;
use crate::networks::Allowed;
use crate::proxy::Proxy;
use dq_connect::secret::variable;
use dq_watch::sign::Secret;
use file::Whole;
use reading::Reading;

#[derive(Default)]
pub struct Config {
    pub allowed: Allowed,
    pub tls: TlsFiles,
    pub proxy: Option<Proxy>,
    pub every_host: Limits,
    pub hosts: BTreeMap<String, Limits>,
    /// After so many failed calls in a row a host is not called for so long.
    pub breaker: Option<(usize, Duration)>,
    pub queues: Vec<QueueConfig>,
    /// Of those who may send jobs.
    pub tokens: Vec<Token>,
}

#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    pub ca: Option<PathBuf>,
    /// The client certificate and its key, which tell receivers who calls.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// Calls at a time, and calls a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    pub concurrency: Option<usize>,
    pub rate: Option<f64>,
}

/// Where a job is sent.
#[derive(Clone)]
pub struct Receiver {
    pub url: Uri,
    pub secrets: Vec<Secret>,
    pub headers: HeaderMap,
}

pub struct QueueConfig {
    pub name: String,
    pub method: Method,
    pub receiver: Receiver,
    /// Receivers of jobs of these groups.
    pub groups: HashMap<Vec<u8>, Receiver>,
    /// The URL's host, in lower case, an IPv6 address without brackets.
    pub host: String,
    pub concurrency: usize,
    pub timeout: Duration,
    pub lease: Duration,
    pub backoff: Vec<Duration>,
    pub rules: Rules,
    pub content_type: Option<HeaderValue>,
    pub recurring: bool,
    pub http2: bool,
}

impl QueueConfig {
    pub fn receiver(&self, group: Option<&[u8]>) -> &Receiver {
        let own = group.and_then(|group| self.groups.get(group));
        own.unwrap_or(&self.receiver)
    }
}

impl Config {
    /// `environment` looks up a variable. The error begins with the line number.
    pub fn parse(
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Config, String> {
        let Whole { http } = dq_connect::config::parse(text)?;
        let Some(file) = http else {
            return Ok(Config::default());
        };
        let reading = Reading {
            text,
            environment: &environment,
        };
        reading.file(file)
    }

    pub fn read(path: &Path) -> Result<Config, String> {
        dq_connect::config::read(path, |text| Config::parse(text, variable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        Config::parse(text, |name| {
            (name == "TOKEN").then(|| "Bearer x".to_owned())
        })
    }

    fn queue(lines: &str) -> Result<Config, String> {
        read(&format!(
            "[[http.queue]]\nname = \"q\"\nurl = \"https://example.com/a\"\n{lines}\n"
        ))
    }

    #[test]
    fn what_is_left_out() {
        let config = queue("").unwrap_or_else(|why| panic!("{why}"));
        let queue = &config.queues[0];
        assert_eq!(
            (queue.host.as_str(), queue.concurrency),
            ("example.com", 10)
        );
        assert_eq!(
            (queue.timeout, queue.lease),
            (Duration::from_secs(15), Duration::from_secs(30))
        );
        assert!(
            queue.receiver.secrets.is_empty()
                && queue.backoff.is_empty()
                && queue.rules.fatal.is_none()
        );
    }

    #[test]
    fn all_of_it() {
        let config = queue(
            "concurrency = 50\ntimeout = 2\nlease = 5.5\nbackoff = [1, 0.5]\nfatal = [400]\nretry-after-max = 60\n\
             secrets = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]\nheaders = { Authorization = \"env:TOKEN\" }\n\
             content-type = \"text/plain\"\nrecurring = true\nhttp2 = true",
        );
        let queue = &config.unwrap_or_else(|why| panic!("{why}")).queues[0];
        assert_eq!(queue.receiver.headers["authorization"], "Bearer x");
        assert_eq!(
            queue.backoff,
            [Duration::from_secs(1), Duration::from_millis(500)]
        );
        assert!(queue.recurring && queue.http2 && queue.receiver.secrets.len() == 1);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (line, why) in [
            ("concurrency = 0", "line 4: concurrency: 1 to 10000"),
            ("\ntimeout = -1", "line 5: timeout: "),
            ("fatal = [400, 500]", "line 4: fatal lists"),
            ("secrets = [\"x\"]", "line 4: a secret is"),
            (
                "secrets = [\"env:NONE\"]",
                "line 4: the environment variable NONE is not set",
            ),
            ("headers = { Dq-Id = \"x\" }", "line 4: header Dq-Id"),
            ("headers = { \"a b\" = \"x\" }", "line 4: header a b"),
            ("headers = { a = \"x\\ny\" }", "line 4: a header value"),
            ("nonsense = 1", "line 4: unknown field `nonsense`"),
            ("lease = \"x\"", "line 4: invalid type"),
            (
                "[[http.queue]]\nname = \"q\"\nurl = \"http://a\"",
                "line 5: this queue is given twice",
            ),
            (
                "[[http.queue]]\nname = \"\"\nurl = \"http://a\"",
                "line 5: a queue needs a name",
            ),
            (
                "[[http.queue]]\nname = \"r\"\nurl = \"ftp://a\"",
                "line 6: url: it begins",
            ),
            (
                "[[http.queue]]\nname = \"r\"\nurl = \"http://:80/\"",
                "line 6: url: it has no host",
            ),
            (
                "[[http.queue]]\nname = \"r\"\nurl = \"http://u:p@a\"",
                "line 6: url: must not contain a user or password",
            ),
            (
                "[[http.queue]]\nname = \"r\"\nurl = \"http://127.0.0.1/\"",
                "line 6: url: 127.0.0.1 is not a public",
            ),
            (
                "[[http.queue]]\nname = \"r\"\nurl = \"http://[::1]:80/\"",
                "line 6: url: ::1 is not a public",
            ),
            ("[http.hosts]\na = 0", "line 5: a host's limit"),
            ("x =", "line 4: "),
        ] {
            let said = queue(line).map(|_| ()).unwrap_err();
            assert!(said.starts_with(why), "{line}: {said}");
        }
        assert!(read("[http]")
            .map(|_| ())
            .unwrap_err()
            .starts_with("no queue"));
        for none in ["", "[board]\nx = 1", "[http]\noptions = []"] {
            assert!(read(none).is_ok_and(|config| config.queues.is_empty()));
        }
        assert!(read("http.allow = [\"a b\"]")
            .map(|_| ())
            .unwrap_err()
            .starts_with("line 1: \"a b\""));
        assert!(read("http.ca-file = \"/no/where\"")
            .map(|_| ())
            .unwrap_err()
            .starts_with("line 1: no such file"));
    }
}
