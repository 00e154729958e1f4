//! What commands take in any order and case, and what they refuse: then nothing is done, whether the queue is there or
//! not.

use dq::queue::attr::{Attr, Kind, Row, Unsaid};

use crate::probe::Probe;
use crate::support::Reply;

const SYNTAX: &str = "-ERR syntax error, ...";
const RANGE: &str = "-ERR value is not an integer or out of range";
const NO_NUMBERS: &str = "x | \"\" | 1x | 1.0 | 01 | +1 | 9223372036854775808";
const SETTINGS: &str =
    "'maxlen' 0 'maxbytes' 0 'deadlen' 0 'dedupe' 0 'maxreserved' 0 'rate' [ 0 0 ] 'groupmax' 0 \
    'grouprate' [ 0 0 ] 'groupfifo' 0 'donelen' 0 'donettl' 0 'donebytes' 0 'history' 0 'paused' 0 ]";

/// Each command, of a queue `KEY` that is there and of one that is not, with each of these endings.
#[track_caller]
fn refused(p: &mut Probe, commands: &str, endings: &str, error: &str) {
    for command in commands.split(" | ") {
        for ending in endings.split(" | ") {
            for key in ["q", "none"] {
                p.unseen(&format!("{command} {ending}").replace("KEY", key), error);
            }
        }
    }
}

/// A server with a queue `q`: `a` is reserved, `b` is ready, `d` is delayed.
fn start() -> Probe {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x PRIORITY -1 TTR 1000000");
    p.run("DQ.POP q");
    p.run("DQ.ADD q b x");
    p.run("DQ.ADD q d x AT 4000000000000");
    p
}

#[test]
fn options_of_a_job() {
    let mut p = start();
    let add = "DQ.ADD KEY n x | DQ.MADD KEY 1 n x";
    for word in [
        "DELAY",
        "AT",
        "TTR",
        "TTL",
        "ATTEMPTS",
        "BACKOFF",
        "BACKOFF 1",
        "KEEP",
        "COST",
        "PRIORITY",
    ] {
        let with_word = add.replace(" n x", &format!(" n x {word}"));
        refused(&mut p, &with_word, NO_NUMBERS, RANGE);
        if word != "PRIORITY" {
            refused(&mut p, &with_word, "-1", RANGE);
        }
        if !["PRIORITY", "BACKOFF"].contains(&word) {
            refused(&mut p, &with_word, "9223372036854775807", RANGE);
        }
    }
    refused(
        &mut p,
        add,
        "DELAY 4398046511103 | TTL 4398046511103 | DELAY 2660000000000 | DELAY 4398046511104 | AT 4398046511104 | \
        TTL 4398046511104 | TTR 4398046511104 | BACKOFF 1 4398046511104 | KEEP 4398046511104 | TTR 0 | TTL 0 | \
        BACKOFF 1 0 | BACKOFF 2 1 0 | BACKOFF DEFAULT | COST 0 | COST 1000001 | PRIORITY 2147483648 | \
        PRIORITY -2147483649 | ATTEMPTS 4294967296",
        RANGE,
    );
    refused(
        &mut p,
        add,
        "NX NX | NX XX | NX REPLACE | XX REPLACE | xx xx | DELAY 1 AT 1 | AT 1 DELAY 1 | DELAY 1 DELAY 1 | AT 1 AT 1 | \
        TTR 1 TTR 1 | TTL 1000 TTL 1000 | PRIORITY 1 PRIORITY 1 | ATTEMPTS 1 ATTEMPTS 1 | BACKOFF 1 1 BACKOFF 1 1 | \
        COST 2 COST 2 | LABEL a LABEL b | DELAY | AT | TTR | TTL | PRIORITY | ATTEMPTS | COST | LABEL | GROUP | BACKOFF | \
        BACKOFF 1 | BACKOFF 2 1 | BACKOFF 1 1 1 | BACKOFF 9223372036854775807 1 | NONSENSE | \"\" | NX\\x00",
        SYNTAX,
    );
    let long = "l".repeat(257);
    for (word, name) in [
        ("GROUP", "GROUP"),
        ("LABEL", "LABEL"),
        ("AFTER GROUP", "GROUP"),
    ] {
        let command = format!("DQ.ADD KEY n x {word}");
        let error = format!("-ERR {name} must be 1 to 256 bytes long");
        refused(&mut p, &command, &format!("\"\" | {long}"), &error);
    }
    refused(
        &mut p,
        "DQ.ADD KEY a x NEXT",
        "NX | XX | REPLACE | NEXT",
        SYNTAX,
    );
    refused(&mut p, "DQ.ADD KEY a x NEXT", "TTR 0", RANGE);
    refused(
        &mut p,
        "DQ.MADD KEY",
        "1 n x NEXT | 1 n x EVERY 1000 | 2 n x m | 2 n x | 1 n x m y",
        SYNTAX,
    );
    refused(
        &mut p,
        "DQ.MADD KEY",
        "0 n x | -1 n x | x n x | 10001 n x",
        RANGE,
    );
    p.says("DQ.LEN q", "3");
    for (steps, reply) in [
        (1024, "'n'"),
        (1025, "-ERR BACKOFF takes at most 1024 delays"),
    ] {
        let ladder = format!("BACKOFF {steps}{}", " 5".repeat(steps));
        p.says(&format!("DQ.ADD q n x REPLACE {ladder}"), reply);
        let reply = if steps == 1024 { "+OK" } else { reply };
        p.says(&format!("DQ.CFGSET q {ladder}"), reply);
    }
}

