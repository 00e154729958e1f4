//! `dq dev` and `dq server` with real servers: DQ_SERVER and DQ_MODULE as in the module's own tests.

mod mcp;
#[cfg(target_os = "linux")]
mod packed;
mod run;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use redis::{Client, Connection, FromRedisValue};
use run::{program, Run};
use tempfile::{tempdir, TempDir};

const PATIENCE: Duration = Duration::from_secs(60);

fn command<T: FromRedisValue>(connection: &mut Connection, line: &str) -> T {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    command
        .arg(words.collect::<Vec<_>>())
        .query(connection)
        .unwrap()
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A program that takes the server's place, and says this.
fn imitation(folder: &Path, says: &str) -> String {
    let path = folder.join("imitation");
    let text = format!("#!/bin/sh\n[ \"$1\" != --version ] || exec echo 'Valkey server v=9.1.2'\necho '{says}'\nexit 1\n");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn what_was_added_is_there_the_next_time_and_the_board_beside_it() {
    let folder = tempdir().unwrap();
    let mut run = Run::start(folder.path(), &["dev"]);
    let mut server = run.server();
    let board = run.says("board    http://");
    let mut page = TcpStream::connect(board.trim_end_matches('/')).unwrap();
    write!(
        page,
        "GET / HTTP/1.0\r\nHost: {}\r\n\r\n",
        board.trim_end_matches('/')
    )
    .unwrap();
    let mut answer = String::new();
    page.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("<title>dq</title>"), "{answer}");
    let id: String = command(&mut server, "DQ.ADD mails a x DELAY 100000000");
    assert_eq!(id, "a");
    let policy: (String, String) = command(&mut server, "CONFIG GET maxmemory-policy");
    assert_eq!(policy.1, "noeviction");
    run.interrupt();
    assert!(
        TcpStream::connect(board.trim_end_matches('/')).is_err(),
        "the board goes on"
    );
    let mut again = Run::start(folder.path(), &["dev", "--no-board"]);
    assert_eq!(command::<u32>(&mut again.server(), "DQ.LEN mails"), 1);
    again.interrupt();
}

#[test]
fn who_kills_the_program_ends_the_server_which_saves() {
    let folder = tempdir().unwrap();
    let mut run = Run::start(folder.path(), &["dev"]);
    let mut server = run.server();
    let board = run.says("board    http://");
    command::<String>(&mut server, "DQ.ADD mails a x");
    run.signal(libc::SIGKILL);
    run.child.wait().unwrap();
    wait_until("the board ends", || {
        TcpStream::connect(board.trim_end_matches('/')).is_err()
    });
    // The folder is taken until the server has ended.
    let mut again = Run::start(folder.path(), &["dev", "--no-board"]);
    wait_until("the server has ended", || match again.lines.next() {
        Some(line) => (again.said.push(line), true).1,
        None => {
            (
                again = Run::start(folder.path(), &["dev", "--no-board"]),
                false,
            )
                .1
        }
    });
    assert_eq!(command::<u32>(&mut again.server(), "DQ.LEN mails"), 1);
}

#[test]
fn three_at_once_have_ports_of_their_own() {
    let folders: [TempDir; 3] = std::array::from_fn(|_| tempdir().unwrap());
    let runs = folders
        .each_ref()
        .map(|it| Run::start(it.path(), &["dev", "--no-board"]));
    let mut servers = runs.map(|mut run| (run.server(), run));
    for (server, _) in &mut servers {
        command::<String>(server, "DQ.ADD mails a x");
        assert_eq!(command::<u32>(server, "DQ.LEN mails"), 1);
    }
}

#[test]
fn nothing_is_kept_of_what_is_ephemeral() {
    let folder = tempdir().unwrap();
    let words = ["dev", "--ephemeral", "--test-clock", "--no-board"];
    let mut run = Run::spawn(
        program(folder.path())
            .args(words)
            .env("TMPDIR", folder.path()),
    );
    let mut server = run.server();
    command::<String>(&mut server, "DQ.ADD mails a x DELAY 2592000000");
    command::<u64>(&mut server, "DQ.CLOCK ADVANCE 2592000000");
    assert_eq!(command::<u32>(&mut server, "DQ.LEN mails READY"), 1);
    run.interrupt();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_is_told_in_a_sentence() {
    let folder = tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    fs::write(folder.path().join("file"), "").unwrap();
    let mut first = Run::start(folder.path(), &["dev", "--no-board"]);
    first.server();
    let files = folder.path().join("files/appendonlydir");
    fs::create_dir_all(&files).unwrap();
    let manifest = "file appendonly.aof.1.base.rdb seq 1 type b\n";
    fs::write(files.join("appendonly.aof.manifest"), manifest).unwrap();
    fs::write(files.join("appendonly.aof.1.base.rdb"), "REDIS9999").unwrap();
    let newer = imitation(
        folder.path(),
        "ERR queue data was written by a newer version of the module: install it",
    );
    for (words, says) in [
        (
            &["dev", "--no-board"][..],
            "dq dev: dq-data belongs to a server that is running (process ",
        ),
        (
            &["server"],
            "dq server: dq-data belongs to a server that is running (process ",
        ),
        (
            &["dev", "-p", &port, "--ephemeral"],
            &format!("dq dev: port {port} is taken"),
        ),
        (
            &["server", "-p", &port, "--dir", "other"],
            "dq server: the port is taken: ",
        ),
        (
            &["dev", "--dir", "file/data"],
            "dq dev: file/data: Not a directory",
        ),
        (
            &["dev", "--server", "/nowhere"],
            "dq dev: --server /nowhere: there is no such program",
        ),
        (
            &["dev", "--server", "/bin/true"],
            "it is no Redis 7.0, Valkey 7.2 or newer",
        ),
        (
            &["dev", "--module", "nowhere.so"],
            "dq dev: --module nowhere.so: there is no such file",
        ),
        (
            &["dev", "--module", "file", "--ephemeral"],
            "dq dev: the server did not start (exit status: 1): ",
        ),
        (
            &["dev", "--dir", "files"],
            "dq dev: the data was written by a newer server, and nothing of it was changed: name that one",
        ),
        (
            &["dev", "--module", "file", "--dir", "logged"],
            "/logged/server.log",
        ),
        (
            &["server", "--server", &newer, "--dir", "other"],
            "was written by a newer version of dq",
        ),
    ] {
        Run::start(folder.path(), words).fails(says);
    }
    first.interrupt();
}

#[test]
fn a_configuration_is_written_whole_or_not_at_all() {
    let folder = tempdir().unwrap();
    // No file may grow, as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" server --dir data";
    let mut shell = Command::new("/bin/sh");
    let shell = shell.args(["-c", script, env!("CARGO_BIN_EXE_dq")]);
    let full = Run::spawn(shell.current_dir(folder.path()));
    full.fails("another folder: --dir FOLDER");
    let left = fs::read_dir(folder.path().join("data")).unwrap();
    let left: Vec<_> = left.map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["dq.lock"]);
}

#[test]
fn a_server_is_ready_once_it_has_its_data_and_keeps_its_configuration() {
    let folder = tempdir().unwrap();
    let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let config = folder.path().join("data/dq.conf");
    let start = |port: &str| {
        let words = ["server", "--dir", "data", "-p", port];
        let run = Run::spawn(
            program(folder.path())
                .args(words)
                .env("NOTIFY_SOCKET", folder.path().join("notify")),
        );
        let mut told = [0; 100];
        let length = socket.recv(&mut told).expect("a word to NOTIFY_SOCKET");
        assert_eq!(&told[..length], b"READY=1");
        let server = Client::open(format!("redis://127.0.0.1:{port}")).unwrap();
        (run, server.get_connection().unwrap())
    };
    let free = || {
        TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port()
    };
    let port = free().to_string();
    let (mut run, mut server) = start(&port);
    command::<String>(&mut server, "DQ.ADD mails a x");
    run.signal(libc::SIGTERM);
    let (status, errors) = run.ends();
    assert!(
        status.success() && !errors.contains("warning"),
        "{status}: {errors}"
    );
    // What is changed there stays, and what endangers jobs is said.
    let changed = fs::read_to_string(&config)
        .unwrap()
        .replace("everysec", "no");
    fs::write(&config, &changed).unwrap();
    let (mut run, mut server) = start(&port);
    assert_eq!(command::<u32>(&mut server, "DQ.LEN mails"), 1);
    run.signal(libc::SIGTERM);
    let (status, errors) = run.ends();
    assert!(
        status.success() && errors.contains("warning: appendfsync no"),
        "{status}: {errors}"
    );
    assert_eq!(fs::read_to_string(&config).unwrap(), changed);
}

#[test]
fn a_job_is_added_from_the_command_line() {
    let folder = tempdir().unwrap();
    let mut run = Run::start(folder.path(), &["dev", "--ephemeral", "--no-board"]);
    let mut server = run.server();
    let port = run.says(" cli -p ");
    let port = port.split(' ').next().unwrap();
    let add = |words: &[&str]| {
        let added = program(folder.path())
            .args(["add", "-p", port, "mails"])
            .args(words)
            .output();
        let added = added.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        (
            added.status.code().unwrap(),
            text(&added.stdout),
            text(&added.stderr),
        )
    };
    let nothing = String::new;
    assert_eq!(
        add(&["x", "--id", "a", "--delay", "1h 30m"]),
        (0, "a".to_owned(), nothing())
    );
    assert_eq!(add(&["y", "--id", "a"]), (1, nothing(), nothing()));
    let (code, made, errors) = add(&["z", "--at", "2100-01-01T00:00:00Z", "PRIORITY", "7"]);
    assert_eq!((code, made.is_empty()), (0, false), "{errors}");
    let job: Vec<redis::Value> = command(&mut server, &format!("DQ.GET mails {made}"));
    assert!(format!("{job:?}").contains("4102444800000"), "{job:?}");
    assert_eq!(command::<u32>(&mut server, "DQ.LEN mails DELAYED"), 2);
    let (code, _, errors) = add(&["x", "PRIORITY", "high"]);
    assert!(code == 2 && errors.starts_with("dq add: ERR "), "{errors}");
    let (code, _, errors) = add(&["x", "--delay", "soon"]);
    assert!(
        code == 2 && errors.starts_with("dq add: --delay soon: "),
        "{errors}"
    );
    command::<String>(&mut server, "CONFIG SET requirepass hunter2");
    let (code, _, errors) = add(&["x"]);
    let says = "dq add: NOAUTH Authentication required. (--user, --pass)";
    assert_eq!((code, errors.as_str()), (2, says));
    run.interrupt();
}

#[test]
fn a_queue_is_explained_from_the_command_line() {
    let folder = tempdir().unwrap();
    let mut run = Run::start(folder.path(), &["dev", "--ephemeral", "--no-board"]);
    let mut server = run.server();
    let port = run.says(" cli -p ");
    let port = port.split(' ').next().unwrap();
    let explain = |words: &[&str]| {
        let said = program(folder.path())
            .args(["explain", "-p", port])
            .args(words)
            .output();
        let said = said.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        (
            said.status.code().unwrap(),
            text(&said.stdout),
            text(&said.stderr),
        )
    };
    assert_eq!(explain(&["mails"]), (1, String::new(), String::new()));
    for line in [
        "DQ.CFGSET mails GROUPMAX 1",
        "DQ.MADD mails 2 a x b x GROUP one",
        "DQ.MADD mails 3 c x d x e x GROUP two",
        "DQ.POP mails COUNT 9 TTR 5000000",
    ] {
        let _: redis::Value = command(&mut server, line);
    }
    let (code, said, errors) = explain(&["mails"]);
    let of_groups =
        "3 jobs are ready; their groups are at GROUPMAX 1; the next lease ends in 1 h 2";
    assert!(code == 0 && said.starts_with(of_groups), "{said}{errors}");
    assert!(!said.contains('\n'), "{said}");
    let (code, said, _) = explain(&["mails", "a"]);
    assert!(
        code == 0 && said.starts_with("a worker has it, its lease ends in 1 h 2"),
        "{said}"
    );
    let group = "its group has 1 job reserved, as many as it may";
    assert_eq!(explain(&["mails", "b"]).1, group);
    let second = format!("{group}; 1 ready job comes before it");
    assert_eq!(explain(&["mails", "e"]).1, second);
    assert_eq!(explain(&["mails", "f"]).0, 1);
    let _: redis::Value = command(&mut server, "DQ.PAUSE mails");
    let paused = explain(&["mails"]);
    assert!(
        paused
            .1
            .starts_with("the queue is paused until it is resumed; 3 jobs"),
        "{paused:?}"
    );
    let _: redis::Value = command(&mut server, "SET text x");
    let (code, _, errors) = explain(&["text"]);
    assert!(
        code == 2 && errors.starts_with("dq explain: WRONGTYPE"),
        "{errors}"
    );
    let _: redis::Value = command(&mut server, "ACL SETUSER default -dq.explain");
    let (code, _, errors) = explain(&["mails"]);
    assert!(
        code == 2 && errors.starts_with("dq explain: NOPERM"),
        "{errors}"
    );
    run.interrupt();
}
