//! `dq cli`, typed and from a script.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::cmd;
use crate::monitor::{address, Monitor, PROGRAM};
use crate::support::Server;
use crate::ENTER;

/// What it answers to these words, or to a script, and whether all of it was well.
fn said(server: &Server, words: &[&str], script: &str) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command.arg("cli").args(address(server)).args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(script.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn a_command_or_a_script_is_answered_line_by_line() {
    let server = Server::start();
    let words = ["DQ.ADD", "q", "a", "two words", "DELAY", "-1"];
    assert_eq!(said(&server, &words[..4], ""), (Some(0), "a\n".to_owned()));
    let (code, refused) = said(&server, &words, "");
    assert!(code == Some(1) && refused.starts_with("ERR "), "{refused}");
    let script = "DQ.ADD q \"b c\" 'x y'\n\nDQ.NONE\nDQ.LEN q\n\"\n";
    let (code, answers) = said(&server, &[], script);
    let lines: Vec<_> = answers.lines().collect();
    assert_eq!(code, Some(1), "{answers}");
    assert_eq!(
        (lines[0], lines[2], lines[3]),
        ("b c", "2", "(error) unbalanced quotes")
    );
    assert!(lines[1].starts_with("ERR unknown command"), "{answers}");
}

#[test]
fn what_is_typed_is_completed_explained_and_remembered() {
    let server = Server::start();
    let mut client = server.connect();
    let home = tempfile::tempdir().unwrap();
    let environment = [("HOME", home.path().to_str().unwrap())];
    let mut prompt = Monitor::command("cli", &address(&server), &environment);
    prompt.wait_for("> ");
    prompt.press("dq.resch\t q ");
    prompt.wait_for("DQ.RESCHEDULE q [DELAY");
    prompt.press("\x15help dq.ack\r");
    prompt.wait_for("DQ.ACK key ");
    prompt.press("auth hunter2\rdq.add q a \"x\\x01\"\r");
    prompt.wait_for("\"a\"");
    // What is typed before an answer is not lost; a command that waits is answered when it is time.
    prompt.press("dq.pop q\rdq.bpop q 0\r");
    prompt.wait_for("2) \"x\\x01\"");
    prompt.wait_for("dq.bpop q 0");
    cmd!(client, "DQ.ADD", "q", "later", "x");
    prompt.wait_for("\"later\"");
    prompt.press("exit");
    prompt.press(ENTER);
    assert!(prompt.ended_well());
    let history = std::fs::read_to_string(home.path().join(".dq_history")).unwrap();
    assert!(
        history.contains("dq.pop q") && !history.contains("hunter2"),
        "{history}"
    );
}
