//! What is refused, with which words; and that a refused command has changed nothing.

use crate::probe::{pairs, Probe};
use crate::support::Server;

const WRONGTYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

/// Every command, as it may be written.
const COMMANDS: [&str; 30] = [
    "DQ.ADD q a x",
    "DQ.MADD q 1 a x",
    "DQ.DEL q a",
    "DQ.POP q",
    "DQ.BPOP q 0.01",
    "DQ.ACK q a",
    "DQ.NACK q a",
    "DQ.TOUCH q a",
    "DQ.BTOUCH q 0.01 IDS 1 a 1",
    "DQ.AWAIT q 0.01 a",
    "DQ.STEP q a 1 s v",
    "DQ.SIGNAL q a s",
    "DQ.RESCHEDULE q DELAY 5 a",
    "DQ.KICK q COUNT 1",
    "DQ.GET q a",
    "DQ.PEEK q READY",
    "DQ.SCAN q 0",
    "DQ.GROUPS q 0",
    "DQ.GROUPSET q g MAX 1",
    "DQ.GROUPGET q g",
    "DQ.LEN q",
    "DQ.FORECAST q FROM 5 TO 9 BUCKETS 2",
    "DQ.STATS q",
    "DQ.EXPLAIN q",
    "DQ.NEXT q a",
    "DQ.CFGSET q TTR 5",
    "DQ.CFGGET q",
    "DQ.PAUSE q",
    "DQ.RESUME q",
    "DQ.PURGE q ALL",
];

/// The fewest and the most words of each command (0: any number).
const ARITY: [(&str, usize, usize); 31] = [
    ("DQ.ADD", 4, 0),
    ("DQ.MADD", 5, 0),
    ("DQ.DEL", 3, 0),
    ("DQ.POP", 2, 0),
    ("DQ.BPOP", 3, 0),
    ("DQ.ACK", 3, 0),
    ("DQ.NACK", 3, 0),
    ("DQ.TOUCH", 3, 0),
    ("DQ.BTOUCH", 7, 0),
    ("DQ.AWAIT", 4, 0),
    ("DQ.STEP", 6, 0),
    ("DQ.SIGNAL", 4, 5),
    ("DQ.RESCHEDULE", 5, 0),
    ("DQ.KICK", 4, 0),
    ("DQ.GET", 3, 0),
    ("DQ.PEEK", 3, 0),
    ("DQ.SCAN", 3, 0),
    ("DQ.GROUPS", 3, 0),
    ("DQ.GROUPSET", 4, 0),
    ("DQ.GROUPGET", 3, 3),
    ("DQ.LEN", 2, 3),
    ("DQ.FORECAST", 8, 0),
    ("DQ.STATS", 2, 2),
    ("DQ.EXPLAIN", 2, 3),
    ("DQ.NEXT", 3, 0),
    ("DQ.CFGSET", 2, 0),
    ("DQ.CFGGET", 2, 2),
    ("DQ.PAUSE", 2, 5),
    ("DQ.RESUME", 2, 4),
    ("DQ.PURGE", 3, 3),
    ("DQ.UNBLOCK", 2, 0),
];

#[test]
fn wrong_numbers_of_arguments() {
    let mut p = Probe::start();
    for (name, least, most) in ARITY {
        for written in [
            name.to_owned(),
            name.to_lowercase(),
            name.replace("DQ", "Dq"),
        ] {
            let error = format!(
                "-ERR wrong number of arguments for '{}' command",
                name.to_lowercase()
            );
            for words in 1..least {
                p.says(&format!("{written}{}", " q".repeat(words - 1)), &error);
            }
            if most > 0 {
                p.says(&format!("{written}{}", " q".repeat(most)), &error);
            }
        }
    }
    p.says("EXISTS q", "0");
}

#[test]
fn wrong_types() {
    let mut p = Probe::start();
    let others = [
        "SET q v",
        "LPUSH q v",
        "SADD q v",
        "ZADD q 1 v",
        "HSET q f v",
        "XADD q * f v",
    ];
    for other in others {
        p.run(other);
        for line in COMMANDS {
            p.unseen(line, WRONGTYPE);
            p.says3(line, WRONGTYPE);
        }
        let more = [
            "DQ.ADD q * x XX",
            "DQ.POP q COUNT 5",
            "DQ.POP q ID a NOACK",
            "DQ.BPOP q 0 COUNT 5",
            "DQ.ACK q WITHTOKENS a 1",
            "DQ.KICK q IDS 1 a",
            "DQ.DEL q UNRESERVED a",
            "DQ.LEN q DEAD",
            "DQ.CFGSET q",
            "DQ.PAUSE q 5",
        ];
        for line in more {
            p.unseen(line, WRONGTYPE);
        }
        // Arguments that cannot be parsed are reported first.
        p.unseen("DQ.ADD q a x SOON", "-ERR syntax error, ...");
        p.unseen(
            "DQ.ADD q a x TTR 0",
            "-ERR value is not an integer or out of range",
        );
        p.run("DEL q");
    }
    // Commands of other types refuse a queue.
    p.run("DQ.ADD q a x");
    for line in [
        "GET q",
        "LPUSH q v",
        "SADD q v",
        "ZADD q 1 v",
        "HSET q f v",
        "XADD q * f v",
        "APPEND q v",
    ] {
        p.unseen(line, WRONGTYPE);
    }
}