#[test]
fn every_option_in_any_order_and_case() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ADD q a x delay 60000 Priority -2147483648 ttr 1000 ATTEMPTS 4294967295 backoff 2 10 20 ttl 90000 nx
        'a'
        > DQ.ADD q b x TTL 90000 NX BACKOFF 2 10 20 ATTEMPTS 4294967295 TTR 1000 PRIORITY -2147483648 DELAY 60000
        'b'
        > DQ.ADD q c x BACKOFF 1 7 replace AT 4398046511103 COST 1000000 PRIORITY 2147483647
        'c'",
    );
    for id in ["a", "b"] {
        let now = p.time_ms();
        p.says(
            &format!("DQ.GET q {id}"),
            &format!(
                "[ 'id' '{id}' 'payload' 'x' 'state' 'delayed' 'priority' -2147483648 'due' ? 'deadline' nil$ \
                 'ttr' 1000 'attempts' 0 'max-attempts' 4294967295 'backoff' [ 10 20 ] 'expires' ? 'token' nil$ ..."
            ),
        );
        let get = format!("DQ.GET q {id}");
        let (due, expires) = (p.field_int(&get, "due"), p.field_int(&get, "expires"));
        assert!(due as u64 <= now + 60_001 && due as u64 > now + 50_000);
        assert_eq!(expires - due, 30_000, "both counted from one instant");
    }
    p.says("DQ.LEN q DELAYED", "3");
}

#[test]
fn the_least_and_the_most_of_every_option() {
    let mut p = Probe::start();
    let longest = "l".repeat(256);
    for (option, field) in [
        ("PRIORITY -2147483648", "priority"),
        ("PRIORITY 2147483647", "priority"),
        ("TTR 1", "ttr"),
        ("TTR 4398046511103", "ttr"),
        ("ATTEMPTS 0", "max-attempts"),
        ("ATTEMPTS 4294967295", "max-attempts"),
        ("KEEP 0", "keep"),
        ("KEEP 4398046511103", "keep"),
        ("COST 1", "cost"),
        ("COST 1000000", "cost"),
        (&format!("GROUP {longest}"), "group"),
        (&format!("LABEL {longest}"), "label"),
    ] {
        p.says(&format!("DQ.ADD q a x REPLACE {option}"), "'a'");
        let (_, said) = option.split_once(' ').expect("a value");
        let shown = p.field_text("DQ.GET q a", field);
        assert_eq!(shown.trim_matches('\''), said, "{option}");
    }
    p.says("DQ.ADD q a x REPLACE BACKOFF 2 1 4398046511103", "'a'");
    assert_eq!(p.field_text("DQ.GET q a", "backoff"), "[ 1 4398046511103 ]");
    p.says("DQ.ADD q a x REPLACE TTL 1", "'a'");
}

