//! One server process, in a folder of its own.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use redis::Value;

use super::place::Port;
use super::{
    locate, one_process_at_a_time, place, poll, wait_until, Builder, Client, Raw, Socket, Version,
    PATIENCE,
};
use crate::cmd;

const PANIC: &str = "panicked at";

/// What a server's log must never contain. A Rust panic is a bug even if it was caught.
const CRASHES: [&str; 7] = [
    "BUG REPORT START",
    "ASSERTION FAILED",
    "Guru Meditation",
    // Not "WARNING: AddressSanitizer failed to allocate": a forged length may ask for any size.
    "Sanitizer:",
    "runtime error:",
    PANIC,
    "crashed by signal",
];

/// A running server; stopped, and its folder removed, when dropped. If it exited by itself, or logged a crash, the test
/// fails.
pub struct Server {
    builder: Builder,
    binary: PathBuf,
    version: Version,
    folder: PathBuf,
    /// None if clients connect through a socket file.
    port: Option<Port>,
    /// None while killed or stopped by the test.
    process: Option<Child>,
}

impl Server {
    #[track_caller]
    pub fn start() -> Server {
        Server::builder().start()
    }

    pub fn builder() -> Builder {
        Builder::with_module(locate::module_path())
    }

    /// A builder without the module: for the launcher's own tests, and for comparison.
    pub fn plain() -> Builder {
        Builder::plain()
    }

    pub fn version(&self) -> &Version {
        &self.version
    }

    pub fn port(&self) -> u16 {
        self.port.as_ref().map_or(0, |port| port.number)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server runs").id()
    }
}

/// Start and end.
impl Server {
    pub(super) fn of(builder: Builder) -> Result<Server, String> {
        const PORTS_TO_TRY: usize = 20;
        let folder = place::new_folder();
        if let Some(source) = &builder.files {
            place::copy_folder(source, &folder);
        }
        let binary = builder.binary.clone().unwrap_or_else(locate::server_binary);
        let mut server = Server {
            version: Version::of(&binary),
            binary,
            folder,
            port: None,
            builder,
            process: None,
        };
        for _ in 0..PORTS_TO_TRY {
            server.choose_port();
            match server.launch() {
                Ok(()) => return Ok(server),
                Err(log) if port_was_taken(&log) => continue,
                Err(log) => return Err(log),
            }
        }
        Err(format!("{PORTS_TO_TRY} ports were taken"))
    }

    fn choose_port(&mut self) {
        if !self.builder.unix_socket {
            self.port = Some(Port::free());
        }
        fs::write(
            self.folder.join("server.conf"),
            self.builder.configuration(&self.version, self.port()),
        )
        .expect("the folder takes a file");
    }

