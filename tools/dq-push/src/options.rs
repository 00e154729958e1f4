//! The arguments.

use std::net::SocketAddr;
use std::path::PathBuf;

use dq_connect::arguments::{password_of_environment, ServerArgs};
use dq_connect::target::Target;

#[derive(clap::Args, Clone)]
pub struct Args {
    /// The queues and their URLs: docs/push.md; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Check the file and exit
    #[arg(long)]
    pub check: bool,
    /// /metrics for Prometheus, and /healthz
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub metrics: Option<SocketAddr>,
    /// The database [default: the URL's, or 0]
    #[arg(short = 'n', value_name = "DB")]
    db: Option<u32>,
    #[command(flatten)]
    server: ServerArgs,
}

impl Args {
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
            ("", "missing: --config <FILE>"),
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
