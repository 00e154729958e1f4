//! What the server tells about the commands, and that the reference says the same.

use std::collections::BTreeSet;

use redis::Value;

use crate::support::{skipped, Client, Server};
use crate::{cmd, try_cmd};

/// With everything that there may be.
fn server() -> Server {
    let builder = Server::builder();
    builder.module_arguments("test-clock yes").start()
}

fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) | Value::Set(items) => items.iter().map(word).collect(),
        other => panic!("no array: {other:?}"),
    }
}

fn word(value: &Value) -> String {
    redis::from_redis_value(value.clone()).unwrap_or_else(|_| panic!("no text: {value:?}"))
}

fn commands(client: &mut Client) -> Vec<String> {
    let mut names = words(&cmd!(client, "COMMAND", "LIST", "FILTERBY", "MODULE", "dq"));
    names.sort();
    names
}

/// The fields of one entry of COMMAND DOCS.
fn docs(client: &mut Client, name: &str) -> Vec<(String, Value)> {
    let Value::Array(entry) = cmd!(client, "COMMAND", "DOCS", name) else {
        panic!("COMMAND DOCS {name}");
    };
    let Value::Array(fields) = &entry[1] else {
        panic!("COMMAND DOCS {name} -> {entry:?}");
    };
    let pairs = fields.chunks(2);
    pairs
        .map(|pair| (word(&pair[0]), pair[1].clone()))
        .collect()
}

fn field<'a>(docs: &'a [(String, Value)], name: &str) -> &'a Value {
    let found = docs.iter().find(|(field, _)| field == name);
    &found.unwrap_or_else(|| panic!("no {name}: {docs:?}")).1
}

/// What the reference's table says of a command: its time complexity, and its ACL categories.
fn row<'a>(text: &'a str, command: &str) -> [&'a str; 2] {
    let name = command.to_uppercase();
    let start = format!("| [{name}](#{}) | ", command.replace('.', ""));
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    let cells = line.and_then(|line| line.strip_suffix(" |")?.split_once(" | "));
    let (complexity, categories) = cells.unwrap_or_else(|| panic!("no row {name}"));
    [complexity, categories]
}

/// Since when all commands are there.
fn version(text: &str) -> &str {
    let (_, rest) = text.split_once("**Available since:** ").expect("a version");
    rest.split_once(',').expect("a comma").0
}

#[test]
fn the_reference_has_every_command_and_no_other() {
    let server = server();
    let mut client = server.connect();
    let text = crate::text();
    let names = commands(&mut client);
    assert!(names.len() >= 20);
    for name in &names {
        let docs = docs(&mut client, name);
        let [complexity, _] = row(&text, name);
        assert_eq!(complexity, word(field(&docs, "complexity")), "{name}");
        assert_eq!(version(&text), word(field(&docs, "since")), "{name}");
        assert!(!word(field(&docs, "summary")).is_empty(), "{name}");
        assert!(matches!(field(&docs, "arguments"), Value::Array(list) if !list.is_empty()));
    }
    let headings = text.lines().filter_map(|line| line.strip_prefix("## DQ."));
    let mut documented: Vec<_> = headings
        .map(|name| format!("dq.{}", name.to_lowercase()))
        .collect();
    documented.sort();
    assert_eq!(documented, names);
}

/// All words of a command's arguments that are to be typed as they stand.
fn tokens(argument: &Value) -> Vec<String> {
    let Value::Array(fields) = argument else {
        return Vec::new();
    };
    let pairs = fields.chunks_exact(2);
    let of_pair = |pair: &[Value]| match (&pair[0], &pair[1]) {
        (name, token) if word(name) == "token" => vec![word(token)],
        (name, Value::Array(parts)) if word(name) == "arguments" => {
            parts.iter().flat_map(tokens).collect()
        }
        _ => Vec::new(),
    };
    pairs.flat_map(of_pair).collect()
}

/// What is to be typed as it stands of the syntax that stands first under a command's heading.
fn written<'a>(text: &'a str, command: &str) -> BTreeSet<&'a str> {
    let heading = format!("\n## {}\n\n```\n", command.to_uppercase());
    let (_, rest) = text.split_once(&heading).expect("a syntax");
    let (syntax, _) = rest.split_once("\n```\n").expect("its end");
    let words = syntax.split([' ', '\n', '[', ']']);
    words
        .filter(|word| {
            *word == "*" || word.len() > 1 && word.bytes().all(|it| it.is_ascii_uppercase())
        })
        .collect()
}

#[test]
fn the_syntax_in_the_reference_has_the_words_that_the_server_tells() {
    let server = server();
    let mut client = server.connect();
    let text = crate::text();
    for name in commands(&mut client) {
        let docs = docs(&mut client, &name);
        let Value::Array(arguments) = field(&docs, "arguments") else {
            panic!("{name}: {docs:?}");
        };
        let told: Vec<String> = arguments.iter().flat_map(tokens).collect();
        let told: BTreeSet<&str> = told.iter().map(String::as_str).collect();
        assert_eq!(written(&text, &name), told, "{name}");
    }
}