    /// Starts the process and waits until it answers; if it exits instead, returns the log since then.
    fn launch(&mut self) -> Result<(), String> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path())
            .expect("the folder takes a file");
        let start_of_log = log.metadata().map_or(0, |data| data.len()) as usize;
        let lock = one_process_at_a_time();
        let child = Command::new(&self.binary)
            // Developers often set this: it must make no difference.
            .env("RUST_BACKTRACE", "full")
            .arg("server.conf")
            .args(&self.builder.words)
            .current_dir(&self.folder)
            .envs(self.builder.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(duplicate(&log))
            .stderr(duplicate(&log))
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", self.binary.display()));
        drop(lock);
        self.process = Some(child);
        let began = poll(self.builder.patience, || self.began().transpose());
        match began {
            Some(Ok(())) => Ok(()),
            Some(Err(status)) => {
                self.process = None;
                let log = self.log();
                Err(format!("{status}\n{}", &log[start_of_log..]))
            }
            None => panic!(
                "no answer within {:?}:\n{}",
                self.builder.patience,
                self.log()
            ),
        }
    }

    /// Some once it answers and has loaded its data, None before, `Err` if it has exited.
    fn began(&mut self) -> Result<Option<()>, ExitStatus> {
        let process = self.process.as_mut().expect("just started");
        if let Ok(Some(status)) = process.try_wait() {
            return Err(status);
        }
        let own = format!("process_id:{}\r", process.id());
        let Ok(socket) = self.socket() else {
            return Ok(None);
        };
        let mut connection = Client::new(socket);
        connection.set_patience(Duration::from_secs(1));
        // The process that answers on this port must be this one, and have loaded its data.
        let info = redis::cmd("INFO").query::<String>(&mut connection);
        let ready = match info {
            Ok(text) => {
                let ready = ["\nloading:0", "_mode:sentinel"];
                text.contains(&own) && ready.iter().any(|mark| text.contains(mark))
            }
            Err(error) => matches!(error.code(), Some("NOAUTH" | "NOPERM")),
        };
        Ok(ready.then_some(()))
    }

    /// kill -9: nothing is logged, nothing is written.
    #[track_caller]
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("the server runs");
        self.fail_if_dead(&mut process);
        let _lock = one_process_at_a_time();
        process.kill().expect("a process of our own");
        process.wait().expect("a child of our own");
    }

    /// A child that saves outlives its server, and may replace the next server's file with its older one. No server
    /// protects a later save against that, so the child has to end first.
    pub fn wait_for_orphan(&self) {
        let log = self.log();
        let Some((_, behind)) = log.rsplit_once("saving started by pid ") else {
            return;
        };
        let pid = behind.split_whitespace().next().unwrap_or_default();
        let stat = format!("/proc/{pid}/stat");
        wait_until("a child has ended", PATIENCE, || {
            // It is gone, or a zombie.
            fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))
        });
    }

    /// Stops it with SIGTERM, as an operator would.
    #[track_caller]
    pub fn stop(&mut self) {
        self.signal("TERM");
        self.wait_for_end();
    }

    /// Writes an RDB file and stops.
    #[track_caller]
    pub fn save_and_stop(&mut self) {
        let _ = self.connect().call_raw(redis::cmd("SHUTDOWN").arg("SAVE"));
        self.wait_for_end();
    }

    /// Whether the process still runs: neither the test nor the server itself has ended it.
    pub fn is_running(&mut self) -> bool {
        match &mut self.process {
            Some(process) => matches!(process.try_wait(), Ok(None)),
            None => false,
        }
    }

    /// Waits until the process has ended, as the test intended.
    #[track_caller]
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let mut process = self.process.take().expect("the server runs");
        let mut status = None;
        wait_until("the server ends", PATIENCE, || {
            status = process.try_wait().expect("a child of our own");
            status.is_some()
        });
        status.expect("just waited for")
    }

    /// `STOP` freezes the process, `CONT` lets it continue, `TERM` ends it.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let lock = one_process_at_a_time();
        let status = Command::new("sh")
            .args([
                "-c",
                "kill -s \"$1\" \"$2\"",
                "kill",
                name,
                &self.pid().to_string(),
            ])
            .status();
        drop(lock);
        assert!(
            status.is_ok_and(|status| status.success()),
            "kill -s {name} works"
        );
    }

    /// Starts it again on its folder: same files, same port. If it is running, stops it first.
    #[track_caller]
    pub fn restart(&mut self) {
        if self.process.is_some() {
            self.stop();
        }
        if let Err(log) = self.launch() {
            panic!("the server does not start again:\n{log}");
        }
    }

    #[track_caller]
    fn fail_if_dead(&self, process: &mut Child) {
        if let Ok(Some(status)) = process.try_wait() {
            panic!(
                "the server died by itself ({status}):\n{}",
                self.end_of_log()
            );
        }
    }
}

/// Commands to the server.
impl Server {
    #[track_caller]
    pub fn connect(&self) -> Client {
        match self.socket() {
            Ok(socket) => Client::new(socket),
            Err(error) => panic!("cannot connect: {error}\n{}", self.end_of_log()),
        }
    }

    #[track_caller]
    pub fn connect_resp3(&self) -> Client {
        match self.connect().speak_resp3() {
            Ok(client) => client,
            Err(error) => panic!("no RESP3: {error}\n{}", self.end_of_log()),
        }
    }

    fn socket(&self) -> io::Result<Socket> {
        match self.builder.unix_socket {
            true => Socket::unix(&self.socket_path()),
            false => Socket::tcp(self.port()),
        }
    }

    #[track_caller]
    pub fn raw(&self) -> Raw {
        Raw::new(self.socket().expect("the server listens"))
    }

    fn socket_path(&self) -> PathBuf {
        self.folder.join("server.sock")
    }

