//! Checks the configuration file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};
use toml::Spanned;

use super::file::{File, FileGroup, FileHost, FileQueue};
use super::{Config, Limits, QueueConfig, Receiver, TlsFiles};
use crate::answer::Rules;
use crate::networks::Allowed;
use crate::proxy::Proxy;
use dq_connect::secret;
use dq_watch::sign::Secret;

pub struct Reading<'a> {
    pub text: &'a str,
    pub environment: &'a dyn Fn(&str) -> Option<String>,
}

const LONGEST_S: f64 = 86_400.0;

impl Reading<'_> {
    pub fn wrong<T>(&self, at: &Spanned<T>, why: impl std::fmt::Display) -> String {
        dq_connect::config::wrong(self.text, at.span().start, why)
    }

    pub fn file(&self, file: File) -> Result<Config, String> {
        let mut allowed = Allowed::default();
        for word in &file.allow {
            allowed
                .add(word.get_ref())
                .map_err(|why| self.wrong(word, why))?;
        }
        let tls = self.tls(&file)?;
        let mut hosts = BTreeMap::new();
        for (name, host) in &file.hosts {
            hosts.insert(name.to_ascii_lowercase(), self.host(host)?);
        }
        let proxy = file.proxy.as_ref().map(|text| self.proxy(text));
        if file.queue.is_empty() && file.token.is_empty() && file.options.is_none() {
            return Err(
                "no queue is given: [[http.queue]], name = \"...\", url = \"https://...\"; nor a [[http.token]]".to_owned(),
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
            tokens: self.tokens(file.token)?,
            allowed,
            tls,
            proxy: proxy.transpose()?,
            every_host: Limits {
                concurrency: self.count("host-concurrency", file.host_concurrency.as_ref())?,
                rate: self.rate("host-rate", file.host_rate.as_ref())?,
            },
            hosts,
            breaker: match self.count("break-after", file.break_after.as_ref())? {
                None => None,
                Some(after) => Some((
                    after,
                    self.duration("break-for", file.break_for.as_ref(), 30.0, 0.1)?,
                )),
            },
            queues,
        })
    }

    fn tls(&self, file: &File) -> Result<TlsFiles, String> {
        let there = |path: &Option<Spanned<PathBuf>>| match path {
            Some(path) if !path.get_ref().is_file() => {
                Err(self.wrong(path, format!("no such file: {}", path.get_ref().display())))
            }
            path => Ok(path.as_ref().map(|path| path.get_ref().clone())),
        };
        let alone = |path: &Option<Spanned<PathBuf>>| match path {
            Some(path) => Err(self.wrong(path, "client-cert and client-key belong together")),
            None => Ok(None),
        };
        let client = match (there(&file.client_cert)?, there(&file.client_key)?) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (Some(_), None) => alone(&file.client_cert)?,
            (None, _) => alone(&file.client_key)?,
        };
        Ok(TlsFiles {
            ca: there(&file.ca_file)?,
            client,
        })
    }

    fn host(&self, host: &Spanned<FileHost>) -> Result<Limits, String> {
        let (concurrency, rate) = match host.get_ref() {
            FileHost::Concurrency(limit) => (Some(*limit), None),
            FileHost::Limits { concurrency, rate } => (*concurrency, *rate),
        };
        let spanned = |it| Spanned::new(host.span(), it);
        let rate = rate.map(|rate| Spanned::new(host.span(), rate));
        Ok(Limits {
            concurrency: self.count("a host's limit", concurrency.map(spanned).as_ref())?,
            rate: self.rate("a host's rate", rate.as_ref())?,
        })
    }

    /// A number that must be between these two.
    fn within<T: Copy + PartialOrd>(
        &self,
        said: Option<&Spanned<T>>,
        range: RangeInclusive<T>,
        otherwise: String,
    ) -> Result<Option<T>, String> {
        said.map(|said| match range.contains(said.get_ref()) {
            true => Ok(*said.get_ref()),
            false => Err(self.wrong(said, otherwise)),
        })
        .transpose()
    }

    pub fn rate(&self, what: &str, said: Option<&Spanned<f64>>) -> Result<Option<f64>, String> {
        let otherwise = format!("{what}: 0.001 to 1000000 calls a second");
        self.within(said, 0.001..=1e6, otherwise)
    }

    fn count(&self, what: &str, said: Option<&Spanned<usize>>) -> Result<Option<usize>, String> {
        self.within(said, 1..=10_000, format!("{what}: 1 to 10000"))
    }

    fn duration(
        &self,
        what: &str,
        said: Option<&Spanned<f64>>,
        default: f64,
        least: f64,
    ) -> Result<Duration, String> {
        let otherwise = format!("{what}: {least} to {LONGEST_S} seconds");
        let seconds = self.within(said, least..=LONGEST_S, otherwise)?;
        Ok(Duration::from_secs_f64(seconds.unwrap_or(default)))
    }

    fn proxy(&self, text: &Spanned<String>) -> Result<Proxy, String> {
        Proxy::parse(&self.value(text)?).map_err(|why| self.wrong(text, why))
    }

    fn method(&self, said: Option<&Spanned<String>>) -> Result<Method, String> {
        let Some(said) = said else {
            return Ok(Method::POST);
        };
        match said.get_ref().as_str() {
            "POST" => Ok(Method::POST),
            "PUT" => Ok(Method::PUT),
            "PATCH" => Ok(Method::PATCH),
            "GET" => Ok(Method::GET),
            _ => Err(self.wrong(said, "method: POST, PUT, PATCH or GET")),
        }
    }

    fn fatal(&self, listed: &[Spanned<u16>]) -> Result<Vec<u16>, String> {
        let is_4xx = |status: &Spanned<u16>| {
            let why = format!(
                "fatal lists statuses from 400 to 499, not {}",
                status.get_ref()
            );
            self.within(Some(status), 400..=499, why)
        };
        listed
            .iter()
            .filter_map(|it| is_4xx(it).transpose())
            .collect()
    }

    /// The receivers of groups, by the groups' names.
    fn groups(
        &self,
        listed: &[FileGroup],
        queue: &Receiver,
        allowed: &Allowed,
    ) -> Result<HashMap<Vec<u8>, Receiver>, String> {
        let mut groups = HashMap::new();
        for group in listed {
            let own = self.group(group, queue, allowed)?;
            let name = group.name.get_ref().clone().into_bytes();
            if groups.insert(name, own).is_some() {
                return Err(self.wrong(&group.name, "this group is given twice"));
            }
        }
        Ok(groups)
    }

    fn group(
        &self,
        group: &FileGroup,
        queue: &Receiver,
        allowed: &Allowed,
    ) -> Result<Receiver, String> {
        Ok(Receiver {
            url: match &group.url {
                Some(url) => self.url(url, allowed)?.0,
                None => queue.url.clone(),
            },
            secrets: match &group.secrets {
                Some(secrets) => self.secrets(secrets)?,
                None => queue.secrets.clone(),
            },
            headers: match &group.headers {
                Some(headers) => self.headers(headers)?,
                None => queue.headers.clone(),
            },
        })
    }

    fn secrets(&self, listed: &[Spanned<String>]) -> Result<Vec<Secret>, String> {
        let secret = |text: &Spanned<String>| {
            Secret::parse(&self.value(text)?).map_err(|why| self.wrong(text, why))
        };
        listed.iter().map(secret).collect()
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
        let fatal = queue.fatal.map(|listed| self.fatal(&listed));
        let receiver = Receiver {
            url,
            secrets: self.secrets(&queue.secrets)?,
            headers: self.headers(&queue.headers)?,
        };
        let groups = self.groups(&queue.group, &receiver, allowed)?;
        Ok(QueueConfig {
            name: queue.name.into_inner(),
            method: self.method(queue.method.as_ref())?,
            receiver,
            groups,
            host,
            concurrency: self
                .count("concurrency", queue.concurrency.as_ref())?
                .unwrap_or(10),
            timeout,
            lease,
            backoff,
            rules: Rules {
                fatal: fatal.transpose()?,
                keep_answers: queue.keep_answers,
                longest_retry_after,
            },
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
            .trim_matches(['[', ']'])
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
                return Err(wrong("dq http sets this header itself"));
            }
            headers.insert(name, self.header_value(value)?);
        }
        Ok(headers)
    }

    fn header_value(&self, text: &Spanned<String>) -> Result<HeaderValue, String> {
        let value = self.value(text)?.parse::<HeaderValue>();
        value.map_err(|_| self.wrong(text, "a header value must be one line of plain text"))
    }

    /// `env:NAME` stands for what that variable holds, `file:PATH` for the file's first line: secrets need not be in
    /// the configuration.
    pub fn value(&self, text: &Spanned<String>) -> Result<String, String> {
        secret::read(text.get_ref(), self.environment).map_err(|why| self.wrong(text, why))
    }
}