#[test]
fn acl_categories() {
    let server = server();
    let mut client = server.connect();
    let text = crate::text();
    if !server.version().at_least(7, 2) {
        return skipped("commands of modules have ACL categories from Redis 7.2 on");
    }
    let own = server.version().is_valkey() || server.version().at_least(7, 4);
    for name in commands(&mut client) {
        let Value::Array(info) = cmd!(client, "COMMAND", "INFO", &name) else {
            panic!("COMMAND INFO {name}");
        };
        let Value::Array(info) = &info[0] else {
            panic!("COMMAND INFO {name} -> {info:?}");
        };
        let mut told = words(&info[6]);
        told.sort();
        let [_, categories] = row(&text, &name);
        let written = categories.split(", ");
        let mut written: Vec<_> = written
            .map(|word| word.trim_matches('`').to_owned())
            .collect();
        written.extend(own.then(|| "@dq".to_owned()));
        written.sort();
        assert_eq!(told, written, "{name}");
    }
    if own {
        cmd!(
            client,
            "ACL",
            "SETUSER",
            "worker",
            "on",
            "nopass",
            "~*",
            "+@dq",
            "-@dangerous"
        );
        let mut may =
            |command: &[&str]| cmd!(client, "ACL", "DRYRUN", "worker", command) == Value::Okay;
        assert!(may(&["DQ.POP", "q"]) && may(&["DQ.BPOP", "q", "0"]));
        assert!(!may(&["DQ.APPLY", "q", ""]) && !may(&["GET", "q"]));
    }
}

#[test]
fn the_first_key_of_bpop_is_told() {
    let server = server();
    let mut client = server.connect();
    for arguments in ["a 0", "a b c 0.5", "a b 0 count 2 Ttr 7 noack"] {
        let arguments: Vec<_> = arguments.split(' ').collect();
        let found = cmd!(client, "COMMAND", "GETKEYS", "DQ.BPOP", &arguments);
        assert_eq!(words(&found).join(" "), "a", "{arguments:?}");
    }
}

#[test]
fn acl_key_permissions() {
    let server = server();
    let mut client = server.connect();
    for (user, pattern) in [("all", "~a*"), ("write", "%W~a*"), ("read", "%R~a*")] {
        cmd!(client, "ACL", "SETUSER", user, "on", "nopass", "+@all", pattern);
    }
    let mut allowed = |command: &str| {
        let command: Vec<_> = command.split(' ').collect();
        ["all", "write", "read"]
            .map(|user| matches!(cmd!(client, "ACL", "DRYRUN", user, &command), Value::Okay))
    };
    for command in ["DQ.POP a1", "DQ.BPOP a1 a2 0", "DQ.BPOP a1 0 COUNT 2 NOACK"] {
        assert_eq!(allowed(command), [true, false, false], "{command}");
    }
    for command in [
        "DQ.ADD a1 j p",
        "DQ.ACK a1 j",
        "DQ.DEL a1 j",
        "DQ.CFGSET a1",
        "DQ.NACK a1 j",
    ] {
        assert_eq!(allowed(command), [true, true, false], "{command}");
    }
    for command in [
        "DQ.GET a1 j",
        "DQ.PEEK a1 READY",
        "DQ.SCAN a1 0",
        "DQ.STATS a1",
    ] {
        assert_eq!(allowed(command), [true, false, true], "{command}");
    }
    assert_eq!(allowed("DQ.LEN a1"), [true; 3], "as LLEN");
    for command in ["DQ.POP b", "DQ.BPOP b a1 0"] {
        assert_eq!(allowed(command), [false; 3], "{command}");
    }
    // The keys behind the first are checked when the command runs.
    assert_eq!(allowed("DQ.BPOP a1 b 0"), [true, false, false]);
}

#[test]
fn wrong_numbers_of_arguments() {
    let server = server();
    let mut client = server.connect();
    let text = |name: &str| format!("ERR wrong number of arguments for '{name}' command");
    for name in commands(&mut client) {
        assert_eq!(try_cmd!(client, &name).unwrap_err(), text(&name));
        let upper = name.to_uppercase();
        assert_eq!(try_cmd!(client, &upper).unwrap_err(), text(&name));
    }
    for (name, too_many) in [
        ("dq.purge", 3),
        ("dq.stats", 2),
        ("dq.cfgget", 2),
        ("dq.resume", 2),
        ("dq.len", 3),
        ("dq.pause", 3),
        ("dq.apply", 3),
    ] {
        let error = try_cmd!(client, name, &vec!["x"; too_many]);
        assert_eq!(error.unwrap_err(), text(name));
    }
}

#[test]
fn fields_of_info() {
    let server = server();
    let text = crate::text();
    let section = &text[text.find("\n## INFO dq\n").expect("a section")..];
    let section = section[4..].split("\n## ").next().unwrap_or_default();
    let mut written: Vec<_> = section
        .split('`')
        .filter(|word| word.starts_with("dq_"))
        .collect();
    let info = word(&cmd!(server.connect(), "INFO", "dq"));
    let fields = info.lines().filter_map(|line| line.split_once(':'));
    let mut told: Vec<_> = fields.map(|(name, _)| name).collect();
    written.sort();
    told.sort();
    assert_eq!(told, written);
}
