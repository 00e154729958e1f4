//! What all commands have in common: how they end, and what follows from their definitions.

use std::fs;
use std::path::PathBuf;
use std::process::{self, Command};

const COMMANDS: [&str; 15] = [
    "dev",
    "server",
    "add",
    "cli",
    "explain",
    "board",
    "top",
    "http",
    "mcp",
    "import",
    "audit",
    "worker",
    "licenses",
    "completions",
    "man",
];

/// The exit code, and both outputs.
fn run(line: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dq"));
    let output = command.args(line.split_whitespace()).output();
    let output = output.expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().expect("an exit code");
    (code, text(&output.stdout), text(&output.stderr))
}

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("dq-{name}-{}", process::id()))
}

#[test]
fn how_to_start_a_worker_is_the_line_of_its_language() {
    for (given, line) in [
        ("", "python -m dq worker shop.jobs, or npx dq-worker shop/jobs.js"),
        (
            " shop.jobs --reload",
            "python -m dq worker shop.jobs --reload, or npx dq-worker with a file such as shop/jobs.js",
        ),
        (
            " jobs.mjs:close --queue q",
            "npx dq-worker jobs.mjs:close --queue q",
        ),
    ] {
        let (code, out, errors) = run(&format!("worker{given}"));
        assert_eq!((code, out.as_str()), (2, ""));
        let says = format!("dq worker: a worker runs your code, by the library of its language: {line}\n");
        assert_eq!(errors, says);
    }
}

#[test]
fn a_wrong_command_line_is_told_in_a_sentence_without_secrets() {
    for (line, says) in [
        ("", "dq: which command?"),
        ("sever", "dq: unknown command sever"),
        (
            "board --pasword=hunter2",
            "dq board: unknown option --pasword; there is --password",
        ),
        ("board hunter2", "dq board: one word too many"),
        ("http --check", "dq http: missing: --config <FILE>"),
        ("top -p 0", "dq top: -p 0: not a port number"),
        ("dev -p 0", "dq dev: --port 0: not a port number"),
        ("server -p x", "dq server: --port x: not a port number"),
        (
            "top --cluster --no-cluster",
            "dq top: --cluster and --no-cluster cannot be combined",
        ),
        (
            "mcp --allow-actions retry",
            "dq mcp: missing: --audit-log <FILE>",
        ),
        (
            "mcp --allow-actions purge --audit-log x",
            "dq mcp: --allow-actions purge: not one of retry, run_now, cancel, pause, resume",
        ),
        ("audit", "dq audit: missing: <FILE>"),
        ("import", "dq import: which command?"),
        (
            "import zset old --unit x",
            "dq import: --unit x: not one of s, ms",
        ),
        (
            "import --check --forget zset a",
            "dq import: --check and --forget cannot be combined",
        ),
    ] {
        let (code, out, errors) = run(line);
        assert_eq!((code, out.as_str()), (2, ""), "{line}: {errors}");
        assert!(errors.starts_with(says), "{line}: {errors}");
        assert!(!errors.contains("hunter2"), "{errors}");
        let lines: Vec<_> = errors.lines().collect();
        assert!(
            lines.len() == 2 && lines[1].ends_with("--help lists the options)"),
            "{errors}"
        );
    }
}

