//! `dq dev`: a server to develop with, and the board beside it.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use dq_connect::output::print;
use rustix::process::{kill_process, Pid, Signal};

use crate::child::{ending_with_this, lines, Over, Running};
use crate::find::{self, First, Found};
use crate::folder::{refused, Folder};

/// The first that is tried if none is named.
const PORT: u16 = 6379;
const BOARD_PORT: u16 = 6390;
/// What the server says goes here, beside its data.
const LOG: &str = "server.log";

#[derive(clap::Args)]
pub struct Args {
    /// The port on 127.0.0.1; by default the first free one from 6379 on
    #[arg(short = 'p', long, value_name = "PORT", value_parser = dq_connect::arguments::port)]
    port: Option<u16>,
    /// Where the data is kept
    #[arg(long, value_name = "FOLDER", default_value = "dq-data")]
    dir: PathBuf,
    /// Keeps nothing: the data is gone when the server ends
    #[arg(long, conflicts_with = "dir")]
    ephemeral: bool,
    /// The module's clock stands still but for DQ.CLOCK: for tests of what happens in thirty days
    #[arg(long)]
    test_clock: bool,
    /// No board beside it
    #[arg(long)]
    no_board: bool,
    /// Prints the paths of the server program and of the module that it would run, and runs nothing
    #[arg(long)]
    which: bool,
    #[command(flatten)]
    found: find::ProgramArgs,
}

/// Runs until the server ends, which a signal makes it do once it has saved.
pub fn run(args: &Args) -> Result<(), String> {
    let found = args.found.find(First::Packed)?;
    if args.which {
        let paths = [&found.server, &found.module].map(|it| it.display().to_string());
        return print(&format!("{}\n", paths.join("\n")));
    }
    let mut folder = match args.ephemeral {
        true => Folder::temporary()?,
        false => Folder::take(&args.dir)?,
    };
    let path = folder.path.join(LOG);
    let log = OpenOptions::new().create(true).append(true).open(&path);
    let mut log = log.map_err(|error| refused(&path, &error))?;
    let Some((port, server)) = start(args, &found, &mut folder, &mut log)? else {
        return Ok(());
    };
    let board = match args.no_board {
        true => None,
        false => board(port),
    };
    greet(args, &found, port, board.as_ref());
    let ended = server.until_over(|line| write(&mut log, line));
    if let Some(Board { child, .. }) = board {
        end(child);
    }
    match ended {
        Some(status) if !status.success() => Err(format!(
            "the server ended ({status}); the end of its log is in {}",
            path.display()
        )),
        _ => Ok(()),
    }
}

/// A server that is ready, or none if this program was asked to end.
fn start(
    args: &Args,
    found: &Found,
    folder: &mut Folder,
    log: &mut File,
) -> Result<Option<(u16, Running)>, String> {
    let mut from = PORT;
    loop {
        let port = match args.port {
            Some(port) => port,
            None => free_port(from).ok_or("no port is free: name one, --port PORT")?,
        };
        let server = Running::start(&mut command(args, found, folder, port), &folder.lock)?;
        folder.name(server.id());
        match (
            server.until_ready(|line| write(log, line)),
            port.checked_add(1),
        ) {
            (Ok(()), _) => return Ok(Some((port, server))),
            (Err(Over::Asked), _) => return Ok(None),
            (Err(Over::Failed(why)), _) if args.ephemeral => return Err(why),
            (Err(Over::Failed(why)), _) => {
                let log = folder.path.join(LOG);
                return Err(format!("{why}; its log is {}", log.display()));
            }
            // Another program was faster.
            (Err(Over::PortTaken), Some(next)) if args.port.is_none() => from = next,
            (Err(Over::PortTaken), _) => {
                return Err(format!(
                    "port {port} is taken: name another one, or none for the next that is free"
                ))
            }
        }
    }
}

/// Where nobody listens now.
fn free_port(from: u16) -> Option<u16> {
    (from..=u16::MAX).find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
}

fn command(args: &Args, found: &Found, folder: &Folder, port: u16) -> Command {
    let mut command = Command::new(&found.server);
    command.args([
        "--bind",
        "127.0.0.1",
        "--port",
        &port.to_string(),
        "--logfile",
        "",
        "--daemonize",
        "no",
    ]);
    command.arg("--dir").arg(&folder.path).args(["--save", ""]);
    match args.ephemeral {
        true => command.args(["--appendonly", "no"]),
        false => command.args(["--appendonly", "yes", "--appendfsync", "everysec"]),
    };
    command.args(["--maxmemory-policy", "noeviction", "--loadmodule"]);
    command.arg(&found.module);
    if args.test_clock {
        command.args(["test-clock", "yes"]);
    }
    command
}

fn write(log: &mut File, line: &str) {
    // A full disk is for the server to complain of.
    let _ = writeln!(log, "{line}");
}

struct Board {
    child: Child,
    link: String,
}

/// The board as a program of its own: what befalls it is none of the server's business, nor what is printed here. At its
/// own port, or at any other if that is taken.
fn board(port: u16) -> Option<Board> {
    let first = board_at(BOARD_PORT, port, Stdio::null());
    first.or_else(|| board_at(0, port, Stdio::inherit()))
}

fn board_at(listen: u16, port: u16, errors: Stdio) -> Option<Board> {
    let mut command = Command::new(env::current_exe().ok()?);
    command.args(["board", "-p", &port.to_string(), "--allow-actions"]);
    command.args(["--listen", &format!("127.0.0.1:{listen}")]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors);
    let mut child = ending_with_this(&mut command, None).spawn().ok()?;
    let out = child.stdout.take();
    let first = out.and_then(|out| lines(BufReader::new(out)).next());
    let link = first
        .as_deref()
        .and_then(|line| line.split(' ').find(|word| word.starts_with("http://")));
    match link {
        Some(link) => Some(Board {
            link: link.to_owned(),
            child,
        }),
        None => {
            end(child);
            None
        }
    }
}

fn end(mut child: Child) {
    // It may have ended before.
    let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    let _ = child.wait();
}

fn greet(args: &Args, found: &Found, port: u16, board: Option<&Board>) {
    let url = format!("redis://127.0.0.1:{port}");
    println!("{found} is ready.\n");
    println!("  server   {url}");
    if let Some(board) = board {
        println!("  board    {}", board.link);
    }
    match args.ephemeral {
        true => println!("  data     none is kept"),
        false => println!("  data     {}, and the server's log", args.dir.display()),
    }
    println!("\nCtrl-C ends it.{}", hints(&url, port));
}

/// Three lines to paste for each language; in a shell with this program, as there may be no other.
fn hints(url: &str, port: u16) -> String {
    let hints = include_str!("hints.txt");
    let program = env::args_os().next().unwrap_or_else(|| "dq".into());
    let program = program.to_string_lossy();
    let is_plain = |it: char| it.is_alphanumeric() || "/._-+".contains(it);
    let program = match program.chars().all(is_plain) {
        true => program.into_owned(),
        false => format!("'{}'", program.replace('\'', r"'\''")),
    };
    hints
        .replace("URL", url)
        .replace("PORT", &port.to_string())
        .replace("PROGRAM", &program)
}
