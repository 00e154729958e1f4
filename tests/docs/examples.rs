//! Sessions of redis-cli, run and compared.
//!
//! A block fenced as `redis-cli` (or `redis-cli -3`, for RESP3) is one session on an empty server:
//! lines `dq> COMMAND ...`, each followed by the reply as redis-cli prints it. In a reply any run of 12
//! or more digits (an instant, a token) stands for any other such run, and where it occurs in a later
//! command of its block, for the one that came. A line `...` stands for any lines. One fenced as
//! `redis-cli test-clock` is run on a server with the clock for tests.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{locate, Server};

const PROMPT: &str = "dq> ";
const LONG_RUN: usize = 12;
const TEST_CLOCK: &str = "test-clock";

struct Session<'a> {
    has_test_clock: bool,
    /// For redis-cli.
    options: Vec<&'a str>,
    exchanges: Vec<Exchange<'a>>,
}

struct Exchange<'a> {
    /// The number of the line in the file, from 1.
    line: usize,
    command: &'a str,
    reply: Vec<&'a str>,
}

fn sessions(text: &str) -> Vec<Session<'_>> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(fence) => {
                let mut words = fence.split_whitespace();
                inside = words.next() == Some("redis-cli");
                if inside {
                    let mut options: Vec<_> = words.collect();
                    let has_test_clock = options.contains(&TEST_CLOCK);
                    options.retain(|option| *option != TEST_CLOCK);
                    sessions.push(Session {
                        has_test_clock,
                        options,
                        exchanges: Vec::new(),
                    });
                }
            }
            None if inside => sessions
                .last_mut()
                .expect("a session began")
                .take(index + 1, line),
            None => {}
        }
    }
    sessions
}

impl<'a> Session<'a> {
    fn take(&mut self, line: usize, text: &'a str) {
        match (text.strip_prefix(PROMPT), self.exchanges.last_mut()) {
            (Some(command), _) => self.exchanges.push(Exchange {
                line,
                command,
                reply: Vec::new(),
            }),
            (None, Some(exchange)) => exchange.reply.push(text),
            (None, None) => panic!("line {line}: a session begins with {PROMPT}"),
        }
    }
}

/// A reply that is not the documented one.
#[derive(Debug)]
pub struct Difference {
    line: usize,
    command: String,
    documented: Vec<String>,
    came: Vec<String>,
}

pub struct Runner {
    server: Server,
    /// Its time stands still.
    test_server: Server,
    cli: PathBuf,
}

impl Runner {
    pub fn start() -> Runner {
        Runner {
            server: Server::start(),
            test_server: Server::builder().module_arguments("test-clock yes").start(),
            cli: cli(),
        }
    }

    pub fn differences(&self, text: &str) -> Vec<Difference> {
        let sessions = sessions(text);
        let differences = sessions.iter().flat_map(|session| self.run(session));
        differences.collect()
    }

    fn run(&self, session: &Session) -> Vec<Difference> {
        let server = match session.has_test_clock {
            true => &self.test_server,
            false => &self.server,
        };
        self.ask(server, "FLUSHALL", &[]);
        let mut real = HashMap::new();
        let mut differences = Vec::new();
        for exchange in &session.exchanges {
            let command = with_runs(exchange.command, |run| {
                real.get(run).map_or(run, String::as_str).to_owned()
            });
            let came = self.ask(server, &command, &session.options);
            if fits(&exchange.reply, &came) {
                learn(&exchange.reply, &came, &mut real);
            } else {
                differences.push(Difference {
                    line: exchange.line,
                    command,
                    documented: exchange.reply.iter().map(ToString::to_string).collect(),
                    came,
                });
            }
        }
        differences
    }

    /// What redis-cli prints, line by line, without spaces at the end, and without the times that it adds
    /// to what takes long.
    fn ask(&self, server: &Server, command: &str, options: &[&str]) -> Vec<String> {
        let mut cli = Command::new(&self.cli)
            .args(["-p", &server.port().to_string(), "--no-raw"])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", self.cli.display()));
        let mut input = cli.stdin.take().expect("a pipe");
        writeln!(input, "{command}").expect("redis-cli reads");
        drop(input);
        let output = cli.wait_with_output().expect("redis-cli ends");
        let text = String::from_utf8(output.stdout).expect("redis-cli escapes what is no text");
        let is_time = |line: &str| {
            let seconds = line.strip_prefix('(').and_then(|l| l.strip_suffix("s)"));
            seconds.is_some_and(|seconds| seconds.parse::<f64>().is_ok())
        };
        let lines = text.lines().filter(|line| !is_time(line));
        lines.map(|line| line.trim_end().to_owned()).collect()
    }
}

/// Beside the server, or in PATH.
fn cli() -> PathBuf {
    let server = locate::server_binary();
    let beside = server.parent().map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = beside.into_iter().chain(env::split_paths(&path)).collect();
    ["redis-cli", "valkey-cli"]
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|cli| cli.is_file())
        .expect("redis-cli, beside the server or in PATH")
}

