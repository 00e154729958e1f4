//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use dq_watch::model::board::Order;
use dq_watch::model::column::{Column, ALL};
use dq_watch::place::{next_name, text, Place, Wish};
use dq_watch::read::target::Target;
use dq_watch::read::Scope;

pub const HELP: &str = "\
dq-top: a monitor in the terminal for the delay queues of a Redis or Valkey server with the dq module.

Usage: dq-top [options]

  -h HOST, -p PORT        the server (default 127.0.0.1:6379)
  -s SOCKET               its unix socket instead
  -u URL                  redis://[user:password@]host[:port], or unix:///path
  -a PASSWORD             or in the environment variable REDISCLI_AUTH, where ps does not show it
  --user USER, --pass PASSWORD
  --tls                   use TLS, as rediss:// does
  --cacert FILE           trust certificates signed by this CA instead of the system's
  --sentinel HOST:PORT[,HOST:PORT...] --master NAME [--sentinel-pass PASSWORD]
                          connect to the master that these sentinels name
  -n DB[,DB...] | all     databases to show (default 0)
  --cluster               all masters of the cluster; automatic if the server is part of one
  --no-cluster            only this node of the cluster
  --queue NAME            show only this queue, without searching; may be repeated
  --interval SECONDS      time between two readings (default 1)
  --filter PATTERN        only queues whose name contains this; with * or ? a pattern
  --sort COLUMN           queue delayed ready reserved dead blocked done added delivered acked p50
                          p99 oldest next waiting paused; trouble: what is red, then what is
                          yellow, then the others, as without --sort (with --once: queue)
  --reverse
  --read-only             switch off all actions
  --no-color              as does the environment variable NO_COLOR
  --once                  read twice, print a table for scripts, and exit
  --help, --version
";

#[derive(Debug)]
pub struct Options {
    pub target: Target,
    pub scope: Scope,
    pub order: Order,
    pub read_only: bool,
    pub color: bool,
    pub once: bool,
}

/// `environment` looks up a variable.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Wish<Options>, String> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let mut place = Place::new(&environment);
    let mut scope = Scope::default();
    let mut order = Order::default();
    let mut sort = None;
    let (mut read_only, mut once, mut color) = (false, false, set("NO_COLOR").is_none());
    let mut parser = lexopt::Parser::from_iter(std::iter::once("dq-top".into()).chain(arguments));
    while let Some(name) = next_name(&mut parser)? {
        match name.as_str() {
            "--help" => return Ok(Wish::Help),
            "--version" => return Ok(Wish::Version),
            "--interval" => scope.interval = interval(&text(&mut parser)?)?,
            "--filter" => order.filter = text(&mut parser)?,
            "--sort" => sort = Some(column(&text(&mut parser)?)?),
            "--reverse" => order.reversed = true,
            "--read-only" => read_only = true,
            "--no-color" => color = false,
            "--once" => once = true,
            other if place.take(other, &mut parser)? || scope.take(other, &mut parser)? => {}
            other => return Err(format!("unknown option {other}")),
        }
    }
    let scope = scope.checked()?;
    order.column = sort.unwrap_or(once.then_some(Column::Queue));
    let target = place.target()?;
    Ok(Wish::Run(Box::new(Options {
        target,
        scope,
        order,
        read_only,
        color,
        once,
    })))
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|seconds| (0.1..=3600.0).contains(seconds));
    let seconds = seconds.ok_or_else(|| format!("--interval {text}: not 0.1 to 3600 seconds"))?;
    Ok(Duration::from_secs_f64(seconds))
}

fn column(name: &str) -> Result<Option<Column>, String> {
    let known = || ALL.map(Column::name).join(", ");
    match Column::named(name) {
        None if name == "trouble" => Ok(None),
        None => Err(format!(
            "--sort {name}: no column; there are {}, trouble",
            known()
        )),
        column => Ok(column),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dq_watch::read::Dbs;

    fn run(line: &str) -> Result<Options, String> {
        let arguments = line.split_whitespace().map(OsString::from);
        let environment =
            |name: &str| (name == "REDISCLI_AUTH").then(|| "from-environment".to_owned());
        match parse(arguments, environment)? {
            Wish::Run(options) => Ok(*options),
            other => Err(format!("{other:?}")),
        }
    }

    fn login(options: &Options) -> (Option<String>, Option<String>) {
        let login = options.target.info().redis_settings();
        (
            login.username().map(str::to_owned),
            login.password().map(str::to_owned),
        )
    }

    #[test]
    fn options_are_those_of_redis_cli() {
        let plain = run("").unwrap();
        assert_eq!(plain.target.name(), "127.0.0.1:6379");
        assert_eq!(login(&plain), (None, Some("from-environment".into())));
        assert!(plain.color && !plain.read_only && !plain.once);
        let full = run("-h ::1 -p 7000 --user ann -a secret -n 3,1,3 --interval 0.5 --sort ready")
            .unwrap();
        assert_eq!(full.target.name(), "::1:7000");
        assert_eq!(login(&full), (Some("ann".into()), Some("secret".into())));
        assert_eq!(full.scope.dbs, Dbs::These(vec![1, 3]));
        assert_eq!(full.scope.interval, Duration::from_millis(500));
        assert_eq!(full.order.column, Some(Column::Ready));
        assert_eq!(run("").unwrap().order.column, None);
        assert_eq!(run("--sort trouble --once").unwrap().order.column, None);
        assert_eq!(run("--once").unwrap().order.column, Some(Column::Queue));
        assert_eq!(run("-s /tmp/x.sock").unwrap().target.name(), "/tmp/x.sock");
        let url = run("-u redis://bob:other@db.example:7001 -p 7002").unwrap();
        assert_eq!(
            url.target.name(),
            "db.example:7002",
            "a later option counts"
        );
        assert_eq!(login(&url).0, Some("bob".into()));
        assert_eq!(run("-n all").unwrap().scope.dbs, Dbs::All);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            "--nonsense",
            "-p 99999",
            "-n x",
            "--interval 0",
            "--interval nan",
            "--sort x",
            "-h",
            "word",
            "-u http://x",
            "-n all --queue q",
        ] {
            assert!(run(wrong).is_err(), "{wrong}");
        }
        for port in ["abc", "99999", "0", "-1"] {
            let said = run(&format!("-p {port}")).unwrap_err();
            assert!(said.starts_with(&format!("-p {port}: ")), "{said}");
        }
    }

    #[test]
    fn help_names_every_column() {
        for column in ALL.into_iter().filter(|column| *column != Column::Trend) {
            assert!(HELP.contains(column.name()), "{column:?}");
        }
        assert!(run("--help").is_err_and(|wish| wish == "Help"));
    }
}
