//! The program that carries a server and the module: DQ_PACKED is Valkey's program for it, else the one that
//! `tools/servers/servers.sh packed-x86_64` has got.

use std::env;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use redis::Connection;
use tempfile::{tempdir, TempDir};

use super::command;
use super::run::Run;

/// A packed program in a folder of its own, which is the user's home, too.
struct Packed {
    folder: TempDir,
    program: PathBuf,
}

impl Packed {
    fn new() -> Packed {
        static WITH_VALKEY: OnceLock<Vec<u8>> = OnceLock::new();
        Packed::of(WITH_VALKEY.get_or_init(|| pack(&valkey())))
    }

    fn of(file: &[u8]) -> Packed {
        let folder = tempdir().unwrap();
        let program = folder.path().join("dq");
        put(&program, file);
        Packed { folder, program }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Of a user who has nothing.
    fn words(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().current_dir(self.path()).args(words);
        command.env("HOME", self.path()).env("TMPDIR", self.path());
        command
    }

    fn dev(&self) -> Command {
        self.words(&["dev", "--ephemeral", "--no-board"])
    }

    /// Where its files are, by the paths that it prints.
    fn unpacked(&self, command: &mut Command) -> PathBuf {
        let said = command.arg("--which").output().unwrap();
        let errors = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{errors}");
        let paths = String::from_utf8(said.stdout).unwrap();
        let server = PathBuf::from(paths.lines().next().unwrap());
        server.parent().unwrap().to_owned()
    }

    fn change(&self, change: impl Fn(&mut Vec<u8>)) {
        let mut bytes = fs::read(&self.program).unwrap();
        change(&mut bytes);
        put(&self.program, &bytes);
    }
}

/// Written by a program of its own: what another test starts meanwhile would keep a file open that this one has written,
/// and what is open for writing cannot be run.
fn put(program: &Path, bytes: &[u8]) {
    let beside = program.with_extension("bytes");
    fs::write(&beside, bytes).unwrap();
    fs::set_permissions(&beside, Permissions::from_mode(0o700)).unwrap();
    let copied = Command::new("cp").arg(&beside).arg(program).status();
    assert!(copied.unwrap().success());
    fs::remove_file(beside).unwrap();
}

fn pack(server: &Path) -> Vec<u8> {
    let folder = tempdir().unwrap();
    let packed = folder.path().join("packed");
    let module = env::var_os("DQ_MODULE").expect("DQ_MODULE");
    let stripped = folder.path().join("libdq.so");
    let strip = Command::new("strip")
        .arg("--strip-all")
        .arg(&module)
        .arg("-o")
        .arg(&stripped)
        .status();
    assert!(strip.unwrap().success());
    let named = |name: &str, path: &Path| format!("{name}={}", path.display());
    let done = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../release/pack.sh"))
        .args([env!("CARGO_BIN_EXE_dq").as_ref(), packed.as_os_str()])
        .arg(named("valkey-server", server))
        .args(["libdq.so", "libdq-musl.so"].map(|it| named(it, &stripped)))
        .status();
    assert!(done.unwrap().success());
    fs::read(packed).unwrap()
}

fn valkey() -> PathBuf {
    let got = format!("../../target/servers/packed-{}/server", env::consts::ARCH);
    let path = env::var_os("DQ_PACKED").map(PathBuf::from);
    let path = path.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(got));
    assert!(path.is_file(), "{}: `make dq` gets it", path.display());
    path
}

/// A job that is delayed comes, and not before.
#[track_caller]
fn delivers(server: &mut Connection) {
    // In one millisecond of the server's, however busy the machine is.
    let mut both = redis::pipe();
    both.atomic()
        .cmd("DQ.ADD")
        .arg(&["mails", "a", "hello", "DELAY", "50"]);
    both.cmd("DQ.POP").arg("mails");
    let (added, early): (String, Option<redis::Value>) = both.query(server).unwrap();
    assert_eq!((&*added, early), ("a", None));
    let job: Option<redis::Value> = command(server, "DQ.BPOP mails 60");
    assert!(job.is_some());
}

