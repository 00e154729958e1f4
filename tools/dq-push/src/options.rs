//! The arguments.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use dq_connect::arguments::{password_of_environment, ServerArgs};
use dq_connect::target::Target;

use crate::config::Config;

#[derive(clap::Args, Clone)]
pub struct Args {
    /// Queues whose jobs are called, and tokens for those who add jobs: docs/http.md; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the file and exit
    #[arg(long, requires = "config")]
    pub check: bool,
    /// Where jobs are taken; any address but loopback requires tokens [default: 127.0.0.1:6391, if the file has tokens
    /// or there is none]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Print a new token and its hash, and exit
    #[arg(long, exclusive = true)]
    pub new_token: bool,
    /// Appends a line of JSON for each request that is refused; opened again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub audit_log: Option<PathBuf>,
    /// /metrics for Prometheus, and /healthz
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub metrics: Option<SocketAddr>,
    /// The database [default: the URL's, or 0]
    #[arg(short = 'n', value_name = "DB")]
    db: Option<u32>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Where jobs are taken unless something else is said.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6391);

impl Args {
    /// What the file says now.
    pub fn configuration(&self) -> Result<Config, String> {
        self.config
            .as_deref()
            .map_or_else(|| Ok(Config::default()), Config::read)
    }

    /// Where jobs are taken, if they are, and whether everybody there may send them.
    pub fn listen(&self, config: &Config) -> Result<Option<(SocketAddr, bool)>, String> {
        let is_open = config.tokens.is_empty();
        let address = match self.listen {
            Some(address) => address,
            None if is_open && !config.queues.is_empty() => return Ok(None),
            None => LISTEN,
        };
        match is_open && !address.ip().is_loopback() {
            true => Err(format!(
                "--listen {address}: others can reach that address, so [[http.token]] is needed in --config"
            )),
            false => Ok(Some((address, is_open))),
        }
    }

    /// The server, and the database of the queues.
    pub fn place(&self) -> Result<(Target, u32), String> {
        let target = self.server.target(password_of_environment())?;
        let db = self.db.unwrap_or(target.db());
        Ok((target, db))
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let at = |text: &str| text.parse::<SocketAddr>().ok();
    let address = at(text).or_else(|| at(&format!("127.0.0.1:{}", text.trim_start_matches(':'))));
    address.ok_or("not an address and port, such as 127.0.0.1:9110".to_owned())
}

#[cfg(test)]
mod tests {
    use dq_connect::arguments::parse;

    use super::*;

    fn run(line: &str) -> Result<Args, String> {
        parse(line.split_whitespace())
    }

    #[test]
    fn off_loopback_tokens_are_needed() {
        let listen = |line: &str| {
            let args = run(line).unwrap();
            args.listen(&Config::default())
        };
        let at = |text: &str| text.parse().ok().map(|address: SocketAddr| (address, true));
        assert_eq!(listen(""), Ok(at("127.0.0.1:6391")));
        assert_eq!(listen("--listen 7000"), Ok(at("127.0.0.1:7000")));
        let text = "[[http.queue]]\nname = \"q\"\nurl = \"https://example.com/\"";
        let calls = Config::parse(text, |_| None).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(run("").unwrap().listen(&calls), Ok(None), "it only calls");
        for open in ["0.0.0.0:1", "[::]:80", "192.168.0.1:80"] {
            let said = listen(&format!("--listen {open}")).unwrap_err();
            assert!(said.contains("[[http.token]]"), "{said}");
        }
    }

    #[test]
    fn what_is_said() {
        let arguments = run("--config a.toml -p 7000 -n 3 --metrics 9110").unwrap();
        let (target, db) = arguments.place().unwrap();
        assert_eq!((db, target.name().as_str()), (3, "127.0.0.1:7000"));
        let url = run("--config a.toml -u redis://b/5").unwrap();
        assert_eq!(url.place().unwrap().1, 5);
        assert_eq!(
            arguments.metrics,
            "127.0.0.1:9110".parse().ok(),
            "loopback by itself"
        );
        assert_eq!(
            run("--config a --metrics 0.0.0.0:1").unwrap().metrics,
            "0.0.0.0:1".parse().ok()
        );
        for (wrong, says) in [
            ("--check", "missing: --config <FILE>"),
            ("--config", "--config needs a value"),
            ("--config a -n all", "-n all: "),
            ("--config a --metrics x", "--metrics x: not an address"),
            ("--config a --queue b", "unknown option --queue"),
        ] {
            let said = run(wrong).map(|_| ()).unwrap_err();
            assert!(said.starts_with(says), "{wrong}: {said}");
        }
    }
}
