//! The arguments, and the files that they name.

use std::net::SocketAddr;
use std::path::PathBuf;

use dq_connect::arguments::{password_of_environment, ShownArgs};
use dq_connect::secret::{self, variable};
use ipnet::IpNet;

use crate::config::{self, token_is_long, Alerts, Config, Shown};
use crate::core::access::{network, Access, Key, Role};

#[derive(clap::Args, Clone)]
pub struct Args {
    /// The address to listen on; any address but loopback requires a password, a token or users
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6390", value_parser = address)]
    listen: SocketAddr,
    /// The path under which a reverse proxy serves it
    #[arg(long, value_name = "/PATH", default_value = "", hide_default_value = true, value_parser = path)]
    prefix: String,
    /// Another host name that browsers may use; needed only without a password
    #[arg(long = "allow-host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Lets those who come in change jobs and queues; the default is read-only
    #[arg(long)]
    allow_actions: bool,
    /// The password of visitors: file:PATH, env:NAME or the password itself; by default that of DQ_BOARD_PASSWORD
    #[arg(long, value_name = "PASSWORD", allow_hyphen_values = true)]
    password: Option<String>,
    /// For programs, as Authorization: Bearer TOKEN; said as --password; by default that of DQ_BOARD_TOKEN
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    token: Option<String>,
    /// Passwords, tokens and users with their roles, alerts, more than one server: docs/board.md
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A proxy whose X-Forwarded-For counts, as 10.0.0.7 or 10.0.0.0/8; may be repeated
    #[arg(long = "trusted-proxy", value_name = "NET", value_parser = network)]
    proxies: Vec<IpNet>,
    /// Keeps what queues did, by minute for a day and by hour for a year, over restarts
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Appends a line of JSON for each action and each sign-in; opened again on SIGHUP
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    #[command(flatten)]
    shown: ShownArgs,
}

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

impl Args {
    /// What is asked for. Reads the files as they are now.
    pub fn options(&self) -> Result<Options, String> {
        let config = self.config.as_deref().map(config::read).transpose()?;
        let mut config = config.unwrap_or_default();
        let alerts = config.alerts.take();
        let servers = self.servers(&mut config)?;
        let access = self.access(config)?;
        if !self.listen.ip().is_loopback() && access.is_open() {
            return Err(format!(
                "--listen {}: others can reach that address, so a password (DQ_BOARD_PASSWORD) or a \
                 token (DQ_BOARD_TOKEN) is needed",
                self.listen
            ));
        }
        let secrets = [&self.password, &self.token];
        let mut secrets = secrets.into_iter().flatten();
        let reads_files = self.config.is_some()
            || self.audit_log.is_some()
            || secrets.any(|said| secret::path(said).is_some())
            || servers.iter().any(|it| it.reads_files);
        Ok(Options {
            listen: self.listen,
            prefix: self.prefix.clone(),
            hosts: self.hosts.clone(),
            access,
            alerts,
            audit_log: self.audit_log.clone(),
            store: self.store.clone(),
            servers,
            reads_files,
        })
    }

    /// Those of the file, or the one that the arguments name.
    fn servers(&self, config: &mut Config) -> Result<Vec<Shown>, String> {
        let servers = std::mem::take(&mut config.servers);
        if servers.is_empty() {
            let mut shown = Shown::of(&self.shown, password_of_environment())?;
            shown.prometheus = config.prometheus.take();
            return Ok(vec![shown]);
        }
        match self.shown == ShownArgs::default() {
            true => Ok(servers),
            false => Err(
                "options about the server belong into its [[board.server]] in the configuration, as there is one"
                    .to_owned(),
            ),
        }
    }

    fn access(&self, config: Config) -> Result<Access, String> {
        let role = match self.allow_actions {
            true => Role::Operate,
            false => Role::Look,
        };
        let key = |name: &str, said: &Option<String>, otherwise: &str| {
            let read = said.as_deref().map(|it| secret::read(it, variable));
            let read = read.transpose().map_err(|why| format!("--{name}: {why}"))?;
            let secret = read.or_else(|| variable(otherwise));
            let name = name.to_owned();
            Ok::<_, String>(secret.map(|secret| Key { name, secret, role }))
        };
        let mut access = Access {
            passwords: config.passwords,
            tokens: config.tokens,
            users: config.users,
            proxies: config.proxies,
            open: role,
        };
        let password = key("password", &self.password, "DQ_BOARD_PASSWORD")?;
        access.passwords.extend(password);
        let token = key("token", &self.token, "DQ_BOARD_TOKEN")?;
        token.iter().try_for_each(token_is_long)?;
        access.tokens.extend(token);
        access.proxies.extend(&self.proxies);
        Ok(access)
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse();
    address.map_err(|_| "not an address and port, such as 127.0.0.1:6390".to_owned())
}

fn path(text: &str) -> Result<String, String> {
    let path = text.trim_end_matches('/');
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/-_.~".contains(letter);
    match path.is_empty() || (path.starts_with('/') && path.chars().all(plain)) {
        true => Ok(path.to_owned()),
        false => Err("not a path such as /queues".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use dq_connect::arguments::parse;

    use super::*;

    fn run(line: &str) -> Result<Options, String> {
        parse::<Args>(line.split_whitespace())?.options()
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
    fn a_prefix_is_a_path() {
        assert_eq!(run("--prefix /queues/").unwrap().prefix, "/queues");
        assert_eq!(run("--prefix /").unwrap().prefix, "");
        for wrong in ["queues", "/a\"b", "/a?b"] {
            assert!(run(&format!("--prefix {wrong}")).is_err(), "{wrong}");
        }
    }
}
