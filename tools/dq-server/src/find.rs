//! Which server program, and which module.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use dq_connect::secret;

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
}

#[derive(clap::Args)]
pub struct ProgramArgs {
    /// The server program, Redis 7.0, Valkey 7.2 or newer; by default that of DQ_SERVER, else that of the system
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// The module, libdq.so; by default that of DQ_MODULE, else the one beside this program, else an installed one
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

impl ProgramArgs {
    pub fn find(&self) -> Result<Found, String> {
        let (server, version) = self.server()?;
        let module = self.module()?;
        Ok(Found {
            server,
            version,
            module,
        })
    }

    fn server(&self) -> Result<(PathBuf, String), String> {
        let said = [
            ("--server", self.server.clone()),
            ("DQ_SERVER", of_environment("DQ_SERVER")),
        ];
        for (name, path) in said {
            let Some(path) = path else { continue };
            let found = on_path(&path)
                .ok_or_else(|| format!("{name} {}: there is no such program", path.display()))?;
            let version =
                version(&found).map_err(|why| format!("{name} {}: {why}", path.display()))?;
            return Ok((found, version));
        }
        let installed = SERVERS.iter().filter_map(|name| on_path(Path::new(name)));
        let mut fit = installed.filter_map(|path| Some((version(&path).ok()?, path)));
        let found = fit.next().map(|(version, path)| (path, version));
        found.ok_or_else(|| {
            "there is no valkey-server 7.2 or redis-server 7.0, or newer, here: install one (apt install \
             valkey-server, or redis-server), or name it: --server PROGRAM"
                .to_owned()
        })
    }

    fn module(&self) -> Result<PathBuf, String> {
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
        let beside = env::current_exe().and_then(|path| path.canonicalize());
        let beside = beside.ok().and_then(|path| Some(path.parent()?.to_owned()));
        let folders = beside.into_iter().chain(MODULES.iter().map(PathBuf::from));
        let mut there = folders
            .map(|it| it.join("libdq.so"))
            .filter(|it| it.is_file());
        there.next().ok_or_else(|| {
            "there is no libdq.so beside this program, nor an installed one: name it: --module FILE".to_owned()
        })
    }
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