#[test]
fn empty_and_not_there_are_never_errors() {
    let lines = "
        DQ.DEL q a -> 0
        DQ.DEL q UNRESERVED a -> 0
        DQ.POP q -> nil*
        DQ.POP q ID a -> nil*
        DQ.POP q COUNT 5 -> [ ]
        DQ.BPOP q 0.01 -> nil*
        DQ.BPOP q 0.01 COUNT 5 -> nil*
        DQ.ACK q a -> 0
        DQ.ACK q WITHTOKENS a 5 -> 0
        DQ.ACK q WITHTOKENS IDS 2 a 5 b 6 -> [ 0 0 ]
        DQ.NACK q a -> nil$
        DQ.TOUCH q a -> nil$
        DQ.STEP q a 1 s v -> nil$
        DQ.SIGNAL q a s -> nil$
        DQ.BTOUCH q 0 IDS 1 a 1 -> [ nil$ ]
        DQ.AWAIT q 0 a -> [ [ 'a' 'unknown' nil$ nil$ nil$ ] ]
        DQ.RESCHEDULE q DELAY 5 a -> 0
        DQ.KICK q COUNT 1 -> 0
        DQ.KICK q IDS 1 a -> 0
        DQ.GET q a -> nil$
        DQ.EXPLAIN q a -> nil$
        DQ.NEXT q a -> nil$
        DQ.GROUPGET q a -> nil$
        DQ.GROUPS q 0 -> [ '0' [ ] ]
        DQ.LEN q GROUP a -> 0
        DQ.PEEK q READY -> [ ]
        DQ.SCAN q 0 -> [ '0' [ ] ]
        DQ.LEN q -> 0
        DQ.LEN q DEAD -> 0
        DQ.FORECAST q FROM 0 TO 3 BUCKETS 3 -> [ 0 0 0 ]
        DQ.RESUME q -> +OK
        DQ.RESUME q GROUP \"\" -> +OK
        DQ.GROUPSET q g CLEAR -> +OK
        DQ.PURGE q ALL -> 0
        DQ.PURGE q DONE -> 0
        DQ.ADD q a x XX -> nil$
        DQ.MADD q 2 a x b x XX -> [ nil$ nil$ ]";
    let mut p = Probe::start();
    p.all_unseen(lines);
    p.all_unseen("DQ.STATS q -> nil$\nDQ.CFGGET q -> nil$\nDQ.EXPLAIN q -> nil$\nEXISTS q -> 0");
    // The same on an empty queue that is kept.
    p.run("DQ.CFGSET q");
    p.all_unseen(lines);
    let resp3 = pairs(lines)
        .map(|(line, reply)| (line, reply.replace("nil*", "nil").replace("nil$", "nil")));
    for (line, reply) in resp3.collect::<Vec<_>>() {
        p.says3(line, &reply);
    }
}

#[test]
fn within_a_transaction_too() {
    let mut p = Probe::start();
    p.run("SET s v");
    p.talk(&format!(
        "> MULTI
        +OK
        > DQ.ADD q a x
        +QUEUED
        > DQ.POP s COUNT 5
        +QUEUED
        > DQ.ADD q b x TTR 0
        +QUEUED
        > DQ.LEN q
        +QUEUED
        > EXEC
        [ 'a' {WRONGTYPE} -ERR value is not an integer or out of range 1 ]"
    ));
}

#[test]
fn readonly() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    p.run("DQ.POP q");
    let replica = Server::start();
    replica.replica_of(&p.server);
    let mut raw = replica.raw();
    let mut ask = |line: &str| {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        crate::probe::show(&raw.call(&words))
    };
    let looking = [
        "GET", "PEEK", "SCAN", "GROUPS", "GROUPGET", "LEN", "FORECAST", "STATS", "EXPLAIN", "NEXT",
        "CFGGET", "AWAIT",
    ];
    for line in COMMANDS {
        let looks = looking
            .iter()
            .any(|name| line.split(' ').next() == Some(&format!("DQ.{name}")));
        let reply = ask(line);
        assert_eq!(!reply.starts_with("-READONLY "), looks, "{line} -> {reply}");
    }
}