/// The values just within the bounds of a row, and just beyond; whether each is taken.
fn at_the_bounds(row: &Row) -> Vec<(String, bool)> {
    match row.kind {
        Kind::Number { least, most, .. } => {
            // Of a TTL no more is taken than there are instants after now.
            let most_fits = row.word() != "TTL";
            let ends = [
                (least, true),
                (least - 1, false),
                (most, most_fits),
                (most + 1, false),
            ];
            ends.map(|(number, fits)| (number.to_string(), fits)).into()
        }
        Kind::Text(most) => [most, most + 1]
            .map(|len| ("l".repeat(len), len == most))
            .into(),
        Kind::Ladder => Vec::new(),
    }
}

/// The columns of the table of attributes that no code reads, and what there is where nothing is said.
#[test]
fn the_table_of_attributes_says_what_is_so() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 9");
    for row in Attr::ALL.iter().map(|attr| attr.row()) {
        let (word, field) = (row.word(), row.field());
        let said = match row.kind {
            Kind::Number { .. } => "700000",
            Kind::Text(_) => "seven",
            Kind::Ladder => "2 7 7",
        };
        for (command, line) in [
            ("ADD", "DQ.ADD none a x XX SAID"),
            ("MADD", "DQ.MADD none 1 a x XX SAID"),
            ("CFGSET", "DQ.CFGSET set SAID"),
            ("NACK", "DQ.NACK none a SAID"),
            ("RESCHEDULE", "DQ.RESCHEDULE none SAID a"),
            ("TOUCH", "DQ.TOUCH none a SAID"),
        ] {
            let line = line.replace("SAID", &format!("{word} {said}"));
            let is_taken = !p.ask(&line).starts_with("-ERR syntax error");
            // That is the TTR of a lease alone.
            let of_a_lease = line.starts_with("DQ.TOUCH none a TTR");
            assert_eq!(
                is_taken,
                row.set_by.contains(&command) || of_a_lease,
                "{line}"
            );
        }
        for (value, fits) in at_the_bounds(row) {
            let reply = p.ask(&format!("DQ.ADD none a x XX {word} {value}"));
            assert_eq!(reply.starts_with("-ERR"), !fits, "{word} {value}");
        }
        p.run("DQ.ADD q a x REPLACE");
        let bytes = p.field_int("DQ.STATS q", "bytes");
        let of_unsaid = p.field_text("DQ.GET q a", field);
        assert_eq!(
            of_unsaid == "nil",
            matches!(row.unsaid, Unsaid::Nothing(_)),
            "{word}"
        );
        // What CFGSET takes is what jobs have that do not say it.
        let is_of_queue = row.unsaid == Unsaid::OfQueue;
        assert_eq!(is_of_queue, row.set_by.contains(&"CFGSET"), "{word}");
        if let Unsaid::Is(number) = row.unsaid {
            assert_eq!(of_unsaid, number.to_string(), "{word}");
        }
        p.run(&format!("DQ.ADD q a x REPLACE {word} {said}"));
        let counted = p.field_int("DQ.STATS q", "bytes") - bytes;
        let counts = if row.counts_for.contains(&"MAXBYTES") {
            said.len()
        } else {
            0
        };
        assert_eq!(counted, counts as i64, "{word}");
        let of_said = p.field_text("DQ.GET q a", field);
        p.run("DQ.POP q");
        p.run("DQ.ACK q a");
        let is_over = p.field_text("DQ.GET q a", field) != of_said;
        assert_eq!(is_over, row.ends_with.contains(&"being done"), "{word}");
    }
}

