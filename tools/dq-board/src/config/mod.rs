//! The file of `--config`: who may sign in, and which alerts go where. SIGHUP reads it again.

mod alerts;
mod servers;

use std::path::Path;

use dq_connect::secret;
use ipnet::IpNet;
use serde::de::IgnoredAny;
use serde::Deserialize;

pub use alerts::Alerts;
pub use servers::Shown;

use crate::core::access::{network, Key, Role, Users};
use crate::servers::prometheus::Source;

/// Other sections are of other commands.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Whole {
    board: File,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct File {
    /// The program has put them before those of the command line.
    #[serde(rename = "options")]
    _options: IgnoredAny,
    password: Vec<FileKey>,
    token: Vec<FileKey>,
    trusted_proxies: Vec<String>,
    users: Option<FileUsers>,
    alerts: Option<alerts::FileAlerts>,
    server: Vec<servers::FileServer>,
    prometheus: Option<servers::FilePrometheus>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileKey {
    name: String,
    secret: String,
    #[serde(default)]
    role: Role,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileUsers {
    user_header: String,
    groups_header: Option<String>,
    #[serde(default)]
    look: Vec<String>,
    #[serde(default)]
    operate: Vec<String>,
}

#[derive(Default)]
pub struct Config {
    pub passwords: Vec<Key>,
    pub tokens: Vec<Key>,
    pub users: Option<Users>,
    pub proxies: Vec<IpNet>,
    pub alerts: Option<Alerts>,
    pub servers: Vec<Shown>,
    /// Prometheus of the only server.
    pub prometheus: Option<Source>,
}

/// Shorter ones could be guessed: a right token does not wait for other visitors' wrong guesses.
pub const TOKEN_MIN: usize = 16;

pub fn read(path: &Path) -> Result<Config, String> {
    dq_connect::config::read(path, parse)
}

fn parse(text: &str) -> Result<Config, String> {
    let Whole { board: file } = dq_connect::config::parse(text)?;
    if file.users.is_some() && file.trusted_proxies.is_empty() {
        return Err(
            "[board.users] needs trusted-proxies: the only ones whose headers count".to_owned(),
        );
    }
    let keys = |keys: Vec<FileKey>| keys.into_iter().map(key).collect::<Result<Vec<_>, _>>();
    let tokens = keys(file.token)?;
    tokens.iter().try_for_each(token_is_long)?;
    let prometheus = file.prometheus.map(servers::FilePrometheus::source);
    let alerts = file.alerts.map(alerts::alerts);
    let proxies = file.trusted_proxies.iter().map(|net| {
        let read = network(net);
        read.map_err(|error| format!("{net}: {error}"))
    });
    let proxies: Result<Vec<IpNet>, String> = proxies.collect();
    let proxies = proxies.map_err(|error| format!("trusted-proxies: {error}"))?;
    Ok(Config {
        servers: servers::servers(file.server)?,
        prometheus: prometheus.transpose()?,
        passwords: keys(file.password)?,
        tokens,
        users: file.users.map(|users| Users {
            user_header: users.user_header,
            groups_header: users.groups_header,
            look: users.look,
            operate: users.operate,
        }),
        proxies,
        alerts: alerts
            .transpose()
            .map_err(|error| format!("[board.alerts] {error}"))?,
    })
}

pub fn token_is_long(token: &Key) -> Result<(), String> {
    match token.secret.len() < TOKEN_MIN {
        true => Err(format!(
            "the token {} is shorter than {TOKEN_MIN} characters, so it could be guessed",
            token.name
        )),
        false => Ok(()),
    }
}

fn key(key: FileKey) -> Result<Key, String> {
    Ok(Key {
        secret: secret_of(&key.name, &key.secret)?,
        name: key.name,
        role: key.role,
    })
}

fn secret_of(name: &str, said: &str) -> Result<String, String> {
    let secret = secret::read(said, secret::variable);
    let secret = secret.map_err(|error| format!("the secret of {name}: {error}"))?;
    match secret.is_empty() {
        true => Err(format!("the secret of {name} is empty")),
        false => Ok(secret),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_does_not_show_the_line() {
        for (line, why) in [
            ("secret = hunter2", "line 2: "),
            ("secret = \"hunter2", "line 2: "),
            (
                "secret = [\"hunter2\"]",
                "line 2: invalid type, expected a string",
            ),
            (
                "role = \"hunter2\"",
                "line 2: unknown variant, expected `look` or `operate`",
            ),
            ("hunt = \"hunter2\"", "line 2: unknown field `hunt`"),
        ] {
            let told = parse(&format!("[[board.password]]\n{line}\n"))
                .err()
                .unwrap();
            assert!(told.starts_with(why) && !told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn who_may_come_in() {
        let text = r#"
            board.trusted-proxies = ["10.0.0.0/8"]
            [[board.password]]
            name = "oncall"
            secret = "open sesame"
            role = "operate"
            [[board.token]]
            name = "keda"
            secret = "0123456789abcdef"
            [board.users]
            user-header = "X-Forwarded-User"
            look = ["*"]
        "#;
        let config = parse(text).unwrap();
        assert_eq!(config.passwords[0].role, Role::Operate);
        assert_eq!(config.tokens[0].role, Role::Look, "the default");
        assert_eq!(config.users.unwrap().look, ["*"]);
        assert_eq!(config.proxies.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("board.passwords = []", "unknown field"),
            (
                "[[board.token]]\nname = 'a'\nsecret = 'short'",
                "could be guessed",
            ),
            (
                "[[board.password]]\nname = 'a'",
                "line 1: missing field `secret`",
            ),
            ("[[board.password]]\nname = 'a'\nsecret = ''", "is empty"),
            (
                "[[board.password]]\nname = 'a'\nsecret = 'file:/none'",
                "of a: /none: ",
            ),
            (
                "[[board.password]]\nname = 'a'\nsecret = 'b'\nrole = 'king'",
                "expected `look` or `operate`",
            ),
            ("[board.users]\nuser-header = 'X-User'", "trusted-proxies"),
            ("board.trusted-proxies = ['nonsense']", "trusted-proxies"),
            (
                "[board.alerts]\nurl = 'file:///x'",
                "[board.alerts] file:///x: not a URL",
            ),
            (
                "[board.alerts]\nurl = 'http://a'\nlateness = -1",
                "lateness: seconds",
            ),
            ("[board.alerts]\nurl = 'http://a'\nsecret = 'x'", "whsec_"),
            (
                "[board.alerts]\nurl = 'http://a'\nlate = 1",
                "unknown field",
            ),
        ] {
            let error = parse(text).map(|_| ()).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
    #[test]
    fn limits_of_single_queues() {
        let text = r#"
            [board.alerts]
            url = "https://example.com/hook"
            board-url = "https://board.example.com"
            dead = 10
            oldest-ready = 60
            lateness = 0.5
            [[board.alerts.queue]]
            name = "reports-*"
            oldest-ready = 3600
            dead = 0
        "#;
        let Alerts { rules, hook } = parse(text).unwrap().alerts.unwrap();
        let (name, reports) = &rules.queues[0];
        assert_eq!(name, "reports-*");
        assert_eq!((reports.dead, rules.others.dead), (None, Some(10)));
        assert_eq!(reports.oldest_ready_ms, Some(3_600_000));
        assert_eq!(reports.lateness_us, Some(500_000), "as for all");
        assert_eq!((rules.others.missed, rules.unreachable_ms), (None, None));
        assert_eq!(hook.board.as_deref(), Some("https://board.example.com/"));
    }
}
