//! The configuration: what is wrong with it is said with its line.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::Uri;
use serde::Deserialize;
use toml::Spanned;

use crate::answer::Rules;
use crate::networks::Allowed;
use crate::sign::Secret;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    allow: Vec<Spanned<String>>,
    ca_file: Option<Spanned<PathBuf>>,
    host_concurrency: Option<Spanned<usize>>,
    #[serde(default)]
    hosts: BTreeMap<String, Spanned<usize>>,
    #[serde(default)]
    queue: Vec<FileQueue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileQueue {
    name: Spanned<String>,
    url: Spanned<String>,
    concurrency: Option<Spanned<usize>>,
    timeout: Option<Spanned<f64>>,
    lease: Option<Spanned<f64>>,
    #[serde(default)]
    backoff: Vec<Spanned<f64>>,
    fatal: Option<Vec<Spanned<u16>>>,
    retry_after_max: Option<Spanned<f64>>,
    #[serde(default)]
    secrets: Vec<Spanned<String>>,
    #[serde(default)]
    headers: BTreeMap<String, Spanned<String>>,
    content_type: Option<Spanned<String>>,
    #[serde(default)]
    recurring: bool,
    #[serde(default)]
    http2: bool,
}

pub struct Config {
    pub allowed: Allowed,
    pub ca_file: Option<PathBuf>,
    pub host_concurrency: Option<usize>,
    pub hosts: BTreeMap<String, usize>,
    pub queues: Vec<QueueConfig>,
}

pub struct QueueConfig {
    pub name: String,
    pub url: Uri,
    /// The URL's host, in lower case, an IPv6 address without brackets.
    pub host: String,
    pub concurrency: usize,
    pub timeout: Duration,
    pub lease: Duration,
    pub backoff: Vec<Duration>,
    pub rules: Rules,
    pub secrets: Vec<Secret>,
    pub headers: HeaderMap,
    pub content_type: Option<HeaderValue>,
    pub recurring: bool,
    pub http2: bool,
}

impl Config {
    /// `environment` looks up a variable. The error begins with the line.
    pub fn parse(
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Config, String> {
        let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
        let file: File = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(text.len(), |span| span.start);
            format!("{}: {}", line(at), error.message())
        })?;
        Reading {
            line: &line,
            environment: &environment,
        }
        .file(file)
    }

    pub fn read(
        path: &Path,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Config, String> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
        Config::parse(&text, environment).map_err(|error| format!("{}:{error}", path.display()))
    }
}

struct Reading<'a> {
    line: &'a dyn Fn(usize) -> usize,
    environment: &'a dyn Fn(&str) -> Option<String>,
}

const LONGEST_S: f64 = 86_400.0;