#[test]
fn every_setting_in_any_order_and_case() {
    let mut p = Probe::start();
    let set = "'maxlen' 2 'maxbytes' 7 'deadlen' 3 'dedupe' 4398046511103 'maxreserved' 4 \
        'rate' [ 4294967295 4398046511103 ] 'groupmax' 8 'grouprate' [ 4294967295 9 ] 'groupfifo' 1 'donelen' 10 \
        'donettl' 11 'donebytes' 12 'history' 100 'paused' 0 ]";
    let terms = "'attempts' 4294967295 'backoff' [ 5 4398046511103 ]";
    p.talk(&format!(
        "> DQ.CFGSET q rate 4294967295 4398046511103 MaxReserved 4 dedupe 4398046511103 DEADLEN 3 maxlen 2 maxbytes 7 \
         BACKOFF 2 5 4398046511103 ATTEMPTS 4294967295 TTR 4398046511103 groupmax 8 GroupRate 4294967295 9 GROUPFIFO 1 \
         donelen 10 DONETTL 11 donebytes 12 History 100
        +OK
        > DQ.CFGGET q
        [ 'ttr' 4398046511103 {terms} {set}
        > DQ.CFGSET q TTR 1
        +OK
        > DQ.CFGGET q
        [ 'ttr' 1 {terms} {set}
        > DQ.CFGSET q backoff 0
        +OK
        > DQ.CFGGET q
        [ 'ttr' 1 'attempts' 4294967295 'backoff' [ 0 ] {set}
        > DQ.CFGSET q TTR 60000 ATTEMPTS 0 BACKOFF DEFAULT MAXLEN 0 MAXBYTES 0 DEADLEN 0 DEDUPE 0 MAXRESERVED 0 RATE 0 0 \
         GROUPMAX 0 GROUPRATE 0 0 GROUPFIFO 0 DONELEN 0 DONETTL 0 DONEBYTES 0 HISTORY 0
        +OK
        > DQ.CFGGET q
        [ 'ttr' 60000 'attempts' 0 'backoff' [ ] {SETTINGS}"
    ));
}

#[test]
fn settings() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q TTR 5000");
    for (command, name) in [
        ("DQ.PAUSE KEY 5", "dq.pause"),
        ("DQ.RESUME KEY", "dq.resume"),
    ] {
        let error = format!("-ERR wrong number of arguments for '{name}' command");
        refused(&mut p, command, "5", &error);
    }
    for word in [
        "TTR",
        "ATTEMPTS",
        "BACKOFF",
        "MAXLEN",
        "MAXBYTES",
        "DEADLEN",
        "DEDUPE",
        "MAXRESERVED",
        "GROUPMAX",
        "GROUPFIFO",
        "DONELEN",
        "DONETTL",
        "DONEBYTES",
        "HISTORY",
    ] {
        let set = format!("DQ.CFGSET KEY {word}");
        refused(&mut p, &set, &format!("-1 | {NO_NUMBERS}"), RANGE);
        refused(&mut p, "DQ.CFGSET KEY", &format!("RATE 1 1 {word}"), SYNTAX);
        if word != "BACKOFF" {
            refused(
                &mut p,
                &set,
                &format!("1 {}", format!("{word} 1").to_lowercase()),
                SYNTAX,
            );
        }
    }
    refused(
        &mut p,
        "DQ.CFGSET KEY",
        "TTR 0 | BACKOFF 1 0 | TTR 4398046511104 | DEDUPE 4398046511104 | DONETTL 4398046511104 | \
        BACKOFF 1 4398046511104 | ATTEMPTS 4294967296 | RATE 0 5 | RATE 5 0 | RATE -1 5 | RATE 5 -1 | \
        RATE 4294967296 5 | RATE x 5 | RATE 5 4398046511104 | GROUPRATE 4294967296 1 | GROUPRATE 1 0 | GROUPFIFO 2 | \
        HISTORY 101 | TTR 7 RATE 0 5 | BACKOFF 1 DEFAULT",
        RANGE,
    );
    refused(
        &mut p,
        "DQ.CFGSET KEY",
        "NONSENSE | 5 | \"\" | RATE 5 | RATE | RATE 5 5 5 | BACKOFF 2 1 | BACKOFF 1 1 1 | BACKOFF DEFAULT 1 | \
        BACKOFF DEFAULT BACKOFF 0 | RATE 0 0 RATE 0 0 | PAUSED 1",
        SYNTAX,
    );
    refused(
        &mut p,
        "DQ.PAUSE KEY",
        "0 | -1 | x | \"\" | 4398046511103 | 4398046511104 | 9223372036854775808",
        RANGE,
    );
    refused(&mut p, "DQ.PAUSE KEY 5 | DQ.RESUME KEY", "GROUP", SYNTAX);
    let length = "-ERR GROUP must be 1 to 256 bytes long";
    refused(
        &mut p,
        "DQ.PAUSE KEY | DQ.PAUSE KEY 5",
        "GROUP \"\"",
        length,
    );
    let long = "g".repeat(257);
    refused(
        &mut p,
        &format!("DQ.GROUPSET KEY \"\" | DQ.GROUPSET KEY {long}"),
        "MAX 1 | CLEAR",
        length,
    );
    refused(
        &mut p,
        "DQ.GROUPSET KEY g",
        "MAX -1 | MAXLEN 9223372036854775808 | WEIGHT 0 | WEIGHT 1001 | RATE 0 5 | RATE 4294967296 5 | \
        RATE 1 4398046511104",
        RANGE,
    );
    refused(
        &mut p,
        "DQ.GROUPSET KEY g",
        "CLEAR MAX 3 | MAX 1 MAX 1 | MAX | RATE 1 | NONSENSE",
        SYNTAX,
    );
}

#[test]
fn deliveries() {
    let mut p = start();
    for word in ["COUNT", "TTR", "LEASE"] {
        refused(
            &mut p,
            &format!("DQ.POP KEY {word}"),
            &format!("0 | -1 | {NO_NUMBERS}"),
            RANGE,
        );
    }
    refused(&mut p, "DQ.POP KEY", "TTR 4398046511104", RANGE);
    refused(
        &mut p,
        "DQ.POP KEY",
        "NOACK NOACK | COUNT | ID | TTR | LEASE | COUNT 1 COUNT 1 | ID a ID a | TTR 5 TTR 5 | COUNT 1 ID a | \
        ID a COUNT 1 | TTR 5 LEASE 5 | LEASE 5 TTR 5 | WITHDUE WITHDUE | WITHSTEPS WITHSTEPS | WITHTERMS WITHTERMS | \
        NONSENSE | \"\" | 5",
        SYNTAX,
    );
    refused(
        &mut p,
        "DQ.ACK KEY",
        "WITHTOKENS a 1 b | RESULTS a 1 x b | results a 1 x b 2",
        SYNTAX,
    );
    refused(
        &mut p,
        "DQ.ACK KEY",
        "WITHTOKENS | WITHTOKENS a | RESULTS | RESULTS a 1",
        "-ERR wrong number of arguments for 'dq.ack' command",
    );
    refused(
        &mut p,
        "DQ.NACK KEY a",
        "SILENT FAIL | FAIL FATAL | SILENT FATAL | FAIL FAIL | TOKEN | DELAY | PRIORITY | REASON | NONSENSE | b | \
        TOKEN 1 TOKEN 1 | DELAY 1 DELAY 1 | PRIORITY 1 PRIORITY 1 | REASON a REASON b | AWAIT n | FAIL AWAIT n | \
        FATAL AWAIT n | SILENT AWAIT n AWAIT m | SILENT AWAIT",
        SYNTAX,
    );
    refused(
        &mut p,
        "DQ.NACK KEY a | DQ.NACK KEY a SILENT | DQ.NACK KEY a SILENT AWAIT n",
        "DELAY -1 | DELAY x | DELAY 4398046511104 | DELAY 4398046511103 | DELAY 9223372036854775808",
        RANGE,
    );
    refused(
        &mut p,
        "DQ.NACK KEY a PRIORITY | DQ.RESCHEDULE KEY AT 5 PRIORITY",
        "2147483648 d | -2147483649 d | x d",
        RANGE,
    );
    refused(
        &mut p,
        "DQ.TOUCH KEY a",
        "TOKEN | TTR | COST | PROGRESS | TTR 5 TTR 5 | TOKEN 1 TOKEN 1 | NONSENSE | DELAY 5",
        SYNTAX,
    );
    refused(
        &mut p,
        "DQ.TOUCH KEY IDS 1 a 1",
        "PROGRESS x | COST 2",
        SYNTAX,
    );
    refused(&mut p, "DQ.NACK KEY IDS 1 a 1", "SILENT AWAIT n", SYNTAX);
    for (word, past) in [("TTR", "4398046511104"), ("COST", "1000001")] {
        let endings = format!("0 | -1 | {past} | {NO_NUMBERS}");
        refused(&mut p, &format!("DQ.TOUCH KEY a {word}"), &endings, RANGE);
    }
    let long = "n".repeat(257);
    let length = "-ERR step name must be 1 to 256 bytes long";
    refused(
        &mut p,
        "DQ.STEP KEY a 1 n v | DQ.STEP KEY a 1",
        &format!("\"\" v | {long} v"),
        length,
    );
    refused(
        &mut p,
        "DQ.SIGNAL KEY a | DQ.NACK KEY a SILENT AWAIT",
        &format!("\"\" | {long}"),
        length,
    );
    let arity = "-ERR wrong number of arguments for 'dq.step' command";
    refused(&mut p, "DQ.STEP KEY a 1", "n v m", arity);
}

#[test]
fn changes_and_queries() {
    let mut p = start();
    for word in ["AT", "DELAY"] {
        refused(
            &mut p,
            &format!("DQ.RESCHEDULE KEY {word}"),
            "-1 d | x d | 1.0 d | \"\" d | 4398046511104 d | 9223372036854775808 d",
            RANGE,
        );
    }
    refused(
        &mut p,
        "DQ.RESCHEDULE KEY",
        "DELAY 4398046511103 d | PRIORITY 1 DELAY x d",
        RANGE,
    );
    refused(
        &mut p,
        "DQ.RESCHEDULE KEY",
        "IN 5 d | d r x y | DELAY 5 AT 6 d | AT 5 DELAY 6 d",
        SYNTAX,
    );
    for value in ["0", "-1", "x", "\"\"", "9223372036854775808"] {
        refused(
            &mut p,
            "DQ.KICK KEY",
            &format!("COUNT {value} | IDS {value} a"),
            RANGE,
        );
    }
    refused(
        &mut p,
        "DQ.KICK KEY",
        "IDS 2 a | IDS 1 a b | IDS 1 | IDS 9223372036854775807 a | COUNT 1 a | ALL 1",
        SYNTAX,
    );
    refused(&mut p, "DQ.PURGE KEY", "EVERYTHING | \"\"", SYNTAX);
    refused(&mut p, "DQ.LEN KEY", "ALL | GROUP | 5", SYNTAX);
    refused(
        &mut p,
        "DQ.PEEK KEY",
        "ALL | \"\" | READY FROM | READY COUNT | READY TO | READY 5 | READY FROM 1 FROM 1 | READY COUNT 1 COUNT 1 | \
        READY TO 1 TO 1 | READY DEAD",
        SYNTAX,
    );
    refused(
        &mut p,
        "DQ.PEEK KEY READY",
        "FROM -1 | TO -1 | FROM 4398046511104 | TO 4398046511104 | FROM x | COUNT 0 | COUNT -1 | COUNT x | \
        COUNT 9223372036854775808",
        RANGE,
    );
    let cursors = "x | -1 | 1.5 | 99999999999999999999999";
    refused(
        &mut p,
        "DQ.SCAN KEY | DQ.GROUPS KEY",
        cursors,
        "-ERR invalid cursor",
    );
    refused(
        &mut p,
        "DQ.SCAN KEY 0",
        "STATE | STATE all | MATCH | COUNT | COUNT 1 COUNT 1 | MATCH * MATCH * | STATE dead STATE dead | TYPE x | 5 | \
        GROUP | PAYLOAD x PAYLOAD y | LABEL | AWAITS | REASON | AWAITS a AWAITS b | REASON a REASON b",
        SYNTAX,
    );
    refused(
        &mut p,
        "DQ.SCAN KEY 0 COUNT | DQ.GROUPS KEY 0 COUNT",
        "0 | -1 | x | 9223372036854775808",
        RANGE,
    );
    refused(&mut p, "DQ.NEXT KEY a COUNT", "0 | 1001 | x", RANGE);
}

/// An id or a value that reads as a word is taken as what its place makes it.
#[test]
fn values_may_read_like_words() {
    let mut p = Probe::start();
    for id in [
        "COUNT",
        "NOACK",
        "NX",
        "TOKEN",
        "WITHTOKENS",
        "UNRESERVED",
        "PRIORITY",
        "DELAY",
        "AT",
        "3",
    ] {
        p.says(&format!("DQ.ADD q {id} NX"), &format!("'{id}'"));
    }
    p.talk(
        "> DQ.POP q ID COUNT
        [ 'COUNT' 'NX' ? 1 ? ]
        > DQ.POP q ID NOACK NOACK
        [ 'NOACK' 'NX' nil$ 1 nil$ ]
        > DQ.NACK q COUNT TOKEN DELAY
        nil$
        > DQ.TOUCH q COUNT TOKEN TTR TTR 100000
        nil$
        > DQ.SCAN q 0 MATCH COUNT
        [ '0' [ 'COUNT' ] ]
        > DQ.POP q ID WITHTOKENS
        [ 'WITHTOKENS' 'NX' ? 1 ? ]
        > DQ.ACK q COUNT WITHTOKENS
        2
        > DQ.GET q TOKEN
        [ 'id' 'TOKEN' 'payload' 'NX' ...
        > DQ.DEL q UNRESERVED
        -ERR wrong number of arguments for 'dq.del' command
        > DQ.DEL q UNRESERVED UNRESERVED
        1
        > DQ.RESCHEDULE q AT 4000000000000 PRIORITY 3
        2
        > DQ.RESCHEDULE q PRIORITY 1 PRIORITY 3 TOKEN
        3
        > DQ.RESCHEDULE q PRIORITY 1 DELAY 3
        2",
    );
    p.run("DQ.MADD q 2 last x UNRESERVED x");
    p.says("DQ.DEL q last UNRESERVED", "2");
}

/// Ids and payloads are any bytes. Where a command names no job, an id of a wrong length is one that is not there.
#[test]
fn ids() {
    let mut p = Probe::start();
    let (longest, longer) = ("i".repeat(1024), "i".repeat(1025));
    refused(
        &mut p,
        "DQ.ADD KEY",
        &format!("\"\" x | {longer} x"),
        "-ERR id must be 1 to 1024 bytes long",
    );
    let ids = [
        "i",
        &longest,
        "\\x00",
        "\\xff\\xfe",
        "a\\x00b",
        "a\\x00c",
        "\\x0d\\x0a",
    ];
    for id in ids {
        p.run(&format!("DQ.ADD q {id} {id}\\x00\\xff"));
        let line = format!("DQ.POP q ID {id}");
        let Reply::Array(words) = p.run(&line) else {
            panic!("{line}");
        };
        let [Reply::Bulk(own), Reply::Bulk(payload), ..] = &words[..] else {
            panic!("{line}");
        };
        assert_eq!(payload, &[own.as_slice(), b"\0\xff"].concat());
    }
    p.says("DQ.LEN q RESERVED", "7");
    for id in ["\"\"", longer.as_str()] {
        p.all_unseen(&format!(
            "DQ.DEL q {id} -> 0
            DQ.GET q {id} -> nil$
            DQ.POP q ID {id} -> nil*
            DQ.ACK q {id} -> 0
            DQ.ACK q WITHTOKENS {id} 5 -> 0
            DQ.NACK q {id} -> nil$
            DQ.TOUCH q {id} -> nil$
            DQ.GROUPGET q {id} -> nil$
            DQ.RESCHEDULE q DELAY 5 {id} -> 0
            DQ.KICK q IDS 1 {id} -> 0"
        ));
    }
}
