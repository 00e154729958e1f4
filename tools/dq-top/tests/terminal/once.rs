//! `--once`, for scripts.

use crate::cmd;
use crate::monitor::{address, run};
use crate::support::Server;

fn table(arguments: Vec<String>, more: &[&str]) -> Vec<Vec<String>> {
    let more = more.iter().map(|&word| word.to_owned());
    let arguments: Vec<String> = arguments
        .into_iter()
        .chain([
            "--once".to_owned(),
            "--interval".to_owned(),
            "0.1".to_owned(),
        ])
        .chain(more)
        .collect();
    let output = run(&arguments, &[]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    text.lines().map(words).collect()
}

#[test]
fn a_table_with_a_word_for_every_column() {
    let server = Server::start();
    let mut client = server.connect();
    cmd!(client, "DQ.ADD", "two words", "a", "x", "DELAY", 3_600_000);
    cmd!(client, "DQ.ADD", "mails", "a", "x");
    cmd!(client, "DQ.PAUSE", "mails");
    cmd!(client, "DQ.CFGSET", "mails", "DONELEN", 9);
    cmd!(client, "DQ.ADD", "mails", "b", "x", "AFTER", 1, "a");
    let table = table(address(&server), &["--sort", "ready"]);
    assert_eq!(table.len(), 3);
    assert!(table.iter().all(|line| line.len() == 16), "{table:?}");
    let names: Vec<&str> = table.iter().map(|line| line[0].as_str()).collect();
    assert_eq!(names, ["queue", "mails", r"two\x20words"]);
    assert_eq!(table[1][1..5], ["0", "1", "0", "0"]);
    assert_eq!(
        (table[0][13].as_str(), table[1][13].as_str()),
        ("paused", "yes")
    );
    assert_eq!(table[0][14..], ["blocked", "done"]);
    assert_eq!(table[1][14..], ["1", "0"]);
    assert_eq!(table[0][11], "next-ms");
    let next: u64 = table[2][11].parse().expect("milliseconds");
    assert!((3_000_000..=3_600_000).contains(&next), "{next}");
}

#[test]
fn queues_of_several_databases_or_only_those_named() {
    let server = Server::builder().unix_socket().start();
    let mut client = server.connect();
    for db in [0, 3] {
        cmd!(client, "SELECT", db);
        cmd!(client, "DQ.ADD", "mails", "a", "x");
        cmd!(client, "DQ.ADD", "orders", "a", "x");
    }
    let socket = server.folder().join("server.sock");
    let here = || vec!["-s".to_owned(), socket.display().to_string()];
    let names = |more: &[&str]| -> Vec<String> {
        table(here(), more)
            .into_iter()
            .skip(1)
            .map(|line| line[0].clone())
            .collect()
    };
    assert_eq!(names(&[]), ["mails", "orders"]);
    assert_eq!(
        names(&["-n", "all"]),
        ["0:mails", "3:mails", "0:orders", "3:orders"]
    );
    assert_eq!(
        names(&["-n", "3", "--queue", "orders", "--queue", "none"]),
        ["orders"]
    );
    assert_eq!(names(&["--filter", "mai"]), ["mails"]);
}

#[test]
fn more_queues_than_are_asked_for_at_once() {
    let server = Server::start();
    let mut pipe = redis::pipe();
    for number in 0..450 {
        pipe.cmd("DQ.ADD")
            .arg(format!("q{number}"))
            .arg("a")
            .arg("x")
            .ignore();
    }
    pipe.exec(&mut server.connect()).expect("queues");
    let table = table(address(&server), &[]);
    assert_eq!(table.len(), 451);
    assert!(table[1..].iter().all(|line| line[2] == "1"));
}

#[test]
fn a_long_name_widens_its_own_line_only() {
    let server = Server::start();
    let mut client = server.connect();
    for name in ["a", "b", &"x".repeat(1 << 20)] {
        cmd!(client, "DQ.ADD", name, "a", "x");
    }
    let once = ["--once", "--interval", "0.1"].map(str::to_owned);
    let output = run(&[&address(&server)[..], &once].concat(), &[]);
    assert!(output.status.success());
    assert!(
        output.stdout.len() < (1 << 20) + 2000,
        "{}",
        output.stdout.len()
    );
}