#[test]
fn one_file_is_all_that_the_first_job_needs() {
    let packed = Packed::new();
    let mut run = Run::spawn(&mut packed.dev());
    delivers(&mut run.server());
    // The lines to paste, where there is no redis-cli.
    let first = run.says("shell ").replace("DELAY 3000", "DELAY 50");
    let lines = [first].into_iter().chain(run.lines.by_ref().take(2));
    let said = lines.map(|line| {
        let mut shell = Command::new("/bin/sh");
        let said = shell.args(["-c", &line]).env("PATH", "").output().unwrap();
        String::from_utf8([said.stdout, said.stderr].concat()).unwrap()
    });
    let said: Vec<String> = said.collect();
    assert!(
        said[0] == "welcome\n" && said[1].contains("Hello, Ann!") && said[2] == "1\n",
        "{said:?}"
    );
    run.interrupt();
    let folder = packed.unpacked(&mut packed.dev());
    let cache = packed.path().join(".cache/dq");
    assert_eq!(folder.parent(), Some(cache.as_path()));
    for it in [&cache, &folder] {
        assert_eq!(fs::metadata(it).unwrap().mode() & 0o777, 0o700);
    }
    let left = fs::read_dir(&cache).unwrap().count();
    assert_eq!(left, 1, "what was unpacked, and nothing else");
}

