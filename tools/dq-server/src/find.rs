//! Which server program, and which module.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use dq_connect::secret;

use crate::packed::Packed;

/// Names of server programs of the system, the first that is there and new enough counts.
const SERVERS: [&str; 2] = ["valkey-server", "redis-server"];
/// Where packages put the module, besides the folder of this program.
const MODULES: [&str; 6] = [
    "/usr/lib/valkey/modules",
    "/usr/lib/redis/modules",
    "/usr/lib64/valkey/modules",
    "/usr/lib64/redis/modules",
    "/usr/local/lib/dq",
    "/opt/homebrew/lib/dq",
];

/// A server program and the module that it is to load.
#[derive(Debug)]
pub struct Found {
    pub server: PathBuf,
    /// As it says itself: "Valkey 9.1.2".
    pub version: String,
    pub module: PathBuf,
    /// Whether the server is the one that this program carries.
    pub is_packed: bool,
}

impl fmt::Display for Found {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let (server, module) = (self.server.display(), self.module.display());
        write!(to, "{} ({server}) with dq ({module})", self.version)
    }
}

#[derive(clap::Args)]
pub struct ProgramArgs {
    /// The server program, Redis 7.0, Valkey 7.2 or newer; else DQ_SERVER, the system's, or the one in this program
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// The module, libdq.so; else DQ_MODULE, the one in or beside this program, or an installed one
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

/// Which server counts if none is named.
#[derive(Clone, Copy, PartialEq)]
pub enum First {
    Packed,
    /// That is kept up to date, and may have TLS and a better allocator.
    System,
}

impl ProgramArgs {
    pub fn find(&self, first: First) -> Result<Found, String> {
        let packed = Unpacked::here();
        let (server, version, is_packed) = self.server(first, &packed)?;
        let module = match (&self.module, is_packed) {
            (None, true) => packed.file("libdq.so")?,
            _ => self.module(&packed)?,
        };
        Ok(Found {
            server,
            version,
            module,
            is_packed,
        })
    }

    fn server(&self, first: First, packed: &Unpacked) -> Result<(PathBuf, String, bool), String> {
        if let Some(path) = &self.server {
            let (path, version) = named("--server", path)?;
            return Ok((path, version, false));
        }
        let of_packed = || {
            packed
                .server
                .clone()
                .ok()
                .map(|(path, version)| (path, version, true))
        };
        if let (First::Packed, Some(found)) = (first, of_packed()) {
            return Ok(found);
        }
        if let Some(path) = of_environment("DQ_SERVER") {
            let (path, version) = named("DQ_SERVER", &path)?;
            return Ok((path, version, false));
        }
        let installed = SERVERS.iter().filter_map(|name| on_path(Path::new(name)));
        let mut fit = installed.filter_map(|path| Some((version(&path).ok()?, path)));
        let found = fit.next().map(|(version, path)| (path, version, false));
        found.or_else(of_packed).ok_or_else(|| {
            let why = packed.server.as_ref().err().map(String::as_str);
            let why = why.filter(|it| !it.is_empty());
            // Where it only could not be unpacked, that is to be mended.
            if let (Err(_), Some(why)) = (&packed.folder, why) {
                return why.to_owned();
            }
            let why = why.map(|it| format!("; {it}"));
            format!(
                "there is no valkey-server 7.2 or redis-server 7.0, or newer, here: install one (apt install \
                 valkey-server, or redis-server; apk add valkey), or name it: --server PROGRAM{}",
                why.unwrap_or_default()
            )
        })
    }

