//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use dq_watch::place::{next_name, text, told, Place, Wish};
use dq_watch::read::Scope;

use crate::config::{self, token_is_long, Alerts, Config, Shown};
use crate::core::access::{network, Access, Key, Role};
use crate::servers::prometheus::Source;

pub const HELP: &str = "\
dq-board: a monitor in the browser for the delay queues of a Redis or Valkey server with the dq module.

Usage: dq-board [options]

  --listen ADDRESS:PORT   the address to listen on (default 127.0.0.1:6390); any address but loopback
                          requires a password, a token or users
  --prefix /PATH          the path under which a reverse proxy serves it
  --allow-host NAME       another host name that browsers may use; needed only without a password
  --allow-actions         lets those who come in change jobs and queues; the default is read-only
  --password PASSWORD     or DQ_BOARD_PASSWORD in the environment, where ps does not show it
  --token TOKEN           or DQ_BOARD_TOKEN: for programs, as Authorization: Bearer TOKEN
  --config FILE           passwords, tokens and users with their roles, alerts, more than one server;
                          read again on SIGHUP
  --trusted-proxy NET     a proxy whose X-Forwarded-For counts, as 10.0.0.7 or 10.0.0.0/8; may be repeated
  --store FILE            keeps what queues did, by minute for a day and by hour for a year, over restarts
  --audit-log FILE        appends a line of JSON for each action and each sign-in; opened again on SIGHUP

  -h HOST, -p PORT        the server (default 127.0.0.1:6379)
  -s SOCKET               its unix socket instead
  -u URL                  redis://[user:password@]host[:port], or unix:///path
  -a PASSWORD             or in the environment variable REDISCLI_AUTH
  --user USER, --pass PASSWORD
  --tls                   use TLS, as rediss:// does
  --cacert FILE           trust certificates signed by this CA instead of the system's; read again on SIGHUP
  --sentinel HOST:PORT[,HOST:PORT...] --master NAME [--sentinel-pass PASSWORD]
                          connect to the master that these sentinels name
  -n DB[,DB...] | all     databases to show (default 0); others can be neither seen nor changed
  --cluster               all masters of the cluster; automatic if the server is part of one
  --no-cluster            only this node of the cluster
  --queue NAME            show only this queue, without searching; may be repeated; others can be
                          neither seen nor changed
  --help, --version

SIGHUP reads the files of --config and --cacert again; without any, it ends the program as SIGTERM does.
";

pub struct Options {
    pub listen: SocketAddr,
    /// Empty, or with a slash before it and none after it.
    pub prefix: String,
    pub hosts: Vec<String>,
    pub access: Access,
    pub alerts: Option<Alerts>,
    pub audit_log: Option<PathBuf>,
    pub store: Option<PathBuf>,
    /// One without a name, or several.
    pub servers: Vec<Shown>,
    /// Whether there are files that SIGHUP reads again.
    pub reads_files: bool,
}

/// Options about the address, and who may come in.
#[derive(Default)]
struct Door {
    listen: Option<String>,
    prefix: String,
    hosts: Vec<String>,
    allow_actions: bool,
    password: Option<String>,
    token: Option<String>,
    config: Option<PathBuf>,
    proxies: Vec<String>,
    audit_log: Option<PathBuf>,
    store: Option<PathBuf>,
}

