//! The shape of every reply, in RESP2 and in RESP3.

use crate::probe::Probe;

/// In RESP2 a missing job is the null array where a job is an array (POP, BPOP), else the null bulk;
/// a map is a flat array.
const SHAPES: &str = "
    DQ.ADD q a x NX | nil$ | nil
    DQ.ADD q z x XX | nil$ | nil
    DQ.POP empty | nil* | nil
    DQ.POP empty ID a | nil* | nil
    DQ.POP empty COUNT 1 | [ ] | [ ]
    DQ.BPOP empty 0.001 | nil* | nil
    DQ.BPOP empty 0.001 COUNT 1 | nil* | nil
    DQ.ACK q z | 0 | 0
    DQ.NACK q z | nil$ | nil
    DQ.TOUCH q z | nil$ | nil
    DQ.TOUCH q a TTR 4398046511103 | 4398046511103 | 4398046511103
    DQ.GET q z | nil$ | nil
    DQ.PEEK q DEAD | [ ] | [ ]
    DQ.PEEK q RESERVED | [ [ 'a' 'x' 4398046511103 1 -5 ] ] | [ [ 'a' 'x' 4398046511103 1 -5 ] ]
    DQ.SCAN q 0 | [ '0' [ 'a' ] ] | [ '0' [ 'a' ] ]
    DQ.LEN q | 1 | 1
    DQ.STATS empty | nil$ | nil
    DQ.STATS q | [ 'delayed' 0 'ready' 0 'reserved' 1 'dead' 0 'blocked' 0 'done' 0 'done-bytes' 0 'next-due' nil$ 'oldest-ready-ms' nil$ ... | \
        { 'delayed' 0 'ready' 0 'reserved' 1 'dead' 0 'blocked' 0 'done' 0 'done-bytes' 0 'next-due' nil 'oldest-ready-ms' nil ...
    DQ.CFGSET q BACKOFF 2 5 6 RATE 7 8 | +OK | +OK
    DQ.CFGGET empty | nil$ | nil
    DQ.CFGGET q | [ 'ttr' 60000 'attempts' 0 'backoff' [ 5 6 ] 'maxlen' 0 'maxbytes' 0 'deadlen' 0 'dedupe' 0 'maxreserved' 0 \
        'rate' [ 7 8 ] 'groupmax' 0 'grouprate' [ 0 0 ] 'groupfifo' 0 'donelen' 0 'donettl' 0 'donebytes' 0 'history' 0 'paused' 0 ] | { 'ttr' 60000 'attempts' 0 'backoff' [ 5 6 ] 'maxlen' 0 'maxbytes' 0 'deadlen' 0 'dedupe' 0 \
        'maxreserved' 0 'rate' [ 7 8 ] 'groupmax' 0 'grouprate' [ 0 0 ] 'groupfifo' 0 'donelen' 0 'donettl' 0 'donebytes' 0 'history' 0 'paused' 0 }
    DQ.PAUSE q | +OK | +OK
    DQ.CFGGET q | [ 'ttr' 60000 'attempts' 0 'backoff' [ 5 6 ] 'maxlen' 0 'maxbytes' 0 'deadlen' 0 'dedupe' 0 'maxreserved' 0 \
        'rate' [ 7 8 ] 'groupmax' 0 'grouprate' [ 0 0 ] 'groupfifo' 0 'donelen' 0 'donettl' 0 'donebytes' 0 'history' 0 'paused' -1 ] | { 'ttr' 60000 'attempts' 0 'backoff' [ 5 6 ] 'maxlen' 0 'maxbytes' 0 'deadlen' 0 'dedupe' 0 \
        'maxreserved' 0 'rate' [ 7 8 ] 'groupmax' 0 'grouprate' [ 0 0 ] 'groupfifo' 0 'donelen' 0 'donettl' 0 'donebytes' 0 'history' 0 'paused' -1 }
    DQ.RESUME q | +OK | +OK
    DQ.PURGE q DEAD | 0 | 0
    DQ.RESCHEDULE q DELAY 0 z | 0 | 0
    DQ.KICK q COUNT 1 | 0 | 0
    DQ.DEL q z | 0 | 0";

#[test]
fn of_all_commands() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x PRIORITY -5");
    p.run("DQ.POP q");
    for line in SHAPES
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [line, resp2, resp3] = parts[..] else {
            panic!("{line}")
        };
        p.says(line, resp2);
        p.says3(line, resp3);
    }
}

#[test]
fn a_delivery() {
    let mut p = Probe::start();
    for (three, nil, none) in [(false, "nil$", "[ ]"), (true, "nil", "{ }")] {
        let cases = [
            ("DQ.POP q", "[ 'a' 'x' ? 1 ? ]".to_owned()),
            ("DQ.POP q NOACK", format!("[ 'a' 'x' {nil} 1 {nil} ]")),
            ("DQ.POP q COUNT 3", "[ [ 'a' 'x' ? 1 ? ] ]".into()),
            (
                "DQ.POP q COUNT 3 NOACK",
                format!("[ [ 'a' 'x' {nil} 1 {nil} ] ]"),
            ),
            ("DQ.BPOP q 0", "[ 'q' 'a' 'x' ? 1 ? ]".into()),
            (
                "DQ.BPOP q 0 NOACK",
                format!("[ 'q' 'a' 'x' {nil} 1 {nil} ]"),
            ),
            (
                "DQ.BPOP q 0 COUNT 3",
                "[ 'q' [ [ 'a' 'x' ? 1 ? ] ] ]".into(),
            ),
            (
                "DQ.POP q NOACK WITHTERMS WITHSTEPS WITHDUE",
                format!("[ 'a' 'x' {nil} 1 {nil} ? {none} [ 60000 0 {nil} ] ]"),
            ),
            (
                "DQ.BPOP q 0 COUNT 3 NOACK",
                format!("[ 'q' [ [ 'a' 'x' {nil} 1 {nil} ] ] ]"),
            ),
        ];
        for (line, expected) in cases {
            p.run("DQ.ADD q a x REPLACE");
            if three {
                p.says3(line, &expected);
            } else {
                p.says(line, &expected);
            }
        }
    }
}

/// A token outgrows what some clients take for an integer, so it is text, and digits only.
#[test]
fn a_token_is_text() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    let crate::support::Reply::Array(job) = p.run3("DQ.POP q") else {
        panic!("a job")
    };
    let crate::support::Reply::Bulk(token) = &job[2] else {
        panic!("{job:?}")
    };
    assert!(token.iter().all(u8::is_ascii_digit));
    assert!(
        String::from_utf8_lossy(token)
            .parse::<u64>()
            .expect("digits")
            > 1 << 53
    );
}
