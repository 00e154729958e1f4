//! The folder of all servers' files, which goes with this process however it ends.

use std::io::{Read, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::{env, fs, process, thread};

pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// To be called first, while there is but one thread: from here on temporary files go there.
    pub fn new() -> Scratch {
        let folder = env::temp_dir().join(format!("dq-bench-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder for temporary files");
        env::set_var("TMPDIR", &folder);
        clean_up_on_signals(folder.clone());
        Scratch { folder }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A copy, so that a build meanwhile does not change what is measured.
    pub fn copy(&self, file: &Path) -> PathBuf {
        let copy = self.folder.join(file.file_name().expect("a file"));
        fs::copy(file, &copy).expect("the module can be copied");
        copy
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Where the signal's handler tells a thread of ours that one came.
static ALARM: AtomicI32 = AtomicI32::new(-1);

extern "C" fn on_signal(signal: libc::c_int) {
    let number = signal as u8;
    // SAFETY: writes one byte; a handler may.
    unsafe { libc::write(ALARM.load(Ordering::Relaxed), (&raw const number).cast(), 1) };
}

/// The end of `cargo` or `make` above counts as one, too.
fn clean_up_on_signals(folder: PathBuf) {
    let (mut heard, told) = UnixStream::pair().expect("a pair of sockets");
    ALARM.store(told.into_raw_fd(), Ordering::Relaxed);
    // SAFETY: the handler is static, and does nothing that a handler must not do.
    unsafe {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, on_signal as *const () as libc::sighandler_t);
        }
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
    }
    thread::spawn(move || {
        let mut signal = [0];
        heard.read_exact(&mut signal).expect("a signal's number");
        stop_servers(&folder);
        let _ = fs::remove_dir_all(&folder);
        process::exit(128 + i32::from(signal[0]));
    });
}

/// Whoever listens in our folder is ours.
fn stop_servers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if let Ok(mut socket) = UnixStream::connect(entry.path().join("server.sock")) {
            let _ = socket.write_all(b"SHUTDOWN NOSAVE\r\n");
        }
    }
}
