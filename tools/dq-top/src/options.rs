//! The arguments.

use std::time::Duration;

use dq_connect::arguments::{password_of_environment, ShownArgs};
use dq_connect::scope::Scope;
use dq_connect::secret::variable;
use dq_connect::target::Target;
use dq_watch::model::board::Order;
use dq_watch::model::column::{Column, ALL};

#[derive(clap::Args, Clone)]
pub struct Args {
    /// Time between two readings
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Only queues whose name contains this; with * or ? a pattern
    #[arg(
        long,
        value_name = "PATTERN",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    filter: String,
    /// queue, delayed, ready, reserved, dead, blocked, done, added, delivered, acked, p50, p99, oldest, next, waiting,
    /// paused; trouble: what is red, then what is yellow, then the others [default: trouble; with --once: queue]
    #[arg(long, value_name = "COLUMN", value_parser = order)]
    sort: Option<By>,
    /// The other way round
    #[arg(long)]
    reverse: bool,
    /// Switch off all actions
    #[arg(long)]
    read_only: bool,
    /// No colors; as does the environment variable NO_COLOR
    #[arg(long)]
    no_color: bool,
    /// Read twice, print a table for scripts, and exit
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    shown: ShownArgs,
}

#[derive(Debug)]
pub struct Options {
    pub target: Target,
    pub scope: Scope,
    pub order: Order,
    pub read_only: bool,
    pub color: bool,
    pub once: bool,
}

/// What the rows are ordered by; None: trouble.
#[derive(Clone, Copy)]
struct By(Option<Column>);

impl Args {
    pub fn options(&self) -> Result<Options, String> {
        let (target, scope) = self.shown.target(password_of_environment())?;
        let by = self.sort.map(|By(column)| column);
        Ok(Options {
            target,
            scope: Scope {
                interval: self.interval,
                ..scope
            },
            order: Order {
                filter: self.filter.clone(),
                reversed: self.reverse,
                column: by.unwrap_or(self.once.then_some(Column::Queue)),
            },
            read_only: self.read_only,
            color: !self.no_color && variable("NO_COLOR").is_none(),
            once: self.once,
        })
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|seconds| (0.1..=3600.0).contains(seconds));
    let seconds = seconds.ok_or("not 0.1 to 3600 seconds".to_owned())?;
    Ok(Duration::from_secs_f64(seconds))
}

fn order(name: &str) -> Result<By, String> {
    match Column::named(name) {
        None if name == "trouble" => Ok(By(None)),
        None => Err(format!(
            "no column; there are {}, trouble",
            ALL.map(Column::name).join(", ")
        )),
        column => Ok(By(column)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Args as _;
    use dq_connect::arguments::parse;

    use super::*;

    fn run(line: &str) -> Result<Options, String> {
        parse::<Args>(line.split_whitespace())?.options()
    }

    #[test]
    fn what_is_asked_for() {
        let plain = run("").unwrap();
        assert!(!plain.read_only && !plain.once);
        let full = run("-n 3,1,3 --interval 0.5 --sort ready").unwrap();
        assert_eq!(full.scope.interval, Duration::from_millis(500));
        assert_eq!(full.order.column, Some(Column::Ready));
        assert_eq!(plain.order.column, None);
        assert_eq!(run("--sort trouble --once").unwrap().order.column, None);
        assert_eq!(run("--once").unwrap().order.column, Some(Column::Queue));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (wrong, says) in [
            ("--interval 0", "--interval 0: not 0.1"),
            ("--interval nan", "--interval nan: not 0.1"),
            ("--sort x", "--sort x: no column; there are queue, "),
            ("word", "one word too many"),
        ] {
            let said = run(wrong).unwrap_err();
            assert!(said.starts_with(says), "{said}");
        }
    }

    #[test]
    fn help_names_every_column() {
        let command = clap::Command::new("dq").disable_help_flag(true);
        let help = Args::augment_args(command).render_help().to_string();
        for column in ALL.into_iter().filter(|column| *column != Column::Trend) {
            assert!(help.contains(column.name()), "{column:?}");
        }
    }
}