/// The text with each long run of digits replaced.
fn with_runs(text: &str, mut replace: impl FnMut(&str) -> String) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from_run) = rest.split_at(start);
        let len = from_run
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(from_run.len());
        let (run, after) = from_run.split_at(len);
        result.push_str(before);
        if len >= LONG_RUN {
            result.push_str(&replace(run));
        } else {
            result.push_str(run);
        }
        rest = after;
    }
    result + rest
}

fn runs(text: &str) -> Vec<String> {
    let mut runs = Vec::new();
    with_runs(text, |run| {
        runs.push(run.to_owned());
        String::new()
    });
    runs
}

fn line_fits(documented: &str, came: &str) -> bool {
    let pattern = |text: &str| with_runs(text, |_| "#".into());
    pattern(documented) == pattern(came)
}

fn fits(documented: &[&str], came: &[String]) -> bool {
    match (documented.split_first(), came.split_first()) {
        (None, None) => true,
        (Some((&"...", rest)), _) => (0..=came.len()).any(|left_out| fits(rest, &came[left_out..])),
        (Some((line, rest)), Some((first, came))) => line_fits(line, first) && fits(rest, came),
        _ => false,
    }
}

/// Which real number a documented one stands for. What follows a `...` is not looked at.
fn learn(documented: &[&str], came: &[String], real: &mut HashMap<String, String>) {
    for (documented, came) in documented.iter().zip(came) {
        if *documented == "..." {
            return;
        }
        real.extend(runs(documented).into_iter().zip(runs(came)));
    }
}

fn report(differences: &[Difference]) -> String {
    let shown = differences.iter().map(|difference| {
        let Difference {
            line,
            command,
            documented,
            came,
        } = difference;
        format!(
            "docs/commands.md:{line}: {command}\n documented:\n  {}\n came:\n  {}\n",
            documented.join("\n  "),
            came.join("\n  ")
        )
    });
    shown.collect()
}

#[test]
fn all_are_true() {
    let (runner, text) = (Runner::start(), crate::text());
    assert!(sessions(&text).len() >= 20, "an example for each command");
    let differences = runner.differences(&text);
    if env::var_os("DQ_DOCS").is_some_and(|what| what == "write") {
        return fs::write(crate::path(), corrected(&text, &differences)).expect("written");
    }
    assert!(differences.is_empty(), "{}", report(&differences));
}

/// The file with the replies that came.
fn corrected(text: &str, differences: &[Difference]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for difference in differences.iter().rev() {
        let (from, len) = (difference.line, difference.documented.len());
        lines.splice(from..from + len, difference.came.iter().cloned());
    }
    lines.join("\n") + "\n"
}

#[test]
fn flows_are_true() {
    let path = crate::support::root().join("docs/flows.md");
    let text = fs::read_to_string(path).expect("docs/flows.md");
    assert!(sessions(&text).len() >= 4);
    let differences = Runner::start().differences(&text);
    assert!(differences.is_empty(), "{}", report(&differences));
}

/// What the comparison must notice, and what it must not mind.
#[test]
fn a_wrong_reply_is_noticed() {
    let runner = Runner::start();
    let session = |reply: &str| {
        let text =
            format!("```redis-cli\ndq> DQ.ADD q a x\n{reply}\ndq> DQ.LEN q\n(integer) 1\n```");
        runner.differences(&text).len()
    };
    assert_eq!(session("\"a\""), 0);
    assert_eq!(session("..."), 0);
    for wrong in ["\"b\"", "\"a\"\n\"a\"", "(nil)", "\"a\" ", ""] {
        assert_eq!(session(wrong), 1, "{wrong:?} instead of \"a\"");
    }
    let numbers = |due: &str, ttr: &str| {
        let text = format!(
            "```redis-cli -3\ndq> DQ.ADD q a x TTR 1000\n\"a\"\ndq> DQ.GET q a\n...\n \
             5# \"due\" => (integer) {due}\n...\n 7# \"ttr\" => (integer) {ttr}\n...\n```"
        );
        runner.differences(&text).len()
    };
    assert_eq!(numbers("999999999999", "1000"), 0, "{}", "instants differ");
    assert_eq!(numbers("1795158742318", "1001"), 1);
    assert_eq!(numbers("99999999999", "1000"), 1);
    assert_eq!(numbers("-1795158742318", "1000"), 1);
    let stale = "```redis-cli\ndq> DQ.ADD q a x\n\"a\"\ndq> DQ.POP q NOACK\n...\ndq> DQ.LEN q\n(integer) 1\n```";
    assert_eq!(runner.differences(stale).len(), 1);
}

/// A token in a documented command means the one that the example got.
#[test]
fn numbers_are_carried_on() {
    let text = "```redis-cli\ndq> DQ.ADD q a x\n\"a\"\ndq> DQ.POP q\n1) \"a\"\n2) \"x\"\n\
                3) \"1111111111111111111\"\n4) (integer) 1\n5) (integer) 2222222222222\n\
                dq> DQ.ACK q WITHTOKENS a 1111111111111111112\n(integer) 0\n\
                dq> DQ.ACK q WITHTOKENS a 1111111111111111111\n(integer) 1\n```";
    let differences = Runner::start().differences(text);
    assert!(differences.is_empty(), "{}", report(&differences));
}
