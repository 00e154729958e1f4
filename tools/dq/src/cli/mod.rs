//! `dq cli`: commands by hand, as in redis-cli, where there is none. What the server says of its commands completes and
//! explains them.

mod docs;
mod shown;
mod words;

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use dq_connect::arguments::{password_of_environment, ServerArgs};
use dq_connect::link::{told, PATIENCE};
use dq_connect::output::print;
use dq_connect::secret::variable;
use dq_connect::target::Target;
use redis::{Connection, ConnectionLike, Value};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use docs::Docs;

/// A command that waits may: BPOP's timeout, or Ctrl-C, ends it.
const FOREVER: Option<Duration> = None;
/// Lines of these stay out of the history.
const SECRET: [&str; 4] = ["AUTH", "HELLO", "ACL", "CONFIG"];

#[derive(clap::Args)]
pub struct Args {
    /// A command, which is sent, and nothing else; by default those that are typed, or the lines of standard input
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Whether no command that was given, or came by standard input, has failed.
pub fn run(args: &Args) -> Result<bool, String> {
    let target = args.server.target(password_of_environment())?;
    let mut session = Session {
        connection: open(&target)?,
        target,
        is_raw: !io::stdout().is_terminal(),
    };
    if !args.command.is_empty() {
        let words: Vec<_> = args
            .command
            .iter()
            .map(|it| it.clone().into_bytes())
            .collect();
        return session.send(&words);
    }
    if io::stdin().is_terminal() {
        return session.by_hand().map(|()| true);
    }
    let mut is_well = true;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        is_well &= session.line(&line)?;
    }
    Ok(is_well)
}

fn open(target: &Target) -> Result<Connection, String> {
    let connection = target.open(target.db(), PATIENCE)?;
    let unlimited = connection.set_read_timeout(FOREVER);
    unlimited.map_err(|error| error.to_string())?;
    Ok(connection)
}

struct Session {
    target: Target,
    connection: Connection,
    is_raw: bool,
}

impl Session {
    fn by_hand(&mut self) -> Result<(), String> {
        let wrong = |error: ReadlineError| error.to_string();
        let config = Config::builder().completion_type(rustyline::CompletionType::List);
        let config = config.history_ignore_space(true).build();
        let mut editor: Editor<Docs, FileHistory> = Editor::with_config(config).map_err(wrong)?;
        editor.set_helper(Some(Docs::of(&mut self.connection)));
        let history = variable("HOME").map(|home| PathBuf::from(home).join(".dq_history"));
        // The first time there is none.
        let _ = history.as_ref().map(|path| editor.load_history(path));
        loop {
            match editor.readline(&format!("{}> ", self.target.name())) {
                Ok(line) if matches!(line.trim(), "exit" | "quit") => break,
                Ok(line) => {
                    let first = line.split_whitespace().next().unwrap_or_default();
                    if !SECRET.contains(&first.to_uppercase().as_str()) {
                        let _ = editor.add_history_entry(&line);
                    }
                    match line.trim().split_once(' ') {
                        Some((word, command)) if word.eq_ignore_ascii_case("help") => {
                            let known = editor.helper().and_then(|docs| docs.help(command));
                            print(
                                &known.unwrap_or_else(|| format!("(error) no command {command}\n")),
                            )?;
                        }
                        _ => drop(self.line(&line)?),
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(wrong(error)),
            }
        }
        // A home that cannot be written is no reason to complain.
        let _ = history.map(|path| editor.save_history(&path));
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<bool, String> {
        match words::split(line) {
            Some(words) if words.is_empty() => Ok(true),
            Some(words) => self.send(&words),
            None => print("(error) unbalanced quotes\n").map(|()| false),
        }
    }

    fn send(&mut self, words: &[Vec<u8>]) -> Result<bool, String> {
        let mut command = redis::Cmd::new();
        command.arg(words);
        let reply = match self.connection.req_command(&command) {
            Err(error) if error.is_io_error() || error.is_connection_dropped() => {
                // Whether it has arrived is unknown, so it is not sent again.
                let lost = told(&error, PATIENCE);
                self.connection = open(&self.target).map_err(|why| format!("{lost}; {why}"))?;
                print(&format!("(error) {lost}; connected again\n"))?;
                return Ok(false);
            }
            Err(error) => {
                print(&format!("(error) {}\n", told(&error, PATIENCE)))?;
                return Ok(false);
            }
            Ok(reply) => reply,
        };
        print(&shown::reply(&reply, self.is_raw))?;
        Ok(!matches!(reply, Value::ServerError(_)))
    }
}
