//! A server under measurement: on its own core, reached through a unix socket.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use super::machine::{pin, sleep_ms, Cores, CpuClock};
use super::wire::Connection;
use crate::support::{Builder, Server};

/// Where the servers run, and with which module.
pub struct Settings {
    pub cores: Option<Cores>,
    pub module: PathBuf,
    /// The module whose commands do nothing.
    pub floor: Option<PathBuf>,
}

pub static SETTINGS: OnceLock<Settings> = OnceLock::new();

pub struct Host {
    server: Server,
    admin: Connection,
}

impl Host {
    pub fn start() -> Host {
        Host::start_with(|builder| builder)
    }

    pub fn start_with(configure: impl FnOnce(Builder) -> Builder) -> Host {
        let settings = SETTINGS.get().expect("set by main");
        let builder = Server::plain().module(&settings.module).unix_socket();
        let server = on_server_core(|| configure(builder).start());
        let admin = Connection::open(&server.folder().join("server.sock"));
        Host { server, admin }
    }

    /// Has the module loaded whose commands do nothing.
    pub fn load_floor(&mut self) {
        let settings = SETTINGS.get().expect("set by main");
        let floor = settings.floor.as_ref().expect("DQ_FLOOR: see the Makefile");
        let reply = self.call(&[b"MODULE", b"LOAD", floor.as_os_str().as_encoded_bytes()]);
        assert!(
            reply.starts_with(b"+OK") || reply == b"OK",
            "{}",
            String::from_utf8_lossy(&reply)
        );
    }

    pub fn connect(&self) -> Connection {
        Connection::open(&self.server.folder().join("server.sock"))
    }

    pub fn clock(&self) -> CpuClock {
        CpuClock::of(self.server.pid())
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub fn version(&self) -> String {
        self.server.version().to_string()
    }

    pub fn folder(&self) -> &Path {
        self.server.folder()
    }

    /// Becomes a replica of the server on that port, and waits until it is one.
    pub fn follow(&mut self, port: u16) {
        let port = port.to_string();
        self.call(&[b"REPLICAOF", b"127.0.0.1", port.as_bytes()]);
        while !self.info("replication").contains("master_link_status:up") {
            sleep_ms(10);
        }
    }

    pub fn call(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        self.admin.call(arguments).to_vec()
    }

    /// What the server's main thread has used, by its own word: what its helpers do in the background,
    /// such as giving memory back, is not in it.
    pub fn main_thread_us(&mut self) -> f64 {
        let info = self.info("cpu");
        let seconds = |name| field::<f64>(&info, name);
        1e6 * (seconds("used_cpu_user_main_thread") + seconds("used_cpu_sys_main_thread"))
    }

    /// Bytes that were sent to replicas so far.
    pub fn replication_offset(&mut self) -> f64 {
        field(&self.info("replication"), "master_repl_offset")
    }

    pub fn used_memory(&mut self) -> f64 {
        field(&self.info("memory"), "used_memory")
    }

    pub fn info_number(&mut self, section: &str, name: &str) -> f64 {
        field(&self.info(section), name)
    }

    fn info(&mut self, section: &str) -> String {
        let text = self.call(&[b"INFO", section.as_bytes()]);
        String::from_utf8(text).expect("INFO is text")
    }

    /// From here on all that is written goes to an append-only file, which is not waited for.
    pub fn keep_log(&mut self) {
        self.call(&[b"CONFIG", b"SET", b"appendfsync", b"no"]);
        self.call(&[b"CONFIG", b"SET", b"appendonly", b"yes"]);
        let is_rewriting = |info: String| {
            let busy = ["in_progress:1", "scheduled:1"].map(|it| format!("aof_rewrite_{it}"));
            busy.iter().any(|busy| info.contains(busy))
        };
        while is_rewriting(self.info("persistence")) {
            sleep_ms(10);
        }
    }

    /// Has it write its data and end by itself.
    pub fn end(mut self) {
        self.server.save_and_stop();
    }

    /// Forgets all data, and waits until that is done.
    pub fn flush(&mut self) {
        self.call(&[b"FLUSHALL", b"SYNC"]);
        self.wait_until_idle();
    }

    /// Waits until the server has nothing left to do in the background.
    pub fn wait_until_idle(&self) {
        const STEP_MS: u64 = 20;
        const IDLE_US: f64 = 400.0;
        const PATIENCE_S: u64 = 60;
        let (clock, start) = (self.clock(), Instant::now());
        while clock.us_during(|| sleep_ms(STEP_MS)) > IDLE_US {
            assert!(start.elapsed().as_secs() < PATIENCE_S, "it never rests");
        }
    }

    /// Queues that nobody uses take less a second or two later, many of them one after the other.
    pub fn wait_until_memory_rests(&mut self) {
        const STEP_MS: u64 = 100;
        const RESTS_MS: u64 = 3000;
        const NOISE: f64 = 4096.0;
        let (mut least, mut rested_ms) = (self.used_memory(), 0);
        while rested_ms < RESTS_MS {
            sleep_ms(STEP_MS);
            let used = self.used_memory();
            rested_ms = if used < least - NOISE {
                0
            } else {
                rested_ms + STEP_MS
            };
            least = least.min(used);
        }
    }

    /// Starts it anew on its files; returns the CPU time until all was loaded.
    pub fn restart_us(&mut self) -> f64 {
        on_server_core(|| self.server.restart());
        let used = self.clock().us();
        self.admin = self.connect();
        used
    }
}

fn field<T: std::str::FromStr>(info: &str, name: &str) -> T {
    let value = info
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value = value.and_then(|value| value.trim_end().parse().ok());
    value.unwrap_or_else(|| panic!("INFO has no {name}"))
}

/// A process starts on the core of the thread that starts it.
fn on_server_core<T>(work: impl FnOnce() -> T) -> T {
    let Some(cores) = SETTINGS.get().and_then(|settings| settings.cores) else {
        return work();
    };
    pin(cores.server);
    let result = work();
    pin(cores.client);
    result
}
