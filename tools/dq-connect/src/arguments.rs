//! Arguments about the server, as redis-cli has them, and what is wrong with arguments in one sentence.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use crate::scope::{Scope, ScopeArgs};
use crate::secret;
use crate::target::{Sentinels, Target};

/// Where to connect, and as which user.
#[derive(Args, Clone, Default, PartialEq)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// The server's host [default: 127.0.0.1]
    #[arg(short = 'h', value_name = "HOST", global = true)]
    host: Option<String>,
    /// Its port [default: 6379]
    #[arg(
        short = 'p',
        value_name = "PORT",
        global = true,
        value_parser = port,
        allow_negative_numbers = true
    )]
    port: Option<u16>,
    /// Its unix socket instead
    #[arg(short = 's', value_name = "SOCKET", global = true)]
    socket: Option<PathBuf>,
    /// redis[s]://[user[:password]@]host[:port][/db], or unix:///path
    #[arg(short = 'u', value_name = "URL", global = true)]
    url: Option<String>,
    /// As whom to connect
    #[arg(long, value_name = "NAME", global = true)]
    user: Option<String>,
    /// file:PATH, env:NAME or the password itself, which ps shows; by default that of REDISCLI_AUTH
    #[arg(
        id = "pass",
        short = 'a',
        long = "pass",
        value_name = "PASSWORD",
        global = true,
        allow_hyphen_values = true
    )]
    password: Option<String>,
    /// Use TLS, as rediss:// does
    #[arg(long, global = true)]
    tls: bool,
    /// Trust certificates signed by this CA instead of the system's
    #[arg(long, value_name = "FILE", global = true)]
    cacert: Option<PathBuf>,
    /// Connect to the master that these sentinels name
    #[arg(
        long = "sentinel",
        value_name = "HOST:PORT",
        value_delimiter = ',',
        global = true
    )]
    sentinels: Vec<String>,
    /// The master's name there
    #[arg(long, value_name = "NAME", global = true)]
    master: Option<String>,
    /// The sentinels' password: as --pass
    #[arg(
        long = "sentinel-pass",
        value_name = "PASSWORD",
        global = true,
        allow_hyphen_values = true
    )]
    sentinel_password: Option<String>,
}

impl ServerArgs {
    /// Another server than that of the command line. If its URL asks for TLS, the same authority is trusted.
    pub fn of_url(&self, url: &str, password: Option<String>, cacert: Option<PathBuf>) -> Self {
        let same = || self.cacert.clone().filter(|_| url.starts_with("rediss:"));
        ServerArgs {
            url: Some(url.to_owned()),
            password,
            cacert: cacert.or_else(same),
            ..ServerArgs::default()
        }
    }

    /// Whether `target` reads a file.
    pub fn reads_files(&self) -> bool {
        let secrets = [&self.password, &self.sentinel_password];
        let of_files = secrets
            .into_iter()
            .flatten()
            .filter_map(|it| secret::path(it));
        self.cacert.is_some() || of_files.count() > 0
    }

    /// `password` is taken if the arguments have none.
    pub fn target(&self, password: Option<String>) -> Result<Target, String> {
        let url = self.url.as_deref().unwrap_or("redis://127.0.0.1:6379");
        let info = url.into_connection_info();
        let info = info.map_err(|_| "-u: not redis://host:port, rediss://... or unix:///path")?;
        let (address, tls) = self.address(&info);
        let said = |flag, said: &Option<String>| {
            let read = said.as_deref().map(|it| secret::read(it, secret::variable));
            read.transpose().map_err(|error| format!("{flag}: {error}"))
        };
        let password = said("--pass", &self.password)?.or(password);
        let target = Target::new(
            info.set_addr(address),
            self.user.as_deref(),
            password.as_deref(),
        );
        let target = match tls {
            true => target.encrypted(self.cacert.as_deref())?,
            false => target,
        };
        match (self.sentinels.is_empty(), &self.master) {
            (true, None) => Ok(target),
            (false, Some(master)) => Ok(target.told_by(Sentinels {
                addresses: self.sentinels.clone(),
                master: master.clone(),
                password: said("--sentinel-pass", &self.sentinel_password)?,
            })),
            _ => Err("--sentinel HOST:PORT and --master NAME go together".to_owned()),
        }
    }

    /// The address, and whether it is reached by TLS. What is said beside the URL counts more.
    fn address(&self, info: &ConnectionInfo) -> (ConnectionAddr, bool) {
        let (host, port, tls) = match info.addr() {
            ConnectionAddr::Tcp(host, port) => (host.as_str(), *port, false),
            ConnectionAddr::TcpTls { host, port, .. } => (host.as_str(), *port, true),
            _ => ("127.0.0.1", 6379, false),
        };
        let is_socket = matches!(info.addr(), ConnectionAddr::Unix(_)) && self.host.is_none();
        let host = self.host.clone().unwrap_or(host.to_owned());
        let port = self.port.unwrap_or(port);
        let tls = tls || self.tls || self.cacert.is_some();
        let address = match &self.socket {
            Some(path) => ConnectionAddr::Unix(path.clone()),
            None if is_socket => info.addr().clone(),
            None if tls => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            },
            None => ConnectionAddr::Tcp(host, port),
        };
        (address, tls)
    }
}

/// A server whose queues are shown, and which of them.
#[derive(Args, Clone, Default, PartialEq)]
pub struct ShownArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(flatten)]
    pub scope: ScopeArgs,
}

impl ShownArgs {
    pub fn target(&self, password: Option<String>) -> Result<(Target, Scope), String> {
        let target = self.server.target(password)?;
        let scope = self.scope.scope(target.db())?;
        Ok((target, scope))
    }
}

