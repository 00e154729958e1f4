//! The tool's connections to the rest: encryption, and readers of its output.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{skipped, Server};
use crate::world::{now_ms, program, run_of, World, HOUR_MS};

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let mut world = World::new(&["zset", "old"]);
    world.zadd("old", [("a".to_owned(), (now_ms() + HOUR_MS).to_string())]);
    for options in [&["--dry-run"][..], &["--delete-source"], &["--forget"]] {
        let mut command = world.command(options);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let run = run_of(command.stdout(writer).output().expect("the tool runs"));
        assert_eq!(run.code, 2, "{options:?}: {}", run.text);
        assert!(!run.text.contains("panicked"), "{}", run.text);
        run.says("the output cannot be written");
    }
    assert_eq!(world.zcard("old"), 1, "nobody heard that all is in order");
    // It is not an error either if nobody reads the errors.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = world
        .command(&[])
        .stdout(writer.try_clone().expect("a pipe"))
        .stderr(writer)
        .status();
    assert_eq!(status.expect("the tool runs").code(), Some(2));
}

fn certificate(folder: &Path) -> bool {
    let Some(openssl) = program("openssl") else {
        return false;
    };
    let made = Command::new(openssl)
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    made.expect("openssl runs").success()
}

#[test]
fn servers_may_want_encryption() {
    let files = std::env::temp_dir().join(format!("dq-import-tls-{}", std::process::id()));
    fs::create_dir_all(&files).expect("a folder");
    if !certificate(&files) {
        return;
    }
    let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let port = port.expect("a port").port();
    let [key, cert] = ["key.pem", "cert.pem"].map(|name| files.join(name).display().to_string());
    let started = Server::builder()
        .config("tls-port", port)
        .config("tls-key-file", &key)
        .config("tls-cert-file", &cert)
        .config("tls-ca-cert-file", &cert)
        .config("tls-auth-clients", "no")
        .try_start();
    let server = match started {
        Ok(server) => server,
        Err(why) => return skipped(format!("this server has no TLS: {why}")),
    };
    let mut world = World::new(&["zset", "old"]);
    world.zadd("old", [("a".to_owned(), (now_ms() + HOUR_MS).to_string())]);
    let to = format!("rediss://localhost:{port}");
    world.run(&["-u", &to, "--cacert", &cert]).ok();
    let mut there = server.connect();
    assert_eq!(
        crate::world::count(crate::cmd!(there, "DQ.LEN", crate::world::QUEUE)),
        1
    );
    // A server whose certificate nobody signed gets no jobs.
    let run = world.run(&["-u", &to]);
    assert_eq!(run.code, 2, "{}", run.text);
    run.says("ertificate");
    let run = world.run(&["-u", &to, "--cacert", "nowhere.pem"]);
    assert_eq!(run.code, 2, "{}", run.text);
    run.says("nowhere.pem");
    let _ = fs::remove_dir_all(files);
}
