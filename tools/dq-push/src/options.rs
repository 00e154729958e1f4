//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use dq_watch::place::{next_name, text, told, Place, Wish};
use dq_watch::read::target::Target;
use lexopt::ValueExt;

pub const HELP: &str = "\
dq-push: takes jobs from delay queues and sends each to the URL of its queue by HTTP.

Usage: dq-push --config FILE [options]

  --config FILE           the queues and their URLs: docs/push.md
  --check                 check the file and exit
  --metrics ADDRESS:PORT  /metrics for Prometheus, and /healthz

  -h HOST, -p PORT        the server (default 127.0.0.1:6379)
  -s SOCKET               its unix socket instead
  -u URL                  redis[s]://[user:password@]host[:port], or unix:///path
  -a PASSWORD             or in the environment variable REDISCLI_AUTH
  --user USER, --pass PASSWORD
  --tls                   use TLS
  --cacert FILE           trust certificates signed by this CA instead of the system's
  --sentinel HOST:PORT[,HOST:PORT...] --master NAME [--sentinel-pass PASSWORD]
                          connect to the master that these sentinels name
  -n DB                   the database (default 0)
  --help, --version
";

pub struct Options {
    pub config: PathBuf,
    pub check: bool,
    pub metrics: Option<SocketAddr>,
    pub target: Target,
    pub db: i64,
}

/// `environment` looks up a variable.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Wish<Options>, String> {
    let mut place = Place::new(&environment);
    let (mut config, mut check, mut metrics, mut db) = (None, false, None, 0);
    let mut parser = lexopt::Parser::from_iter(std::iter::once("dq-push".into()).chain(arguments));
    while let Some(name) = next_name(&mut parser)? {
        match name.as_str() {
            "--help" => return Ok(Wish::Help),
            "--version" => return Ok(Wish::Version),
            "--config" => config = Some(PathBuf::from(parser.value().map_err(told)?)),
            "--check" => check = true,
            "--metrics" => metrics = Some(address(&text(&mut parser)?)?),
            "-n" => {
                let number: u32 = parser.value().map_err(told)?.parse().map_err(told)?;
                db = i64::from(number);
            }
            other if place.take(other, &mut parser)? => {}
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(Wish::Run(Box::new(Options {
        config: config.ok_or("--config FILE is needed")?,
        check,
        metrics,
        target: place.target()?,
        db,
    })))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let at = |text: &str| text.parse::<SocketAddr>().ok();
    let address = at(text).or_else(|| at(&format!("127.0.0.1:{}", text.trim_start_matches(':'))));
    address
        .ok_or_else(|| format!("--metrics {text}: not an address and port, such as 127.0.0.1:9110"))
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
    fn what_is_said() {
        let options = run("--config a.toml -p 7000 -n 3 --metrics 9110").unwrap();
        assert_eq!(
            (options.db, options.target.name().as_str()),
            (3, "127.0.0.1:7000")
        );
        assert_eq!(
            options.metrics,
            "127.0.0.1:9110".parse().ok(),
            "loopback by itself"
        );
        assert_eq!(
            run("--config a --metrics 0.0.0.0:1").unwrap().metrics,
            "0.0.0.0:1".parse().ok()
        );
        for wrong in [
            "",
            "--config",
            "--config a -n all",
            "--config a --metrics x",
            "--config a --queue b",
        ] {
            assert!(run(wrong).is_err(), "{wrong}");
        }
    }
}
