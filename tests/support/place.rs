//! A free port and a folder of its own for every server.

use std::env;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::thread;

use super::one_process_at_a_time;

/// A port that no process listens on. It is given to nobody else while this lives, even while its server is down: the
/// UDP port of the same number, which servers do not use, marks it as taken.
pub struct Port {
    pub number: u16,
    _taken: UdpSocket,
}

impl Port {
    /// Ports are below the range of outgoing connections, so that only another server could take one before ours does;
    /// then `try_start` tries the next. The cluster's bus, 10000 above, has a range of its own.
    pub fn free() -> Port {
        const FIRST: u16 = 11_000;
        const COUNT: u16 = 10_000;
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // Test binaries that run side by side start at different ports.
        let start = process::id().wrapping_mul(137);
        let mut ports = (0..COUNT).map(|_| {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            FIRST + (start.wrapping_add(step.into()) % u32::from(COUNT)) as u16
        });
        let found = ports.find_map(|number| {
            let _taken = UdpSocket::bind(("127.0.0.1", number)).ok()?;
            (is_free(number) && is_free(number + COUNT)).then_some(Port { number, _taken })
        });
        found.expect("a free port")
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// A new folder, named after the running test.
pub fn new_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let test: String = thread::current()
        .name()
        .and_then(|name| name.rsplit("::").next())
        .unwrap_or("test")
        .chars()
        .take(30) // a socket's path is 107 bytes at most
        .collect();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("dq-{}-{count}-{test}", process::id()));
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    folder
}

pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a new folder");
    for entry in fs::read_dir(from).expect("a folder to copy") {
        let entry = entry.expect("an entry of the folder");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a file's type") {
            kind if kind.is_dir() => copy_folder(&entry.path(), &target),
            kind if kind.is_file() => {
                fs::copy(entry.path(), target).expect("a file to copy");
            }
            _ => {} // sockets
        }
    }
}

/// The last file of increments of the AOF that a server has in this folder.
pub fn last_aof(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder.join("appendonlydir")).expect("the folder of the AOF");
    let files = files.map(|file| file.expect("a file").path());
    let increments = files.filter(|file| file.to_string_lossy().contains(".incr."));
    increments.max().expect("a file of increments")
}

/// Compiles a library to be loaded before the C library.
#[track_caller]
pub fn preloaded(source: &str, folder: &Path) -> PathBuf {
    let [file, library] = ["preloaded.c", "preloaded.so"].map(|it| folder.join(it));
    fs::write(&file, source).expect("the folder takes a file");
    let lock = one_process_at_a_time();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &file])
        .status();
    drop(lock);
    assert!(
        compiled.is_ok_and(|it| it.success()),
        "by what cargo links with"
    );
    library
}
