//! The program as a child of a test.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use redis::{Client, Connection};

/// A run of the program, which ends with this.
pub struct Run {
    pub child: Child,
    pub lines: Box<dyn Iterator<Item = String>>,
    pub said: Vec<String>,
}

impl Run {
    /// In this folder, with these words.
    pub fn start(folder: &Path, words: &[&str]) -> Run {
        Run::spawn(program(folder).args(words))
    }

    pub fn spawn(command: &mut Command) -> Run {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        Run {
            child,
            lines: Box::new(out.map_while(Result::ok)),
            said: Vec::new(),
        }
    }

    /// Reads on until a line contains this; what follows it there.
    #[track_caller]
    pub fn says(&mut self, what: &str) -> String {
        for line in &mut self.lines {
            self.said.push(line);
            let line = self.said.last().unwrap();
            if let Some((_, after)) = line.split_once(what) {
                return after.trim().to_owned();
            }
        }
        let mut errors = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut errors)
            .unwrap();
        panic!("no {what:?} in {:#?}\n{errors}", self.said)
    }

    /// Where the server is that `dq dev` has started.
    pub fn server(&mut self) -> Connection {
        let url = self.says("server   ");
        Client::open(url).unwrap().get_connection().unwrap()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    #[track_caller]
    pub fn ends(&mut self) -> (ExitStatus, String) {
        self.said.extend(&mut self.lines);
        let mut errors = String::new();
        if let Some(mut from) = self.child.stderr.take() {
            from.read_to_string(&mut errors).unwrap();
        }
        (self.child.wait().unwrap(), errors)
    }

    /// Ends as with Ctrl-C.
    #[track_caller]
    pub fn interrupt(mut self) {
        self.signal(libc::SIGINT);
        let (status, errors) = self.ends();
        assert!(status.success(), "{status}: {errors}");
    }

    /// One sentence of an error.
    #[track_caller]
    pub fn fails(mut self, says: &str) {
        let (status, errors) = self.ends();
        assert_eq!(status.code(), Some(1), "{errors}");
        let last = errors.lines().last().unwrap_or_default();
        assert!(last.contains(says), "{errors}");
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dq"));
    command.current_dir(folder).env_remove("NOTIFY_SOCKET");
    command
}
