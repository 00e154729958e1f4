//! A server that runs under valgrind's callgrind, which counts its instructions and plays a processor's first
//! cache for them: figures that do not depend on what else the machine does.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::host::Host;
use crate::support::locate;

/// An instruction cache as most processors have it: size, ways, bytes of a line.
const CACHE: &str = "32768,8,64";
/// What newer processors have is hidden from the C library, so that it chooses the same functions on all.
const PLAIN: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-ERMS,-FSRM,-BMI2,-RTM";
/// The server's function for it, where its program tells names.
const HOUSEKEEPING: &str = "serverCron";
/// Under valgrind a server takes seconds to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// For which the C library chooses its functions.
#[derive(Clone, Copy, Debug)]
pub enum Processor {
    /// One that all others can do the work of.
    Plain,
    OfMachine,
}

/// What was carried out between two instants.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub instructions: u64,
    /// By the module itself, without what it calls of the server.
    pub own: u64,
    /// Fetches of instructions that the first cache did not have.
    pub misses: u64,
}

pub struct Counted {
    pub host: Host,
    profiles: PathBuf,
    module: PathBuf,
    pid: u32,
    dumps: usize,
}

impl Counted {
    /// With this module, whose own part is told apart.
    pub fn start(folder: &Path, module: &Path, processor: Processor) -> Counted {
        let folder = &folder.join(format!("{processor:?}"));
        let profiles = folder.join("profiles");
        fs::create_dir_all(&profiles).expect("a folder for profiles");
        let launcher = launcher(folder, &profiles, processor);
        // A second of a slow server is many turns of its housekeeping.
        let host = Host::start_with(|builder| {
            let builder = builder.binary(launcher).patience(PATIENCE);
            builder.config("hz", 1).config("dynamic-hz", "no")
        });
        let pid = host.pid();
        let module = module.to_owned();
        Counted {
            host,
            profiles,
            module,
            pid,
            dumps: 0,
        }
    }

    pub fn during(&mut self, work: impl FnOnce(&mut Host)) -> Counts {
        counts(&self.profile_of(work), &self.module)
    }

    /// The module's own files that have a part in all of `count` commands.
    pub fn files_during(&mut self, count: usize, work: impl FnOnce(&mut Host)) -> Vec<String> {
        let carried_out = files(&self.profile_of(work), &self.module);
        let in_all = carried_out.into_iter().filter(|it| it.1 >= count as u64);
        in_all.map(|(file, _)| file).collect()
    }

    fn profile_of(&mut self, work: impl FnOnce(&mut Host)) -> String {
        self.control("--zero");
        work(&mut self.host);
        self.control("--dump");
        self.dumps += 1;
        let dump = self
            .profiles
            .join(format!("out.{}.{}", self.pid, self.dumps));
        fs::read_to_string(&dump).expect("callgrind wrote what was asked for")
    }

    fn control(&self, request: &str) {
        let told = Command::new("callgrind_control")
            .args([request, &self.pid.to_string()])
            .output()
            .expect("callgrind_control comes with valgrind");
        assert!(
            told.status.success(),
            "callgrind_control {request}: {told:?}"
        );
    }
}

/// What the tests' launcher takes for a server; the server may itself be a script that starts one.
fn launcher(folder: &Path, profiles: &Path, processor: Processor) -> PathBuf {
    let server = locate::server_binary();
    let name = server.file_name().expect("a file");
    let launcher = folder.join(name);
    let script = format!(
        "#!/bin/sh\n\
         [ \"$1\" != --version ] || exec '{server}' --version\n\
         export GLIBC_TUNABLES={tunables}\n\
         exec {fixed}valgrind -q --trace-children=yes --tool=callgrind --cache-sim=yes --I1={CACHE} --compress-strings=no --compress-pos=no \\\n\
         \x20   --callgrind-out-file='{profiles}/out.%p' '{server}' \"$@\"\n",
        fixed = fixed_addresses(),
        tunables = match processor {
            Processor::Plain => PLAIN,
            Processor::OfMachine => "",
        },
        server = server.display(),
        profiles = profiles.display(),
    );
    fs::write(&launcher, script).expect("a launcher can be written");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&launcher, executable).expect("it is ours");
    launcher
}

/// Where something lies in memory decides what shares a place in the cache: at the same addresses each time, where
/// that is allowed.
fn fixed_addresses() -> &'static str {
    let tried = Command::new("setarch").args(["-R", "true"]).output();
    let works = tried.is_ok_and(|tried| tried.status.success());
    if works {
        "setarch -R "
    } else {
        ""
    }
}

/// How many instructions of each of the module's own files were carried out: `fl=`, `fi=` and `fe=` name the file that
/// the lines of costs behind it belong to.
fn files(profile: &str, module: &Path) -> BTreeMap<String, u64> {
    let mut files = BTreeMap::new();
    let (mut is_own, mut is_of_call, mut file) = (false, false, "");
    for line in profile.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            is_own = Path::new(object) == module;
        } else if let Some(name) = ["fl=", "fi=", "fe="]
            .iter()
            .find_map(|it| line.strip_prefix(it))
        {
            let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
            file = name.strip_prefix(root).unwrap_or(name);
        } else if line.starts_with("calls=") {
            is_of_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            let of_call = std::mem::take(&mut is_of_call);
            if is_own && !of_call && file.starts_with("src/") {
                let instructions = line.split(' ').nth(1).and_then(|it| it.parse().ok());
                *files.entry(file.to_owned()).or_default() += instructions.unwrap_or(0);
            }
        }
    }
    files
}

/// Sums up a profile: `ob=` names the object that the lines of costs behind it belong to, each a line's number
/// and then what `events:` names; what follows a `calls=` belongs to what was called (`cfn=`), and is told there.
/// All of it, but for the server's housekeeping: the slower the machine, the more often it comes in between.
fn counts(profile: &str, module: &Path) -> Counts {
    let events = profile
        .lines()
        .find_map(|line| line.strip_prefix("events: "))
        .expect("a profile names its events");
    let column = |name| {
        1 + events
            .split(' ')
            .position(|event| event == name)
            .expect(name)
    };
    let (instructions, misses) = (column("Ir"), column("I1mr"));
    let mut counts = Counts::default();
    let (mut is_own, mut is_of_call, mut called) = (false, false, "");
    for line in profile.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            is_own = Path::new(object) == module;
        } else if let Some(function) = line.strip_prefix("cfn=") {
            called = function;
        } else if line.starts_with("calls=") {
            is_of_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            let numbers: Vec<u64> = line.split(' ').flat_map(str::parse).collect();
            let number = |column: usize| numbers.get(column).copied().unwrap_or(0);
            if !std::mem::take(&mut is_of_call) {
                // What was taken off may have come before.
                counts.instructions = counts.instructions.wrapping_add(number(instructions));
                counts.misses = counts.misses.wrapping_add(number(misses));
                counts.own += if is_own { number(instructions) } else { 0 };
            } else if called == HOUSEKEEPING {
                counts.instructions = counts.instructions.wrapping_sub(number(instructions));
                counts.misses = counts.misses.wrapping_sub(number(misses));
            }
        }
    }
    counts
}