    /// A field of INFO; panics if it is missing.
    #[track_caller]
    pub fn info(&self, section: &str, field: &str) -> String {
        match self.connect().info(section, field) {
            Some(value) => value,
            None => panic!("INFO {section} has no {field}"),
        }
    }

    /// DEBUG DIGEST: equal data has equal digests.
    #[track_caller]
    pub fn digest(&self) -> String {
        match cmd!(self.connect(), "DEBUG", "DIGEST") {
            Value::SimpleString(digest) => digest,
            other => panic!("DEBUG DIGEST -> {other:?}"),
        }
    }
}

/// Replication.
impl Server {
    /// Makes it a replica of `master`, and waits until the link is up and all data has arrived.
    #[track_caller]
    pub fn replica_of(&self, master: &Server) {
        self.follow(master);
        self.wait_for_link();
        self.wait_for_offset_of(master);
    }

    /// Makes it a replica of `master` without waiting.
    #[track_caller]
    pub fn follow(&self, master: &Server) {
        cmd!(self.connect(), "REPLICAOF", "127.0.0.1", master.port());
    }

    #[track_caller]
    pub fn promote(&self) {
        cmd!(self.connect(), "REPLICAOF", "NO", "ONE");
    }

    #[track_caller]
    pub fn wait_for_link(&self) {
        let mut client = self.connect();
        wait_until("the link to the master is up", PATIENCE, || {
            client.info("replication", "master_link_status").as_deref() == Some("up")
        });
    }

    /// Waits until this replica has applied all that `master` has written so far. A master that was just restarted and
    /// a replica that does not know of that yet both report the offset 1.
    #[track_caller]
    pub fn wait_for_offset_of(&self, master: &Server) {
        let (mut here, mut there) = (self.connect(), master.connect());
        wait_until("the replica has caught up", PATIENCE, || {
            let written = there.info("replication", "master_repl_offset");
            let is_up = here.info("replication", "master_link_status").as_deref() == Some("up");
            is_up && written.is_some() && here.info("replication", "slave_repl_offset") == written
        });
    }

    /// Master and replica hold the same data, once the replica has caught up.
    #[track_caller]
    pub fn assert_same_data_as(&self, master: &Server) {
        self.wait_for_offset_of(master);
        assert_eq!(
            self.digest(),
            master.digest(),
            "digests of replica and master"
        );
    }
}

/// The log, and checks at the end.
impl Server {
    fn log_path(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// All that the server has logged since its first start.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn end_of_log(&self) -> String {
        const LINES: usize = 120;
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// The first line of the log that reports a crash, a failed assertion, a panic or a sanitizer's finding.
    pub fn crash(&self) -> Option<String> {
        let log = self.log();
        let is_meant = |crash: &str| self.builder.has_bugs && crash == PANIC;
        let crashes = || CRASHES.iter().filter(|crash| !is_meant(crash));
        log.lines()
            .find(|line| crashes().any(|crash| line.contains(crash)))
            .map(str::to_owned)
    }

    #[track_caller]
    pub fn assert_no_crash(&self) {
        if let Some(line) = self.crash() {
            panic!("the server crashed: {line}\n{}", self.end_of_log());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = match &mut self.process {
            Some(process) => process.try_wait().ok().flatten(),
            None => None,
        };
        if let Some(mut process) = self.process.take() {
            let _lock = one_process_at_a_time();
            let _ = process.kill();
            let _ = process.wait();
        }
        let failure = match (ended, self.crash()) {
            (Some(status), _) => Some(format!("the server died by itself ({status})")),
            (None, Some(line)) => Some(format!("the server crashed: {line}")),
            (None, None) => None,
        };
        let folder = self.folder.display();
        if failure.is_none() && !thread::panicking() && env::var_os("DQ_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.folder);
            return;
        }
        match failure {
            Some(failure) if thread::panicking() => {
                eprintln!("{failure}; its folder: {folder}\n{}", self.end_of_log());
            }
            Some(failure) => panic!("{failure}; its folder: {folder}\n{}", self.end_of_log()),
            None => eprintln!("{} stays in {folder}", self.version),
        }
    }
}

fn duplicate(file: &File) -> Stdio {
    file.try_clone()
        .expect("a file handle can be duplicated")
        .into()
}

fn port_was_taken(log: &str) -> bool {
    log.contains("Address already in use") || log.contains("Failed listening on port")
}
