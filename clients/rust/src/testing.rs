//! For tests of programs that use dq: a server with the module, whose clock stands still until the test moves it.
//!
//! ```no_run
//! # use dq_redis::{testing::TestServer, Error, Worker};
//! # use std::time::Duration;
//! # async fn test(worker: Worker) -> Result<(), Error> {
//! let server = TestServer::start().await?;
//! let queue = server.queue("orders");
//! server.clock().advance(Duration::from_secs(30 * 24 * 3600)).await?;
//! let handled = worker.drain().await?;
//! # Ok(()) }
//! ```
//!
//! For handlers without a server there is [`TestJob`](crate::TestJob).

use crate::error::Error;
use crate::queue::Queue;
use crate::server::Server;
use crate::values::{instant, instant_ms, ms};
use redis::{cmd, Cmd};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::process::{Child, Command};

const PATIENCE: Duration = Duration::from_secs(30);
static LAST: AtomicU32 = AtomicU32::new(0);

/// A server of the test's own, on a socket in a folder of its own. It ends when this is dropped.
#[derive(Debug)]
pub struct TestServer {
    url: String,
    server: Server,
    folder: PathBuf,
    _process: Child,
}

impl TestServer {
    /// Starts a server with the module. The program is the one that the environment variable `DQ_SERVER` names, else
    /// valkey-server or redis-server; `DQ_MODULE` names the module. Without that, the program dq says both: that of the
    /// variable `DQ_PROGRAM`, or of the `PATH`.
    pub async fn start() -> Result<Self, Error> {
        TestServer::start_with(&["test-clock", "yes"]).await
    }

    /// Starts a server with other arguments of the module; without `test-clock yes`, its clock runs.
    pub async fn start_with(arguments: &[&str]) -> Result<Self, Error> {
        let (program, module) = files()?;
        // A short path, as a socket needs one.
        let folder = std::env::temp_dir().join(format!(
            "dq-{}-{}",
            std::process::id(),
            LAST.fetch_add(1, Ordering::Relaxed)
        ));
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let socket = folder.join("socket");
        let log = std::fs::File::create(folder.join("log")).map_err(failed)?;
        let mut command = Command::new(program);
        command
            .arg("--port")
            .arg("0")
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(&folder)
            .arg("--save")
            .arg("");
        command.arg("--loadmodule").arg(module).args(arguments);
        let process = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let url = format!("unix://{}", socket.display());
        let mut made = TestServer {
            server: Server::open(&url)?,
            url,
            folder,
            _process: process.map_err(failed)?,
        };
        made.answers().await?;
        Ok(made)
    }

    async fn answers(&mut self) -> Result<(), Error> {
        let end = Instant::now() + PATIENCE;
        while self.server.ask(&[], &cmd("PING")).await.is_err() {
            let has_ended = self._process.try_wait().map_err(failed)?.is_some();
            if has_ended || Instant::now() > end {
                let said = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(Error::usage(format!(
                    "the server for the test does not start:\n{said}"
                )));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// The server's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The server, for queues with other settings.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// A queue on the server.
    pub fn queue(&self, name: &str) -> Queue {
        Queue::on(&self.server, name)
    }

    /// The server's clock.
    pub fn clock(&self) -> Clock<'_> {
        Clock(&self.server)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        _ = self._process.start_kill();
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::Connection(format!("the server for the test: {error}"))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// The server program, and the module.
fn files() -> Result<(PathBuf, PathBuf), Error> {
    let (program, module) = match variable("DQ_MODULE") {
        Some(module) => (None, module),
        None => packed().map(|(program, module)| (Some(program), module))?,
    };
    let module = module.canonicalize().ok().filter(|path| path.is_file());
    let module = module.ok_or_else(|| Error::usage("set DQ_MODULE to the path of libdq.so"))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = |name: &str| {
        std::env::split_paths(&path)
            .map(|it| it.join(name))
            .find(|it| it.is_file())
    };
    let program = variable("DQ_SERVER").or(program);
    let program = program
        .or_else(|| on_path("valkey-server"))
        .or_else(|| on_path("redis-server"));
    let none = || Error::usage("no valkey-server or redis-server in the PATH: set DQ_SERVER");
    Ok((program.ok_or_else(none)?, module))
}

/// The files in the program dq.
fn packed() -> Result<(PathBuf, PathBuf), Error> {
    let program = variable("DQ_PROGRAM").unwrap_or_else(|| "dq".into());
    let said = std::process::Command::new(program)
        .args(["dev", "--which"])
        .output();
    let said = said
        .map(|said| String::from_utf8_lossy(&said.stdout).into_owned())
        .unwrap_or_default();
    let mut lines = said.lines().map(PathBuf::from);
    let files = lines.next().zip(lines.next());
    files.ok_or_else(|| {
        Error::usage("set DQ_MODULE to the path of libdq.so, or have the program dq in the PATH")
    })
}

/// The server's clock. It stands still, begins at the real time, and never goes back. When a method returns,
/// everything that became due on the way has happened.
#[derive(Clone, Copy, Debug)]
pub struct Clock<'a>(&'a Server);

impl Clock<'_> {
    /// The clock's time.
    pub async fn now(&self) -> Result<SystemTime, Error> {
        self.ask(|words| _ = words.arg("GET"))
            .await
            .map(|now| now.unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Moves the clock by a duration, rounded up to milliseconds, and returns its time.
    pub async fn advance(&self, by: Duration) -> Result<SystemTime, Error> {
        let moved = self.ask(|words| _ = words.arg("ADVANCE").arg(ms(by)));
        moved.await.map(|now| now.unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Moves the clock to an instant in its future, and returns its time.
    pub async fn set(&self, at: SystemTime) -> Result<SystemTime, Error> {
        let moved = self.ask(|words| _ = words.arg("SET").arg(instant_ms(at)));
        moved.await.map(|now| now.unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Moves the clock to the next instant at which anything happens, and returns it; `None`: nothing will happen.
    pub async fn next(&self) -> Result<Option<SystemTime>, Error> {
        self.ask(|words| _ = words.arg("NEXT")).await
    }

    async fn ask(&self, say: impl FnOnce(&mut Cmd)) -> Result<Option<SystemTime>, Error> {
        let mut words = cmd("DQ.CLOCK");
        say(&mut words);
        Ok(instant(&self.0.ask(&[], &words).await?))
    }
}