#[test]
fn an_error_is_told_with_the_command() {
    for (line, code, says) in [
        ("top --once -s /nowhere", 1, "dq top: /nowhere: "),
        (
            "top --pass file:/nowhere/hunter",
            1,
            "dq top: --pass: /nowhere/hunter: ",
        ),
        (
            "board --config /nowhere",
            2,
            "dq board: --config /nowhere: ",
        ),
        ("http --config /nowhere", 2, "dq http: --config /nowhere: "),
        (
            "http --listen 0.0.0.0:1",
            1,
            "dq http: --listen 0.0.0.0:1: others can reach that address",
        ),
        (
            "import -s /nowhere --queue q zset old",
            2,
            "dq import: /nowhere: ",
        ),
        (
            "add -p 1 q x",
            2,
            "dq add: 127.0.0.1:1: no server is there: start one (dq dev), or name another",
        ),
        ("audit /nowhere", 2, "dq audit: /nowhere: "),
    ] {
        let (ended, _, errors) = run(line);
        assert_eq!(ended, code, "{line}: {errors}");
        assert!(errors.starts_with(says), "{line}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[test]
fn one_file_has_options_of_all_commands() {
    let file = temporary("config").with_extension("toml");
    let path = file.display();
    let written = |text: &str| fs::write(&file, text).expect("our file");
    written("options = ['-s', '/of-all']\n[top]\noptions = ['--once', '-s', '/of-top']\n[board]\nserver = [{ name = 'a' }]");
    for (line, says) in [
        (format!("top --config {path}"), "dq top: /of-top: "),
        (format!("top --config={path} -s /said"), "dq top: /said: "),
        (
            format!("import --config {path} --queue q zset old"),
            "dq import: /of-all: ",
        ),
        (
            format!("import --queue q zset --config {path} old"),
            "dq import: /of-all: ",
        ),
        (
            format!("add --config {path} q -- --config=/none"),
            "dq add: /of-all: ",
        ),
        // With servers of its own it takes no others; this one has no name for its Prometheus.
        (
            format!("board --config {path} --listen 0.0.0.0:1"),
            "dq board: --listen 0.0.0.0:1: ",
        ),
    ] {
        let (code, _, errors) = run(&line);
        assert!(code > 0 && errors.starts_with(says), "{line}: {errors}");
    }
    for (text, says) in [
        ("option = []", "line 1: neither `options` nor"),
        ("\n[tap]\n", "line 2: neither `options` nor"),
        ("[top]\noptions = 'hunter2'", "line 1: `options` is a list"),
        ("options = [1]", "line 1: `options` is a list"),
        ("top =", "line 1: "),
        (
            "options = ['--pasword=hunter2']",
            "dq top: unknown option --pasword",
        ),
    ] {
        written(text);
        let (code, _, errors) = run(&format!("top --config {path}"));
        assert!(
            code == 2 && errors.contains(says) && !errors.contains("hunter2"),
            "{errors}"
        );
    }
    fs::remove_file(&file).expect("our file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dq"));
    let output = command
        .args(["explain", "q"])
        .env("DQ_CONFIG", "/nowhere")
        .output();
    let errors = String::from_utf8_lossy(&output.expect("it runs").stderr).into_owned();
    assert!(
        errors.starts_with("dq explain: --config /nowhere: "),
        "{errors}"
    );
}

#[test]
fn pages_and_completions_follow_from_the_definitions() {
    let (code, all, _) = run("--help");
    assert_eq!(code, 0);
    let folder = temporary("man");
    assert_eq!(run(&format!("man {}", folder.display())).0, 0);
    for name in COMMANDS {
        assert!(all.contains(&format!("\n  {name} ")), "{name}: {all}");
        let (code, help, _) = run(&format!("{name} --help"));
        assert!(
            code == 0 && help.contains(&format!("Usage: dq {name}")),
            "{help}"
        );
        let page = fs::read_to_string(folder.join(format!("dq-{name}.1")));
        assert!(page.expect("a page").contains(".TH"), "{name}");
    }
    let page = fs::read_to_string(folder.join("dq-board.1")).expect("a page");
    assert!(page.contains(r"\-\-allow\-actions"), "{page}");
    fs::remove_dir_all(&folder).expect("our folder");
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = run(&format!("completions {shell}"));
        let knows = |word| script.contains(word);
        assert!(
            code == 0 && knows("allow-actions") && knows("audit"),
            "{shell}"
        );
    }
}

#[test]
fn what_is_not_read_to_its_end_has_not_no_faults() {
    let file = temporary("flipped");
    for (bytes, code, said) in [
        (&b"*1\r\n$4\r\nPING\r\n"[..], 0, "no faults"),
        (b"*1\r\n$4\r\nPING\r\n\xd6x", 2, "not read to the end"),
    ] {
        fs::write(&file, bytes).expect("a temporary file");
        let (ended, text, _) = run(&format!("audit {}", file.display()));
        assert_eq!(ended, code, "{text}");
        assert!(text.contains(said), "{text}");
        assert_eq!(text.contains("no faults"), code == 0, "{text}");
    }
    let _ = fs::remove_file(&file);
}
