//! Random commands, valid and not: an error has changed nothing, and what changes nothing leaves no trace.

use crate::probe::Probe;
use crate::scene::{Dice, WORDS};

const IDS: [&str; 6] = ["a", "b", "c", "WITHTOKENS", "IDS", "\\x00"];
/// Durations are very long or invalid, so that time changes nothing meanwhile.
const NUMBERS: [&str; 9] = [
    "0",
    "1",
    "2",
    "-1",
    "100000",
    "4398046511103",
    "4398046511104",
    "x",
    "5",
];

fn argument(dice: &mut Dice) -> &'static str {
    match dice.below(4) {
        0 => dice.pick(&IDS),
        1 => dice.pick(&WORDS),
        _ => dice.pick(&NUMBERS),
    }
}

/// A random command, valid about half of the time.
fn line(dice: &mut Dice) -> String {
    let id = dice.pick(&IDS);
    let options = [
        "",
        "",
        "DELAY 100000",
        "PRIORITY 3",
        "ATTEMPTS 1",
        "TTL 100000",
        "REPLACE",
        "XX",
        "BACKOFF 1 200000",
        "NOACK",
        "COUNT 2",
        "TTR 100000",
        "FATAL",
        "SILENT",
        "TTR 300000",
        "MAXLEN 3",
        "MAXRESERVED 2",
        "DEADLEN 1",
        "DEDUPE 100000",
        "DEDUPE 0",
        "RATE 0 0",
        "MAXLEN 0",
    ];
    let option = dice.pick(&options);
    let heads = [
        format!("DQ.ADD q {id} x"),
        format!("DQ.ADD q {id} x"),
        "DQ.POP q".into(),
        "DQ.POP q".into(),
        format!("DQ.POP q ID {id}"),
        format!("DQ.ACK q {id}"),
        format!("DQ.NACK q {id}"),
        format!("DQ.TOUCH q {id}"),
        format!("DQ.DEL q {id}"),
        format!("DQ.DEL q UNRESERVED {id}"),
        format!("DQ.DEL q IDS 2 {id} a"),
        format!("DQ.ACK q WITHTOKENS IDS 1 {id} 5"),
        format!("DQ.RESCHEDULE q DELAY 200000 {id}"),
        format!("DQ.RESCHEDULE q AT 1000 {id}"),
        "DQ.KICK q COUNT 1".into(),
        format!("DQ.KICK q IDS 1 {id}"),
        "DQ.CFGSET q".into(),
        "DQ.PAUSE q".into(),
        "DQ.RESUME q".into(),
        "DQ.RESUME q".into(),
        "DQ.PURGE q DEAD".into(),
        format!("DQ.GET q {id}"),
        "DQ.PEEK q READY".into(),
        "DQ.SCAN q 0".into(),
        "DQ.STATS q".into(),
        "DQ.BPOP q 0.001".into(),
    ];
    let head = &heads[dice.below(heads.len() as u64) as usize];
    if head.starts_with("DQ.BPOP") {
        // The rest might be a timeout without an end.
        return head.clone();
    }
    let mut line = match dice.below(3) {
        0 => head.clone(),
        _ => format!("{head} {option}"),
    };
    for _ in 0..dice.below(8).saturating_sub(5) {
        line = format!("{line} {}", argument(dice));
    }
    line
}

#[test]
fn of_random_commands() {
    let mut p = Probe::start();
    let (mut refused, mut silent, mut seen) = (0, 0, 0);
    for seed in 0..6 {
        let mut dice = Dice::new(seed);
        p.run("DEL q");
        for _ in 0..250 {
            let line = line(&mut dice);
            let (reply, did) = p.traced(&line);
            match (reply.starts_with('-'), did) {
                (true, false) => refused += 1,
                (false, false) => silent += 1,
                (false, true) => seen += 1,
                (true, true) => panic!("{line} -> {reply}, and something has changed"),
            }
        }
    }
    assert!(
        refused > 100 && silent > 100 && seen > 100,
        "{refused} {silent} {seen}"
    );
}