/// The password of the server that the command line names, where that says none.
pub fn password_of_environment() -> Option<String> {
    secret::variable("REDISCLI_AUTH")
}

pub fn port(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|&port| port > 0);
    number.ok_or("not a port number from 1 to 65535".to_owned())
}

/// Arguments that stand elsewhere than on the command line.
pub fn parse<T: Args>(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<T, String> {
    let command = Command::new("dq").no_binary_name(true);
    let command = command.disable_help_flag(true).args_override_self(true);
    let words = words.into_iter().map(Into::into);
    let parsed = T::augment_args(command).try_get_matches_from(words);
    let parsed = parsed.and_then(|matches| T::from_arg_matches(&matches));
    parsed.map_err(|error| sentence(&error))
}

/// What is wrong, in a sentence that repeats no word that may be part of a secret.
pub fn sentence(error: &clap::Error) -> String {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => word.clone(),
        Some(ContextValue::Strings(words)) => words.join(", "),
        _ => String::new(),
    };
    let argument = said(ContextKind::InvalidArg);
    let flag = argument.split([' ', '=']).next().unwrap_or_default();
    let value = said(ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::UnknownArgument if flag.starts_with('-') => {
            let like = said(ContextKind::SuggestedArg);
            let like = Some(like).filter(|like| !like.is_empty());
            let like = like.map_or(String::new(), |like| format!("; there is {like}"));
            format!("unknown option {flag}{like}")
        }
        ErrorKind::UnknownArgument => {
            "one word too many: a value with spaces needs quotes".to_owned()
        }
        ErrorKind::InvalidSubcommand => {
            format!("unknown command {}", said(ContextKind::InvalidSubcommand))
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "which command?".to_owned()
        }
        ErrorKind::MissingRequiredArgument => format!("missing: {argument}"),
        ErrorKind::InvalidValue if value.is_empty() => format!("{flag} needs a value"),
        ErrorKind::InvalidValue => {
            let valid = said(ContextKind::ValidValue);
            format!("{flag} {value}: not one of {valid}")
        }
        ErrorKind::ValueValidation => {
            let why = std::error::Error::source(error).map(ToString::to_string);
            format!("{flag} {value}: {}", why.unwrap_or_default())
        }
        ErrorKind::ArgumentConflict => {
            let other = said(ContextKind::PriorArg);
            let other = other.split(' ').next().unwrap_or_default();
            format!("{flag} and {other} cannot be combined")
        }
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(line: &str) -> Result<Target, String> {
        let arguments: ServerArgs = parse(line.split_whitespace())?;
        arguments.target(Some("from-environment".to_owned()))
    }

    fn login(line: &str) -> (Option<String>, Option<String>) {
        let target = target(line).unwrap();
        let login = target.info().redis_settings();
        let own = |text: Option<&str>| text.map(str::to_owned);
        (own(login.username()), own(login.password()))
    }

    #[test]
    fn arguments_are_those_of_redis_cli() {
        for (line, name) in [
            ("", "127.0.0.1:6379"),
            ("-h ::1 -p 7000", "::1:7000"),
            ("-s /tmp/x.sock", "/tmp/x.sock"),
            ("-u unix:///tmp/y.sock", "/tmp/y.sock"),
            (
                "-u redis://bob:x@db.example:7001 -p 1 -p 7002",
                "db.example:7002",
            ),
            (
                "--sentinel a:1,b:2 --sentinel c:3 --master orders",
                "orders",
            ),
        ] {
            assert_eq!(target(line).unwrap().name(), name, "{line}");
        }
        assert_eq!(target("-u redis://a/3").unwrap().db(), 3);
    }

    #[test]
    fn a_password_is_said_or_named() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(login(""), (None, some("from-environment")));
        assert_eq!(login("--user ann -a -x"), (some("ann"), some("-x")));
        let url = "-u redis://bob:other@db.example --pass better";
        assert_eq!(login(url), (some("bob"), some("better")));
        let file = std::env::temp_dir().join(format!("dq-connect-{}", std::process::id()));
        std::fs::write(&file, "of a file\n").unwrap();
        let line = format!("--pass file:{}", file.display());
        assert_eq!(login(&line).1, some("of a file"));
        let arguments: ServerArgs = parse(line.split_whitespace()).unwrap();
        assert!(arguments.reads_files());
        std::fs::remove_file(&file).unwrap();
        for missing in ["-a file:/no/where", "-a env:DQ_CONNECT_NONE"] {
            let said = target(missing).map(|_| ()).unwrap_err();
            assert!(said.starts_with("--pass: "), "{said}");
        }
    }

    #[test]
    fn what_is_wrong_is_one_sentence() {
        for (line, says) in [
            ("--nonsense", "unknown option --nonsense"),
            ("--nonsense=hunter2", "unknown option --nonsense"),
            (
                "--mastr hunter2",
                "unknown option --mastr; there is --master",
            ),
            (
                "-a hunter1 hunter2",
                "one word too many: a value with spaces needs quotes",
            ),
            ("-h", "-h needs a value"),
            ("-p 99999", "-p 99999: not a port number from 1 to 65535"),
            ("-p -1", "-p -1: not a port number from 1 to 65535"),
            (
                "--master a",
                "--sentinel HOST:PORT and --master NAME go together",
            ),
        ] {
            assert_eq!(target(line).map(|_| ()).unwrap_err(), says, "{line}");
        }
        let url = target("-u http://ann:hunter2@x").map(|_| ()).unwrap_err();
        assert!(url.starts_with("-u: ") && !url.contains("hunter2"), "{url}");
    }
}
