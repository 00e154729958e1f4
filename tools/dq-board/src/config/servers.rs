//! `[[board.server]]` of the configuration file: several servers, each under a name.

use dq_connect::arguments::{parse, ShownArgs};
use dq_connect::scope::Scope;
use dq_connect::target::Target;
use hyper::header::{HeaderMap, HeaderValue, AUTHORIZATION};
use serde::Deserialize;

use super::secret_of;
use crate::servers::prometheus::Source;
use crate::web;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileServer {
    name: String,
    /// Options as on the command line.
    #[serde(default)]
    options: Vec<String>,
    password: Option<String>,
    prometheus: Option<FilePrometheus>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FilePrometheus {
    url: String,
    #[serde(default)]
    labels: String,
    authorization: Option<String>,
}

impl FilePrometheus {
    pub fn source(self) -> Result<Source, String> {
        let said = |error: String| format!("prometheus: {error}");
        web::url(&self.url).map_err(said)?;
        let mut headers = HeaderMap::new();
        if let Some(value) = &self.authorization {
            let value = secret_of("prometheus", value)?;
            let value = HeaderValue::from_str(&value);
            let value = value.map_err(|_| said("authorization is no header".to_owned()))?;
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Source {
            url: self.url.trim_end_matches('/').to_owned(),
            labels: self.labels,
            headers,
        })
    }
}

/// What one board shows.
#[derive(Clone)]
pub struct Shown {
    /// None if there is only one server.
    pub name: Option<String>,
    pub target: Target,
    pub scope: Scope,
    pub reads_files: bool,
    /// The Prometheus whose history is shown instead of the board's own.
    pub prometheus: Option<Source>,
}

impl Shown {
    /// `password` is taken if the arguments have none.
    pub fn of(arguments: &ShownArgs, password: Option<String>) -> Result<Shown, String> {
        let (target, scope) = arguments.target(password)?;
        Ok(Shown {
            name: None,
            target,
            scope,
            reads_files: arguments.server.reads_files(),
            prometheus: None,
        })
    }
}

pub fn servers(files: Vec<FileServer>) -> Result<Vec<Shown>, String> {
    let all: Result<Vec<Shown>, String> = files.into_iter().map(server).collect();
    let all = all?;
    for (index, one) in all.iter().enumerate() {
        if all[..index].iter().any(|other| other.name == one.name) {
            let name = one.name.as_deref().unwrap_or_default();
            return Err(format!("the server {name} is given twice"));
        }
    }
    Ok(all)
}

fn server(file: FileServer) -> Result<Shown, String> {
    let name = file.name;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    // The name is part of addresses, beside those that concern all servers.
    if name.is_empty() || !name.chars().all(plain) || ["api", "assets"].contains(&name.as_str()) {
        return Err(format!(
            "the server's name {name:?}: letters, digits, - and _, but neither api nor assets"
        ));
    }
    let said = |error: String| format!("the server {name}: {error}");
    let password = file.password.as_deref();
    let password = password.map(|said| secret_of(&name, said)).transpose()?;
    let shown = parse(&file.options).and_then(|options| Shown::of(&options, password));
    let prometheus = file.prometheus.map(FilePrometheus::source);
    let shown = shown.map_err(said)?;
    Ok(Shown {
        prometheus: prometheus.transpose()?,
        name: Some(name),
        ..shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn read(text: &str) -> Result<Vec<Shown>, String> {
        let mut file: HashMap<String, Vec<FileServer>> = toml::from_str(text).unwrap();
        servers(file.remove("server").unwrap())
    }

    #[test]
    fn each_has_options_of_its_own() {
        let all = read(
            "[[server]]\nname = 'eu'\noptions = ['-h', 'eu.internal', '-n', 'all']\npassword = 'x'\n\
             [[server]]\nname = 'us'\noptions = ['-p', '6380', '--queue', 'orders']",
        );
        let all = all.unwrap();
        let names: Vec<_> = all.iter().map(|one| one.target.name()).collect();
        assert_eq!(names, ["eu.internal:6379", "127.0.0.1:6380"]);
        assert_eq!(all[1].scope.queues, [b"orders"]);
        assert_eq!(all[0].target.info().redis_settings().password(), Some("x"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("name = 'a b'", "letters"),
            ("name = 'assets'", "neither"),
            (
                "name = 'a'\noptions = ['--listen', '0.0.0.0:1']",
                "unknown option --listen",
            ),
            ("name = 'a'\noptions = ['-p', '0']", "the server a: -p 0"),
            ("name = 'a'\n[[server]]\nname = 'a'", "twice"),
        ] {
            let error = read(&format!("[[server]]\n{text}"))
                .map(|_| ())
                .unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
