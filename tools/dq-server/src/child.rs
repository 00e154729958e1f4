//! The server as a child of this program: its log, its signals, its end.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use rustix::io::{fcntl_setfd, FdFlags};
use rustix::process::{kill_process, Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What each version says once it has loaded its data and listens.
const IS_READY: &str = "Ready to accept connections";
/// What the module says of data that it must not load.
const IS_NEWER: &str = "written by a newer version of the module";
/// What a server says of files of a newer one, or of the other family's; its last words would be how to cut them off.
const IS_OF_NEWER_SERVER: &str = "Can't handle RDB format version";
const IS_TAKEN: &str = "Address already in use";

enum Event {
    /// Of the log.
    Line(String),
    Signal(i32),
    Over(ExitStatus),
}

/// A server that was started.
pub struct Running {
    pid: Pid,
    events: Receiver<Event>,
}

/// Why a server ended before it was ready.
pub enum Over {
    /// Another program listens at its port.
    PortTaken,
    /// This program was asked to end.
    Asked,
    /// In a sentence.
    Failed(String),
}

impl Running {
    /// `lock` stays open in the server.
    pub fn start(command: &mut Command, lock: &File) -> Result<Running, String> {
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| error.to_string())?;
        let program = command.get_program().to_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = ending_with_this(command, Some(lock)).spawn();
        let child = child.map_err(|error| format!("{}: {error}", program.display()))?;
        let pid = Pid::from_child(&child);
        let (sender, events) = mpsc::channel();
        let log = sender.clone();
        thread::spawn(move || follow(child, &log));
        thread::spawn(move || {
            let mut passed = signals.forever().map(Event::Signal);
            passed.try_for_each(|signal| sender.send(signal))
        });
        Ok(Running { pid, events })
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until it has loaded its data and listens.
    pub fn until_ready(&self, mut show: impl FnMut(&str)) -> Result<(), Over> {
        let (mut is_asked, mut is_taken, mut newer) = (false, false, None);
        let mut last = String::new();
        for event in &self.events {
            match event {
                Event::Line(line) => {
                    show(&line);
                    if line.contains(IS_READY) {
                        return Ok(());
                    }
                    if line.contains(IS_NEWER) {
                        newer = Some("version of dq, and nothing of it was changed: start it with that version");
                    } else if line.contains(IS_OF_NEWER_SERVER) {
                        newer = Some(
                            "server, and nothing of it was changed: name that one, --server PROGRAM (dq dev --which \
                             prints where the one in this program is)",
                        );
                    }
                    is_taken |= line.contains(IS_TAKEN);
                    last = line;
                }
                Event::Signal(signal) => {
                    is_asked = true;
                    self.signal(signal);
                }
                Event::Over(_) if is_asked => return Err(Over::Asked),
                Event::Over(_) if is_taken => return Err(Over::PortTaken),
                Event::Over(status) => {
                    return Err(Over::Failed(match newer {
                        Some(than) => format!("the data was written by a newer {than}"),
                        None => format!("the server did not start ({status}): {}", message(&last)),
                    }))
                }
            }
        }
        Err(Over::Asked)
    }

    /// Passes signals on until it ends.
    pub fn until_over(&self, mut show: impl FnMut(&str)) -> Option<ExitStatus> {
        for event in &self.events {
            match event {
                Event::Line(line) => show(&line),
                Event::Signal(signal) => self.signal(signal),
                Event::Over(status) => return Some(status),
            }
        }
        None
    }

    /// It saves and ends; a second SIGINT ends it without.
    fn signal(&self, signal: i32) {
        // It may just have ended by itself.
        let _ = kill_process(
            self.pid,
            if signal == SIGINT {
                Signal::INT
            } else {
                Signal::TERM
            },
        );
    }
}

/// Passes on what a child says, and its end.
fn follow(mut child: Child, to: &Sender<Event>) {
    let log = child.stdout.take();
    for line in log
        .map(|log| lines(BufReader::new(log)))
        .into_iter()
        .flatten()
    {
        // Nobody listens any more when this program ends.
        let _ = to.send(Event::Line(line));
    }
    if let Ok(status) = child.wait() {
        let _ = to.send(Event::Over(status));
    }
}

/// Its lines, whatever bytes they have.
pub fn lines<R: Read>(mut from: BufReader<R>) -> impl Iterator<Item = String> {
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        match from.read_until(b'\n', &mut line) {
            Ok(read) if read > 0 => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
            _ => None,
        }
    })
}

/// A line of the log without process, date and level.
fn message(line: &str) -> &str {
    let marks = [" # ", " * ", " - ", " . "];
    let after = marks.iter().filter_map(|mark| line.split_once(mark));
    after.map(|(_, text)| text).next().unwrap_or(line)
}

/// What it starts ends when this program does, whatever ends that (on Linux), and has a group of its own: a Ctrl-C reaches
/// this program alone. `kept` stays open in it.
pub fn ending_with_this<'a>(command: &'a mut Command, kept: Option<&File>) -> &'a mut Command {
    let kept = kept.map(std::os::fd::AsRawFd::as_raw_fd);
    #[cfg(target_os = "linux")]
    let parent = rustix::process::getpid();
    command.process_group(0);
    // SAFETY: between fork and exec nothing but system calls.
    unsafe {
        command.pre_exec(move || {
            if let Some(kept) = kept {
                let kept = std::os::fd::BorrowedFd::borrow_raw(kept);
                fcntl_setfd(kept, FdFlags::empty())?;
            }
            #[cfg(target_os = "linux")]
            {
                rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
                // It may have ended before that.
                if rustix::process::getppid() != Some(parent) {
                    return Err(std::io::ErrorKind::NotFound.into());
                }
            }
            Ok(())
        })
    }
}