impl Reading<'_> {
    fn wrong<T>(&self, at: &Spanned<T>, why: impl std::fmt::Display) -> String {
        format!("{}: {why}", (self.line)(at.span().start))
    }

    fn file(&self, file: File) -> Result<Config, String> {
        let mut allowed = Allowed::default();
        for word in &file.allow {
            allowed
                .add(word.get_ref())
                .map_err(|why| self.wrong(word, why))?;
        }
        let ca_file = file.ca_file.map(|path| match path.get_ref().is_file() {
            true => Ok(path.into_inner()),
            false => Err(self.wrong(&path, format!("no such file: {}", path.get_ref().display()))),
        });
        let ca_file = ca_file.transpose()?;
        let mut hosts = BTreeMap::new();
        for (name, limit) in &file.hosts {
            hosts.insert(
                name.to_ascii_lowercase(),
                self.count("a host's limit", limit)?,
            );
        }
        if file.queue.is_empty() {
            return Err(
                "1: no queue is given: [[queue]], name = \"...\", url = \"https://...\"".to_owned(),
            );
        }
        let mut queues = Vec::new();
        let mut names = HashSet::new();
        for queue in file.queue {
            if !names.insert(queue.name.get_ref().clone()) {
                return Err(self.wrong(&queue.name, "this queue is given twice"));
            }
            queues.push(self.queue(queue, &allowed)?);
        }
        Ok(Config {
            allowed,
            ca_file,
            host_concurrency: self
                .optional_count("host-concurrency", file.host_concurrency.as_ref())?,
            hosts,
            queues,
        })
    }

    fn queue(&self, queue: FileQueue, allowed: &Allowed) -> Result<QueueConfig, String> {
        if queue.name.get_ref().is_empty() {
            return Err(self.wrong(&queue.name, "a queue needs a name"));
        }
        let (url, host) = self.url(&queue.url, allowed)?;
        let timeout = self.duration("timeout", queue.timeout.as_ref(), 15.0, 0.001)?;
        let lease = self.duration("lease", queue.lease.as_ref(), 30.0, 1.0)?;
        let longest_retry_after = self.duration(
            "retry-after-max",
            queue.retry_after_max.as_ref(),
            3600.0,
            1.0,
        )?;
        let step = |step| self.duration("a step of backoff", Some(step), 0.0, 0.1);
        let backoff = queue.backoff.iter().map(step).collect::<Result<_, _>>()?;
        let fatal = queue.fatal.map(|listed| {
            let is_4xx = |status: &Spanned<u16>| match *status.get_ref() {
                status @ 400..=499 => Ok(status),
                other => Err(self.wrong(
                    status,
                    format!("fatal lists statuses from 400 to 499, not {other}"),
                )),
            };
            listed.iter().map(is_4xx).collect::<Result<Vec<_>, _>>()
        });
        let secret = |text: &Spanned<String>| {
            Secret::parse(&self.value(text)?).map_err(|why| self.wrong(text, why))
        };
        Ok(QueueConfig {
            name: queue.name.into_inner(),
            url,
            host,
            concurrency: self
                .optional_count("concurrency", queue.concurrency.as_ref())?
                .unwrap_or(10),
            timeout,
            lease,
            backoff,
            rules: Rules {
                fatal: fatal.transpose()?,
                longest_retry_after,
            },
            secrets: queue.secrets.iter().map(secret).collect::<Result<_, _>>()?,
            headers: self.headers(&queue.headers)?,
            content_type: queue
                .content_type
                .map(|text| self.header_value(&text))
                .transpose()?,
            recurring: queue.recurring,
            http2: queue.http2,
        })
    }

    fn url(&self, text: &Spanned<String>, allowed: &Allowed) -> Result<(Uri, String), String> {
        let url: Uri = text
            .get_ref()
            .parse()
            .map_err(|why| self.wrong(text, format!("url: {why}")))?;
        let (Some("http" | "https"), Some(authority)) = (url.scheme_str(), url.authority()) else {
            return Err(self.wrong(text, "url: it begins with https:// or http:// and a host"));
        };
        if authority.host().is_empty() {
            return Err(self.wrong(text, "url: it has no host"));
        }
        if authority.as_str().contains('@') {
            return Err(self.wrong(
                text,
                "url: must not contain a user or password; use headers = { Authorization = \"...\" }",
            ));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_ascii_lowercase();
        match host.parse::<IpAddr>() {
            Ok(address) if !allowed.permits(&host, address) => Err(self.wrong(
                text,
                format!("url: {host} is not a public address; allow = [\"{host}\"] permits it"),
            )),
            _ => Ok((url, host)),
        }
    }

    fn headers(&self, given: &BTreeMap<String, Spanned<String>>) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let wrong = |why: &str| self.wrong(value, format!("header {name}: {why}"));
            let name: HeaderName = name.parse().map_err(|_| wrong("not a valid header name"))?;
            let is_ours = ["dq-", "webhook-"]
                .iter()
                .any(|prefix| name.as_str().starts_with(prefix));
            let of_the_connection = [
                "host",
                "connection",
                "content-length",
                "content-type",
                "transfer-encoding",
                "upgrade",
                "te",
            ];
            if is_ours || of_the_connection.contains(&name.as_str()) {
                return Err(wrong("dq-push sets this header itself"));
            }
            headers.insert(name, self.header_value(value)?);
        }
        Ok(headers)
    }

    fn header_value(&self, text: &Spanned<String>) -> Result<HeaderValue, String> {
        let value = self.value(text)?.parse::<HeaderValue>();
        value.map_err(|_| self.wrong(text, "a header value must be one line of plain text"))
    }

    /// `env:NAME` stands for what that variable holds: secrets need not be in the file.
    fn value(&self, text: &Spanned<String>) -> Result<String, String> {
        match text.get_ref().strip_prefix("env:") {
            None => Ok(text.get_ref().clone()),
            Some(name) => (self.environment)(name).ok_or_else(|| {
                self.wrong(text, format!("the environment variable {name} is not set"))
            }),
        }
    }

    fn duration(
        &self,
        what: &str,
        said: Option<&Spanned<f64>>,
        default: f64,
        least: f64,
    ) -> Result<Duration, String> {
        let Some(said) = said else {
            return Ok(Duration::from_secs_f64(default));
        };
        match *said.get_ref() {
            seconds if (least..=LONGEST_S).contains(&seconds) => {
                Ok(Duration::from_secs_f64(seconds))
            }
            _ => Err(self.wrong(said, format!("{what}: {least} to {LONGEST_S} seconds"))),
        }
    }

    fn optional_count(
        &self,
        what: &str,
        said: Option<&Spanned<usize>>,
    ) -> Result<Option<usize>, String> {
        said.map(|said| self.count(what, said)).transpose()
    }

    fn count(&self, what: &str, said: &Spanned<usize>) -> Result<usize, String> {
        match *said.get_ref() {
            count @ 1..=10_000 => Ok(count),
            _ => Err(self.wrong(said, format!("{what}: 1 to 10000"))),
        }
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
            "[[queue]]\nname = \"q\"\nurl = \"https://example.com/a\"\n{lines}\n"
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
            queue.secrets.is_empty() && queue.backoff.is_empty() && queue.rules.fatal.is_none()
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
        assert_eq!(queue.headers["authorization"], "Bearer x");
        assert_eq!(
            queue.backoff,
            [Duration::from_secs(1), Duration::from_millis(500)]
        );
        assert!(queue.recurring && queue.http2 && queue.secrets.len() == 1);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (line, why) in [
            ("concurrency = 0", "4: concurrency: 1 to 10000"),
            ("\ntimeout = -1", "5: timeout: "),
            ("fatal = [400, 500]", "4: fatal lists"),
            ("secrets = [\"x\"]", "4: a secret is"),
            (
                "secrets = [\"env:NONE\"]",
                "4: the environment variable NONE is not set",
            ),
            ("headers = { Dq-Id = \"x\" }", "4: header Dq-Id"),
            ("headers = { \"a b\" = \"x\" }", "4: header a b"),
            ("headers = { a = \"x\\ny\" }", "4: a header value"),
            ("nonsense = 1", "4: unknown field `nonsense`"),
            ("lease = \"x\"", "4: invalid type"),
            (
                "[[queue]]\nname = \"q\"\nurl = \"http://a\"",
                "5: this queue is given twice",
            ),
            (
                "[[queue]]\nname = \"\"\nurl = \"http://a\"",
                "5: a queue needs a name",
            ),
            (
                "[[queue]]\nname = \"r\"\nurl = \"ftp://a\"",
                "6: url: it begins",
            ),
            (
                "[[queue]]\nname = \"r\"\nurl = \"http://:80/\"",
                "6: url: it has no host",
            ),
            (
                "[[queue]]\nname = \"r\"\nurl = \"http://u:p@a\"",
                "6: url: must not contain a user or password",
            ),
            (
                "[[queue]]\nname = \"r\"\nurl = \"http://127.0.0.1/\"",
                "6: url: 127.0.0.1 is not a public",
            ),
            (
                "[[queue]]\nname = \"r\"\nurl = \"http://[::1]:80/\"",
                "6: url: ::1 is not a public",
            ),
            ("[hosts]\na = 0", "5: a host's limit"),
            ("x =", "4: "),
        ] {
            let said = queue(line).map(|_| ()).unwrap_err();
            assert!(said.starts_with(why), "{line}: {said}");
        }
        assert!(read("").map(|_| ()).unwrap_err().starts_with("1: no queue"));
        assert!(read("allow = [\"a b\"]")
            .map(|_| ())
            .unwrap_err()
            .starts_with("1: \"a b\""));
        assert!(read("ca-file = \"/no/where\"")
            .map(|_| ())
            .unwrap_err()
            .starts_with("1: no such file"));
    }
}