impl Door {
    /// Takes an option if it is one of these; returns whether it is.
    fn take(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<bool, String> {
        match name {
            "--listen" => self.listen = Some(text(parser)?),
            "--prefix" => self.prefix = path(&text(parser)?)?,
            "--allow-host" => self.hosts.push(text(parser)?),
            "--allow-actions" => self.allow_actions = true,
            "--password" => self.password = Some(text(parser)?),
            "--token" => self.token = Some(text(parser)?),
            "--config" => self.config = Some(parser.value().map_err(told)?.into()),
            "--trusted-proxy" => self.proxies.push(text(parser)?),
            "--audit-log" => self.audit_log = Some(parser.value().map_err(told)?.into()),
            "--store" => self.store = Some(parser.value().map_err(told)?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn access(&self, config: Config) -> Result<Access, String> {
        let role = match self.allow_actions {
            true => Role::Operate,
            false => Role::Look,
        };
        let key = |name: &str, secret: &Option<String>| {
            let name = name.to_owned();
            let secret = secret.clone()?;
            Some(Key { name, secret, role })
        };
        let mut access = Access {
            passwords: config.passwords,
            tokens: config.tokens,
            users: config.users,
            proxies: config.proxies,
            open: role,
        };
        access.passwords.extend(key("password", &self.password));
        let token = key("token", &self.token);
        token.iter().try_for_each(token_is_long)?;
        access.tokens.extend(token);
        for net in &self.proxies {
            let net = network(net).map_err(|error| format!("--trusted-proxy {error}"))?;
            access.proxies.push(net);
        }
        Ok(access)
    }
}

/// `environment` looks up a variable.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Wish<Options>, String> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let mut place = Place::new(&environment);
    let mut scope = Scope::default();
    let mut server_options = Vec::new();
    let mut door = Door {
        password: set("DQ_BOARD_PASSWORD"),
        token: set("DQ_BOARD_TOKEN"),
        ..Door::default()
    };
    let mut parser = lexopt::Parser::from_iter(std::iter::once("dq-board".into()).chain(arguments));
    while let Some(name) = next_name(&mut parser)? {
        match name.as_str() {
            "--help" => return Ok(Wish::Help),
            "--version" => return Ok(Wish::Version),
            other if door.take(other, &mut parser)? => {}
            other if place.take(other, &mut parser)? || scope.take(other, &mut parser)? => {
                server_options.push(name);
            }
            other => return Err(format!("unknown option {other}")),
        }
    }
    let listen = door.listen.as_deref().unwrap_or("127.0.0.1:6390");
    let listen: SocketAddr = listen.parse().map_err(|_| {
        format!("--listen {listen}: not an address and port, such as 127.0.0.1:6390")
    })?;
    let config = door.config.as_deref().map(config::read).transpose()?;
    let mut config = config.unwrap_or_default();
    let alerts = config.alerts.take();
    let mut servers = std::mem::take(&mut config.servers);
    match (servers.first(), server_options.first()) {
        (None, _) => servers.push(one_server(place, scope, config.prometheus.take())?),
        (Some(_), None) => {}
        (Some(_), Some(option)) => {
            return Err(format!(
                "{option}: with [[server]] in the configuration, each server's options are there"
            ))
        }
    }
    let access = door.access(config)?;
    if !listen.ip().is_loopback() && access.is_open() {
        return Err(format!(
            "--listen {listen}: others can reach that address, so a password (DQ_BOARD_PASSWORD) or a \
             token (DQ_BOARD_TOKEN) is needed"
        ));
    }
    let reads_files = door.config.is_some()
        || door.audit_log.is_some()
        || servers.iter().any(|it| it.reads_files);
    Ok(Wish::Run(Box::new(Options {
        listen,
        prefix: door.prefix,
        hosts: door.hosts,
        access,
        alerts,
        audit_log: door.audit_log,
        store: door.store,
        servers,
        reads_files,
    })))
}

/// The server that the command line names.
fn one_server(place: Place, scope: Scope, prometheus: Option<Source>) -> Result<Shown, String> {
    Ok(Shown {
        name: None,
        prometheus,
        reads_files: place.reads_files(),
        target: place.target()?,
        scope: scope.checked()?,
    })
}

fn path(text: &str) -> Result<String, String> {
    let path = text.trim_end_matches('/');
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/-_.~".contains(letter);
    match path.is_empty() || (path.starts_with('/') && path.chars().all(plain)) {
        true => Ok(path.to_owned()),
        false => Err(format!("--prefix {text}: not a path such as /queues")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Options, String> {
        match parse(line.split_whitespace().map(OsString::from), |_| None)? {
            Wish::Run(options) => Ok(*options),
            _ => Err("no run".to_owned()),
        }
    }

    #[test]
    fn others_need_a_password() {
        for open in [
            "--listen 0.0.0.0:1",
            "--listen 192.168.0.1:80",
            "--listen [::]:80",
        ] {
            let refused = run(open).map(|_| ()).unwrap_err();
            assert!(refused.contains("DQ_BOARD_PASSWORD"), "{refused}");
            assert!(run(&format!("{open} --token 0123456789abcdef")).is_ok());
        }
        assert!(run("--listen [::1]:80").is_ok() && run("").is_ok());
        assert_eq!(run("").unwrap().access.open, Role::Look);
        let actions = run("--allow-actions --password x").unwrap().access;
        assert_eq!(
            (actions.open, actions.passwords[0].role),
            (Role::Operate, Role::Operate)
        );
    }

    #[test]
    fn a_token_that_could_be_guessed_is_refused() {
        assert!(run("--token 0123456789abcde").is_err());
        assert!(run("--token 0123456789abcdef").is_ok());
    }

    #[test]
    fn proxies_are_addresses_or_networks() {
        let access = run("--trusted-proxy 10.0.0.0/8 --trusted-proxy ::1")
            .unwrap()
            .access;
        assert!(access.is_proxy("10.3.3.3".parse().unwrap()));
        assert!(access.is_proxy("::1".parse().unwrap()));
        assert!(run("--trusted-proxy nonsense").is_err());
    }

    #[test]
    fn a_queue_has_one_database() {
        let refused = run("-n all --queue a").map(|_| ()).unwrap_err();
        assert!(refused.contains("-n with numbers"), "{refused}");
        assert!(run("-n 0,3 --queue a").is_ok() && run("-n all").is_ok());
    }

    #[test]
    fn a_prefix_is_a_path() {
        assert_eq!(run("--prefix /queues/").unwrap().prefix, "/queues");
        assert_eq!(run("--prefix /").unwrap().prefix, "");
        for wrong in ["queues", "/a\"b", "/a?b"] {
            assert!(run(&format!("--prefix {wrong}")).is_err(), "{wrong}");
        }
    }
}