#[test]
fn many_that_unpack_at_once_all_start() {
    let packed = Packed::new();
    let mut runs: Vec<Run> = (0..6).map(|_| Run::spawn(&mut packed.dev())).collect();
    runs.iter_mut().for_each(|run| delivers(&mut run.server()));
    runs.into_iter().for_each(Run::interrupt);
    assert_eq!(
        fs::read_dir(packed.path().join(".cache/dq"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn what_is_changed_in_the_cache_is_unpacked_again_and_what_is_older_stays() {
    let packed = Packed::new();
    let older = packed.path().join(".cache/dq/0123456789abcdef");
    fs::create_dir_all(&older).unwrap();
    fs::write(older.join("valkey-server"), "of an older program").unwrap();
    let folder = packed.unpacked(&mut packed.dev());
    assert_ne!(folder, older);
    let server = folder.join("valkey-server");
    let good = fs::read(&server).unwrap();
    fs::remove_file(&server).unwrap();
    fs::write(&server, &good[..good.len() / 2]).unwrap();
    delivers(&mut Run::spawn(&mut packed.dev()).server());
    assert!(fs::read(&server).unwrap() == good, "it is as it was");
    assert!(older.join("valkey-server").is_file());
}

#[test]
fn where_there_is_no_home_and_where_a_place_is_not_the_users_alone() {
    let packed = Packed::new();
    let user = format!("dq-{}", fs::metadata(packed.path()).unwrap().uid());
    let folder = packed.unpacked(packed.dev().env_remove("HOME"));
    assert_eq!(folder.parent(), Some(packed.path().join(user).as_path()));
    // Others could put their own program there.
    let open = packed.path().join("open");
    fs::create_dir_all(open.join("dq")).unwrap();
    fs::set_permissions(open.join("dq"), Permissions::from_mode(0o777)).unwrap();
    let elsewhere = packed.unpacked(packed.dev().env("XDG_CACHE_HOME", &open));
    assert_eq!(elsewhere, folder);
}

#[test]
fn a_file_that_was_cut_or_changed_says_so() {
    for (change, how) in [
        (
            &(|it: &mut Vec<u8>| {
                let at = it.len() - 100_000;
                it[at] ^= 1;
            }) as &dyn Fn(&mut Vec<u8>),
            "changed",
        ),
        // The program itself is whole, or it could not tell.
        (
            &|it| {
                let at = it.len() - 300_000;
                it.drain(at..at + 200_000);
            },
            "cut",
        ),
        (
            &|it| {
                let at = it.len() - 40;
                it[at] = b'9';
            },
            "another length",
        ),
    ] {
        let packed = Packed::new();
        packed.change(change);
        let run = Run::spawn(packed.dev().env("PATH", ""));
        run.fails("dq dev: this program is damaged: get it again");
        assert!(
            !packed.path().join(".cache/dq/valkey-server").exists(),
            "{how}"
        );
    }
}

/// In a mount namespace of its own, where the user may have one; `mount` says what is at ./small.
fn with_small(
    packed: &Packed,
    options: &str,
    environment: &[(&str, &str)],
) -> Option<(bool, String)> {
    let script = format!("mount -t tmpfs -o {options} small small && exec ./dq dev --which");
    let small = packed.path().join("small");
    fs::create_dir_all(&small).unwrap();
    let mut unshare = Command::new("/usr/bin/unshare");
    let may = unshare
        .args(["-rm", "mount", "-t", "tmpfs", "x"])
        .arg(&small)
        .output();
    if !may.is_ok_and(|it| it.status.success()) {
        println!("left out: no mounts of one's own");
        return None;
    }
    let mut command = Command::new("/usr/bin/unshare");
    command
        .args(["-rm", "/bin/sh", "-c", &script])
        .current_dir(packed.path())
        .env_clear();
    command
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .envs(environment.iter().copied());
    let said = command.output().unwrap();
    let text = [said.stdout, said.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    Some((said.status.success(), text.concat()))
}

#[test]
fn a_full_disk_and_one_that_runs_no_programs_are_passed_over() {
    let packed = Packed::new();
    let path = packed.path().to_str().unwrap();
    let small = format!("{path}/small");
    for options in ["size=1m", "noexec"] {
        let said = with_small(&packed, options, &[("HOME", &small), ("TMPDIR", path)]);
        let Some((is_good, said)) = said else { return };
        assert!(is_good && said.contains(&format!("{path}/dq-")), "{said}");
    }
}

#[test]
fn where_the_packed_server_cannot_run_the_systems_is_taken() {
    let folder = tempdir().unwrap();
    let foreign = folder.path().join("foreign");
    fs::write(&foreign, "#!/nowhere/ld-linux\n").unwrap();
    let packed = Packed::of(&pack(&foreign));
    Run::spawn(packed.dev().env("PATH", "")).fails("apk add valkey), or name it: --server PROGRAM; the Valkey in this program does not run here");
    let server = env::var_os("DQ_SERVER").expect("DQ_SERVER");
    let mut run = Run::spawn(
        packed
            .dev()
            .env("DQ_SERVER", server)
            .env("PATH", "/usr/bin:/bin"),
    );
    run.says("/libdq-musl.so) is ready.");
    delivers(&mut run.server());
}

#[test]
fn in_production_the_systems_server_goes_first() {
    let packed = Packed::new();
    let server = env::var_os("DQ_SERVER").expect("DQ_SERVER");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    for system in [None, Some(&server)] {
        let folder = if system.is_some() { "one" } else { "other" };
        let mut command = packed.words(&["server", "-p", &port, "--dir", folder]);
        command.env("PATH", system.map_or("", |_| "/usr/bin:/bin"));
        command.envs(system.map(|it| ("DQ_SERVER", it)));
        let mut run = Run::spawn(&mut command);
        run.says("Ready to accept connections");
        run.signal(libc::SIGTERM);
        let (status, errors) = run.ends();
        assert!(status.success(), "{errors}");
        let is_systems = errors.contains(server.to_str().unwrap());
        assert_eq!(is_systems, system.is_some(), "{errors}");
        assert_eq!(
            errors.contains("note: the server in this program"),
            system.is_none(),
            "{errors}"
        );
    }
}
