//! Failures are shown, and end neither the monitor nor its connection for good.

use crate::cmd;
use crate::monitor::{address, run, Monitor};
use crate::support::{Server, PATIENCE};

#[test]
fn a_lost_connection_is_said_and_made_again() {
    let mut server = Server::builder().aof().start();
    cmd!(server.connect(), "DQ.ADD", "q", "a", "x");
    let mut monitor = Monitor::of(&server);
    monitor.wait_for_row("q", |_| true);
    server.kill();
    monitor.wait_for("No connection to");
    monitor.press("p\r"); // an act meanwhile does no harm
    monitor.wait_for("not connected; nothing was done");
    server.restart();
    cmd!(server.connect(), "DQ.ADD", "q", "b", "x");
    monitor.wait_for_row("q", |row| row[2] == "2");
    monitor.wait("it is fine again", |screen| {
        !screen.contains("No connection to")
    });
    assert!(monitor.still_runs());
}

#[test]
fn a_server_without_the_module_is_told_from_an_empty_one() {
    let plain = Server::plain().start();
    let monitor = Monitor::of(&plain);
    monitor.wait_for("does not have the dq module");
    let empty = Server::start();
    let monitor = Monitor::of(&empty);
    let screen = monitor.wait_for("No queues.");
    assert!(!screen.contains("does not have"), "{screen}");
}

#[test]
fn a_wrong_password_is_said_and_the_right_one_works() {
    let server = Server::builder().config("requirepass", "secret").start();
    let wrong = Monitor::start(&address(&server), &[("REDISCLI_AUTH", "wrong")]);
    wrong.wait_for("the server refuses this user");
    let none = Monitor::of(&server);
    none.wait_for("NOAUTH");
    let right = Monitor::start(&address(&server), &[("REDISCLI_AUTH", "secret")]);
    right.wait_for("No queues.");
}

#[test]
fn a_replica_is_looked_at_and_refuses_what_would_change_it() {
    let master = Server::start();
    let replica = Server::builder().start();
    cmd!(master.connect(), "DQ.ADD", "q", "a", "x");
    cmd!(replica.connect(), "REPLICAOF", "127.0.0.1", master.port());
    replica.wait_for_link();
    let monitor = Monitor::of(&replica);
    monitor.wait_for_row("q", |row| row[2] == "1");
    monitor.wait_for("replica");
    monitor.press("p\r");
    monitor.wait_for("q: READONLY");
}

#[test]
fn signals_give_the_terminal_back() {
    let server = Server::start();
    let mut monitor = Monitor::of(&server);
    monitor.wait_for("No queues.");
    assert!(monitor.shows_alternate_screen() && monitor.hides_cursor());
    // The shell's own `kill`: not every machine has the program.
    let kill = format!("kill {}", monitor.pid());
    let sent = std::process::Command::new("sh")
        .args(["-c", &kill])
        .status();
    assert!(sent.expect("a shell runs").success());
    assert!(monitor.ended_well());
    let back = crate::support::poll(PATIENCE, || {
        (!monitor.shows_alternate_screen() && !monitor.hides_cursor()).then_some(())
    });
    assert!(back.is_some(), "the screen is as it was");
}

#[test]
fn what_cannot_work_ends_with_a_word() {
    let nowhere = run(&["--once".into(), "-s".into(), "/nowhere".into()], &[]);
    assert!(!nowhere.status.success());
    let said = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert!(said.starts_with("dq top: /nowhere: "), "{said}");
    let no_terminal = run(&[], &[]);
    assert!(!no_terminal.status.success());
    assert!(String::from_utf8_lossy(&no_terminal.stderr).contains("--once"));
}
