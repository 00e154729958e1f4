//! Finds the server and the module, and reads the server's version.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The project's folder. Programs of tools/ and the benchmarks include this file, too, and their manifests are
/// elsewhere.
pub fn root() -> &'static Path {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut found = above.filter(|folder| folder.join("tests/support").is_dir());
    found.next().expect("a folder with tests/support")
}

/// The version that `--version` prints: `Redis server v=7.0.15 ...`, `Valkey server v=8.0.1 ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// `redis` or `valkey`.
    pub name: String,
    pub number: (u32, u32, u32),
}

impl Version {
    /// Each server is asked once: a test starts several, and there are a thousand tests.
    pub fn of(binary: &Path) -> Version {
        static KNOWN: Mutex<BTreeMap<PathBuf, Version>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let version = known.entry(binary.to_owned());
        version.or_insert_with(|| Version::ask(binary)).clone()
    }

    fn ask(binary: &Path) -> Version {
        let _lock = super::one_process_at_a_time();
        let output = Command::new(binary)
            .arg("--version")
            .output()
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", binary.display()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Version::parse(&text)
            .unwrap_or_else(|| panic!("{} --version says {text:?}", binary.display()))
    }

    fn parse(text: &str) -> Option<Version> {
        let text = text.to_lowercase();
        let dotted = text.split("v=").nth(1)?.split_whitespace().next()?;
        let mut parts = dotted.split('.').map(|part| part.parse().ok());
        let number = (parts.next()??, parts.next()??, parts.next()??);
        // Valkey 7.2 calls itself just "Server", or "Valkey server": only Redis says "Redis".
        let name = if text.contains("redis") {
            "redis"
        } else {
            "valkey"
        };
        Some(Version {
            name: name.to_owned(),
            number,
        })
    }

    pub fn is_redis(&self) -> bool {
        self.name == "redis"
    }

    pub fn is_valkey(&self) -> bool {
        self.name == "valkey"
    }

    /// With more than one I/O thread a client may be answered before its write is in the AOF, whatever `appendfsync`
    /// is: seen with plain SETs on Redis 8.6.3 without a module, not on 8.0.2.
    pub fn answers_before_the_aof(&self) -> bool {
        self.is_redis() && self.at_least(8, 2)
    }

    /// Compares numbers only: compare the name, too, where Redis and Valkey differ.
    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        (self.number.0, self.number.1) >= (major, minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (major, minor, patch) = self.number;
        write!(f, "{} {major}.{minor}.{patch}", self.name)
    }
}

pub fn server_binary() -> PathBuf {
    if let Some(path) = env::var_os("DQ_SERVER").filter(|path| !path.is_empty()) {
        return root().join(path);
    }
    let here = root().join("target/servers/system/redis-server");
    in_path("redis-server")
        .or_else(|| in_path("valkey-server"))
        .or_else(|| here.exists().then_some(here))
        .expect("no server found: install redis-server, or set DQ_SERVER, or run `make test`")
}

fn in_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

pub fn module_path() -> PathBuf {
    let path = match env::var_os("DQ_MODULE").filter(|path| !path.is_empty()) {
        Some(path) => root().join(path),
        None => {
            let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
            let file = format!(
                "libdq.{}",
                if cfg!(target_os = "macos") {
                    "dylib"
                } else {
                    "so"
                }
            );
            root().join(target).join("release").join(file)
        }
    };
    assert!(
        path.is_file(),
        "no module at {}: build it first (`make build`)",
        path.display()
    );
    path
}

/// The module with DQ.BREAK, built on first use.
pub static BREAKABLE: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = root().join("target");
    let status = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["build", "-q", "--release", "-p", "dq-breakable"])
        .arg("--target-dir")
        .arg(&target)
        .env_remove("CARGO_BUILD_TARGET")
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "the module for tests is not built"
    );
    let file = if cfg!(target_os = "macos") {
        "libdq_breakable.dylib"
    } else {
        "libdq_breakable.so"
    };
    target.join("release").join(file)
});
