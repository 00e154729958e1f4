//! dq top in a pseudo-terminal, as a user would see it.

use std::io::{Read, Write};
use std::process::{Child, Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use pty_process::blocking::{open, Command as PtyCommand, Pty};
use pty_process::Size;
use vt100::Parser;

use crate::support::{poll, Server, PATIENCE};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_dq");

/// Short, so that the tests are fast.
const INTERVAL: [&str; 2] = ["--interval", "0.2"];

pub struct Monitor {
    pty: Arc<Pty>,
    child: Child,
    seen: Arc<Mutex<Seen>>,
}

struct Seen {
    parser: Parser,
    /// Everything that was written to the terminal.
    raw: Vec<u8>,
}

pub fn address(server: &Server) -> Vec<String> {
    vec!["-p".into(), server.port().to_string()]
}

/// Runs the program to its end, without a terminal.
pub fn run(arguments: &[String], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("top").args(arguments);
    command.env_remove("REDISCLI_AUTH");
    command.envs(environment.iter().copied());
    command.output().expect("the program runs")
}

impl Monitor {
    /// Sorted by name, so that no row moves.
    pub fn of(server: &Server) -> Monitor {
        let by_name = ["--sort".into(), "queue".into()];
        Monitor::start(&[&address(server)[..], &by_name].concat(), &[])
    }

    pub fn start(arguments: &[String], environment: &[(&str, &str)]) -> Monitor {
        let often = INTERVAL.map(str::to_owned);
        Monitor::command("top", &[&often[..], arguments].concat(), environment)
    }

    pub fn command(name: &str, arguments: &[String], environment: &[(&str, &str)]) -> Monitor {
        let (pty, pts) = open().expect("a terminal");
        pty.resize(Size::new(24, 80)).expect("a size");
        let command = PtyCommand::new(PROGRAM)
            .arg(name)
            .args(arguments)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .env_remove("REDISCLI_AUTH")
            .envs(environment.iter().copied());
        let child = command.spawn(pts).expect("the program starts");
        let seen = Arc::new(Mutex::new(Seen {
            parser: Parser::new(24, 80, 0),
            raw: Vec::new(),
        }));
        let pty = Arc::new(pty);
        follow(Arc::clone(&pty), Arc::clone(&seen));
        Monitor { pty, child, seen }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Types letters, or the escape sequence of a key.
    pub fn press(&self, keys: &str) {
        (&*self.pty)
            .write_all(keys.as_bytes())
            .expect("keys arrive");
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let mut seen = self.seen.lock().expect("no panic");
        seen.parser.screen_mut().set_size(rows, columns);
        self.pty.resize(Size::new(rows, columns)).expect("a size");
    }

    pub fn screen(&self) -> String {
        self.seen
            .lock()
            .expect("no panic")
            .parser
            .screen()
            .contents()
    }

    pub fn raw(&self) -> Vec<u8> {
        self.seen.lock().expect("no panic").raw.clone()
    }

    pub fn shows_alternate_screen(&self) -> bool {
        self.seen
            .lock()
            .expect("no panic")
            .parser
            .screen()
            .alternate_screen()
    }

    pub fn hides_cursor(&self) -> bool {
        self.seen
            .lock()
            .expect("no panic")
            .parser
            .screen()
            .hide_cursor()
    }

    /// Waits until the screen satisfies `is_so`; returns that screen.
    #[track_caller]
    pub fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let seen = poll(PATIENCE, || {
            Some(self.screen()).filter(|screen| is_so(screen))
        });
        match seen {
            Some(screen) => screen,
            None => panic!("waited in vain: {what}; the screen is\n{}", self.screen()),
        }
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Waits until the row of this name (after the mark of the selection) fits.
    #[track_caller]
    pub fn wait_for_row(&self, name: &str, fits: impl Fn(&[&str]) -> bool) {
        self.wait(&format!("the row of {name}"), |screen| {
            let lines = screen.lines().map(|line| line.trim_start_matches('▌'));
            let mut rows = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
            rows.any(|row| row.first() == Some(&name) && fits(&row))
        });
    }

    /// Waits until it has ended, and returns whether it ended well.
    #[track_caller]
    pub fn ended_well(&mut self) -> bool {
        let status = poll(PATIENCE, || self.child.try_wait().expect("our child"));
        status.expect("it ends").success()
    }

    pub fn still_runs(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_none()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The marks of a synchronized update, which terminals draw at once: half an update is not looked
/// at.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

fn follow(pty: Arc<Pty>, seen: Arc<Mutex<Seen>>) {
    thread::spawn(move || {
        let mut bytes = [0; 65536];
        let mut pending = Vec::new();
        // Reading fails once the program has ended.
        while let Ok(length @ 1..) = (&*pty).read(&mut bytes) {
            pending.extend_from_slice(&bytes[..length]);
            let last = |mark: &[u8]| pending.windows(mark.len()).rposition(|part| part == mark);
            let whole = match (last(BEGIN), last(END)) {
                (Some(begin), end) if end.is_none_or(|end| end < begin) => begin,
                _ => pending.len(),
            };
            let mut seen = seen.lock().expect("no panic");
            seen.parser.process(&pending[..whole]);
            seen.raw.extend(pending.drain(..whole));
        }
    });
}
