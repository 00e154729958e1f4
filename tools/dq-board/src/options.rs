//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;

use dq_watch::place::{next_name, text, Place, Wish};
use dq_watch::read::target::Target;
use dq_watch::read::Scope;

pub const HELP: &str = "\
dq-board: a monitor in the browser for the delay queues of a Redis or Valkey server with the dq module.

Usage: dq-board [options]

  --listen ADDRESS:PORT   the address to listen on (default 127.0.0.1:6390); any address but loopback
                          requires a password or a token
  --prefix /PATH          the path under which a reverse proxy serves it
  --allow-host NAME       another host name that browsers may use; needed only without a password
  --allow-actions         lets visitors change jobs and queues; the default is read-only
  --password PASSWORD     or DQ_BOARD_PASSWORD in the environment, where ps does not show it
  --token TOKEN           or DQ_BOARD_TOKEN: for programs, as Authorization: Bearer TOKEN

  -h HOST, -p PORT        the server (default 127.0.0.1:6379)
  -s SOCKET               its unix socket instead
  -u URL                  redis://[user:password@]host[:port], or unix:///path
  -a PASSWORD             or in the environment variable REDISCLI_AUTH
  --user USER, --pass PASSWORD
  --tls                   use TLS, as rediss:// does
  --cacert FILE           trust certificates signed by this CA instead of the system's
  --sentinel HOST:PORT[,HOST:PORT...] --master NAME [--sentinel-pass PASSWORD]
                          connect to the master that these sentinels name
  -n DB[,DB...] | all     databases to show (default 0)
  --cluster               all masters of the cluster; automatic if the server is part of one
  --no-cluster            only this node of the cluster
  --queue NAME            show only this queue, without searching; may be repeated
  --help, --version
";

pub struct Options {
    pub listen: SocketAddr,
    /// Empty, or with a slash before it and none behind.
    pub prefix: String,
    pub hosts: Vec<String>,
    pub allow_actions: bool,
    pub password: Option<String>,
    pub token: Option<String>,
    pub target: Target,
    pub scope: Scope,
}

/// `environment` looks up a variable.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Wish<Options>, String> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let mut place = Place::new(&environment);
    let mut scope = Scope::default();
    let mut listen = "127.0.0.1:6390".to_owned();
    let (mut prefix, mut hosts, mut allow_actions) = (String::new(), Vec::new(), false);
    let (mut password, mut token) = (set("DQ_BOARD_PASSWORD"), set("DQ_BOARD_TOKEN"));
    let mut parser = lexopt::Parser::from_iter(std::iter::once("dq-board".into()).chain(arguments));
    while let Some(name) = next_name(&mut parser)? {
        match name.as_str() {
            "--help" => return Ok(Wish::Help),
            "--version" => return Ok(Wish::Version),
            "--listen" => listen = text(&mut parser)?,
            "--prefix" => prefix = path(&text(&mut parser)?)?,
            "--allow-host" => hosts.push(text(&mut parser)?),
            "--allow-actions" => allow_actions = true,
            "--password" => password = Some(text(&mut parser)?),
            "--token" => token = Some(text(&mut parser)?),
            other if place.take(other, &mut parser)? || scope.take(other, &mut parser)? => {}
            other => return Err(format!("unknown option {other}")),
        }
    }
    let listen: SocketAddr = listen.parse().map_err(|_| {
        format!("--listen {listen}: not an address and port, such as 127.0.0.1:6390")
    })?;
    if !listen.ip().is_loopback() && password.is_none() && token.is_none() {
        return Err(format!(
            "--listen {listen}: others can reach that address, so a password (DQ_BOARD_PASSWORD) or a \
             token (DQ_BOARD_TOKEN) is needed"
        ));
    }
    Ok(Wish::Run(Box::new(Options {
        listen,
        prefix,
        hosts,
        allow_actions,
        password,
        token,
        target: place.target()?,
        scope: scope.checked()?,
    })))
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
            assert!(run(&format!("{open} --token x")).is_ok());
        }
        assert!(run("--listen [::1]:80").is_ok() && run("").is_ok());
        assert!(!run("").unwrap().allow_actions);
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