    fn module(&self, packed: &Unpacked) -> Result<PathBuf, String> {
        let said = [
            ("--module", self.module.clone()),
            ("DQ_MODULE", of_environment("DQ_MODULE")),
        ];
        for (name, path) in said {
            let Some(path) = path else { continue };
            return match path.is_file() {
                // The server looks in its own folder.
                true => path
                    .canonicalize()
                    .map_err(|error| format!("{name} {}: {error}", path.display())),
                false => Err(format!("{name} {}: there is no such file", path.display())),
            };
        }
        let beside = this_program().and_then(|path| Some(path.parent()?.to_owned()));
        let folders = beside.into_iter().chain(MODULES.iter().map(PathBuf::from));
        let mut there = folders
            .map(|it| it.join("libdq.so"))
            .filter(|it| it.is_file());
        let packed = packed.module();
        packed.or_else(|| there.next()).ok_or_else(|| {
            "there is no libdq.so beside this program, nor an installed one: name it: --module FILE".to_owned()
        })
    }
}

/// What this program carries, where it is unpacked.
struct Unpacked {
    folder: Result<PathBuf, String>,
    /// With its version, if it runs here; else why not, empty where nothing is carried.
    server: Result<(PathBuf, String), String>,
}

impl Unpacked {
    fn here() -> Unpacked {
        let packed = this_program().map_or(Ok(None), |it| Packed::of(&it));
        let folder = match packed {
            Ok(Some(packed)) => packed.unpacked(),
            Ok(None) => Err(String::new()),
            Err(why) => Err(why),
        };
        let server = folder.clone().and_then(|folder| {
            let path = folder.join("valkey-server");
            let version = version(&path);
            let why = |why| {
                format!("the Valkey in this program does not run here, as without glibc ({why})")
            };
            version.map_err(why).map(|version| (path, version))
        });
        Unpacked { folder, server }
    }

    fn file(&self, name: &str) -> Result<PathBuf, String> {
        self.folder.clone().map(|folder| folder.join(name))
    }

    /// For a server of this system: with the C library that the system has.
    fn module(&self) -> Option<PathBuf> {
        let name = match self.server {
            Ok(_) => "libdq.so",
            Err(_) => "libdq-musl.so",
        };
        self.file(name).ok().filter(|it| it.is_file())
    }
}

fn this_program() -> Option<PathBuf> {
    env::current_exe().and_then(|path| path.canonicalize()).ok()
}

fn named(by: &str, path: &Path) -> Result<(PathBuf, String), String> {
    let shown = path.display();
    let found = on_path(path).ok_or_else(|| format!("{by} {shown}: there is no such program"))?;
    let version = version(&found).map_err(|why| format!("{by} {shown}: {why}"))?;
    Ok((found, version))
}

fn of_environment(name: &str) -> Option<PathBuf> {
    secret::variable(name).map(PathBuf::from)
}

/// A path as it is, a name as the shell would find it.
fn on_path(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    let folders = env::var_os("PATH")?;
    let mut paths = env::split_paths(&folders).map(|folder| folder.join(name));
    paths.find(|it| it.is_file())
}

/// "Valkey 9.1.2", or why it does not do.
fn version(server: &Path) -> Result<String, String> {
    let said = Command::new(server).arg("--version").output();
    let said = said.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&said.stdout);
    let name = said.split_whitespace().next().unwrap_or_default();
    let number = said
        .split_whitespace()
        .find_map(|word| word.strip_prefix("v="));
    let parts = number.map(|it| it.split('.').map_while(|part| part.parse::<u32>().ok()));
    let parts: Vec<u32> = parts.into_iter().flatten().collect();
    let least = match name {
        "Valkey" => [7, 2],
        _ => [7, 0],
    };
    match number {
        Some(number) if parts.len() > 1 && parts[..2] >= least[..] => {
            Ok(format!("{name} {number}"))
        }
        _ => Err("it is no Redis 7.0, Valkey 7.2 or newer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_program_is_a_server_by_the_version_that_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let server = folder.path().join("server");
        for (says, expected) in [
            (
                "Valkey server v=9.1.2 sha=00000000:0 malloc=libc",
                Ok("Valkey 9.1.2"),
            ),
            ("Redis server v=7.0.15 sha=00000000:0", Ok("Redis 7.0.15")),
            ("Valkey server v=7.1.0", Err(())),
            ("Redis server v=6.2.7", Err(())),
            ("Redis server v=7", Err(())),
            ("hello", Err(())),
            ("", Err(())),
        ] {
            fs::write(&server, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
            fs::set_permissions(&server, fs::Permissions::from_mode(0o700)).unwrap();
            assert_eq!(
                version(&server).map_err(drop).as_deref(),
                expected.map_err(|_| &()),
                "{says}"
            );
        }
    }
}
