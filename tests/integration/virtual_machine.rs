//! A virtual machine whose clock can be set: User Mode Linux, a kernel that is a plain process, on the files of this
//! machine (which it cannot change). This test binary runs in it.

use std::env;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{self, Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::time::Duration;

use crate::support::{locate, one_process_at_a_time, poll, skipped};

/// The name under which Debian's package user-mode-linux installs it.
const KERNEL: &str = "linux.uml";

/// The longest time that a kernel, one process among many, may take on a busy machine.
const LONGEST: Duration = Duration::from_secs(900);

/// Printed by the guest's first process.
const BEGUN: &str = "dq: the guest is there";

/// Printed last if the test has passed.
const PASSED: &str = "dq: passed in the guest";

/// Whether this process runs in a guest. Nothing else may set the clock.
pub fn is_here() -> bool {
    let told = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    told.contains("User Mode Linux")
}

/// Sets the guest's clock so many ms on, or back.
#[track_caller]
pub fn step_clock(ms: i64) {
    assert!(is_here(), "the clock of this machine is not ours");
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: every system has this clock, and `time` is a valid place for its value.
    let told = unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec += ms / 1000;
    // SAFETY: `time` is initialized; the call fails without permission to set the clock.
    let set = unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &time) };
    assert_eq!((told, set), (0, 0), "the clock is set by {ms} ms");
}

/// Runs that test in a guest; if it fails, with its whole output. None: there is no kernel, or it cannot run here (it
/// needs ptrace, and executable memory).
#[track_caller]
pub fn run(test: &str) -> Option<Result<(), String>> {
    let Some(kernel) = kernel() else {
        skipped(format!("there is no {KERNEL} (Debian: user-mode-linux)"));
        return None;
    };
    let name = test.rsplit("::").next().unwrap_or(test);
    let folder = env::temp_dir().join(format!("dq-{}-vm-{name}", process::id()));
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    let init = folder.join("init");
    fs::write(&init, script(test)).expect("the folder takes a file");
    fs::set_permissions(&init, Permissions::from_mode(0o755)).expect("a file of our own");
    let ended = {
        let mut machine = VirtualMachine::start(&kernel, &folder, &init);
        poll(LONGEST, || {
            machine.0.try_wait().expect("a child of our own")
        })
    };
    let log = fs::read(folder.join("log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log).into_owned();
    fs::remove_dir_all(&folder).expect("a folder of our own");
    if !log.contains(BEGUN) {
        skipped(format!(
            "{KERNEL} does not run here: {}",
            log.trim().replace('\n', " / ")
        ));
        return None;
    }
    let passed = ended.is_some() && log.contains(PASSED);
    Some(match (passed, ended) {
        (true, _) => Ok(()),
        (false, Some(_)) => Err(log),
        (false, None) => Err(format!("{log}\nnot done within {LONGEST:?}")),
    })
}

#[test]
fn canary_a_failure_in_the_guest_is_noticed() {
    assert!(!is_here(), "fails in the guest");
    if let Some(outcome) = run("virtual_machine::canary_a_failure_in_the_guest_is_noticed") {
        let log = outcome.expect_err("it fails there");
        assert!(log.contains("fails in the guest"), "{log}");
    }
}

fn kernel() -> Option<PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut files = env::split_paths(&paths).map(|folder| folder.join(KERNEL));
    files.find(|file| file.is_file())
}

/// The guest's first process. Only /run can be written to, and there is no network.
fn script(test: &str) -> String {
    // The server's name decides what it is: links are not resolved.
    let path = |path: PathBuf| path::absolute(path).expect("a path").display().to_string();
    let server = path(locate::server_binary());
    let module = path(locate::module_path());
    let tests = path(env::current_exe().expect("this binary"));
    format!(
        "#!/bin/sh\n\
         echo '{BEGUN}'\n\
         export PATH=/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/run RUST_BACKTRACE=1\n\
         mount -t proc proc /proc && mount -t tmpfs run /run\n\
         export DQ_SERVER='{server}' DQ_MODULE='{module}'\n\
         '{tests}' --exact '{test}' --nocapture && echo '{PASSED}'\n\
         echo o >/proc/sysrq-trigger\n\
         sleep 60\n"
    )
}

/// Its kernel, and the processes that this one has.
struct VirtualMachine(Child);

impl VirtualMachine {
    #[track_caller]
    fn start(kernel: &Path, folder: &Path, init: &Path) -> VirtualMachine {
        let log = File::create(folder.join("log")).expect("the folder takes a file");
        let lock = one_process_at_a_time();
        let child = Command::new(kernel)
            .args(["mem=256M", "rootfstype=hostfs", "rootflags=/", "ro"])
            .args(["quiet", "con=null", "con0=null,fd:1", "ssl=null"])
            .arg(format!("init={}", init.display()))
            .arg(format!("uml_dir={}", folder.display()))
            // Its memory is a file there.
            .env("TMPDIR", folder)
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("a file"))
            .stdout(log)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", kernel.display()));
        drop(lock);
        VirtualMachine(child)
    }
}

impl Drop for VirtualMachine {
    fn drop(&mut self) {
        let _lock = one_process_at_a_time();
        let group = -(self.0.id() as libc::pid_t);
        if matches!(self.0.try_wait(), Ok(None)) {
            // SAFETY: a plain system call; the group is of the child, which has not been waited for.
            unsafe { libc::kill(group, libc::SIGKILL) };
        }
        let _ = self.0.wait();
    }
}
