//! The program beside a server with dq. Each command is a crate; here is which there are, and how they end.

mod add;
mod cli;
mod config;
mod explain;
mod licenses;

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use dq_connect::arguments::sentence;
use dq_connect::output::print;

/// The program beside a Redis or Valkey server with dq, the delay queue.
#[derive(Parser)]
#[command(
    name = "dq",
    version,
    max_term_width = 110,
    args_override_self = true,
    disable_help_subcommand = true
)]
struct Words {
    /// Print help
    #[arg(long, global = true, action = ArgAction::Help)]
    help: Option<bool>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A server to develop with, and the board beside it
    Dev(dq_server::DevArgs),
    /// A server for a small machine
    ///
    /// Under systemd with Type=notify it is ready once it has loaded its data.
    Server(dq_server::ServerArgs),
    /// Adds a job to a queue, and prints its id
    #[command(
        after_help = "Exit status: 0 added, 1 a job of this id is there already, 2 any error."
    )]
    Add(add::Args),
    /// Commands by hand, as in redis-cli, with completion and help
    ///
    /// Tab completes names and options, `help DQ.ADD` explains a command, `exit` ends.
    #[command(after_help = "Exit status: 0 no command failed, 1 one did, 2 no connection.")]
    Cli(cli::Args),
    /// Says why a queue delivers nothing, or why it does not deliver a job
    #[command(after_help = "Exit status: 0 said, 1 there is no such queue or job, 2 any error.")]
    Explain(explain::Args),
    /// A monitor in the browser
    ///
    /// SIGHUP reads the files again that the arguments name; without any, it ends the program as SIGTERM does.
    Board(dq_board::Args),
    /// A monitor in the terminal
    Top(dq_top::Args),
    /// Takes jobs from queues and sends each to the URL of its queue by HTTP
    Http(dq_push::Args),
    /// Queues as tools for an assistant, by the Model Context Protocol, on standard input and output
    Mcp(dq_mcp::Args),
    /// Imports the delayed jobs of another queue into a dq queue, with their due times, or moves a dq queue
    ///
    /// Run it as often as you like: a ledger beside the queue lists the imported jobs, and none is imported twice, even
    /// if workers have finished it. The source is only read, unless you give --delete-source.
    Import(dq_import::Args),
    /// Reads an AOF and checks the history of the delay queues in it
    #[command(after_help = "Exit status: 0 no faults, 1 faults, 2 the file cannot be read.")]
    Audit(dq_audit::Args),
    /// Says how to start a worker, which is a library's
    Worker {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<String>,
    },
    /// Prints the licences of all that is in this program
    Licenses,
    /// Prints what makes a shell complete commands and options
    Completions { shell: Shell },
    /// Writes a man page for each command
    Man {
        /// Where to
        folder: PathBuf,
    },
}

/// All commands have the same --help, and -h for the host, as redis-cli has it.
fn words() -> clap::Command {
    fn only_long_help(command: clap::Command) -> clap::Command {
        let command = command.disable_help_flag(true);
        command.mut_subcommands(only_long_help)
    }
    let words = only_long_help(Words::command());
    words.mut_subcommands(config::with_option)
}

fn main() -> ExitCode {
    let parsed = match config::expand(env::args_os().collect(), &words()) {
        Ok(line) => words().try_get_matches_from(line),
        Err(error) => {
            let _ = writeln!(io::stderr(), "dq {error}");
            return 2.into();
        }
    };
    match parsed.and_then(|matches| Words::from_arg_matches(&matches)) {
        Ok(words) => run(&words.command),
        Err(error) if error.use_stderr() => {
            let known = |word: &String| words().find_subcommand(word).is_some();
            let command = env::args().nth(1).filter(known);
            let of = command.map_or("dq".to_owned(), |name| format!("dq {name}"));
            let _ = writeln!(
                io::stderr(),
                "{of}: {}\n({of} --help lists the options)",
                sentence(&error)
            );
            2.into()
        }
        // Help and version; a reader that has gone is no error.
        Err(error) => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
    }
}

/// 1 says what is not in order, if the command judges that, and 2 that it could not; else 1 is any error.
fn run(command: &Command) -> ExitCode {
    let (name, result, failure) = match command {
        Command::Dev(args) => ("dev", dq_server::dev(args).map(|()| true), 1),
        Command::Server(args) => ("server", dq_server::server(args).map(|()| true), 1),
        Command::Add(args) => ("add", add::run(args), 2),
        Command::Cli(args) => ("cli", cli::run(args), 2),
        Command::Explain(args) => ("explain", explain::run(args), 2),
        Command::Board(args) => ("board", dq_board::run(args).map(|()| true), 1),
        Command::Top(args) => ("top", dq_top::run(args).map(|()| true), 1),
        Command::Http(args) => ("http", dq_push::run(args).map(|()| true), 1),
        Command::Mcp(args) => ("mcp", dq_mcp::run(args).map(|()| true), 1),
        Command::Import(args) => ("import", dq_import::run(args), 2),
        Command::Audit(args) => ("audit", dq_audit::run(args), 2),
        Command::Worker { words } => ("worker", Err(worker(words)), 2),
        Command::Licenses => ("licenses", licenses::run().map(|()| true), 1),
        Command::Completions { shell } => ("completions", completions(*shell).map(|()| true), 1),
        Command::Man { folder } => ("man", man(folder).map(|()| true), 1),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => 1.into(),
        Err(error) => {
            // The server's own words, whichever command it refuses.
            let step = match error.contains("NOAUTH") {
                true => " (--user, --pass)",
                false => "",
            };
            let _ = writeln!(io::stderr(), "dq {name}: {error}{step}");
            failure.into()
        }
    }
}

fn worker(words: &[String]) -> String {
    let given = words.join(" ");
    let is_node = |word: &String| {
        word.split(':')
            .next()
            .is_some_and(|file| file.ends_with("js"))
    };
    let line = if words.iter().any(is_node) {
        format!("npx dq-worker {given}")
    } else if words.is_empty() {
        "python -m dq worker shop.jobs, or npx dq-worker shop/jobs.js".to_owned()
    } else {
        format!("python -m dq worker {given}, or npx dq-worker with a file such as shop/jobs.js")
    };
    format!("a worker runs your code, by the library of its language: {line}")
}

fn completions(shell: Shell) -> Result<(), String> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut words(), "dq", &mut text);
    print(&String::from_utf8_lossy(&text))
}

fn man(folder: &Path) -> Result<(), String> {
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(words(), folder));
    written.map_err(|error| format!("{}: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::words;

    /// With the same name, one option would silently have what was given to the other.
    #[test]
    fn options_of_a_command_have_names_of_their_own() {
        for command in words().get_subcommands() {
            let mut names: Vec<_> = command.get_arguments().map(|it| it.get_id()).collect();
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count, "{}", command.get_name());
        }
    }
}
