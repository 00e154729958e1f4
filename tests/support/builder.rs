//! How a server is started.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use super::locate::BREAKABLE;
use super::{Server, Setting, Version, PATIENCE};

/// The setting by which jobs without a ladder of their own wait.
const BACKOFF: &str = "default-backoff";

/// The settings of a new server: the module is loaded, nothing is saved, DEBUG and MODULE are allowed, and replicas are
/// synchronized at once. A later setting overrides an earlier one.
#[derive(Clone)]
pub struct Builder {
    pub(super) binary: Option<PathBuf>,
    pub(super) module: Option<PathBuf>,
    pub(super) module_arguments: String,
    pub(super) settings: Vec<Setting>,
    pub(super) lines: Vec<String>,
    pub(super) unix_socket: bool,
    pub(super) files: Option<PathBuf>,
    pub(super) patience: Duration,
    pub(super) words: Vec<String>,
    pub(super) environment: Vec<(&'static str, PathBuf)>,
    pub(super) has_bugs: bool,
}

impl Builder {
    pub(super) fn plain() -> Builder {
        Builder {
            binary: None,
            module: None,
            module_arguments: String::new(),
            settings: Vec::new(),
            lines: Vec::new(),
            unix_socket: false,
            files: None,
            patience: PATIENCE,
            words: Vec::new(),
            environment: Vec::new(),
            has_bugs: false,
        }
    }

    pub(super) fn with_module(path: PathBuf) -> Builder {
        Builder {
            module: Some(path),
            settings: Setting::of_environment(),
            ..Builder::plain()
        }
    }

    /// One directive of the server's configuration file: `.config("appendonly", "yes")`.
    pub fn config(mut self, name: &str, value: impl Display) -> Builder {
        let value = value.to_string();
        self.lines.push(format!(
            "{name} {}",
            if value.is_empty() { "\"\"" } else { &value }
        ));
        self
    }

    /// The folder in which the server finds the system's time zones.
    pub fn zones(self, folder: impl Into<PathBuf>) -> Builder {
        self.env("TZDIR", folder)
    }

    /// A variable of the server's environment.
    pub fn env(mut self, name: &'static str, path: impl Into<PathBuf>) -> Builder {
        self.environment.push((name, path.into()));
        self
    }

    /// Sets these settings; those that the server does not know are left out.
    pub fn under(mut self, settings: &[Setting]) -> Builder {
        self.settings.extend_from_slice(settings);
        self
    }

    /// Loads this module instead of the project's.
    pub fn module(mut self, path: impl Into<PathBuf>) -> Builder {
        self.module = Some(path.into());
        self
    }

    /// The arguments after the module's path in `loadmodule`.
    pub fn module_arguments(mut self, arguments: &str) -> Builder {
        self.module_arguments = arguments.to_owned();
        self
    }

    /// Turns on the append only file, synced to disk with every command.
    pub fn aof(self) -> Builder {
        self.config("appendonly", "yes")
            .config("appendfsync", "always")
    }

    /// Listens on no port: clients connect through a socket file in the folder.
    pub fn unix_socket(mut self) -> Builder {
        self.unix_socket = true;
        self
    }

    pub fn cluster(self) -> Builder {
        self.config("cluster-enabled", "yes")
    }

    /// Starts as a Sentinel, without the module.
    pub fn sentinel(self) -> Builder {
        self.words("--sentinel")
    }

    /// Words of the command line, after the configuration file.
    pub fn words(mut self, words: &str) -> Builder {
        self.words.extend(words.split(' ').map(str::to_owned));
        self
    }

    /// Another server than `DQ_SERVER`: for example to read what another version wrote.
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Builder {
        self.binary = Some(path.into());
        self
    }

    /// Starts on a copy of the files in this folder (an old dump, an AOF).
    pub fn with_files_of(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.files = Some(folder.into());
        self
    }

    /// Loads the module that DQ.BREAK makes panic; the test itself checks for panics in the log.
    pub fn breakable(mut self) -> Builder {
        self.has_bugs = true;
        self.module(&*BREAKABLE)
    }

    /// How long starting and loading may take.
    pub fn patience(mut self, patience: Duration) -> Builder {
        self.patience = patience;
        self
    }

    /// Whether every answered write must be in the AOF.
    fn keeps_answers(&self) -> bool {
        let policy = |line: &&String| line.starts_with("appendfsync ");
        self.lines
            .iter()
            .rfind(policy)
            .is_some_and(|line| line == "appendfsync always")
    }

    #[track_caller]
    pub fn start(self) -> Server {
        match self.try_start() {
            Ok(server) => server,
            Err(log) => panic!("the server does not start:\n{log}"),
        }
    }

    /// Starts the server. If it exits instead (as with bad module arguments), the error is its log.
    pub fn try_start(self) -> Result<Server, String> {
        Server::of(self)
    }

    pub(super) fn configuration(&self, version: &Version, port: u16) -> String {
        let mut lines: Vec<String> = [
            "bind 127.0.0.1",
            "logfile \"\"",
            "save \"\"",
            "enable-debug-command yes",
            "enable-module-command yes",
            "enable-protected-configs yes",
            "repl-diskless-sync-delay 0",
        ]
        .map(str::to_owned)
        .into();
        lines.push(format!("port {port}"));
        if self.unix_socket {
            lines.push("unixsocket server.sock".to_owned());
        }
        let settings = self.settings.iter().flat_map(|it| it.lines(version));
        lines.extend(settings.map(|&line| line.to_owned()));
        lines.extend_from_slice(&self.lines);
        if self.keeps_answers() && version.answers_before_the_aof() {
            lines.push("io-threads 1".to_owned());
        }
        if let Some(module) = &self.module {
            // Without a wait, unless the test is about it.
            let backoff = match self.module_arguments.contains(BACKOFF) {
                true => "",
                false => "default-backoff 0",
            };
            lines.push(format!(
                "loadmodule \"{}\" {} {backoff}",
                module.display(),
                self.module_arguments
            ));
        }
        lines.join("\n") + "\n"
    }
}
