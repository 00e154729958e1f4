//! `dq server`: a server for a small machine, under systemd or in a terminal.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::NamedTempFile;

use crate::child::{Over, Running};
use crate::find::{self, First, Found};
use crate::folder::{refused, Folder};
use crate::settings::warnings;

/// The server's own configuration, beside the data.
const CONFIG: &str = "dq.conf";
const DEFAULTS: &str = "\
# Written once by `dq server`, which never changes it. All settings of the server may stand here.
bind 127.0.0.1 -::1
port 6379
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
";

const OF_PACKED: &str = "the server in this program is for small machines: without TLS, and with the C library's malloc \
     (activedefrag does nothing). Known of Valkey 9.1.2: CVE-2026-130822, unless maxmemory-clients stays 0, as it is by \
     default. A server of the system is preferred, as its updates come by themselves";

#[derive(clap::Args)]
pub struct Args {
    /// Where the data and the configuration, dq.conf, are kept
    #[arg(long, value_name = "FOLDER", default_value = "dq-data")]
    dir: PathBuf,
    /// The port, instead of the one in dq.conf
    #[arg(short = 'p', long, value_name = "PORT", value_parser = dq_connect::arguments::port)]
    port: Option<u16>,
    #[command(flatten)]
    found: find::ProgramArgs,
}

/// Runs until the server ends, which a signal makes it do once it has saved.
pub fn run(args: &Args) -> Result<(), String> {
    let found = args.found.find(First::System)?;
    let mut folder = Folder::take(&args.dir)?;
    let config = folder.path.join(CONFIG);
    write_once(&folder, &config)?;
    eprintln!("{found}, configured by {}", config.display());
    if found.is_packed {
        eprintln!("note: {OF_PACKED}");
    }
    let server = Running::start(&mut command(args, &found, &folder, &config), &folder.lock)?;
    folder.name(server.id());
    match server.until_ready(show) {
        Ok(()) => {}
        Err(Over::Asked) => return Ok(()),
        Err(Over::Failed(why)) => return Err(why),
        Err(Over::PortTaken) => {
            return Err(format!(
                "the port is taken: end what listens there, or change it in {}",
                config.display()
            ))
        }
    }
    for warning in warnings(&config, args.port) {
        eprintln!("warning: {warning}");
    }
    notify("READY=1");
    match server.until_over(show) {
        Some(status) if !status.success() => Err(format!("the server ended ({status})")),
        _ => Ok(()),
    }
}

fn show(line: &str) {
    println!("{line}");
}

/// What is there stays as it is. It is there whole or not at all: with half of it a server would start without an AOF.
fn write_once(folder: &Folder, config: &Path) -> Result<(), String> {
    if config.exists() {
        return Ok(());
    }
    let written = NamedTempFile::new_in(&folder.path).and_then(|mut file| {
        file.write_all(DEFAULTS.as_bytes())?;
        file.persist(config)?;
        Ok(())
    });
    written.map_err(|error| refused(config, &error))
}

/// The log goes where this program's own does, as does the word that the server is ready.
fn command(args: &Args, found: &Found, folder: &Folder, config: &Path) -> Command {
    let mut command = Command::new(&found.server);
    command.arg(config).arg("--dir").arg(&folder.path);
    command.args([
        "--logfile",
        "",
        "--loglevel",
        "notice",
        "--daemonize",
        "no",
        "--supervised",
        "no",
    ]);
    if let Some(port) = args.port {
        command.args(["--port", &port.to_string()]);
    }
    command.arg("--loadmodule").arg(&found.module);
    command
}

/// Tells systemd, or who else started this and waits for it.
fn notify(what: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let told = socket(&path)
        .and_then(|socket| UnixDatagram::unbound()?.send_to_addr(what.as_bytes(), &socket));
    if let Err(error) = told {
        eprintln!("warning: NOTIFY_SOCKET: {error}");
    }
}

fn socket(path: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = path.as_encoded_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt;
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(path)
}