#[test]
fn noperm() {
    let mut p = Probe::start();
    p.says("ACL SETUSER u on nopass allcommands ~mine*", "+OK");
    p.run("DQ.ADD q a x");
    p.run("DQ.ADD mine a x");
    let mut raw = p.server.raw();
    let mut ask = |line: &str| {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        crate::probe::show(&raw.call(&words))
    };
    ask("AUTH u x");
    for line in COMMANDS {
        let reply = ask(line);
        assert!(reply.starts_with("-NOPERM"), "{line} -> {reply}");
    }
    for line in [
        "DQ.BPOP mine q 0",
        "DQ.BPOP q mine 0 COUNT 5",
        "DQ.BPOP mine COUNT 5 0",
        "DQ.BPOP mine mine2 q 0 NOACK",
    ] {
        let reply = ask(line);
        assert!(reply.starts_with("-NOPERM"), "{line} -> {reply}");
    }
    assert!(ask("DQ.BPOP mine mine2 0 COUNT 5 NOACK").starts_with("[ 'mine' "));
    assert_eq!(ask("DQ.ADD mine b x"), "'b'");
}

#[test]
fn arguments_of_any_bytes() {
    let mut p = Probe::start();
    p.run("DQ.ADD \\x00key\\xff \\x00 \\x00");
    let words = [
        "\\x00",
        "\"\"",
        "\\xff\\xfe",
        "%s%n",
        "-9223372036854775808",
        "18446744073709551616",
        "\\x0d\\x0a+OK",
    ];
    let mut raw = p.server.raw();
    for (name, least, _) in ARITY {
        for key in ["q", "\\x00key\\xff", "\"\""] {
            for word in words {
                for more in 0..4 {
                    if name == "DQ.BPOP" {
                        continue;
                    }
                    let line = format!(
                        "{name} {key}{}",
                        format!(" {word}").repeat(least + more - 2)
                    );
                    raw.send(&crate::probe::packed(&line));
                    raw.read();
                }
            }
        }
        // Each command was answered once, and replies match commands.
        assert_eq!(
            raw.call(&[b"ECHO", name.as_bytes()]),
            crate::support::Reply::bulk(name)
        );
    }
}

/// A syntax error names what was wrong and what was expected.
#[test]
fn syntax_errors_say_what_was_expected() {
    let mut p = Probe::start();
    for (line, what) in [
        (
            "DQ.SCAN q 0 TYPE x",
            "expected STATE, MATCH, GROUP, PAYLOAD, LABEL, RECURRING, AWAITS, REASON or COUNT, not 'TYPE'",
        ),
        (
            "DQ.SCAN q 0 \\x0d\\x0a",
            "expected STATE, MATCH, GROUP, PAYLOAD, LABEL, RECURRING, AWAITS, REASON or COUNT, not '\\r\\n'",
        ),
        ("DQ.NEXT q a 5", "expected COUNT, not '5'"),
        ("DQ.POP q Count 1 count 2", "COUNT is given twice"),
        ("DQ.POP q TTR", "a value is missing after TTR"),
        ("DQ.CFGSET q RATE 5", "a value is missing after RATE"),
        ("DQ.POP q COUNT 1 ID a", "COUNT and ID cannot be combined"),
        ("DQ.GROUPSET q g CLEAR MAX 3", "CLEAR cannot be combined with other options"),
        (
            "DQ.ADD q a x AT 5 DELAY 6",
            "DELAY and AT cannot be combined",
        ),
        (
            "DQ.ADD q a x BACKOFF 3 1 2",
            "BACKOFF 3 needs 3 delays, but 2 arguments follow",
        ),
        ("DQ.ADD q a x EVERY 1000 TZ UTC", "TZ needs CRON"),
        (
            "DQ.ADD q a x TIMES 3",
            "UNTIL, TIMES, GRACE and JITTER need EVERY or CRON",
        ),
        (
            "DQ.ACK q WITHTOKENS a 1 b",
            "WITHTOKENS needs a token for each id",
        ),
        ("DQ.NACK q IDS 2 a 1", "IDS 2 needs 2 pairs of id and token"),
        (
            "DQ.TOUCH q IDS 1 a 1 TOKEN 1",
            "TOKEN cannot be combined with IDS: a token follows each id",
        ),
        ("DQ.BTOUCH q 0 a 1 b 2", "expected IDS, not 'a'"),
        ("DQ.KICK q ALL 1", "expected COUNT or IDS, not 'ALL'"),
        ("DQ.KICK q IDS 2 a", "IDS 2 needs 2 ids, not 1"),
        ("DQ.KICK q COUNT 1 a", "COUNT takes a number and no ids"),
        ("DQ.LEN q GROUP", "a value is missing after GROUP"),
        (
            "DQ.PEEK q ALL",
            "expected DELAYED, READY, RESERVED, DEAD, BLOCKED or DONE, not 'ALL'",
        ),
        (
            "DQ.PURGE q EVERY",
            "expected DELAYED, READY, RESERVED, DEAD, BLOCKED, DONE or ALL, not 'EVERY'",
        ),
        (
            "DQ.RESCHEDULE q IN 5 a",
            "expected DELAY, AT or PRIORITY, not 'IN'",
        ),
    ] {
        p.unseen(line, &format!("-ERR syntax error, {what}"));
    }
}
