//! The programs of one library, as prepare.sh has put them under target/clients.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::{one_process_at_a_time, poll, skipped, Server};

pub struct Library {
    folder: PathBuf,
}

impl Library {
    /// None, said aloud, where it is not prepared: its language is missing on this machine.
    pub fn prepared(name: &str) -> Option<Library> {
        let root = env::var_os("DQ_CLIENTS").map_or_else(
            || crate::support::root().join("target/clients"),
            PathBuf::from,
        );
        let folder = root.join(name);
        if folder.join("example").exists() && folder.join("probe").exists() {
            return Some(Library { folder });
        }
        assert!(
            env::var("CI").map_or(true, |ci| ci != "true"),
            "{name} is not prepared, and this is CI"
        );
        skipped(format!("{name} is not prepared"));
        None
    }

    pub fn name(&self) -> &str {
        let name = self.folder.file_name().and_then(|name| name.to_str());
        name.expect("made of the name")
    }

    pub fn run(&self, program: &str, arguments: &[&str], variables: &[(String, String)]) -> Run {
        let mut command = Command::new(self.folder.join(program));
        command
            .args(arguments)
            .envs(variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let lock = one_process_at_a_time();
        let mut child = command.spawn().expect("a program that was prepared");
        drop(lock);
        let said = Arc::new(Mutex::new(String::new()));
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let readers = [
            out.map(|out| copy(out, said.clone())),
            err.map(|err| copy(err, said.clone())),
        ];
        Run {
            child,
            said,
            readers: readers.into_iter().flatten().collect(),
        }
    }
}

fn copy(
    from: impl std::io::Read + Send + 'static,
    to: Arc<Mutex<String>>,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        while matches!(lines.read_until(b'\n', &mut line), Ok(count) if count > 0) {
            let text = String::from_utf8_lossy(&line);
            to.lock()
                .expect("no panic while it is held")
                .push_str(&text);
            line.clear();
        }
    })
}

/// A program that runs; killed when dropped.
pub struct Run {
    child: Child,
    said: Arc<Mutex<String>>,
    readers: Vec<thread::JoinHandle<()>>,
}

impl Run {
    /// What it has printed so far, errors included.
    pub fn said(&self) -> String {
        self.said.lock().expect("no panic while it is held").clone()
    }

    pub fn signal(&self, name: &str) {
        let lock = one_process_at_a_time();
        let status = Command::new("sh")
            .args(["-c", "kill -s \"$1\" \"$2\"", "kill", name])
            .arg(self.child.id().to_string())
            .status();
        drop(lock);
        assert!(
            status.is_ok_and(|status| status.success()),
            "kill -s {name}"
        );
    }

    /// How it ended, and all that it printed. `Err` if it has not ended in time.
    pub fn end(mut self, patience: Duration) -> Result<(ExitStatus, String), String> {
        let ended = poll(patience, || self.child.try_wait().expect("a child of ours"));
        let Some(status) = ended else {
            return Err(format!(
                "did not end within {patience:?}; it said:\n{}",
                self.said()
            ));
        };
        for reader in self.readers.drain(..) {
            reader.join().expect("reading does not panic");
        }
        Ok((status, self.said()))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _lock = one_process_at_a_time();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The variables by which examples and probes learn where the server is.
pub fn address(port: u16) -> (String, String) {
    ("REDIS_URL".to_owned(), format!("redis://127.0.0.1:{port}"))
}

/// A server whose data survives its restart.
pub fn server() -> Server {
    Server::builder().aof().start()
}
